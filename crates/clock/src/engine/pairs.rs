// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The pairs of probes and acks of a tick: sends them, and takes in what has arrived and when they left.

use std::net::SocketAddr;

use onramp_sync::probe::Stamps;

use super::{Engine, Sent};
use crate::{
    machine::{Machine, Stamped},
    wire::{Body, Probe},
};

/// Most stamped packets in flight.
const UNDER_WAY: usize = 1024;
/// A stamp that is so far ahead of the time at which the process reads it is of another clock, ns.
const FUTURE_NS: i64 = 1_000_000;
/// Headers, checksum, preamble and gap of an Ethernet frame with IPv4, and with IPv6.
const WIRE_V4: u64 = 14 + 20 + 8 + 4 + 20;
const WIRE_V6: u64 = WIRE_V4 + 20;

/// Destination and datagrams of a pair.
type Outgoing = (SocketAddr, [Vec<u8>; 2]);

impl Engine {
    /// Sends the first packets of a pair to every host that we probe, and of the acks that wait, and takes in what has come.
    /// Between first and second packets is time for this, because a sleep costs as much as ten packets. At 1 Gbit/s and above a
    /// packet is out before the next one is sent; the order is another one every time. Returns when the second packets shall
    /// follow.
    pub(super) fn send_firsts(&mut self, machine: &mut dyn Machine) -> i64 {
        // Acks tell when those before them left.
        let mut stepped = self.take_stamps(machine);
        let acks: Vec<SocketAddr> = self.acks.drain(..).collect();
        let mut pairs: Vec<Outgoing> = acks.into_iter().filter_map(|to| self.acks(to)).collect();
        pairs.extend((0..self.probed.len()).map(|edge| self.probes(edge)));
        let turn = self.random() as usize % pairs.len().max(1);
        pairs.rotate_left(turn);
        let second_at = machine.now_mono_ns() + Stamps::Software.spacing().as_ns();
        for (to, [first, second]) in pairs {
            self.send(machine, &first, to);
            self.seconds.push((to, second));
        }
        stepped |= self.take_in(machine);
        if stepped {
            self.published.counters.wall_steps += 1;
            self.forget();
        }
        second_at
    }

    /// Sends the second packets. How exactly they are spaced does not matter: their stamps say how.
    pub(super) fn send_seconds(&mut self, machine: &mut dyn Machine) {
        for (to, second) in std::mem::take(&mut self.seconds) {
            self.send(machine, &second, to);
        }
    }

    /// Reads the transmit stamps of our packets. True: the wall clock was stepped.
    fn take_stamps(&mut self, machine: &mut dyn Machine) -> bool {
        machine.transmitted(&mut |id, index, stamped| self.left(id, index, stamped))
    }

    /// Processes received packets. True: the wall clock was stepped.
    fn take_in(&mut self, machine: &mut dyn Machine) -> bool {
        let now = machine.now_mono_ns();
        machine.receive(&mut |from, bytes, stamped| self.arrived(from, bytes, stamped, now))
    }

    pub(super) fn forget(&mut self) {
        self.probed.iter_mut().for_each(|edge| edge.end.forget());
        self.members
            .values_mut()
            .for_each(|member| member.end.forget());
    }

    /// One of our packets left.
    fn left(&mut self, id: u32, index: u8, stamped: Stamped) {
        let Some(at_mono_ns) = self.past(Some(stamped)) else {
            return;
        };
        let at = self.own.sent(at_mono_ns);
        let sent = self.sent.iter().rev().find(|(sent, _)| *sent == id);
        match sent.map(|(_, sent)| *sent) {
            Some(Sent::Probe { edge, seq }) => self.probed[edge].end.sent(seq, index, at),
            Some(Sent::Ack { to, seq }) => {
                if let Some(member) = self.members.get_mut(&to) {
                    member.end.sent(seq, index, at);
                }
            }
            None => {}
        }
    }

    /// When a packet was stamped, unless that is in the future.
    pub(super) fn past(&mut self, stamped: Option<Stamped>) -> Option<i64> {
        let stamped = stamped?;
        let is_past = stamped.at_mono_ns.saturating_sub(stamped.read_mono_ns) < FUTURE_NS;
        self.published.counters.stamps_of_the_future += u64::from(!is_past);
        is_past.then_some(stamped.at_mono_ns)
    }

    fn acks(&mut self, to: SocketAddr) -> Option<Outgoing> {
        let id = self.next_id();
        let acks = self.members.get_mut(&to)?.end.acks(id)?;
        let acks = acks.map(|ack| Probe {
            received_fleet_ns: self.told_fleet_ns(ack.received_mono_ns),
            sent_fleet_ns: self.told_fleet_ns(ack.sent_mono_ns),
            epoch: self.epoch,
            ..ack
        });
        let seq = acks[0].seq;
        self.remember(id, Sent::Ack { to, seq });
        self.published.counters.pairs_acked += 1;
        Some((to, acks.map(|ack| self.encode(to, seq, Body::Ack(ack)))))
    }

    fn probes(&mut self, edge: usize) -> Outgoing {
        let (id, seq) = (self.next_id(), self.next_seq());
        let probed = &mut self.probed[edge];
        probed.end.begin(seq);
        let (to, complete) = (probed.far, probed.end.complete());
        self.remember(id, Sent::Probe { edge, seq });
        self.published.counters.pairs_sent += 1;
        let probe = |index: u8| {
            let of = |stamps: [i64; 2]| self.told_fleet_ns(stamps[usize::from(index)]);
            Probe {
                index,
                seq,
                id,
                epoch: self.epoch,
                before: complete.map_or(0, |trip| trip.pair),
                sent_fleet_ns: complete.map_or(0, |trip| of(trip.sent)),
                received_fleet_ns: complete.map_or(0, |trip| of(trip.received)),
                ..Probe::default()
            }
        };
        let both = [0, 1].map(|index| self.encode(to, seq, Body::Probe(probe(index))));
        (to, both)
    }

    fn remember(&mut self, id: u32, sent: Sent) {
        if self.sent.len() == UNDER_WAY {
            self.sent.pop_front();
        }
        self.sent.push_back((id, sent));
    }

    pub(super) fn send(&mut self, machine: &mut dyn Machine, datagram: &[u8], to: SocketAddr) {
        let around = if to.is_ipv4() { WIRE_V4 } else { WIRE_V6 };
        if machine.send(datagram, to) {
            self.published.cost.wire_bytes += datagram.len() as u64 + around;
        }
    }
}
