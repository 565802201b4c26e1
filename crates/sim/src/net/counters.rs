// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Counters of packets and events.

/// Counters of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Events handled.
    pub events: u64,
    /// Transmissions of a data packet or acknowledgement over one link.
    pub packet_hops: u64,
    /// Data packets sent, including retransmissions.
    pub data_packets: u64,
    /// Retransmitted data packets.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// OR-ACKs sent.
    pub or_acks: u64,
    /// Packets dropped at switches.
    pub drops: u64,
    /// Packets dropped in hosts, by CoDel.
    pub host_drops: u64,
    /// Packets marked CE.
    pub marks: u64,
    /// PFC pauses sent.
    pub pauses: u64,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.events += other.events;
        self.packet_hops += other.packet_hops;
        self.data_packets += other.data_packets;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.or_acks += other.or_acks;
        self.drops += other.drops;
        self.host_drops += other.host_drops;
        self.marks += other.marks;
        self.pauses += other.pauses;
    }
}
