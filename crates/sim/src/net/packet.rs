// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Packets and queues of packets.

use crate::engine::slab::Slab;
use crate::net::topology::MAX_HOPS;
use onramp_units::{Sim, Time};

/// No packet, no port.
pub(crate) const NONE: u32 = u32::MAX;

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Payload of a flow.
    Data,
    /// Payload of a flow that its receiver has requested (a read).
    ReadResponse,
    /// Cumulative acknowledgement.
    Ack,
    /// Cumulative acknowledgement with a request to resend from there.
    Nack,
    /// OR-ACK: the arrival time of a data packet.
    OrAck,
    /// PFC: stop sending data.
    Pause,
    /// PFC: resume.
    Resume,
    /// Probe of clock synchronisation; `flow` is the edge of the mesh, `seq` the probe's number.
    Probe,
    /// Answer to a probe, sent at once.
    ProbeAnswer,
    /// Request of a read's receiver for a segment.
    ReadRequest,
    /// Request of one kernel host to another for a flow; it uses no line.
    Request,
}

impl Kind {
    /// Whether packets of this kind carry payload, which switches may mark.
    #[inline]
    pub fn carries_data(self) -> bool {
        matches!(self, Kind::Data | Kind::ReadResponse)
    }
}

/// A packet, in one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Packet {
    /// Data: first byte. Acknowledgement: next expected byte. Read request: first byte that it asks for.
    pub seq: u64,
    /// Time at which the data was sent; an acknowledgement returns it.
    pub sent: Time<Sim>,
    /// Time at which it entered the queue that it is in, if the port's rule saw it then.
    pub queued: Time<Sim>,
    /// Its flow in the plan.
    pub flow: u32,
    /// The flow that opened its connection: at NICs, the same flow unless flows share a connection in order.
    pub connection: u32,
    /// The next packet in the queue.
    pub next: u32,
    /// Size on the wire, headers included.
    pub wire_bytes: u16,
    /// Payload; of an OR-ACK, that of the data; of a read request, the packets that it asks for.
    pub payload: u16,
    /// Number of flows of its opener with its peer before its own flow, or before the flow that opened its ordered
    /// connection. Switches identify the flow by it.
    pub ordinal: u16,
    /// The port that receives it, of the link it is on.
    pub at_port: u16,
    /// Switches passed so far.
    pub hop: u8,
    pub kind: Kind,
    /// CE on data, the echo of it on acknowledgements.
    pub marked: bool,
    /// Egress port at each switch of the path.
    pub path: Path,
}

impl Packet {
    /// An empty packet of `kind` without a flow, made at `now`, on `path`.
    pub fn new(kind: Kind, now: Time<Sim>, path: Path) -> Packet {
        Packet {
            seq: 0,
            sent: now,
            queued: now,
            flow: NONE,
            connection: NONE,
            next: NONE,
            wire_bytes: 0,
            payload: 0,
            ordinal: 0,
            at_port: 0,
            hop: 0,
            kind,
            marked: false,
            path,
        }
    }
}

/// Egress ports of the switches between two hosts, in order.
pub(crate) type Path = [u16; MAX_HOPS];

/// All packets of a domain.
pub(crate) type Packets = Slab<Packet>;

/// Additional content of some packets, by the packet's number.
pub(crate) struct PerPacket<T> {
    values: Vec<T>,
    none: T,
}

impl<T: Copy + Default> PerPacket<T> {
    pub fn new() -> PerPacket<T> {
        PerPacket {
            values: Vec::new(),
            none: T::default(),
        }
    }

    pub fn set(&mut self, packet: u32, value: T) {
        *self.of_mut(packet) = value;
    }

    /// The content of `packet`, or the default.
    pub fn of(&self, packet: u32) -> &T {
        self.values.get(packet as usize).unwrap_or(&self.none)
    }

    pub fn of_mut(&mut self, packet: u32) -> &mut T {
        let n = packet as usize;
        if n >= self.values.len() {
            self.values.resize((n + 1).next_power_of_two(), self.none);
        }
        &mut self.values[n]
    }
}

/// A first-in first-out queue of packets, linked through [`Packet::next`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fifo {
    head: u32,
    tail: u32,
    /// Bytes on the wire that wait.
    pub bytes: u64,
}

impl Fifo {
    pub const EMPTY: Fifo = Fifo {
        head: NONE,
        tail: NONE,
        bytes: 0,
    };

    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    pub fn push(&mut self, packets: &mut Packets, id: u32) {
        packets[id].next = NONE;
        self.bytes += u64::from(packets[id].wire_bytes);
        if self.head == NONE {
            self.head = id;
        } else {
            packets[self.tail].next = id;
        }
        self.tail = id;
    }

    pub fn pop(&mut self, packets: &Packets) -> Option<u32> {
        let id = self.head;
        if id == NONE {
            return None;
        }
        self.head = packets[id].next;
        self.bytes -= u64::from(packets[id].wire_bytes);
        Some(id)
    }

    /// From the head.
    pub fn each<'a>(&self, packets: &'a Packets) -> impl Iterator<Item = &'a Packet> {
        let id = |id: u32| (id != NONE).then_some(id);
        let next = move |before: &u32| id(packets[*before].next);
        std::iter::successors(id(self.head), next).map(|id| &packets[id])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_one_cache_line() {
        assert_eq!(std::mem::size_of::<Packet>(), 64);
    }
}
