// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The measured ports of a run: what they send and drop, and their queueing delays.

use crate::net::fabric::port::PortState;
use crate::net::port_name::{find, UnknownPort};
use crate::simulation::Simulation;
use crate::watch::probe::Times;
use onramp_results::{PortCounters, Summary};
use onramp_scenario::{Measure, Run, BUSIEST};
use onramp_units::{Bytes, Sim, Span, Time};

/// What `measure.ports` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Port(u32),
    /// The port of a switch that uses most of its line.
    Busiest,
}

/// The named ports, of ports called `names`.
///
/// # Errors
/// A port that the network does not have.
pub(super) fn wanted(measure: &Measure, names: &[String]) -> Result<Vec<Wanted>, UnknownPort> {
    let one = |name: &str| match name {
        BUSIEST => Ok(Wanted::Busiest),
        name => find(names, name).map(Wanted::Port),
    };
    let ports = measure.ports.iter();
    ports.map(|port| one(&port.0)).collect()
}

/// Measures from the end of the warm-up on.
pub(super) struct MeasuredPorts {
    /// The first is the measured port.
    wanted: Vec<Wanted>,
    watched: Vec<Watched>,
}

struct Watched {
    port: u32,
    probe: usize,
    at_warmup: PortState,
    /// At the end of the traffic.
    sent: Bytes,
    waits: Vec<Span>,
}

impl MeasuredPorts {
    /// Without wanted ports, measures the one to the measured host of `run`.
    pub fn new(
        run: &Run,
        simulation: &Simulation,
        mut wanted: Vec<Wanted>,
        times: Times,
    ) -> MeasuredPorts {
        if wanted.is_empty() {
            let to_host = simulation.network().port_of(run.observed_host()) ^ 1;
            wanted.push(Wanted::Port(to_host));
        }
        let named = wanted.iter().filter_map(|wanted| match wanted {
            Wanted::Port(port) => Some(*port),
            Wanted::Busiest => None,
        });
        let mut ports: Vec<u32> = named.collect();
        if wanted.contains(&Wanted::Busiest) {
            ports.extend(simulation.switch_ports());
        }
        ports.sort_unstable();
        ports.dedup();
        let watch = |port: u32| {
            let mut domain = simulation.domain_of(port);
            Watched {
                port,
                probe: domain.probes.start(port, times, true),
                at_warmup: domain.site.net.port_state(port, times.next),
                sent: Bytes::ZERO,
                waits: Vec::new(),
            }
        };
        MeasuredPorts {
            wanted,
            watched: ports.into_iter().map(watch).collect(),
        }
    }

    /// Takes what the traffic's last sample ends.
    pub fn end(&mut self, simulation: &Simulation, end: Time<Sim>) {
        for watched in &mut self.watched {
            let mut domain = simulation.domain_of(watched.port);
            let probe = domain.probes.probe(watched.probe);
            watched.waits = probe.waits.take().unwrap_or_default();
            watched.sent = domain.site.net.port_state(watched.port, end).sent;
        }
    }

    /// The measured ports, the first one first. Drops are those until now.
    pub fn counters(&self, simulation: &Simulation, names: &[String]) -> Vec<PortCounters> {
        let now = simulation.now();
        let counters = |wanted: &Wanted| {
            let watched = self.of(*wanted)?;
            let port = simulation.port_state(watched.port, now);
            let waits_us = watched.waits.iter().map(|wait| wait.as_ns() as f64 / 1e3);
            Some(PortCounters {
                name: names[watched.port as usize].clone(),
                rate: port.rate,
                sent_bytes: watched.in_window().get(),
                drops: port.drops - watched.at_warmup.drops,
                queue_us: Summary::of(waits_us.collect()),
                owd_us: None,
            })
        };
        self.wanted.iter().filter_map(counters).collect()
    }

    fn of(&self, wanted: Wanted) -> Option<&Watched> {
        let mut all = self.watched.iter();
        match wanted {
            Wanted::Port(port) => all.find(|watched| watched.port == port),
            // Of several, the one with the lowest number.
            Wanted::Busiest => all.rev().max_by(|a, b| a.used().total_cmp(&b.used())),
        }
    }
}

impl Watched {
    /// Bytes sent between the end of the warm-up and that of the traffic.
    fn in_window(&self) -> Bytes {
        self.sent - self.at_warmup.sent
    }

    /// The time that its line needs for them, s.
    fn used(&self) -> f64 {
        self.at_warmup
            .rate
            .time_to_send(self.in_window())
            .as_s_f64()
    }
}
