// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Packets between domains. A domain hands them over by value, with their additional content, at the end of
//! a window.

use super::Fabric;
use crate::engine::events::Rank;
use crate::net::carried::{Acknowledgement, Stamp};
use crate::net::packet::{Kind, Packet};
use crate::net::what::What;
use onramp_cc::int::IntStack;
use onramp_units::{Sim, Time};

/// Packets from one domain to another in sending order. Lists of additional content are empty if packets
/// have none.
#[derive(Default)]
pub(crate) struct Mail {
    packets: Vec<(Time<Sim>, Packet)>,
    stacks: Vec<IntStack>,
    stamps: Vec<Stamp>,
    acknowledgements: Vec<Acknowledgement>,
    /// Time of the first packet.
    pub first: Option<Time<Sim>>,
}

impl Fabric {
    /// A packet that leaves its sender now arrives at time `at`: at a port, or, for a request, at its host.
    #[inline]
    pub(crate) fn send_to(&mut self, domain: usize, at: Time<Sim>, id: u32) {
        if domain == self.me() {
            self.expect_packet(at, id);
        } else {
            self.post(domain, at, id);
        }
    }

    #[inline(never)]
    fn post(&mut self, domain: usize, at: Time<Sim>, id: u32) {
        let mail = &mut self.outgoing[domain];
        mail.first = Some(mail.first.map_or(at, |first| first.min(at)));
        mail.packets.push((at, self.packets[id]));
        if self.carried.has.int {
            mail.stacks.push(*self.carried.stacks.of(id));
        }
        if self.carried.has.stamps {
            mail.stamps.push(*self.carried.stamps.of(id));
        }
        if self.carried.has.acknowledgements {
            mail.acknowledgements
                .push(*self.carried.acknowledgements.of(id));
        }
        self.packets.free(id);
    }

    #[inline]
    fn expect_packet(&mut self, at: Time<Sim>, id: u32) {
        let packet = &self.packets[id];
        if packet.kind == Kind::Request {
            let rank = Rank::Flow(packet.flow);
            self.events.schedule(at, rank, What::Asked { packet: id });
        } else {
            let rank = Rank::Arrival(packet.at_port.into());
            self.events.schedule(at, rank, What::Arrival { packet: id });
        }
    }

    /// Takes the mail of another domain and leaves `mail` empty.
    pub(crate) fn take_mail(&mut self, mail: &mut Mail) {
        mail.first = None;
        let mut stacks = mail.stacks.drain(..);
        let mut stamps = mail.stamps.drain(..);
        let mut acknowledgements = mail.acknowledgements.drain(..);
        for (at, packet) in mail.packets.drain(..) {
            let id = self.packets.add(packet);
            if let Some(stack) = stacks.next() {
                self.carried.stacks.set(id, stack);
            }
            if let Some(stamp) = stamps.next() {
                self.carried.stamps.set(id, stamp);
            }
            if let Some(acknowledgement) = acknowledgements.next() {
                self.carried.acknowledgements.set(id, acknowledgement);
            }
            self.expect_packet(at, id);
        }
    }
}
