//! The receiving end of a connection: what is there in order, and the answers.

use crate::domain::Domain;
use crate::engine::rounding::Rounding;
use crate::flows::streams::Part;
use crate::net::packet::{Kind, Packet, Path};
use onramp_units::{Sim, Time};

/// The receiving end of a connection, from its first packet to its last.
pub(crate) struct Receiver {
    /// The flow that is not all here.
    pub under_way: Part,
    /// Byte expected next.
    expected: u64,
    /// When the same byte may be asked for again, and which it was.
    nack_at: Time<Sim>,
    nacked: u64,
    back: Path,
}

impl Receiver {
    /// Payload of its flow that is there in order.
    pub fn received(&self) -> u64 {
        self.expected - self.under_way.first
    }
}

impl Domain {
    /// The receiving end of a data packet's connection, unless it has everything; and the way of answers.
    pub(super) fn receiver_of(&mut self, id: u32) -> (Option<u32>, Path) {
        let Packet {
            flow,
            connection,
            ordinal,
            ..
        } = self.packets[id];
        if let Some(place) = self.receivers.place(connection) {
            return (Some(place), self.receivers[place].back);
        }
        let back = self.network.back(flow, ordinal);
        if self.network.outcomes.has_arrived(flow) {
            return (None, back);
        }
        let receiver = Receiver {
            under_way: self.network.part(connection, 0),
            expected: 0,
            nack_at: Time::ZERO,
            nacked: 0,
            back,
        };
        (Some(self.receivers.add(connection, receiver)), back)
    }

    /// Turns a data packet into its acknowledgement, if it gets one.
    pub(super) fn answer(&mut self, id: u32, receiver: Option<u32>, back: Path) -> bool {
        let connection = self.packets[id].connection;
        let Some((kind, expected)) = (match receiver {
            Some(place) => self.take_in(id, place),
            None => self.duplicate(self.network.end_of_stream(connection)),
        }) else {
            return false;
        };
        let packet = &mut self.packets[id];
        packet.kind = kind;
        packet.seq = expected;
        packet.wire_bytes = super::ack_bytes(self.feedback, self.config.hosts.nic().piggyback);
        packet.payload = 0;
        packet.hop = 0;
        packet.path = back;
        true
    }

    /// A receiver has a data packet: its answer and the byte expected next, if it gets one.
    fn take_in(&mut self, id: u32, place: u32) -> Option<(Kind, u64)> {
        let packet = &self.packets[id];
        let receiver = &mut self.receivers[place];
        if packet.seq < receiver.expected {
            let expected = receiver.expected;
            return self.duplicate(expected);
        }
        if packet.seq > receiver.expected {
            if self.now < receiver.nack_at && receiver.nacked == receiver.expected {
                return None;
            }
            receiver.nack_at = self.now + self.config.hosts.nic().nack_interval;
            receiver.nacked = receiver.expected;
            return Some((Kind::Nack, receiver.expected));
        }
        receiver.expected += u64::from(packet.payload);
        let (part, expected) = (receiver.under_way, receiver.expected);
        if expected == part.end {
            match self.network.next_part(part) {
                Some(next) => receiver.under_way = next,
                None => self.receivers.remove(packet.connection),
            }
            let after = self.network.age(part.flow, self.now);
            self.network.outcomes.arrived(part.flow, after);
            self.flow_arrived(part.flow);
        }
        Some((Kind::Ack, expected))
    }

    /// The answer to a duplicate: the first one's may be lost. ns-3 has none.
    fn duplicate(&self, expected: u64) -> Option<(Kind, u64)> {
        (self.config.rounding == Rounding::Exact).then_some((Kind::Ack, expected))
    }
}
