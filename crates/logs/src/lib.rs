// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Records of a network's traffic as one list of flows: traces of daemons, Zeek's conn.log, NetFlow or IPFIX as CSV, and
//! captures as `tcpdump` writes them.
//!
//! Files are foreign: any bytes are answered with flows or with an error that names file and line. Does not open files,
//! and does not simulate.
#![warn(missing_docs)]

mod bursts;
mod capture;
mod connection;
mod error;
mod netflow;
mod packet;
mod time;
mod zeek;

pub use error::{LogError, Reason};

use bursts::Bursts;
use capture::{Capture, Packets};
use connection::Connections;
use onramp_trace::{is_trace, merge, merge_flows, Merged, Trace};
use std::io::BufRead;

/// A connection of a log that lasts longer is as many flows with equal shares of its bytes.
pub const PIECE_NS: i64 = 100_000_000;

/// What files have, so far; captures are read at the end, all together.
#[derive(Default)]
pub struct Logs<'f> {
    captures: Vec<Capture<'f>>,
    connections: Connections,
    traces: Vec<Trace>,
    has_logs: bool,
}

/// What all files have together.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// The flows.
    pub flows: Merged,
    /// What the files cannot show, and what was left out of them; each a sentence without a full stop.
    pub remarks: Vec<String>,
}

/// What a file is, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Pcap,
    PcapNg,
    ZeekText,
    ZeekJson,
    Csv,
    Trace,
    Compressed,
}

impl Form {
    fn of(start: &[u8]) -> Form {
        match start {
            [0xa1, 0xb2, 0xc3, 0xd4, ..]
            | [0xd4, 0xc3, 0xb2, 0xa1, ..]
            | [0xa1, 0xb2, 0x3c, 0x4d, ..]
            | [0x4d, 0x3c, 0xb2, 0xa1, ..] => Form::Pcap,
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => Form::PcapNg,
            [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => Form::Compressed,
            [b'#', ..] => Form::ZeekText,
            start if is_trace(start) => Form::Trace,
            [b'{', ..] => Form::ZeekJson,
            _ => Form::Csv,
        }
    }
}

impl<'f> Logs<'f> {
    /// Adds a file, called `name` in errors.
    ///
    /// # Errors
    /// What is wrong with it, with the line or packet.
    pub fn add(&mut self, name: &str, mut file: impl BufRead + 'f) -> Result<(), LogError> {
        let start = file
            .fill_buf()
            .map_err(|error| LogError::read(name, &error))?;
        let form = match name.ends_with(".trace") {
            true => Form::Trace,
            false => Form::of(start),
        };
        let added = match form {
            Form::Pcap => self.capture(name, capture::pcap(file)),
            Form::PcapNg => self.capture(name, capture::pcapng(file)),
            Form::ZeekText => zeek::text(file, &mut self.connections),
            Form::ZeekJson => zeek::json(file, &mut self.connections),
            Form::Csv => netflow::csv(file, &mut self.connections),
            Form::Trace => trace(file).map(|trace| self.traces.push(trace)),
            Form::Compressed => Err(LogError::of(Reason::Compressed)),
        };
        self.has_logs |= matches!(form, Form::ZeekText | Form::ZeekJson | Form::Csv);
        added.map_err(|error| error.in_file(name))
    }

    fn capture(
        &mut self,
        name: &str,
        packets: Result<Packets<'f>, LogError>,
    ) -> Result<(), LogError> {
        self.captures.push(Capture::open(name, packets?)?);
        Ok(())
    }

    /// The flows of all files. `one_clock`: the hosts of several traces share one kernel, so that their local clocks agree.
    ///
    /// # Errors
    /// The times of several traces do not agree, or there are traces beside other records.
    pub fn finish(self, one_clock: bool) -> Result<Log, LogError> {
        let is_other = self.has_logs || !self.captures.is_empty();
        if is_other && !self.traces.is_empty() {
            return Err(LogError::of(Reason::Mixed).in_file("the files"));
        }
        if !is_other {
            let flows = merge(&self.traces);
            if !flows.one_time && !one_clock {
                return Err(LogError::of(Reason::Clocks).in_file("several traces"));
            }
            let remarks = of_traces(&self.traces);
            return Ok(Log { flows, remarks });
        }
        let mut remarks = self.limits();
        let mut bursts = Bursts::default();
        capture::in_order(self.captures, |(at_ns, length, segment)| match segment {
            Some(segment) => bursts.add(at_ns, segment),
            None => bursts.leave_out(length),
        })?;
        remarks.extend(bursts.place());
        remarks.extend(bursts.left_out());
        remarks.extend(self.connections.left_out());
        let mut flows = bursts.finish();
        flows.extend(self.connections.finish());
        let flows = merge_flows(flows.iter());
        Ok(Log { flows, remarks })
    }

    /// What logs and captures cannot show.
    fn limits(&self) -> Vec<String> {
        let of_logs = format!(
            "a log has a connection's bytes and duration, not its bursts: each was replayed as one burst, or one each {} ms; \
             a capture shows the bursts",
            PIECE_NS / 1_000_000
        );
        let twice = "a flow that two exporters logged counts twice, and sampled records lack flows"
            .to_owned();
        let of_captures = "a capture has the flows that were sent with the congestion there was, at the place of the capture: a \
                           client that waits for a lost packet sends its next request later than without the loss; hosts that \
                           were not captured appear with what they exchanged with those that were";
        let clocks = "captures of several hosts: incasts are right only if the hosts' clocks agree within some 100 us";
        let logs = [of_logs, twice].into_iter().filter(|_| self.has_logs);
        let captures = (!self.captures.is_empty()).then(|| of_captures.to_owned());
        let clocks = (self.captures.len() > 1).then(|| clocks.to_owned());
        logs.chain(captures).chain(clocks).collect()
    }
}

fn trace(mut file: impl BufRead) -> Result<Trace, LogError> {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    read.map_err(|error| LogError::of(Reason::Read(error.to_string())))?;
    onramp_trace::read(&text).map_err(|error| LogError::of(Reason::Trace(error)))
}

/// What traces cannot show.
fn of_traces(traces: &[Trace]) -> Vec<String> {
    let held =
        "a daemon held flows while it recorded, so their starts are later than without On-Ramp";
    let held = traces
        .iter()
        .any(|trace| !trace.head.observes)
        .then_some(held);
    let always = "a trace shows neither the fabric nor traffic of hosts without a trace";
    held.into_iter()
        .chain([always])
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests;
