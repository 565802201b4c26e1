// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What receivers count and say in OR-ACKs, and what senders know of their peers, for laws that use it
//! (law/receiver.h, law/least.h). Receivers count what arrives, whether or not they have the law themselves.

use super::Site;
use crate::host::clock::mono;
use crate::net::packet::Kind;
use onramp_law::{Config, Flow, Hint, Law, Least, PathState, Receiver};
use onramp_units::Span;
use std::collections::HashMap;

/// The hosts' counts and what they know of each other.
pub(crate) struct Hints {
    /// By node: the law with the rate of its line, and what it counts.
    receivers: Vec<(Config, Receiver)>,
    /// By sender and receiver: the least delay.
    least: HashMap<(u32, u32), Least>,
}

impl Hints {
    /// Those of nodes whose lines have these laws; `None`: the law does not use hints.
    pub fn new(lines: &[Config]) -> Option<Hints> {
        let receivers: Vec<_> = lines
            .iter()
            .map(|line| (*line, Receiver::default()))
            .collect();
        let least = HashMap::new();
        (!receivers.is_empty()).then_some(Hints { receivers, least })
    }
}

/// Whether a law or its guard uses hints.
pub(crate) fn uses_hints(law: &Config) -> bool {
    law.law() == Law::Level || law.has_guard()
}

impl Site {
    /// Counts packet `id`, which has arrived at `host`.
    #[inline]
    pub(crate) fn count_arrival(&mut self, host: u32, id: u32) {
        let Some(hints) = &mut self.hints else {
            return;
        };
        let packet = &self.net.packets[id];
        let src = match packet.kind {
            Kind::Data | Kind::ReadResponse => Some(self.network.flows[packet.flow as usize].src),
            Kind::Ack | Kind::Nack | Kind::OrAck => {
                Some(self.network.flows[packet.flow as usize].dst)
            }
            _ => None,
        };
        let is_managed = |src: u32| self.laws[src as usize].is_some();
        let (line, receiver) = &mut hints.receivers[host as usize];
        let bytes = packet.wire_bytes.into();
        let managed = src.is_some_and(is_managed);
        receiver.arrived(line, mono(self.net.now), bytes, managed);
    }

    /// What `host` says in the OR-ACK of a sample of `connection` that has arrived.
    pub(crate) fn hint(&mut self, host: u32, connection: u32) -> Hint {
        let Some(hints) = &mut self.hints else {
            return Hint::default();
        };
        let (line, receiver) = &mut hints.receivers[host as usize];
        receiver.sampled(line, connection)
    }

    /// Gives the law of a flow from `src` to `dst` what an OR-ACK with `hint` brings besides its sample.
    pub(crate) fn set_path(&self, (src, dst): (u32, u32), flow: &mut Flow, hint: Hint) {
        let Some(hints) = &self.hints else {
            return;
        };
        let least = hints.least.get(&(src, dst)).and_then(Least::owd);
        let fleet_ahead = self.clocks.fleet_ahead(self.net.now, src);
        flow.set_path(&PathState {
            least,
            fleet_ahead,
            hint,
        });
    }

    /// Records a used delay from `src` to `dst`.
    pub(crate) fn note_least(&mut self, hosts: (u32, u32), owd: Option<Span>) {
        if let Some((hints, owd)) = self.hints.as_mut().zip(owd) {
            let now = mono(self.net.now);
            let least = hints.least.entry(hosts);
            least
                .or_insert_with(|| Least::beginning(now))
                .sample(now, owd);
        }
    }
}
