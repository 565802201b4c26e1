// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Limits of each flow in progress, and its payload in flight.

use crate::domain::{Domain, Hosts};
use crate::host::config::MSS;
use crate::host::edge::law_of;
use crate::simulation::Simulation;
use onramp_units::{Bytes, Rate, Sim, Span, Time};

/// The limits of a flow at one instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowLimits {
    /// Flow of the plan.
    pub plan: u32,
    /// Pacing rate, if it is paced.
    pub rate: Option<Rate>,
    /// Bandwidth that its congestion control has estimated last, if it estimates one.
    pub estimate: Option<Rate>,
    /// Payload that leaves together, faster than `rate`; zero if each packet leaves at its time.
    pub burst: Bytes,
    /// Window: payload that may be in flight, if there is a limit.
    pub window: Option<Bytes>,
    /// Payload in flight; for kernel hosts in full packets.
    pub in_flight: Bytes,
    /// Payload sent so far over its connection, without retransmissions; for kernel hosts in full packets.
    pub sent: Bytes,
    /// Whether its host has On-Ramp's law.
    pub has_law: bool,
    /// Time for which the law has held it, without the current hold.
    pub held: Span,
    /// Start of the current hold.
    pub held_since: Option<Time<Sim>>,
}

impl Simulation {
    /// The limits of all flows in progress, by the flows' numbers.
    pub fn limits(&self) -> Vec<FlowLimits> {
        let mut limits: Vec<FlowLimits> = self.each().flat_map(|d| limits_in(&d)).collect();
        limits.sort_by_key(|flow| flow.plan);
        limits
    }
}

fn limits_in(domain: &Domain) -> Vec<FlowLimits> {
    let has_law = |src| law_of(&domain.site.laws, src).is_some();
    match &domain.hosts {
        Hosts::Nic(nics) => {
            let senders = nics.senders.iter().map(|(_, sender)| sender);
            let active = senders.filter(|sender| !sender.is_idle());
            let limits = active.map(|sender| FlowLimits {
                plan: sender.current.flow,
                rate: Some(sender.limits.rate),
                estimate: None,
                burst: Bytes::new(sender.burst_bytes()),
                window: (sender.limits.window_bytes < u64::MAX)
                    .then_some(Bytes::new(sender.limits.window_bytes)),
                in_flight: Bytes::new(sender.in_flight()),
                sent: Bytes::new(sender.sent_bytes()),
                has_law: has_law(sender.host),
                held: sender.sent.held,
                held_since: sender.held_since,
            });
            limits.collect()
        }
        Hosts::Kernel(kernels) => {
            let connections = kernels.outgoing.iter().map(|(_, connection)| connection);
            let active = connections.filter(|connection| !connection.is_over());
            let packets = |count: u32| Bytes::new(u64::from(count) * u64::from(MSS));
            let paced = |src| kernels.own[src].paces();
            let limits = active.map(|connection| FlowLimits {
                plan: connection.plan,
                rate: connection
                    .pace()
                    .filter(|_| connection.has_own_pace() || paced(connection.src)),
                estimate: connection.estimate(),
                burst: Bytes::ZERO,
                window: Some(packets(connection.window_packets())),
                in_flight: packets(connection.in_flight_packets()),
                sent: packets(connection.sent_packets()),
                has_law: has_law(connection.src),
                held: connection.held,
                held_since: connection.held_since,
            });
            limits.collect()
        }
    }
}
