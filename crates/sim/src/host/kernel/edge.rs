//! On-Ramp in the kernel host: a segment waits in the queueing discipline while its way is congested.
//!
//! The law, its records and its rule of which bytes are sampled are those of `law/`, as the eBPF
//! data path has them. OR-ACKs are made where a packet arrives, before coalescing.

use super::MSS;
use crate::domain::Domain;
use crate::host::clock::{mono, sim};
use crate::host::edge::{held_until, law_of, or_ack, reuse};
use crate::net::packet::Packet;
use crate::tcp::sender::Segment;
use onramp_law::{sampled_byte, Records};
use onramp_units::Time;

impl Domain {
    /// A flow starts on the connection at `place`: its state may learn from the last delay.
    pub(super) fn law_starts(&mut self, place: u32, src: u32, dst: u32) {
        let known = self.delay_to_reuse(src, dst);
        if let (Some(law), Some(owd)) = (law_of(&self.laws, src), known) {
            let connection = &mut self.outgoing_connections[place];
            reuse(law, &mut connection.law, owd, mono(self.now));
        }
    }

    /// Whether the law lets the head of the connection at `place` go. If not, its turn is put off.
    pub(super) fn law_lets_segment_go(&mut self, host: u32, place: usize) -> bool {
        let Some(law) = law_of(&self.laws, host) else {
            return true;
        };
        let turn = &mut self.hosts[host as usize].turns[place];
        let connection = &mut self.outgoing_connections[turn.connection];
        let (flow, since) = (&mut connection.law, &mut connection.held_since);
        let until = held_until(law, flow, since, self.now);
        turn.held_until = until.unwrap_or(turn.held_until);
        until.is_none()
    }

    /// A segment is handed to the NIC.
    pub(super) fn law_sent_segment(&mut self, id: u32, segment: &Segment) {
        let connection = &mut self.outgoing_connections[id];
        let Some(law) = law_of(&self.laws, connection.src) else {
            return;
        };
        if let Some(since) = connection.held_since.take() {
            connection.held += self.now - since;
        }
        let seq = segment.first.wrapping_mul(u32::from(MSS));
        let (bytes, now) = (connection.span(segment), mono(self.now));
        let flow = &mut connection.law;
        let every = self.config.or_ack_every;
        let records = || Records::sampling(every);
        let records = connection.records.get_or_insert_with(records);
        records.sent(law, flow, now, seq, bytes);
        let sampled = sampled_byte(seq, bytes, every);
        if let (Some(signals), Some(byte)) = (&mut self.signals, sampled) {
            let rtt = connection.sender.last_rtt();
            signals.sent(connection.number, byte, self.now, rtt);
        }
    }

    /// A data packet has arrived: its OR-ACK, if it holds a sampled byte.
    pub(super) fn sample(&mut self, id: u32, host: u32) {
        let data = self.packets[id];
        let src = self.network.flows[data.flow as usize].src;
        if law_of(&self.laws, src).is_none() {
            return;
        }
        let first = (data.seq as u32).wrapping_mul(u32::from(MSS));
        let (bytes, every) = (u32::from(data.payload), self.config.or_ack_every);
        let Some(byte) = sampled_byte(first, bytes, every) else {
            return;
        };
        let Some(received) = self.clocks.stamp(self.now, host, src) else {
            return;
        };
        let place = self.incoming_of(&data);
        let back = self.incoming_connections[place].back;
        let or_ack = self.packets.add(Packet {
            seq: u64::from(byte),
            // When the data arrived, on the sender's clock.
            sent: sim(received),
            ..or_ack(&data, back)
        });
        let port = self.nics[host as usize].port;
        self.ports[port as usize]
            .data
            .push(&mut self.packets, or_ack);
        self.counters.or_acks += 1;
        self.kernel_send(host);
    }

    /// An OR-ACK is back at the sender: the law learns, and is asked again.
    pub(super) fn connection_or_acked(&mut self, id: u32, host: u32) {
        let packet = self.packets[id];
        let byte = packet.seq as u32;
        self.note_pair(packet.connection, packet.flow, byte, packet.sent);
        let place = self.outgoing_connections.place(packet.connection);
        if let Some((law, place)) = law_of(&self.laws, host).zip(place) {
            let connection = &mut self.outgoing_connections[place];
            let (byte, now, received) = (packet.seq as u32, mono(self.now), mono(packet.sent));
            let flow = &mut connection.law;
            if let Some(records) = &mut connection.records {
                // The verdict only says whether the sample was of use.
                records.orack(law, flow, byte, now, received);
            }
            let turns = &mut self.hosts[host as usize].turns;
            turns
                .iter_mut()
                .filter(|turn| turn.connection == place)
                .for_each(|turn| turn.held_until = Time::ZERO);
            let owd = self.outgoing_connections[place].law.owd();
            self.keep_delay(packet.flow, owd);
        }
        self.packets.free(id);
        self.kernel_send(host);
    }
}
