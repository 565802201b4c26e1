//! The RDMA-like host: a NIC that paces packets and acknowledges each, with go-back-N.
//!
//! Acknowledgements go first, then OR-ACKs; then queue pairs take turns, a packet each, if their window is open
//! and their time has come. Does not: queue data (a packet is made when the line is free), or
//! decide rates or hold packets: that is the congestion control's affair, and On-Ramp's (edge.rs).

use crate::cc::{Ack, CongestionControl, Control, Feedback, Limits};
use crate::clock::mono;
use crate::delays::Delays;
use crate::domain::Domain;
use crate::edge::reuse;
use crate::events::{Rank, What};
use crate::int::IntStack;
use crate::outcomes::Sent;
use crate::packet::{Kind, Packet, Path, NONE};
use crate::rounding::Rounding;
use onramp_scenario::Work;
use onramp_units::{Sim, Span, Time};

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
    /// When it wakes by itself, and the place of that event.
    pub wake: Option<(Time<Sim>, u64)>,
}

/// A flow in the round robin: all that choosing needs to look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// Place of its sender's state.
    pub sender: u32,
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

/// The sending end of a flow.
pub(crate) struct Sender {
    /// Index in the plan, and number among the flows of its hosts.
    pub plan: u32,
    ordinal: u16,
    last_wire_bytes: u16,
    pub src: u32,
    /// Its place in its NIC's round robin; `NONE` while it takes no turns.
    pub turn: u32,
    /// Payload; of a flow without size, until it stops, without end.
    size: u64,
    next: u64,
    unacked: u64,
    pub limits: Limits,
    cc: Control,
    there: Path,
    /// The control law's state, and since when it holds the head.
    pub law: onramp_law::Flow,
    pub held_since: Option<Time<Sim>>,
    /// When it gives up waiting for an acknowledgement, and whether an event will look at that.
    timeout_at: Time<Sim>,
    timed: bool,
    endless: bool,
    pub sent: Sent,
}

/// The receiving end of a flow, from its first packet to its last.
pub(crate) struct Receiver {
    /// Payload; none: without end.
    size: Option<u64>,
    /// Byte expected next.
    expected: u64,
    /// When the same byte may be asked for again, and which it was.
    nack_at: Time<Sim>,
    nacked: u64,
    back: Path,
}

impl Receiver {
    /// Payload that is there in order.
    pub fn received(&self) -> u64 {
        self.expected
    }
}

impl Sender {
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

impl Domain {
    /// A flow of the plan starts.
    pub(crate) fn start_flow(&mut self, plan: u32) {
        let flow = self.network.flows[plan as usize];
        let src = flow.src;
        let ordinal = self.next_ordinal(plan);
        let cc = self.config.algorithm.start(&self.path_facts(src));
        let (size, stop) = match flow.work {
            Work::Send(size) => (size.get(), None),
            Work::Until(stop) => (u64::MAX, Some(stop)),
        };
        self.network.outcomes.path(plan, ordinal);
        let mut sender = Sender {
            plan,
            ordinal,
            src,
            size,
            endless: stop.is_some(),
            turn: self.nics[src as usize].flows.len() as u32,
            next: 0,
            unacked: 0,
            limits: cc.limits(),
            last_wire_bytes: 0,
            cc,
            there: self.network.there(plan, ordinal),
            law: onramp_law::Flow::default(),
            held_since: None,
            timeout_at: Time::ZERO,
            timed: false,
            sent: Sent::default(),
        };
        let known = self.delay_to_reuse(src, flow.dst);
        if let (Some(law), Some(owd)) = (self.laws.get(src as usize), known) {
            reuse(law, &mut sender.law, owd, mono(self.now));
        }
        let turn = Turn {
            sender: NONE,
            state: sender.state(),
            next_at: self.now,
            held_until: Time::ZERO,
        };
        let place = self.senders.add(plan, sender);
        let nic = &mut self.nics[src as usize];
        nic.flows.push(Turn {
            sender: place,
            ..turn
        });
        if let Some(stop) = stop {
            let what = What::Stop { flow: plan };
            self.events.schedule(stop, Rank::Own, what);
        }
        self.nic_send(src);
    }

    /// A flow without size sends nothing new from now on.
    pub(crate) fn stop_flow(&mut self, plan: u32) {
        let Some(place) = self.senders.place(plan) else {
            return;
        };
        let sender = &mut self.senders[place];
        sender.size = sender.next;
        if sender.is_over() {
            self.ended += 1;
        }
        self.update_turn(place);
        self.free_if_unused(place);
    }

    /// Lets a flow take turns as long as it has data to send. In ns-3 it stays until its NIC passes
    /// it over.
    fn update_turn(&mut self, at: u32) {
        let sender = &mut self.senders[at];
        let state = sender.state();
        let has_data = matches!(state, State::Ready | State::Blocked);
        let stays = has_data || self.config.rounding == Rounding::Ns3;
        let nic = &mut self.nics[sender.src as usize];
        match (sender.turn, stays) {
            (NONE, false) => {}
            (NONE, true) => {
                sender.turn = nic.flows.len() as u32;
                nic.flows.push(Turn {
                    sender: at,
                    state,
                    next_at: self.now,
                    held_until: Time::ZERO,
                });
            }
            (place, true) => nic.flows[place as usize].state = state,
            (place, false) => {
                sender.turn = NONE;
                let place = place as usize;
                nic.flows.swap_remove(place);
                if let Some(moved) = nic.flows.get(place) {
                    self.senders[moved.sender].turn = place as u32;
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
                self.packets.free(id);
                self.nic_send(host);
            }
            Kind::Data => {
                let (receiver, back) = self.receiver_of(id);
                let or_ack = self.answer_with_or_ack(id, back);
                let answered = self.answer(id, receiver, back);
                if answered {
                    self.ports[port as usize]
                        .control
                        .push(&mut self.packets, id);
                } else {
                    self.packets.free(id);
                }
                if or_ack || answered {
                    self.nic_send(host);
                }
            }
            Kind::Ack | Kind::Nack => {
                self.acknowledged(id);
                self.packets.free(id);
                self.nic_send(host);
            }
            Kind::Probe | Kind::ProbeAnswer => self.probe_arrived(host, id),
            Kind::Request => self.packets.free(id),
        }
    }

    /// The receiving end of a data packet's flow, unless it has everything; and the way of answers.
    fn receiver_of(&mut self, id: u32) -> (Option<u32>, Path) {
        let Packet { flow, ordinal, .. } = self.packets[id];
        if let Some(place) = self.receivers.place(flow) {
            return (Some(place), self.receivers[place].back);
        }
        let back = self.network.back(flow, ordinal);
        if self.network.outcomes.has_arrived(flow) {
            return (None, back);
        }
        let receiver = Receiver {
            size: self.network.flows[flow as usize].size(),
            expected: 0,
            nack_at: Time::ZERO,
            nacked: 0,
            back,
        };
        (Some(self.receivers.add(flow, receiver)), back)
    }

    /// Turns a data packet into its acknowledgement, if it gets one.
    fn answer(&mut self, id: u32, receiver: Option<u32>, back: Path) -> bool {
        let flow = self.packets[id].flow;
        let Some((kind, expected)) = (match receiver {
            Some(place) => self.take_in(id, place),
            None => self.duplicate(self.network.flows[flow as usize].size().unwrap_or(0)),
        }) else {
            return false;
        };
        let packet = &mut self.packets[id];
        packet.kind = kind;
        packet.seq = expected;
        packet.wire_bytes = self.feedback.ack_bytes();
        packet.payload = 0;
        packet.hop = 0;
        packet.control = self.config.switch.control_acks;
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
            receiver.nack_at = self.now + self.config.nic.nack_interval;
            receiver.nacked = receiver.expected;
            return Some((Kind::Nack, receiver.expected));
        }
        receiver.expected += u64::from(packet.payload);
        let (flow, expected) = (packet.flow, receiver.expected);
        if receiver.size == Some(expected) {
            let after = self.network.age(flow, self.now);
            self.network.outcomes.arrived(flow, after);
            self.receivers.remove(flow);
            self.flow_arrived(flow);
        }
        Some((Kind::Ack, expected))
    }

    /// The answer to a duplicate: the first one's may be lost. ns-3 has none.
    fn duplicate(&self, expected: u64) -> Option<(Kind, u64)> {
        (self.config.rounding == Rounding::Exact).then_some((Kind::Ack, expected))
    }

    /// The sender hears of its data.
    fn acknowledged(&mut self, id: u32) {
        let packet = self.packets[id];
        let Some(at) = self.senders.place(packet.flow) else {
            return;
        };
        let sender = &mut self.senders[at];
        if sender.is_over() {
            return;
        }
        if packet.seq > sender.unacked {
            sender.unacked = packet.seq;
            if let Some(timeout) = self.config.nic.timeout {
                sender.timeout_at = self.now + timeout;
            }
        }
        if packet.kind == Kind::Nack {
            let again = sender.go_back(self.config.nic.payload);
            self.counters.retransmissions += u64::from(again);
        } else if self.config.rounding == Rounding::Exact {
            sender.next = sender.next.max(sender.unacked);
        }
        if sender.is_over() {
            if !sender.endless {
                let after = self.network.age(packet.flow, self.now);
                self.network.outcomes.acked(packet.flow, after);
            }
            self.ended += 1;
        }
        let hops = match self.uses_int {
            true => self.stacks.of(id).hops(),
            false => &[],
        };
        sender.cc.on_ack(&Ack {
            now: self.now,
            acked: packet.seq,
            next: sender.next,
            rtt: self.now - packet.sent,
            marked: packet.marked,
            hops,
            int: &self.int,
        });
        let before = sender.limits.rate;
        sender.limits = sender.cc.limits();
        let after = sender.limits.rate;
        let (host, wire_bytes) = (sender.src, u32::from(sender.last_wire_bytes));
        self.update_turn(at);
        let place = self.senders[at].turn;
        if place != NONE && after != before && self.config.algorithm.moves_next_packet() {
            let gap = |rate| self.config.rounding.wire_time(wire_bytes, rate);
            let turn = &mut self.nics[host as usize].flows[place as usize];
            turn.next_at += gap(after) - gap(before);
            let next_at = turn.next_at;
            self.wake_earlier(host, next_at);
        }
        self.free_if_unused(at);
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
        let place = self.events.schedule(at, Rank::Own, What::Wake { host });
        self.nics[host as usize].wake = Some((at, place));
    }

    /// A wake is due, unless another has replaced it.
    pub(crate) fn nic_woken(&mut self, host: u32) {
        let nic = &mut self.nics[host as usize];
        if nic.wake == Some((self.now, self.place)) {
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
            self.stamp_probe(host, id);
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
            let sender = &mut self.senders[turn.sender];
            if turn.state == State::Finished {
                sender.turn = NONE;
                let plan = sender.plan;
                self.network.outcomes.sent(plan, sender.sent);
                self.senders.remove(plan);
                continue;
            }
            if chosen == Some(from) {
                chosen_to = Some(to);
            }
            sender.turn = to as u32;
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
        let (port, at) = (nic.port, nic.flows[place].sender);
        let sender = &mut self.senders[at];
        let payload = (sender.size - sender.next).min(u64::from(self.config.nic.payload)) as u16;
        let wire_bytes = payload + self.feedback.data_header();
        let id = self.packets.add(Packet {
            seq: sender.next,
            sent: self.now,
            flow: sender.plan,
            connection: sender.plan,
            next: NONE,
            wire_bytes,
            payload,
            ordinal: sender.ordinal,
            at_port: 0,
            hop: 0,
            kind: Kind::Data,
            marked: false,
            control: false,
            path: sender.there,
        });
        if let Some(timeout) = self.config.nic.timeout {
            if sender.next == sender.unacked {
                sender.timeout_at = self.now + timeout;
            }
            if !sender.timed {
                sender.timed = true;
                let what = What::Timeout { flow: sender.plan };
                self.events.schedule(sender.timeout_at, Rank::Own, what);
            }
        }
        sender.next += u64::from(payload);
        sender.last_wire_bytes = wire_bytes;
        sender.cc.advance(self.now);
        sender.limits = sender.cc.limits();
        let gap = self
            .config
            .rounding
            .wire_time(u32::from(wire_bytes), sender.limits.rate);
        nic.flows[place].next_at = self.now + gap;
        self.update_turn(at);
        if self.uses_int {
            self.stacks.set(id, IntStack::default());
        }
        self.counters.data_packets += 1;
        self.law_sent(at, id);
        self.transmit(port, id);
    }

    /// A flow may have waited too long for an acknowledgement: then it starts again from there.
    pub(crate) fn look_for_timeout(&mut self, flow: u32) {
        let Some(at) = self.senders.place(flow) else {
            return;
        };
        let sender = &mut self.senders[at];
        let Some(timeout) = self.config.nic.timeout.filter(|_| !sender.is_over()) else {
            return;
        };
        let waited = self.now >= sender.timeout_at && sender.next > sender.unacked;
        let host = sender.src;
        if waited {
            let again = sender.go_back(self.config.nic.payload);
            sender.sent.timeouts += 1;
            self.counters.timeouts += 1;
            self.counters.retransmissions += u64::from(again);
        }
        if self.now >= sender.timeout_at {
            sender.timeout_at = self.now + timeout;
        }
        let what = What::Timeout { flow };
        self.events.schedule(sender.timeout_at, Rank::Own, what);
        if waited {
            self.update_turn(at);
            self.nic_send(host);
        }
    }

    /// Forgets a flow that is over; what is still under way of it finds nobody.
    fn free_if_unused(&mut self, at: u32) {
        let sender = &self.senders[at];
        if sender.is_over() && sender.turn == NONE {
            let plan = sender.plan;
            self.network.outcomes.sent(plan, sender.sent);
            self.senders.remove(plan);
        }
    }
}

impl Sender {
    /// Go-back-N; answers with the packets to be sent again.
    fn go_back(&mut self, payload: u16) -> u32 {
        let again = self.next.saturating_sub(self.unacked);
        self.next = self.unacked;
        let again = again.div_ceil(u64::from(payload)) as u32;
        self.sent.retransmissions += again;
        again
    }

    /// Whether everything is acknowledged.
    pub(crate) fn is_over(&self) -> bool {
        self.unacked >= self.size
    }
}
