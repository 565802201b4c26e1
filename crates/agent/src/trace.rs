// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The trace of this host's flows: looks at the flow table, and writes what has ended. docs/trace.md describes the file.
//!
//! Does not: run per packet, or wait for a disk. The file is written by a thread of its own.
mod file;
mod follow;
mod hours;

use std::hash::Hasher;
use std::net::IpAddr;

use onramp_clock::keys::Key;
use onramp_trace::{Flow, Head, Record};
use siphasher::sip::SipHasher24;

pub use file::File;
use follow::{Follow, Past};
use hours::Hours;

use crate::config::TraceKeys;
use crate::datapath::Seen;

/// Most flows that are read at a look, each with 6 kB, so that the daemon needs little of a processor. Others wait
/// for the next look; their bytes are counted, their times are less exact.
pub const MOST_SEEN: usize = 256;

/// How addresses are written.
pub enum Names {
    Plain,
    /// By this key.
    Hashed(Key),
}

impl Names {
    fn of(&self, addr: IpAddr) -> String {
        match self {
            Names::Plain => addr.to_string(),
            Names::Hashed(key) => {
                let mut hasher = SipHasher24::new_with_key(&key.bytes);
                hasher.write(addr.to_string().as_bytes());
                format!("{:016x}", hasher.finish())
            }
        }
    }
}

/// The flows that are followed, and the file.
pub struct Trace {
    names: Names,
    look_ns: i64,
    follow: Follow,
    hours: Hours,
    /// None: with `--observe`, what would be held is counted by peer all the same.
    file: Option<File>,
    /// Where the next look begins.
    pub next: u32,
}

/// What a look needs to know besides the flows.
pub struct Now<'n> {
    pub mono_ns: i64,
    /// Fleet time minus CLOCK_MONOTONIC.
    pub offset_ns: i64,
    pub unix_s: u64,
    /// T of a peer.
    pub threshold_ns: &'n dyn Fn(IpAddr) -> Option<i64>,
}

impl Trace {
    pub fn new(keys: &TraceKeys, names: Names, file: Option<File>) -> Trace {
        Trace {
            names,
            look_ns: keys.look.as_ns(),
            follow: Follow::new(keys.gap.as_ns()),
            hours: Hours::default(),
            file,
            next: 0,
        }
    }

    /// Takes the flows of a look. `whole`: they are all flows of the table.
    pub fn look(&mut self, seen: &[Seen], whole: bool, now: &Now<'_>) {
        let mut records: Vec<Record> = vec![];
        let hours = self.hours.advance(now).into_iter();
        records
            .extend(hours.map(|(peer, hour)| Record::Hour(hour.record(self.names.of(peer), now))));
        for flow in seen {
            let step = self.follow.step(flow, now.mono_ns);
            self.hours.add(flow.ends.to.ip(), &step, self.look_ns, now);
            records.extend(step.past.iter().map(|past| self.flow(past, now)));
        }
        if whole {
            let gone = self.follow.forget(now.mono_ns);
            records.extend(gone.iter().map(|past| self.flow(past, now)));
        }
        self.write(&records);
    }

    /// Writes what is open. The daemon ends.
    pub fn end(mut self, now: &Now<'_>) {
        let past = self.follow.end();
        let mut records: Vec<Record> = past.iter().map(|past| self.flow(past, now)).collect();
        let hours = self.hours.end(now).into_iter();
        records
            .extend(hours.map(|(peer, hour)| Record::Hour(hour.record(self.names.of(peer), now))));
        self.write(&records);
        if let Some(file) = self.file {
            file.end();
        }
    }

    /// What became of the records.
    pub fn status(&self) -> Option<onramp_status::Trace> {
        self.file.as_ref().map(File::status)
    }

    fn write(&self, records: &[Record]) {
        if let Some(file) = &self.file {
            file.write(records);
        }
    }

    /// For how long flows to a peer were held since the daemon began, or would have been.
    pub fn held_ns(&self, peer: IpAddr) -> Option<u64> {
        self.hours.held_ns(peer)
    }

    fn flow(&self, past: &Past, now: &Now<'_>) -> Record {
        let ends = past.ends;
        Record::Flow(Flow {
            from: self.names.of(ends.from.ip()),
            from_port: ends.from.port(),
            to: self.names.of(ends.to.ip()),
            to_port: ends.to.port(),
            start_fleet_ns: past.start_mono_ns.saturating_add(now.offset_ns),
            duration_ns: past.duration_ns,
            size_bytes: past.size_bytes,
            delays: past.delays,
            held_ns: i64::from(past.looks_held) * self.look_ns,
        })
    }
}

/// The first line of a file.
pub fn head(
    keys: &TraceKeys,
    observes: bool,
    clock: &str,
    devices: Vec<onramp_trace::Device>,
) -> Head {
    Head {
        version: onramp_trace::VERSION,
        onramp: env!("CARGO_PKG_VERSION").to_owned(),
        addresses: keys.addresses.name().to_owned(),
        observes,
        clock: clock.to_owned(),
        look_ns: keys.look.as_ns(),
        gap_ns: keys.gap.as_ns(),
        devices,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_names_depend_on_the_key_and_do_not_contain_the_address() {
        let key = |byte| Key {
            id: 0,
            bytes: [byte; 16],
        };
        let addr = "10.0.0.1".parse().unwrap();
        let name = |byte| Names::Hashed(key(byte)).of(addr);
        assert_eq!(name(1), name(1));
        assert_ne!(name(1), name(2));
        assert_eq!(
            (name(1).len(), Names::Plain.of(addr)),
            (16, "10.0.0.1".to_owned())
        );
    }
}
