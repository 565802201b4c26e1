// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! On-Ramp in the kernel host: a segment waits in the queueing discipline while its path is congested.
//!
//! The law, its records and its sampling rule are those of `law/`, which the eBPF data path uses too. An
//! OR-ACK is made when a packet arrives, before coalescing.

use super::Kernels;
use crate::host::clock::{mono, sim};
use crate::host::config::MSS;
use crate::host::edge::{law_of, or_ack};
use crate::host::site::Site;
use crate::net::carried::Stamp;
use crate::net::packet::Packet;
use crate::tcp::sender::Segment;
use onramp_law::{sampled_byte, Hint, Records, Verdict};
use onramp_units::{Mono, Time};

impl Kernels {
    /// Gives the last delay to the law when a flow starts on the connection at `place`, if delays are reused.
    pub(super) fn law_starts(&mut self, site: &mut Site, place: u32, src: u32, dst: u32) {
        let known = site.delay_to_reuse(src, dst);
        if let (Some(law), Some(owd)) = (law_of(&site.laws, src), known) {
            let connection = &mut self.outgoing[place];
            connection.law.reuse(law, owd, site.net.now);
        }
    }

    /// Whether the law allows the head of the connection at `place` to leave. If not, the connection waits.
    pub(super) fn law_lets_segment_go(&mut self, site: &mut Site, host: u32, place: usize) -> bool {
        let Some(law) = law_of(&site.laws, host) else {
            return true;
        };
        let entry = &mut self.hosts[host as usize].entries[place];
        let connection = &mut self.outgoing[entry.connection];
        let until = connection
            .law
            .until(law, &mut connection.held_since, site.net.now);
        entry.held_until = until.unwrap_or(entry.held_until);
        until.is_none()
    }

    /// When the wire begins to send `bytes` that the NIC gets now, on the host's clock.
    pub(super) fn leaves_nic(&mut self, site: &Site, host: u32, bytes: u32) -> Time<Mono> {
        let (now, port) = (mono(site.net.now), site.network.port_of(host));
        match law_of(&site.laws, host).filter(|_| self.own[host].stamps_at_wire) {
            Some(law) => {
                let ring = &mut self.hosts[host as usize].ring;
                ring.leaves(&law.config, now, (&site.net, port), bytes)
            }
            None => now,
        }
    }

    /// Records a segment that is handed to the NIC, of these bytes on the wire.
    pub(super) fn law_sent_segment(
        &mut self,
        site: &mut Site,
        id: u32,
        segment: &Segment,
        wire_bytes: u32,
    ) {
        let leaves = self.leaves_nic(site, self.outgoing[id].src, wire_bytes);
        let connection = &mut self.outgoing[id];
        let Some(law) = law_of(&site.laws, connection.src) else {
            return;
        };
        if let Some(since) = connection.held_since.take() {
            connection.held += site.net.now - since;
        }
        let seq = segment.first.wrapping_mul(u32::from(MSS));
        let (bytes, now) = (connection.span(segment), mono(site.net.now));
        let flow = &mut connection.law.flow;
        let every = site.config.or_ack_every;
        let records = || Records::sampling(every);
        let records = connection.records.get_or_insert_with(records);
        records.handed_down(&law.config, flow, (now, leaves), seq, bytes);
        connection.law.departed(site.net.now, bytes);
        let sampled = sampled_byte(seq, bytes, every);
        if let (Some(signals), Some(byte)) = (&mut self.signals, sampled) {
            let rtt = connection.sender.last_rtt();
            signals.sent(connection.number, byte, site.net.now, rtt);
        }
    }

    /// Sends the OR-ACK of a received data packet, if it has a sampled byte.
    pub(super) fn sample(&mut self, site: &mut Site, id: u32, host: u32) {
        let data = site.net.packets[id];
        let src = site.network.flows[data.flow as usize].src;
        if law_of(&site.laws, src).is_none() || !self.own[host].or_acks {
            return;
        }
        let first = (data.seq as u32).wrapping_mul(u32::from(MSS));
        let (bytes, every) = (u32::from(data.payload), site.config.or_ack_every);
        let Some(byte) = sampled_byte(first, bytes, every) else {
            return;
        };
        let Some(received) = site.clocks.stamp(site.net.now, host, src) else {
            return;
        };
        let place = self.incoming_of(site, &data);
        let back = self.incoming_ends[place].back;
        let hint = site.hint(host, data.connection);
        let or_ack = site.net.packets.add(Packet {
            seq: u64::from(byte),
            // Arrival time of the data, on the sender's clock.
            sent: sim(received),
            ..or_ack(&data, back)
        });
        if hint != Hint::default() {
            let stamp = Stamp {
                hint,
                ..Stamp::default()
            };
            site.net.carried.stamps.set(or_ack, stamp);
        }
        let port = site.network.port_of(host);
        site.net.ports[port as usize]
            .data
            .push(&mut site.net.packets, or_ack);
        site.net.counters.or_acks += 1;
        self.send(site, host);
    }

    /// Handles an OR-ACK at the sender: gives the sample to the law, which then decides again.
    pub(super) fn connection_or_acked(&mut self, site: &mut Site, id: u32, host: u32) {
        let packet = site.net.packets[id];
        let byte = packet.seq as u32;
        self.note_pair(site, packet.connection, packet.flow, byte, packet.sent);
        let place = self.outgoing.place(packet.connection);
        if let Some((law, place)) = law_of(&site.laws, host).zip(place) {
            let connection = &mut self.outgoing[place];
            let (byte, now, received) = (packet.seq as u32, mono(site.net.now), mono(packet.sent));
            let flow = &mut connection.law.flow;
            let plan = &site.network.flows[packet.flow as usize];
            let hosts = (plan.src, plan.dst);
            site.set_path(hosts, flow, site.net.carried.stamps.of(id).hint);
            let mut used = false;
            if let Some(records) = &mut connection.records {
                let verdict = records.orack(&law.config, flow, byte, now, received);
                used = verdict == Verdict::Used;
                connection.law.sampled(site.net.now, verdict);
            }
            let entries = &mut self.hosts[host as usize].entries;
            entries
                .iter_mut()
                .filter(|entry| entry.connection == place)
                .for_each(|entry| entry.held_until = Time::ZERO);
            let owd = self.outgoing[place].law.flow.owd();
            self.outgoing[place].sender.or_acked(owd);
            site.keep_delay(packet.flow, owd);
            site.note_least(hosts, owd.filter(|_| used));
        }
        site.net.packets.free(id);
        self.send(site, host);
    }
}
