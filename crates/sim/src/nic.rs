//! The RDMA-like host: a NIC that paces packets and acknowledges each, with go-back-N.
//!
//! Acknowledgements go first, then OR-ACKs; then queue pairs take turns, a packet each, if their window is open
//! and their time has come. Does not: queue data (a packet is made when the line is free), or
//! decide rates or hold packets: that is the congestion control's affair, and On-Ramp's (edge.rs).

use crate::cc::{Ack, CongestionControl, Control, Feedback, Limits};
use crate::clock::mono;
use crate::delays::Delays;
use crate::edge::reuse;
use crate::events::What;
use crate::int::IntStack;
use crate::packet::{Kind, Packet, Path, NONE};
use crate::rounding::Rounding;
use crate::simulation::Simulation;
use onramp_scenario::Work;
use onramp_units::{Bytes, Sim, Span, Time};

/// Ethernet (here PPP), IPv4, UDP, sequence number.
pub(crate) const DATA_HEADER: u16 = 48;
/// Smallest frame.
const ACK_BYTES: u16 = 60;
/// Telemetry: five hops of 8 B and a count.
const INT_BYTES: u16 = 42;
const TIME_STAMP_BYTES: u16 = 8;

impl Feedback {
    /// Bytes of a data packet's headers on the wire.
    pub(crate) fn data_header(self) -> u16 {
        DATA_HEADER
            + match self {
                Feedback::Marks => 0,
                Feedback::TimeStamp => TIME_STAMP_BYTES,
                Feedback::Int => INT_BYTES,
            }
    }

    /// An acknowledgement on the wire: telemetry does not fit the smallest frame.
    fn ack_bytes(self) -> u16 {
        match self {
            Feedback::Marks | Feedback::TimeStamp => ACK_BYTES,
            Feedback::Int => 46 + INT_BYTES,
        }
    }
}

/// A host's NIC.
pub(crate) struct Nic {
    /// Its only port.
    pub port: u32,
    /// Of data packets that came here since somebody looked.
    pub longest_delay: Span,
    /// Of all of them, if somebody wants to know.
    pub delays: Option<Delays>,
    /// Flows from here that take turns.
    pub flows: Vec<Turn>,
    /// Who had the last turn.
    pub last: usize,
    /// When it wakes by itself, and the number of that event.
    pub wake: Option<(Time<Sim>, u64)>,
}

/// A flow in the round robin: all that choosing needs to look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// Index of its live state.
    pub flow: u32,
    state: State,
    /// When its pace lets the next packet go.
    pub next_at: Time<Sim>,
    /// When the control law is to be asked again.
    pub held_until: Time<Sim>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// May send when its time comes.
    Ready,
    /// Has data, but its window is full.
    Blocked,
    /// Everything is sent, not everything is acknowledged.
    Sent,
    Finished,
}

/// The live state of a flow, at both of its ends.
pub(crate) struct QueuePair {
    /// Index in the plan.
    pub plan: u32,
    pub src: u32,
    /// Payload; of a flow without size, until it stops, without end.
    size: u64,
    endless: bool,
    /// Packets of it that exist, and its timeout event.
    pub packets: u32,
    /// Its place in its NIC's round robin; `NONE` while it takes no turns.
    pub turn: u32,
    next: u64,
    unacked: u64,
    pub limits: Limits,
    last_wire_bytes: u16,
    cc: Control,
    there: Path,
    pub back: Path,
    /// The control law's state, and since when it holds the head.
    pub law: onramp_law::Flow,
    pub held_since: Option<Time<Sim>>,
    /// When it gives up waiting for an acknowledgement, and whether an event will look at that.
    timeout_at: Time<Sim>,
    timed: bool,
    /// Receiver: byte expected next.
    expected: u64,
    /// Receiver: when the same byte may be asked for again, and which it was.
    nack_at: Time<Sim>,
    nacked: u64,
}

impl QueuePair {
    fn state(&self) -> State {
        if self.is_over() {
            State::Finished
        } else if self.next >= self.size {
            State::Sent
        } else if self.next.saturating_sub(self.unacked) >= self.limits.window_bytes {
            State::Blocked
        } else {
            State::Ready
        }
    }
}

impl Nic {
    pub fn new(port: u32) -> Nic {
        Nic {
            port,
            longest_delay: Span::ZERO,
            delays: None,
            flows: Vec::new(),
            last: 0,
            wake: None,
        }
    }

    /// A data packet came here after `delay`.
    pub fn note_delay(&mut self, delay: Span) {
        self.longest_delay = self.longest_delay.max(delay);
        if let Some(delays) = &mut self.delays {
            delays.note(delay);
        }
    }

    /// The place of the flow whose turn is next, if one may send now; and the first place of a
    /// finished flow that was passed over.
    fn choose(&self, now: Time<Sim>, paused: bool) -> (Option<usize>, Option<usize>) {
        let (count, mut finished) = (self.flows.len(), None);
        let mut place = self.last;
        for _ in 0..count {
            place = if place + 1 >= count { 0 } else { place + 1 };
            let turn = &self.flows[place];
            match turn.state {
                State::Ready if !paused && turn.due() <= now => return (Some(place), finished),
                State::Finished => {
                    finished = Some(finished.map_or(place, |first: usize| first.min(place)));
                }
                _ => {}
            }
        }
        (None, finished)
    }

    /// When the first flow's time comes.
    fn next_due(&self, rounding: Rounding) -> Option<Time<Sim>> {
        let counts = |turn: &&Turn| match turn.state {
            State::Ready => true,
            State::Blocked => rounding == Rounding::Ns3,
            State::Sent | State::Finished => false,
        };
        let due = self.flows.iter().filter(counts).map(Turn::due);
        due.min()
    }
}

impl Simulation {
    /// A flow of the plan starts.
    pub(crate) fn start_flow(&mut self, plan: u32) {
        let flow = self.flows[plan as usize];
        let (src, dst) = (flow.src, flow.dst);
        let (there, back) = self.paths(src, dst);
        self.outcomes[plan as usize].path = there;
        let cc = self.config.algorithm.start(&self.path_facts(src));
        let (size, stop) = match flow.work {
            Work::Send(size) => (size.get(), None),
            Work::Until(stop) => (u64::MAX, Some(stop)),
        };
        let mut pair = QueuePair {
            plan,
            src,
            size,
            endless: stop.is_some(),
            packets: 0,
            turn: self.nics[src as usize].flows.len() as u32,
            next: 0,
            unacked: 0,
            limits: cc.limits(),
            last_wire_bytes: 0,
            cc,
            there,
            back,
            law: onramp_law::Flow::default(),
            held_since: None,
            timeout_at: Time::ZERO,
            timed: false,
            expected: 0,
            nack_at: Time::ZERO,
            nacked: 0,
        };
        let known = self.delay_to_reuse(src, dst);
        if let (Some(law), Some(owd)) = (self.laws.get(src as usize), known) {
            reuse(law, &mut pair.law, owd, mono(self.now));
        }
        let turn = Turn {
            flow: NONE,
            state: pair.state(),
            next_at: self.now,
            held_until: Time::ZERO,
        };
        let id = self.pairs.add(pair);
        let nic = &mut self.nics[src as usize];
        nic.flows.push(Turn { flow: id, ..turn });
        if let Some(stop) = stop {
            self.events.schedule(stop, What::Stop { pair: id });
        }
        self.nic_send(src);
    }

    /// A flow without size sends nothing new from now on.
    pub(crate) fn stop_flow(&mut self, id: u32) {
        let pair = &mut self.pairs[id];
        pair.size = pair.next;
        if pair.is_over() {
            self.outcomes[pair.plan as usize].received = Bytes::new(pair.expected);
            self.unfinished -= 1;
        }
        self.update_turn(id);
        self.free_if_unused(id);
    }

    /// Lets a flow take turns as long as it has data to send. In ns-3 it stays until its NIC passes
    /// it over.
    fn update_turn(&mut self, id: u32) {
        let pair = &mut self.pairs[id];
        let state = pair.state();
        let has_data = matches!(state, State::Ready | State::Blocked);
        let stays = has_data || self.config.rounding == Rounding::Ns3;
        let nic = &mut self.nics[pair.src as usize];
        match (pair.turn, stays) {
            (NONE, false) => {}
            (NONE, true) => {
                pair.turn = nic.flows.len() as u32;
                nic.flows.push(Turn {
                    flow: id,
                    state,
                    next_at: self.now,
                    held_until: Time::ZERO,
                });
            }
            (place, true) => nic.flows[place as usize].state = state,
            (place, false) => {
                pair.turn = NONE;
                let place = place as usize;
                nic.flows.swap_remove(place);
                if let Some(moved) = nic.flows.get(place) {
                    self.pairs[moved.flow].turn = place as u32;
                }
                if nic.last == place {
                    // Whoever has moved here is next.
                    nic.last = place.checked_sub(1).unwrap_or(nic.flows.len());
                }
            }
        }
    }

    /// A packet is at a host.
    pub(crate) fn nic_receive(&mut self, id: u32) {
        let port = u32::from(self.packets[id].at_port);
        let host = self.ports[port as usize].node;
        match self.packets[id].kind {
            Kind::Pause | Kind::Resume => self.set_paused(port, id),
            Kind::OrAck => {
                self.or_acked(id);
                self.discard(id);
                self.nic_send(host);
            }
            Kind::Data => {
                let or_ack = self.answer_with_or_ack(id);
                let answered = self.answer(id);
                if answered {
                    self.ports[port as usize]
                        .control
                        .push(&mut self.packets, id);
                } else {
                    self.discard(id);
                }
                if or_ack || answered {
                    self.nic_send(host);
                }
            }
            Kind::Ack | Kind::Nack => {
                self.acknowledged(id);
                self.discard(id);
                self.nic_send(host);
            }
        }
    }

    /// Turns a data packet into its acknowledgement, if it gets one.
    fn answer(&mut self, id: u32) -> bool {
        let packet = &mut self.packets[id];
        let pair = &mut self.pairs[packet.flow];
        let mut arrived = None;
        let kind = if packet.seq == pair.expected {
            pair.expected += u64::from(packet.payload);
            if pair.expected == pair.size && !pair.endless {
                let start = self.flows[pair.plan as usize].start;
                self.outcomes[pair.plan as usize].arrived = Some(self.now - start);
                arrived = Some(pair.plan);
            }
            Kind::Ack
        } else if packet.seq > pair.expected {
            if self.now < pair.nack_at && pair.nacked == pair.expected {
                return false;
            }
            pair.nack_at = self.now + self.config.nic.nack_interval;
            pair.nacked = pair.expected;
            Kind::Nack
        } else if self.config.rounding == Rounding::Ns3 {
            return false;
        } else {
            Kind::Ack // of a duplicate: the first one's may be lost
        };
        packet.kind = kind;
        packet.seq = pair.expected;
        packet.wire_bytes = self.feedback.ack_bytes();
        packet.payload = 0;
        packet.hop = 0;
        packet.control = self.config.switch.control_acks;
        packet.path = pair.back;
        if let Some(plan) = arrived {
            self.flow_arrived(plan);
        }
        true
    }

    /// The sender hears of its data.
    fn acknowledged(&mut self, id: u32) {
        let packet = self.packets[id];
        let pair = &mut self.pairs[packet.flow];
        if pair.is_over() {
            return;
        }
        let outcome = &mut self.outcomes[pair.plan as usize];
        if packet.seq > pair.unacked {
            pair.unacked = packet.seq;
            if let Some(timeout) = self.config.nic.timeout {
                pair.timeout_at = self.now + timeout;
            }
        }
        if pair.is_over() {
            if !pair.endless {
                outcome.acked = Some(self.now - self.flows[pair.plan as usize].start);
            }
            outcome.received = Bytes::new(pair.expected);
            self.unfinished -= 1;
        }
        if packet.kind == Kind::Nack {
            let again = pair.go_back(self.config.nic.payload);
            outcome.retransmissions += again;
            self.counters.retransmissions += u64::from(again);
        } else if self.config.rounding == Rounding::Exact {
            pair.next = pair.next.max(pair.unacked);
        }
        let hops = match self.uses_int {
            true => self.stacks[id as usize].hops(),
            false => &[],
        };
        pair.cc.on_ack(&Ack {
            now: self.now,
            acked: packet.seq,
            next: pair.next,
            rtt: self.now - packet.sent,
            marked: packet.marked,
            hops,
            int: &self.int,
        });
        let before = pair.limits.rate;
        pair.limits = pair.cc.limits();
        let after = pair.limits.rate;
        let (host, wire_bytes) = (pair.src, u32::from(pair.last_wire_bytes));
        self.update_turn(packet.flow);
        let place = self.pairs[packet.flow].turn;
        if place != NONE && after != before && self.config.algorithm.moves_next_packet() {
            let gap = |rate| self.config.rounding.wire_time(wire_bytes, rate);
            let turn = &mut self.nics[host as usize].flows[place as usize];
            turn.next_at += gap(after) - gap(before);
            let next_at = turn.next_at;
            self.wake_earlier(host, next_at);
        }
    }

    /// Moves a pending wake forward.
    fn wake_earlier(&mut self, host: u32, due: Time<Sim>) {
        if self.nics[host as usize]
            .wake
            .is_some_and(|(at, _)| due < at)
        {
            self.wake_at(host, due.max(self.now));
        }
    }

    fn wake_at(&mut self, host: u32, at: Time<Sim>) {
        let number = self.events.schedule(at, What::Wake { host });
        self.nics[host as usize].wake = Some((at, number));
    }

    /// A wake is due, unless another has replaced it.
    pub(crate) fn nic_woken(&mut self, host: u32) {
        let nic = &mut self.nics[host as usize];
        if nic.wake == Some((self.now, self.number)) {
            nic.wake = None;
            self.nic_send(host);
        }
    }

    /// Sends what is next at a host, if its line is free and anything may go.
    pub(crate) fn nic_send(&mut self, host: u32) {
        let port = self.nics[host as usize].port;
        if !self.line_is_free(port) {
            return self.await_line(port);
        }
        let line = &mut self.ports[port as usize];
        let (paused, control_acks) = (line.paused, self.config.switch.control_acks);
        let acknowledgement = match control_acks || !paused {
            true => line.control.pop(&self.packets),
            false => None,
        };
        let or_ack = || match paused {
            true => None,
            false => line.data.pop(&self.packets),
        };
        if let Some(id) = acknowledgement.or_else(or_ack) {
            self.transmit(port, id);
            return self.await_line_if_busy_host(host);
        }
        match self.choose(host, paused) {
            Some(place) => {
                self.send_data(host, place);
                self.await_line_if_busy_host(host);
            }
            None => self.sleep(host),
        }
    }

    /// The place of the flow that sends next: whose turn it is, and whom the law does not hold.
    fn choose(&mut self, host: u32, paused: bool) -> Option<usize> {
        loop {
            let (chosen, finished) = self.nics[host as usize].choose(self.now, paused);
            let chosen = match finished {
                Some(first) => self.forget_finished(host, first, chosen),
                None => chosen,
            };
            if chosen.is_none_or(|place| self.law_lets_go(host, place)) {
                return chosen;
            }
        }
    }

    /// A line-free event does nothing at a host without flows and acknowledgements.
    fn await_line_if_busy_host(&mut self, host: u32) {
        let nic = &self.nics[host as usize];
        let (port, line) = (nic.port, &self.ports[nic.port as usize]);
        if !nic.flows.is_empty() || !line.control.is_empty() || !line.data.is_empty() {
            self.await_line(port);
        }
    }

    fn sleep(&mut self, host: u32) {
        let nic = &self.nics[host as usize];
        let Some(due) = nic.next_due(self.config.rounding) else {
            return;
        };
        let sooner = match nic.wake {
            None => true,
            Some((at, _)) => self.config.rounding == Rounding::Exact && due < at,
        };
        if sooner && due > self.now {
            self.wake_at(host, due);
        }
    }

    /// Takes finished flows out of the round robin, from place `first` on, as ns-3 does. Answers
    /// with the new place of the chosen one.
    fn forget_finished(&mut self, host: u32, first: usize, chosen: Option<usize>) -> Option<usize> {
        let flows = &mut self.nics[host as usize].flows;
        let (mut to, mut chosen_to) = (first, chosen);
        for from in first..flows.len() {
            let turn = flows[from];
            let pair = &mut self.pairs[turn.flow];
            if turn.state == State::Finished {
                pair.turn = NONE;
                if pair.packets == 0 {
                    self.pairs.free(turn.flow);
                }
                continue;
            }
            if chosen == Some(from) {
                chosen_to = Some(to);
            }
            pair.turn = to as u32;
            flows[to] = turn;
            to += 1;
        }
        flows.truncate(to);
        chosen_to
    }

    /// Makes the next packet of the flow at `place` and sends it.
    fn send_data(&mut self, host: u32, place: usize) {
        let nic = &mut self.nics[host as usize];
        nic.last = place;
        let (port, flow) = (nic.port, nic.flows[place].flow);
        let pair = &mut self.pairs[flow];
        let payload = (pair.size - pair.next).min(u64::from(self.config.nic.payload)) as u16;
        let wire_bytes = payload + self.feedback.data_header();
        let id = self.packets.add(Packet {
            seq: pair.next,
            sent: self.now,
            flow,
            next: NONE,
            wire_bytes,
            payload,
            at_port: 0,
            hop: 0,
            kind: Kind::Data,
            marked: false,
            control: false,
            path: pair.there,
        });
        if let Some(timeout) = self.config.nic.timeout {
            if pair.next == pair.unacked {
                pair.timeout_at = self.now + timeout;
            }
            if !pair.timed {
                pair.timed = true;
                pair.packets += 1; // Keeps the state until the event has come.
                let (at, what) = (pair.timeout_at, What::Timeout { pair: flow });
                self.events.schedule(at, what);
            }
        }
        pair.packets += 1;
        pair.next += u64::from(payload);
        pair.last_wire_bytes = wire_bytes;
        pair.cc.advance(self.now);
        pair.limits = pair.cc.limits();
        let gap = self
            .config
            .rounding
            .wire_time(u32::from(wire_bytes), pair.limits.rate);
        nic.flows[place].next_at = self.now + gap;
        self.update_turn(flow);
        if self.uses_int {
            self.clear_stack(id);
        }
        self.counters.data_packets += 1;
        self.law_sent(id);
        self.transmit(port, id);
    }

    fn clear_stack(&mut self, id: u32) {
        if self.stacks.len() <= id as usize {
            self.stacks
                .resize(self.packets.capacity(), IntStack::default());
        }
        self.stacks[id as usize] = IntStack::default();
    }

    /// A flow may have waited too long for an acknowledgement: then it starts again from there.
    pub(crate) fn look_for_timeout(&mut self, id: u32) {
        let pair = &mut self.pairs[id];
        if let Some(timeout) = self.config.nic.timeout.filter(|_| !pair.is_over()) {
            let waited = self.now >= pair.timeout_at && pair.next > pair.unacked;
            let host = pair.src;
            if waited {
                let again = pair.go_back(self.config.nic.payload);
                let outcome = &mut self.outcomes[pair.plan as usize];
                outcome.timeouts += 1;
                outcome.retransmissions += again;
                self.counters.timeouts += 1;
                self.counters.retransmissions += u64::from(again);
            }
            if self.now >= pair.timeout_at {
                pair.timeout_at = self.now + timeout;
            }
            let (at, what) = (pair.timeout_at, What::Timeout { pair: id });
            self.events.schedule(at, what);
            if waited {
                self.update_turn(id);
                self.nic_send(host);
            }
            return;
        }
        self.forget_one(id);
    }

    /// A packet is no more.
    pub(crate) fn discard(&mut self, id: u32) {
        self.forget_one(self.packets[id].flow);
        self.packets.free(id);
    }

    /// One reason less to keep a flow's live state.
    fn forget_one(&mut self, flow: u32) {
        self.pairs[flow].packets -= 1;
        self.free_if_unused(flow);
    }

    fn free_if_unused(&mut self, flow: u32) {
        let pair = &self.pairs[flow];
        if pair.is_over() && pair.turn == NONE && pair.packets == 0 {
            self.pairs.free(flow);
        }
    }
}

impl QueuePair {
    /// Go-back-N; answers with the packets to be sent again.
    fn go_back(&mut self, payload: u16) -> u32 {
        let again = self.next.saturating_sub(self.unacked);
        self.next = self.unacked;
        again.div_ceil(u64::from(payload)) as u32
    }

    /// Payload that the receiver has in order.
    pub(crate) fn received(&self) -> u64 {
        self.expected
    }

    /// Whether everything is acknowledged.
    pub(crate) fn is_over(&self) -> bool {
        self.unacked >= self.size
    }
}
