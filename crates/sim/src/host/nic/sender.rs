// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The end of a connection that has the congestion control: packets, acknowledgements, go-back-N. It sends the data, or,
//! of a read, requests for it (reads.rs). A connection carries one flow, or flows in order (streams.rs).

use super::scheduler::{Scheduled, State, Turn};
use super::segments::{Made, Segments};
use super::Nics;
use crate::engine::events::Rank;
use crate::engine::rounding::Rounding;
use crate::flows::network::Network;
use crate::flows::outcomes::Sent;
use crate::flows::streams::Part;
use crate::host::edge::{law_of, Held};
use crate::host::site::Site;
use crate::net::packet::{Kind, Packet, Path, NONE};
use crate::net::what::What;
use onramp_cc::nic::{Ack, Completion, CongestionControl, Control, Limits};
use onramp_scenario::{Op, Work};
use onramp_units::{Rate, Sim, Time};

/// The end of a connection that has the congestion control.
pub(crate) struct Sender {
    /// The flow that opened it, and its number among those of its hosts.
    pub(super) connection: u32,
    ordinal: u16,
    /// The first flow that is not completely acknowledged, and the flow of byte `next`.
    pub current: Part,
    sending: Part,
    /// Whether another flow follows the one that started last.
    pub(super) goes_on: bool,
    /// Bytes on the wire of what it sent last; of a read, of what it asked for last.
    last_wire_bytes: u32,
    /// Whether an acknowledgement has come.
    heard: bool,
    /// Its bursts, if it sends bursts.
    segments: Option<Box<Segments>>,
    /// Its host.
    pub host: u32,
    /// Whether its flows are reads: it sends requests, and gets the data.
    reads: bool,
    /// Its index in its NIC's round robin; `NONE` if it is not in it.
    pub entry: u32,
    /// Payload of the flows that have started; infinite for a flow without size until it stops.
    pub(super) size: u64,
    pub(super) next: u64,
    pub(super) unacked: u64,
    pub limits: Limits,
    pub(super) cc: Control,
    /// The way of its packets.
    there: Path,
    /// The control law's state, and the time since which it holds the head.
    pub law: Held,
    pub held_since: Option<Time<Sim>>,
    /// Time of the retransmission timeout, and whether its event is scheduled.
    timeout_at: Time<Sim>,
    timed: bool,
    endless: bool,
    pub sent: Sent,
}

impl Sender {
    /// Go-back-N; returns the number of packets to retransmit.
    fn go_back(&mut self, payload: u16) -> u32 {
        let again = self.next.saturating_sub(self.unacked);
        self.next = self.unacked;
        if let Some(segments) = &mut self.segments {
            segments.go_back(self.unacked);
        }
        self.sending = self.current;
        let again = again.div_ceil(u64::from(payload)) as u32;
        self.sent.retransmissions += again;
        again
    }

    /// When the next packet may leave by the pacing rate, after one of `payload` bytes, due at `due`, has left now.
    #[inline]
    fn next_at(
        &mut self,
        payload: u64,
        (due, now): (Time<Sim>, Time<Sim>),
        rounding: Rounding,
    ) -> Time<Sim> {
        let wire_bytes = self.last_wire_bytes;
        let (Some(burst), Some(segments)) = (self.cc.burst(), &mut self.segments) else {
            return now + rounding.wire_time(wire_bytes, self.limits.rate);
        };
        let bursts = |bytes: u64| bytes / u64::from(burst.bytes);
        let before = self.next - payload;
        let packet = Made {
            now,
            due,
            wire_bytes,
            end: self.next,
            is_last: bursts(before) != bursts(self.next) || self.next >= self.size,
        };
        segments.left(&packet, burst, self.limits.rate, rounding)
    }

    /// Bytes of the flow of byte `next` from there on.
    fn left_of_flow(&mut self, network: &Network) -> u64 {
        while self.next >= self.sending.end {
            let next = network.next_part(self.sending);
            self.sending = next.expect("the next byte is of a flow that has started");
        }
        self.sending.end - self.next
    }

    /// Its entry in the round robin, as number `place` of the senders.
    pub(super) fn new_entry(&self, place: u32, now: Time<Sim>) -> Scheduled {
        Scheduled {
            sender: place,
            state: self.state(),
            turn: match self.reads {
                false => Turn::Data,
                true => Turn::Request,
            },
            next_at: now,
            held_until: Time::ZERO,
        }
    }

    /// Reports completely acknowledged flows to the outcomes, and returns their number.
    fn end_flows(&mut self, network: &Network, now: Time<Sim>) -> usize {
        let mut ended = 0;
        if let Some(since) = self.held_since.take_if(|_| self.unacked >= self.size) {
            self.sent.held += now - since;
        }
        while self.unacked >= self.current.end {
            ended += 1;
            let flow = self.current.flow;
            if !self.endless {
                network.outcomes.acked(flow, network.age(flow, now));
            }
            let Some(next) = network.next_part(self.current) else {
                break;
            };
            network.outcomes.sent(flow, std::mem::take(&mut self.sent));
            self.current = next;
        }
        ended
    }

    /// Bytes sent so far, without retransmissions.
    pub fn sent_bytes(&self) -> u64 {
        self.next
    }

    /// Payload that leaves together; zero if each packet leaves at its time.
    pub fn burst_bytes(&self) -> u64 {
        self.cc.burst().map_or(0, |burst| u64::from(burst.bytes))
    }

    /// Whether it has sent a part of a burst, which leaves as a whole.
    pub(super) fn is_in_burst(&self) -> bool {
        self.segments.as_ref().is_some_and(|s| s.is_leaving())
    }

    /// Bytes sent that are not acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.next.saturating_sub(self.unacked)
    }

    /// Whether its window is full. In ns-3 a sender may go back, and then what it had sent before is acknowledged: its
    /// bytes in flight wrap below zero, and the flow waits until it goes back again.
    pub(super) fn is_full(&self) -> bool {
        self.next.wrapping_sub(self.unacked) >= self.limits.window_bytes
    }

    /// Whether all data so far is acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.unacked >= self.size
    }

    /// Whether all data is acknowledged and no flow follows.
    pub(crate) fn is_over(&self) -> bool {
        self.is_idle() && !self.goes_on
    }
}

impl Nics {
    /// Starts a flow of the plan, on a new connection unless it follows another flow on its connection.
    pub(crate) fn start(&mut self, site: &mut Site, plan: u32) {
        let opener = site.network.opener(plan);
        match self.senders.place(opener) {
            Some(at) => self.append_flow(site, at, plan),
            None => self.open(site, plan),
        }
    }

    /// Appends flow `plan` to those of the connection at `at`.
    fn append_flow(&mut self, site: &mut Site, at: u32, plan: u32) {
        let host = self.senders[at].host;
        if self.senders[at].is_idle() {
            self.reuse_delay(site, at, plan);
        }
        let sender = &mut self.senders[at];
        let had_sent_all = sender.next >= sender.size;
        sender.size = site.network.part(plan, sender.size).end;
        sender.goes_on = site.network.next_in_stream(plan).is_some();
        site.network.outcomes.path(plan, sender.ordinal);
        self.update_entry(site, at);
        if had_sent_all {
            self.begin_segment_now(site, at);
        }
        self.send(site, host);
    }

    /// A burst whose data has just come is not due before.
    fn begin_segment_now(&mut self, site: &Site, at: u32) {
        let sender = &self.senders[at];
        let entries = &mut self.nics[sender.host as usize].flows;
        let entry = entries.get_mut(sender.entry as usize);
        if let (Some(entry), true) = (entry, sender.segments.is_some()) {
            entry.next_at = entry.next_at.max(site.net.now);
        }
    }

    /// Gives the law of the connection at `at`, on which flow `plan` starts, the last delay, if reused.
    fn reuse_delay(&mut self, site: &mut Site, at: u32, plan: u32) {
        let flow = &site.network.flows[plan as usize];
        let known = site.delay_to_reuse(flow.src, flow.dst);
        if let (Some(law), Some(owd)) = (law_of(&site.laws, flow.src), known) {
            self.senders[at].law.reuse(law, owd, site.net.now);
        }
    }

    fn open(&mut self, site: &mut Site, plan: u32) {
        let flow = site.network.flows[plan as usize];
        let (host, _) = flow.opener_and_peer();
        let ordinal = site.starts.next_ordinal(plan);
        let facts = site.network.path_facts(flow.src, self.common.payload);
        let cc = self.start_cc(host, &facts);
        let part = site.network.part(plan, 0);
        let stop = match flow.work {
            Work::Send(_) => None,
            Work::Until(stop) => Some(stop),
        };
        site.network.outcomes.path(plan, ordinal);
        let sender = Sender {
            connection: plan,
            ordinal,
            current: part,
            sending: part,
            goes_on: site.network.next_in_stream(plan).is_some(),
            host,
            reads: flow.op == Op::Read,
            size: part.end,
            endless: stop.is_some(),
            entry: self.nics[host as usize].flows.len() as u32,
            next: 0,
            unacked: 0,
            limits: cc.limits(),
            last_wire_bytes: 0,
            heard: false,
            segments: cc.burst().map(|_| Box::default()),
            cc,
            there: match flow.op {
                Op::Write => site.network.there(plan, ordinal),
                Op::Read => site.network.back(plan, ordinal),
            },
            law: Held::new(law_of(&site.laws, host)),
            held_since: None,
            timeout_at: Time::ZERO,
            timed: false,
            sent: Sent::default(),
        };
        let entry = sender.new_entry(NONE, site.net.now);
        let place = self.senders.add(plan, sender);
        self.reuse_delay(site, place, plan);
        let nic = &mut self.nics[host as usize];
        nic.flows.push(Scheduled {
            sender: place,
            ..entry
        });
        if let Some(stop) = stop {
            let what = What::Stop { flow: plan };
            site.net.events.schedule(stop, Rank::Own, what);
        }
        self.send(site, host);
    }

    /// Stops a flow without size: it sends no new data.
    pub(crate) fn stop_flow(&mut self, site: &mut Site, plan: u32) {
        let Some(place) = self.senders.place(plan) else {
            return;
        };
        let sender = &mut self.senders[place];
        sender.size = sender.next;
        sender.current.end = sender.size;
        sender.sending.end = sender.size;
        if sender.is_over() {
            site.starts.ended += 1;
        }
        self.update_entry(site, place);
        self.free_if_unused(site, place);
    }

    /// Makes the next packet of the flow at `place` and sends it.
    pub(super) fn send_data(&mut self, site: &mut Site, host: u32, place: usize) {
        let nic = &mut self.nics[host as usize];
        let (port, at) = (nic.port, nic.flows[place].sender);
        let sender = &mut self.senders[at];
        let left = sender.left_of_flow(&site.network);
        let payload = left.min(u64::from(self.common.payload)) as u16;
        let wire_bytes = payload + super::data_header(self.common.feedback);
        let id = site.net.packets.add(Packet {
            seq: sender.next,
            flow: sender.sending.flow,
            connection: sender.connection,
            wire_bytes,
            payload,
            ordinal: sender.ordinal,
            ..Packet::new(Kind::Data, site.net.now, sender.there)
        });
        self.has_sent(site, host, place, (payload.into(), wire_bytes.into()));
        super::begin_data(site, id);
        self.law_sent(site, at, id);
        site.net.transmit(port, id);
        self.keep_turn(site, at);
    }

    /// Makes the next request of the read at `place` and sends it: for the packets of the rest of a segment.
    pub(super) fn send_request(&mut self, site: &mut Site, host: u32, place: usize) {
        let nic = &mut self.nics[host as usize];
        let (port, at) = (nic.port, nic.flows[place].sender);
        let sender = &mut self.senders[at];
        let left = sender.left_of_flow(&site.network);
        let payload = u64::from(self.common.payload);
        let of_segment = sender.burst_bytes() - sender.next % sender.burst_bytes();
        let packets = left.min(of_segment).div_ceil(payload);
        let bytes = left.min(packets * payload);
        let header = super::data_header(self.common.feedback);
        let wire_bytes = bytes + packets * u64::from(header);
        let id = site.net.packets.add(Packet {
            seq: sender.next,
            flow: sender.sending.flow,
            connection: sender.connection,
            wire_bytes: super::READ_REQUEST_BYTES,
            payload: packets as u16, // a segment has at most 1 MB
            ordinal: sender.ordinal,
            ..Packet::new(Kind::ReadRequest, site.net.now, sender.there)
        });
        self.has_sent(site, host, place, (bytes, wire_bytes as u32));
        site.net.transmit(port, id);
    }

    /// The flow at `place` sends, or asks for, its next `payload` bytes: starts the timer, and plans what comes next.
    #[inline]
    fn has_sent(
        &mut self,
        site: &mut Site,
        host: u32,
        place: usize,
        (payload, wire_bytes): (u64, u32),
    ) {
        let nic = &mut self.nics[host as usize];
        nic.last = place;
        let at = nic.flows[place].sender;
        let sender = &mut self.senders[at];
        if let Some(timeout) = self.own[host].timeout {
            if sender.next == sender.unacked {
                sender.timeout_at = site.net.now + timeout;
            }
            if !sender.timed {
                sender.timed = true;
                let what = What::Timeout {
                    connection: sender.connection,
                };
                site.net.events.schedule(sender.timeout_at, Rank::Own, what);
            }
        }
        sender.next += payload;
        sender.last_wire_bytes = wire_bytes;
        sender.cc.advance(site.net.now);
        sender.limits = sender.cc.limits();
        let times = (nic.flows[place].due(), site.net.now);
        nic.flows[place].next_at = sender.next_at(payload, times, site.config.rounding);
        self.update_entry(site, at);
    }

    /// A burst at the rate of the line leaves as a whole: the sender at `at` is next in its NIC's round robin.
    fn keep_turn(&mut self, site: &Site, at: u32) {
        let sender = &self.senders[at];
        let (Some(segments), nic) = (&sender.segments, &mut self.nics[sender.host as usize]) else {
            return;
        };
        let place = sender.entry as usize;
        let free_at = site.net.ports[nic.port as usize].free_at;
        let entry = nic.flows.get(place);
        if entry.is_some_and(|entry| segments.goes_on(entry.next_at, free_at)) {
            nic.next_is(place);
        }
    }

    /// Handles an acknowledgement at the sender.
    #[inline]
    pub(super) fn acknowledged(&mut self, site: &mut Site, id: u32) {
        let packet = site.net.packets[id];
        let Some(at) = self.senders.place(packet.connection) else {
            return;
        };
        let sender = &mut self.senders[at];
        if sender.is_over() {
            return;
        }
        let was_full = sender.segments.is_some() && sender.state() == State::Blocked;
        if packet.seq > sender.unacked {
            sender.unacked = packet.seq;
            if let Some(timeout) = self.own[sender.host].timeout {
                sender.timeout_at = site.net.now + timeout;
            }
        }
        site.starts.ended += sender.end_flows(&site.network, site.net.now);
        if packet.kind == Kind::Nack {
            let again = sender.go_back(self.common.payload);
            site.net.counters.retransmissions += u64::from(again);
        } else if site.config.rounding == Rounding::Exact {
            sender.next = sender.next.max(sender.unacked);
        }
        let hops = match site.net.carried.has.int {
            true => site.net.carried.stacks.of(id).hops(),
            false => &[],
        };
        let (is_first, due) = (!sender.heard, self.timers_due(at));
        let sender = &mut self.senders[at];
        sender.heard = true;
        sender.cc.on_ack(&Ack {
            now: site.net.now,
            acked: packet.seq,
            next: sender.next,
            rtt: site.net.now - packet.sent,
            marked: packet.marked,
            hops,
            int: &site.net.int,
        });
        let before = sender.limits.rate;
        if sender.segments.is_some() {
            self.complete_segments(site, at, packet.seq);
        }
        self.schedule_timers(site, at, due);
        let sender = &mut self.senders[at];
        sender.limits = sender.cc.limits();
        if let (true, State::Ready, Some(segments)) =
            (was_full, sender.state(), &mut sender.segments)
        {
            segments.has_room(site.net.now);
        }
        self.update_entry(site, at);
        self.plan_segment_again(site, at);
        let host = self.senders[at].host;
        // ns-3's congestion controls only note what the first one brings.
        let moves = !is_first || site.config.rounding == Rounding::Exact;
        if moves && self.common.move_next_packet && self.own[host].algorithm.moves_next_packet() {
            self.move_next_packet(site, at, before);
        }
        self.free_if_unused(site, at);
    }

    /// Gives the congestion control the bursts that are complete with all bytes below `acked`.
    fn complete_segments(&mut self, site: &mut Site, at: u32, acked: u64) {
        let sender = &mut self.senders[at];
        let plan = sender.current.flow;
        let Some(segments) = &mut sender.segments else {
            return;
        };
        while let Some(exact) = segments.complete(acked, site.net.now) {
            let errors = &self.own[sender.host].rtt_errors;
            let rtt = self.stamper.measured(errors, sender.host, exact.rtt);
            site.note_rtt(plan, rtt);
            sender.cc.on_completion(&Completion { rtt, ..exact });
        }
    }

    /// Delays a planned burst of a flow whose rate is now lower (TIMELY, section 5: lazily enforced rates).
    fn plan_segment_again(&mut self, site: &Site, at: u32) {
        let sender = &self.senders[at];
        let Some(segments) = &sender.segments else {
            return;
        };
        let planned = segments.planned_again(sender.limits.rate, site.config.rounding);
        let entries = &mut self.nics[sender.host as usize].flows;
        if let (Some(planned), Some(entry)) = (planned, entries.get_mut(sender.entry as usize)) {
            entry.next_at = planned;
        }
    }

    /// Reschedules the next packet of a flow whose rate was `before`. ns-3 reconsiders its NIC's wake even if
    /// the rate is unchanged.
    fn move_next_packet(&mut self, site: &mut Site, at: u32, before: Rate) {
        let sender = &self.senders[at];
        let (host, place, after) = (sender.host, sender.entry, sender.limits.rate);
        if place == NONE || (after == before && site.config.rounding == Rounding::Exact) {
            return;
        }
        let wire_bytes = sender.last_wire_bytes;
        let gap = |rate| site.config.rounding.wire_time(wire_bytes, rate);
        let entry = &mut self.nics[host as usize].flows[place as usize];
        entry.next_at += gap(after) - gap(before);
        let next_at = entry.next_at;
        self.wake_earlier(site, host, next_at);
    }

    /// Checks the retransmission timeout of a flow, and resends from the first unacknowledged byte.
    pub(crate) fn look_for_timeout(&mut self, site: &mut Site, connection: u32) {
        let Some(at) = self.senders.place(connection) else {
            return;
        };
        let sender = &mut self.senders[at];
        let Some(timeout) = self.own[sender.host].timeout.filter(|_| !sender.is_idle()) else {
            sender.timed = false;
            return;
        };
        let waited = site.net.now >= sender.timeout_at && sender.next > sender.unacked;
        let host = sender.host;
        if waited {
            let again = sender.go_back(self.common.payload);
            sender.sent.timeouts += 1;
            site.net.counters.timeouts += 1;
            site.net.counters.retransmissions += u64::from(again);
        }
        if site.net.now >= sender.timeout_at {
            sender.timeout_at = site.net.now + timeout;
        }
        let what = What::Timeout { connection };
        site.net.events.schedule(sender.timeout_at, Rank::Own, what);
        if waited {
            self.update_entry(site, at);
            self.send(site, host);
        }
    }

    /// Removes a finished flow. Packets of it that are still in flight are ignored.
    fn free_if_unused(&mut self, site: &mut Site, at: u32) {
        let sender = &self.senders[at];
        if sender.is_over() && sender.entry == NONE {
            let (flow, connection) = (sender.current.flow, sender.connection);
            site.network.outcomes.sent(flow, sender.sent);
            self.senders.remove(connection);
        }
    }
}
