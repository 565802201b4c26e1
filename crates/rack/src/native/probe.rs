// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Loads bpf/probe.bpf.c, the instruments, and hands on what they note.

use super::bpf::{attach, Hook};
use super::sys::NetNs;
use crate::error::{Doing, Result};
use bytemuck::try_pod_read_unaligned;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, RingBufferBuilder};
use onramp_law::abi::{onr_probe_event, onr_probe_kind};
use onramp_scenario::HostId;
use std::cell::RefCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::rc::Rc;

#[allow(missing_docs, dead_code, clippy::all, clippy::pedantic)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/probe.skel.rs"));
}

/// What a probe has seen. Times in ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A frame reached the measured port's queue.
    Arrival {
        /// When.
        at_ns: i64,
        /// Its length.
        bytes: u64,
        /// Bytes in the queue before it.
        queued_bytes: u64,
    },
    /// A sampled TCP segment reached its host.
    Delay {
        /// When.
        at_ns: i64,
        /// Since it left its sender's network card.
        one_way_ns: i64,
    },
}

impl Event {
    /// Reads what bpf/probe.bpf.c writes.
    fn parse(raw: &[u8]) -> Option<Event> {
        let event: onr_probe_event = try_pod_read_unaligned(raw).ok()?;
        let at_ns = event.mono_ns;
        Some(if event.kind == onr_probe_kind::Arrival as u32 {
            Event::Arrival {
                at_ns,
                bytes: u64::from(event.bytes),
                queued_bytes: event.value,
            }
        } else {
            Event::Delay {
                at_ns,
                one_way_ns: event.value as i64,
            }
        })
    }
}

/// The instruments, attached.
pub struct Probe {
    skel: skel::ProbeSkel<'static>,
    events: Rc<RefCell<Vec<Event>>>,
    ring: libbpf_rs::RingBuffer<'static>,
    _links: Vec<Link>,
}

impl Probe {
    /// Watches the switch port of host `measured` and the way of all segments to it.
    pub fn attach(switch: &NetNs, hosts: &[NetNs], measured: HostId) -> Result<Probe> {
        // One object for the life of the process, which runs one rack.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = skel::ProbeSkelBuilder::default()
            .open(object)
            .doing(|| "opening probe.bpf.o".into())?;
        let skel = open.load().doing(|| "loading probe.bpf.o".into())?;
        let mut links = Vec::new();
        for (host, _) in hosts
            .iter()
            .enumerate()
            .filter(|&(host, _)| host != measured as usize)
        {
            links.push(attach(
                switch,
                &skel.progs.probe_sent,
                &format!("up{host}"),
                Hook::Tcx,
            )?);
        }
        links.push(attach(
            switch,
            &skel.progs.probe_port,
            &format!("up{measured}"),
            Hook::Tcx,
        )?);
        links.push(attach(
            &hosts[measured as usize],
            &skel.progs.probe_received,
            "eth0",
            Hook::Tcx,
        )?);

        let events = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&events);
        let mut builder = RingBufferBuilder::new();
        let note = move |raw: &[u8]| {
            sink.borrow_mut().extend(Event::parse(raw));
            0
        };
        builder
            .add(&skel.maps.probe_events, note)
            .doing(|| "mapping the probes' ring".into())?;
        let ring = builder
            .build()
            .doing(|| "mapping the probes' ring".into())?;
        Ok(Probe {
            skel,
            events,
            ring,
            _links: links,
        })
    }

    /// All events since the last call, in order of time.
    pub fn drain(&mut self) -> Result<Vec<Event>> {
        self.ring
            .consume()
            .doing(|| "reading the probes' ring".into())?;
        Ok(std::mem::take(&mut *self.events.borrow_mut()))
    }

    /// Events that found the ring full.
    pub fn lost(&self) -> u64 {
        self.skel
            .maps
            .bss_data
            .as_deref()
            .map_or(0, |bss| bss.lost_events)
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe")
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::bytes_of;

    #[test]
    fn events_are_read_as_the_program_writes_them() {
        let mut event = onr_probe_event {
            mono_ns: 5000,
            kind: onr_probe_kind::Arrival as u32,
            bytes: 1514,
            value: 3028,
        };
        let arrival = Event::Arrival {
            at_ns: 5000,
            bytes: 1514,
            queued_bytes: 3028,
        };
        assert_eq!(Event::parse(bytes_of(&event)), Some(arrival));
        event.kind = onr_probe_kind::Delay as u32;
        assert_eq!(
            Event::parse(bytes_of(&event)),
            Some(Event::Delay {
                at_ns: 5000,
                one_way_ns: 3028
            })
        );
        assert_eq!(Event::parse(&bytes_of(&event)[1..]), None);
    }
}
