// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Probes: samples of port queues at fixed times.

use crate::net::fabric::Fabric;
use onramp_units::{Bytes, Sim, Span, Time};

/// Sample times: from a start, at an interval, to before an end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub next: Time<Sim>,
    pub interval: Span,
    pub end: Time<Sim>,
}

/// The probes of a domain.
#[derive(Default)]
pub(crate) struct Probes {
    times: Option<Times>,
    probes: Vec<Probe>,
}

/// Samples of a port since the last time they were taken.
pub(crate) struct Probe {
    port: u32,
    pub longest_wait: Span,
    pub most_queued: Bytes,
    /// Queueing delay of each sample, if all are kept.
    pub waits: Option<Vec<Span>>,
}

impl Probes {
    pub fn next_at(&self) -> Option<Time<Sim>> {
        let times = self.times.filter(|times| times.next < times.end)?;
        Some(times.next)
    }
}

impl Probes {
    /// Samples `port` at the times of all probes; keeps every queueing delay or only the longest. Returns the
    /// probe's number.
    pub fn start(&mut self, port: u32, times: Times, keeps_waits: bool) -> usize {
        self.times = Some(times);
        self.probes.push(Probe {
            port,
            longest_wait: Span::ZERO,
            most_queued: Bytes::ZERO,
            waits: keeps_waits.then(Vec::new),
        });
        self.probes.len() - 1
    }

    /// A probe by its number.
    pub fn probe(&mut self, number: usize) -> &mut Probe {
        &mut self.probes[number]
    }

    /// All probes take a sample.
    pub fn look(&mut self, net: &Fabric, now: Time<Sim>) {
        if let Some(times) = &mut self.times {
            times.next += times.interval;
        }
        for probe in &mut self.probes {
            let state = net.port_state(probe.port, now);
            probe.longest_wait = probe.longest_wait.max(state.wait);
            probe.most_queued = probe.most_queued.max(state.queued);
            if let Some(waits) = &mut probe.waits {
                waits.push(state.wait);
            }
        }
    }
}
