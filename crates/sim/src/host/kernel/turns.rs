//! What a kernel host's line sends next: acknowledgements and OR-ACKs between bursts, and connections in
//! turns by bytes, a segment each.

use super::{Burst, KernelHost, HEADER, QUANTUM};
use crate::domain::Domain;
use crate::engine::events::{Rank, What};
use crate::net::packet::{Kind, Packet, NONE};
use onramp_units::{Sim, Time};

impl Domain {
    /// A wake is due, unless another has replaced it.
    pub(crate) fn kernel_woken(&mut self, host: u32) {
        let wake = &mut self.hosts[host as usize].wake;
        if *wake == Some((self.now, self.place)) {
            *wake = None;
            self.kernel_send(host);
        }
    }

    /// Sends what is next at a host, if its line is free and anything may go.
    pub(crate) fn kernel_send(&mut self, host: u32) {
        let port = self.nics[host as usize].port;
        if !self.line_is_free(port) {
            return self.await_line(port);
        }
        let paused = self.ports[port as usize].paused;
        if paused {
            return;
        }
        if self.hosts[host as usize].burst.is_some() {
            self.send_of_burst(host);
            return self.await_line(port);
        }
        let line = &mut self.ports[port as usize];
        let pure = line.control.pop(&self.packets);
        if let Some(id) = pure.or_else(|| line.data.pop(&self.packets)) {
            self.stamp_probe(host, id);
            self.transmit(port, id);
            return self.await_line(port);
        }
        match self.choose_connection(host) {
            Some(place) => {
                self.start_burst(host, place);
                self.send_of_burst(host);
                self.await_line(port);
            }
            None => self.kernel_sleep(host),
        }
    }

    /// The place of the connection whose head leaves next.
    fn choose_connection(&mut self, host: u32) -> Option<usize> {
        loop {
            let place = self.hosts[host as usize].choose(self.now)?;
            let is_empty = self.kernel().codel && self.drop_what_waited(host, place);
            if !is_empty && self.law_lets_segment_go(host, place) {
                return Some(place);
            }
        }
    }

    /// The head of the connection at `place` leaves the queueing discipline.
    fn start_burst(&mut self, host: u32, place: usize) {
        let turn = &mut self.hosts[host as usize].turns[place];
        let id = turn.connection;
        let connection = &mut self.outgoing_connections[id];
        let (_, segment) = connection.queue.pop_front().expect("it has a turn");
        let bytes = connection.bytes(&segment);
        turn.credit -= i64::from(bytes) + i64::from(segment.count) * i64::from(HEADER);
        if segment.again {
            self.counters.retransmissions += u64::from(segment.count);
        }
        let empty = connection.queue.is_empty();
        self.law_sent_segment(id, &segment);
        let state = &mut self.hosts[host as usize];
        state.burst = Some(Burst {
            connection: id,
            segment,
            sent: 0,
        });
        if empty {
            state.turns.remove(place);
        }
    }

    fn send_of_burst(&mut self, host: u32) {
        let port = self.nics[host as usize].port;
        let Some(burst) = &mut self.hosts[host as usize].burst else {
            return;
        };
        let (id, segment) = (burst.connection, burst.segment);
        let number = segment.first + burst.sent;
        burst.sent += 1;
        let ends = burst.sent == segment.count;
        let connection = &mut self.outgoing_connections[id];
        let (flow, payload) = connection.packet(number);
        let packet = self.packets.add(Packet {
            seq: u64::from(number),
            sent: self.now,
            flow,
            connection: connection.number,
            next: NONE,
            wire_bytes: payload + HEADER,
            payload,
            ordinal: connection.ordinal,
            at_port: 0,
            hop: 0,
            kind: Kind::Data,
            marked: false,
            path: connection.there,
        });
        self.counters.data_packets += 1;
        self.transmit(port, packet);
        if ends {
            self.hosts[host as usize].burst = None;
            let connection = &mut self.outgoing_connections[id];
            connection.queued -= segment.count;
            if !connection.over {
                self.hand_down(id);
            }
        }
    }

    fn kernel_sleep(&mut self, host: u32) {
        let state = &self.hosts[host as usize];
        let Some(due) = state.turns.iter().map(|turn| turn.held_until).min() else {
            return;
        };
        if due > self.now && state.wake.is_none_or(|(at, _)| due < at) {
            let place = self.events.schedule(due, Rank::Own, What::Wake { host });
            self.hosts[host as usize].wake = Some((due, place));
        }
    }
}

impl KernelHost {
    /// Deficit round robin among the connections whose time has come.
    fn choose(&mut self, now: Time<Sim>) -> Option<usize> {
        if !self.turns.iter().any(|turn| turn.held_until <= now) {
            return None;
        }
        loop {
            self.current %= self.turns.len();
            let turn = &mut self.turns[self.current];
            if turn.held_until <= now {
                if turn.credit > 0 {
                    return Some(self.current);
                }
                turn.credit += QUANTUM;
            }
            self.current += 1;
        }
    }
}
