// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Records the last measurements of a sender when it sends a packet, and the one-way delay of that packet
//! (On-Ramp, figure 6), for `--series pairs`. Only for kernel hosts, and for packets with a sampled byte.

use super::Kernels;
use crate::host::clock::mono;
use crate::host::site::Site;
use onramp_units::{Sim, Span, Time};
use std::collections::HashMap;

/// A packet's delay, and the last measurements of its sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// Time at which its OR-ACK arrived at the sender.
    pub at: Time<Sim>,
    /// Flow of the plan.
    pub plan: u32,
    /// Its one-way delay.
    pub owd: Span,
    /// One-way delay of the last acknowledged packet, by the hosts' clocks.
    pub last_owd: Span,
    /// Last round-trip time of the connection.
    pub last_rtt: Span,
}

/// Time at which a packet left, and the last one-way delay and round-trip time, if both were known.
type Departure = (Time<Sim>, Option<(Span, Span)>);

/// Signals of the connections of a domain's hosts.
#[derive(Default)]
pub(crate) struct Signals {
    /// Packets in flight by connection and sampled byte.
    in_flight: HashMap<(u32, u32), Departure>,
    /// Last one-way delay by connection.
    last_owd: HashMap<u32, Span>,
    pub pairs: Vec<Pair>,
}

impl Signals {
    /// A packet with `byte` leaves.
    pub fn sent(&mut self, connection: u32, byte: u32, now: Time<Sim>, rtt: Option<Span>) {
        let known = self.last_owd.get(&connection).copied().zip(rtt);
        self.in_flight.insert((connection, byte), (now, known));
    }
}

impl Kernels {
    /// The OR-ACK of `byte` arrives at the sender; `received` is by the clocks of flow `plan`'s hosts.
    pub(crate) fn note_pair(
        &mut self,
        site: &mut Site,
        connection: u32,
        plan: u32,
        byte: u32,
        received: Time<Sim>,
    ) {
        let Some(signals) = &mut self.signals else {
            return;
        };
        let Some((sent, known)) = signals.in_flight.remove(&(connection, byte)) else {
            return;
        };
        let flow = &site.network.flows[plan as usize];
        // Errors are assumed constant between then and now.
        let Some(stamp) = site.clocks.stamp(site.net.now, flow.dst, flow.src) else {
            return;
        };
        let error = stamp - mono(site.net.now);
        let measured = received - sent;
        signals.last_owd.insert(connection, measured);
        if let Some((last_owd, last_rtt)) = known {
            signals.pairs.push(Pair {
                at: site.net.now,
                plan,
                owd: measured - error,
                last_owd,
                last_rtt,
            });
        }
    }
}
