// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The scheduler of a kernel host: acknowledgements and OR-ACKs between segments, and segments of connections
//! by deficit round robin. Into the NIC, and from there to the line.

use super::ring::{Burst, Waiting};
use super::{KernelHost, Kernels, QUANTUM};
use crate::engine::events::Rank;
use crate::host::config::HEADER;
use crate::host::site::Site;
use crate::net::packet::{Kind, Packet};
use crate::net::what::What;
use onramp_units::{Sim, Time};

impl Kernels {
    /// Handles a wake, unless another one has replaced it.
    pub(crate) fn woken(&mut self, site: &mut Site, host: u32) {
        let wake = &mut self.hosts[host as usize].wake;
        if *wake == Some((site.net.now, site.net.place)) {
            *wake = None;
            self.send(site, host);
        }
    }

    /// Sends the next packet of a host, if its line is free and a packet may leave.
    pub(crate) fn send(&mut self, site: &mut Site, host: u32) {
        let port = site.network.port_of(host);
        while self.nic_has_room(site, host) && self.hand_to_nic(site, host) {}
        if !site.net.line_is_free(port) {
            return site.net.await_line(port);
        }
        if site.net.ports[port as usize].paused {
            return;
        }
        let ring = &mut self.hosts[host as usize].ring;
        match ring.front() {
            None => return self.sleep(site, host),
            Some(&mut Waiting::Packet(id)) => {
                ring.sends(site.net.packets[id].wire_bytes, true);
                site.stamp_probe(host, id);
                site.net.transmit(port, id);
            }
            Some(Waiting::Burst(_)) => self.send_of_burst(site, host),
        }
        site.net.await_line(port);
    }

    /// Whether the NIC takes a segment or packet: without a queue, one that the line sends at once.
    fn nic_has_room(&self, site: &Site, host: u32) -> bool {
        let ring = &self.hosts[host as usize].ring;
        let queue = self.own[host].nic_queue.get();
        if queue > 0 {
            return ring.bytes < queue;
        }
        let port = site.network.port_of(host);
        ring.is_empty() && site.net.line_is_free(port) && !site.net.ports[port as usize].paused
    }

    /// Hands the next packet or segment to the NIC, if there is one that may leave.
    fn hand_to_nic(&mut self, site: &mut Site, host: u32) -> bool {
        let line = &mut site.net.ports[site.network.port_of(host) as usize];
        let pure = line.control.pop(&site.net.packets);
        if let Some(id) = pure.or_else(|| line.data.pop(&site.net.packets)) {
            let bytes = site.net.packets[id].wire_bytes.into();
            self.leaves_nic(site, host, bytes);
            let ring = &mut self.hosts[host as usize].ring;
            ring.push(Waiting::Packet(id), bytes);
            return true;
        }
        let place = self.choose_connection(site, host);
        if let Some(place) = place {
            self.start_burst(site, host, place);
        }
        place.is_some()
    }

    /// The index of the connection whose head leaves next.
    fn choose_connection(&mut self, site: &mut Site, host: u32) -> Option<usize> {
        loop {
            let place = self.hosts[host as usize].choose(site.net.now)?;
            let is_empty = self.own[host].codel && self.drop_what_waited(site, host, place);
            if !is_empty && self.law_lets_segment_go(site, host, place) {
                return Some(place);
            }
        }
    }

    /// Takes the head of the connection at `place` out of the queueing discipline.
    fn start_burst(&mut self, site: &mut Site, host: u32, place: usize) {
        let entry = &mut self.hosts[host as usize].entries[place];
        let id = entry.connection;
        let connection = &mut self.outgoing[id];
        let (_, segment) = connection
            .queue
            .pop_front()
            .expect("a connection in the round robin has a segment");
        let bytes = connection.bytes(&segment) + segment.count * u32::from(HEADER);
        entry.credit -= i64::from(bytes);
        if segment.again {
            site.net.counters.retransmissions += u64::from(segment.count);
        }
        let empty = connection.queue.is_empty();
        self.law_sent_segment(site, id, &segment, bytes);
        let state = &mut self.hosts[host as usize];
        let burst = Burst {
            connection: id,
            segment,
            sent: 0,
        };
        state.ring.push(Waiting::Burst(burst), bytes);
        if empty {
            state.entries.remove(place);
        }
    }

    fn send_of_burst(&mut self, site: &mut Site, host: u32) {
        let port = site.network.port_of(host);
        let ring = &mut self.hosts[host as usize].ring;
        let Some(Waiting::Burst(burst)) = ring.front() else {
            return;
        };
        let (id, segment) = (burst.connection, burst.segment);
        let number = segment.first + burst.sent;
        burst.sent += 1;
        let ends = burst.sent == segment.count;
        let connection = &mut self.outgoing[id];
        let (flow, payload) = connection.packet(number);
        let packet = site.net.packets.add(Packet {
            seq: u64::from(number),
            flow,
            connection: connection.number,
            wire_bytes: payload + HEADER,
            payload,
            ordinal: connection.ordinal,
            ..Packet::new(Kind::Data, site.net.now, connection.there)
        });
        site.net.counters.data_packets += 1;
        ring.sends(payload + HEADER, ends);
        site.net.transmit(port, packet);
        if ends {
            let connection = &mut self.outgoing[id];
            connection.queued -= segment.count;
            if !connection.over {
                self.hand_down(site, id);
            }
        }
    }

    fn sleep(&mut self, site: &mut Site, host: u32) {
        let state = &self.hosts[host as usize];
        let Some(due) = state.entries.iter().map(|entry| entry.held_until).min() else {
            return;
        };
        if due > site.net.now && state.wake.is_none_or(|(at, _)| due < at) {
            let place = site
                .net
                .events
                .schedule(due, Rank::Own, What::Wake { host });
            self.hosts[host as usize].wake = Some((due, place));
        }
    }
}

impl KernelHost {
    /// Deficit round robin among the connections that may send now.
    fn choose(&mut self, now: Time<Sim>) -> Option<usize> {
        if !self.entries.iter().any(|entry| entry.held_until <= now) {
            return None;
        }
        loop {
            self.current %= self.entries.len();
            let entry = &mut self.entries[self.current];
            if entry.held_until <= now {
                if entry.credit > 0 {
                    return Some(self.current);
                }
                entry.credit += QUANTUM;
            }
            self.current += 1;
        }
    }
}
