// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The receiving end of a connection: data received in order, and acknowledgements.

use super::Nics;
use crate::engine::rounding::Rounding;
use crate::flows::streams::Part;
use crate::host::site::Site;
use crate::net::packet::{Kind, Packet, Path};
use onramp_units::{Sim, Time};

/// The receiving end of a connection, from its first packet to its last.
pub(crate) struct Receiver {
    /// The first flow that is not completely received.
    pub current: Part,
    /// Next expected byte.
    expected: u64,
    /// Earliest time of another request for the same byte, and that byte.
    nack_at: Time<Sim>,
    nacked: u64,
    back: Path,
}

impl Receiver {
    /// Payload of its flow received in order.
    pub fn received(&self) -> u64 {
        self.expected - self.current.first
    }
}

impl Nics {
    /// The receiving end of a data packet's connection, unless that is complete; and the path of answers.
    pub(super) fn receiver_of(&mut self, site: &mut Site, id: u32) -> (Option<u32>, Path) {
        let Packet {
            flow,
            connection,
            ordinal,
            ..
        } = site.net.packets[id];
        if let Some(place) = self.receivers.place(connection) {
            return (Some(place), self.receivers[place].back);
        }
        let back = site.network.back(flow, ordinal);
        if site.network.outcomes.has_arrived(flow) {
            return (None, back);
        }
        let receiver = Receiver {
            current: site.network.part(connection, 0),
            expected: 0,
            nack_at: Time::ZERO,
            nacked: 0,
            back,
        };
        (Some(self.receivers.add(connection, receiver)), back)
    }

    /// Makes a data packet's acknowledgement, if it gets one.
    pub(super) fn answer(
        &mut self,
        site: &mut Site,
        id: u32,
        receiver: Option<u32>,
        back: Path,
    ) -> bool {
        let connection = site.net.packets[id].connection;
        let Some((kind, expected)) = (match receiver {
            Some(place) => self.take_in(site, id, place),
            None => self.duplicate(site, site.network.end_of_stream(connection)),
        }) else {
            return false;
        };
        let packet = &mut site.net.packets[id];
        packet.kind = kind;
        packet.seq = expected;
        packet.wire_bytes = super::ack_bytes(self.common.feedback, self.common.piggyback);
        packet.payload = 0;
        packet.hop = 0;
        packet.path = back;
        true
    }

    /// Handles a received data packet: returns its answer and the next expected byte, if it gets one.
    fn take_in(&mut self, site: &mut Site, id: u32, place: u32) -> Option<(Kind, u64)> {
        let packet = &site.net.packets[id];
        let receiver = &mut self.receivers[place];
        if packet.seq < receiver.expected {
            let expected = receiver.expected;
            return self.duplicate(site, expected);
        }
        if packet.seq > receiver.expected {
            if site.net.now < receiver.nack_at && receiver.nacked == receiver.expected {
                return None;
            }
            receiver.nack_at = site.net.now + self.common.nack_interval;
            receiver.nacked = receiver.expected;
            return Some((Kind::Nack, receiver.expected));
        }
        receiver.expected += u64::from(packet.payload);
        let (part, expected) = (receiver.current, receiver.expected);
        if expected == part.end {
            match site.network.next_part(part) {
                Some(next) => receiver.current = next,
                None => self.receivers.remove(packet.connection),
            }
            site.flow_arrived(part.flow);
        }
        Some((Kind::Ack, expected))
    }

    /// The answer to a duplicate, because the first answer may be lost. ns-3 does not answer duplicates.
    fn duplicate(&self, site: &Site, expected: u64) -> Option<(Kind, u64)> {
        (site.config.rounding == Rounding::Exact).then_some((Kind::Ack, expected))
    }
}
