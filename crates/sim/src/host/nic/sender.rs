//! The sending end of a connection: packets, acknowledgements, going back. A connection is one flow's, or
//! that of flows that go in order (streams.rs).

use super::turns::Turn;
use crate::domain::Domain;
use crate::engine::events::{Rank, What};
use crate::engine::rounding::Rounding;
use crate::flows::outcomes::Sent;
use crate::flows::streams::Part;
use crate::host::clock::mono;
use crate::host::edge::{law_of, reuse};
use crate::net::network::Network;
use crate::net::packet::{Kind, Packet, Path, NONE};
use onramp_cc::int::IntStack;
use onramp_cc::nic::{Ack, CongestionControl, Control, Limits};
use onramp_scenario::Work;
use onramp_units::{Rate, Sim, Time};

/// The sending end of a connection.
pub(crate) struct Sender {
    /// The flow that opened it, and its number among those of its hosts.
    pub(super) connection: u32,
    ordinal: u16,
    /// The first flow that is not all acknowledged, and that of byte `next`.
    pub under_way: Part,
    sending: Part,
    /// Whether another flow will go behind the one that started last.
    pub(super) goes_on: bool,
    pub(super) last_wire_bytes: u16,
    pub src: u32,
    /// Its place in its NIC's round robin; `NONE` while it takes no turns.
    pub turn: u32,
    /// Payload of the flows that have started; of one without size, until it stops, without end.
    pub(super) size: u64,
    pub(super) next: u64,
    pub(super) unacked: u64,
    pub limits: Limits,
    pub(super) cc: Control,
    pub(super) there: Path,
    /// The control law's state, and since when it holds the head.
    pub law: onramp_law::Flow,
    pub held_since: Option<Time<Sim>>,
    /// When it gives up waiting for an acknowledgement, and whether an event will look at that.
    pub(super) timeout_at: Time<Sim>,
    pub(super) timed: bool,
    pub(super) endless: bool,
    pub sent: Sent,
}

impl Sender {
    /// Go-back-N; answers with the packets to be sent again.
    fn go_back(&mut self, payload: u16) -> u32 {
        let again = self.next.saturating_sub(self.unacked);
        self.next = self.unacked;
        self.sending = self.under_way;
        let again = again.div_ceil(u64::from(payload)) as u32;
        self.sent.retransmissions += again;
        again
    }

    /// Tells the outcomes which flows are all acknowledged now, and answers how many.
    fn end_flows(&mut self, network: &Network, now: Time<Sim>) -> usize {
        let mut ended = 0;
        if let Some(since) = self.held_since.take_if(|_| self.unacked >= self.size) {
            self.sent.held += now - since;
        }
        while self.unacked >= self.under_way.end {
            ended += 1;
            let flow = self.under_way.flow;
            if !self.endless {
                network.outcomes.acked(flow, network.age(flow, now));
            }
            let Some(next) = network.next_part(self.under_way) else {
                break;
            };
            network.outcomes.sent(flow, std::mem::take(&mut self.sent));
            self.under_way = next;
        }
        ended
    }

    /// Whether everything that there has been is acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.unacked >= self.size
    }

    /// Whether nothing comes behind that either.
    pub(crate) fn is_over(&self) -> bool {
        self.is_idle() && !self.goes_on
    }
}

impl Domain {
    /// A flow of the plan starts: on a new connection, unless it goes behind another one.
    pub(crate) fn start_flow(&mut self, plan: u32) {
        let opener = self.network.opener(plan);
        match self.senders.place(opener) {
            Some(at) => self.append_flow(at, plan),
            None => self.open(plan),
        }
    }

    /// Flow `plan` goes behind those of the connection at `at`.
    fn append_flow(&mut self, at: u32, plan: u32) {
        let src = self.senders[at].src;
        if self.senders[at].is_idle() {
            self.reuse_delay(at, plan);
        }
        let sender = &mut self.senders[at];
        sender.size = self.network.part(plan, sender.size).end;
        sender.goes_on = self.network.next_in_stream(plan).is_some();
        self.network.outcomes.path(plan, sender.ordinal);
        self.update_turn(at);
        self.nic_send(src);
    }

    /// The law of the connection at `at`, on which flow `plan` starts, may know a delay already.
    fn reuse_delay(&mut self, at: u32, plan: u32) {
        let flow = &self.network.flows[plan as usize];
        let known = self.delay_to_reuse(flow.src, flow.dst);
        if let (Some(law), Some(owd)) = (law_of(&self.laws, flow.src), known) {
            reuse(law, &mut self.senders[at].law, owd, mono(self.now));
        }
    }

    fn open(&mut self, plan: u32) {
        let flow = self.network.flows[plan as usize];
        let src = flow.src;
        let ordinal = self.next_ordinal(plan);
        let cc = self
            .config
            .hosts
            .nic()
            .algorithm
            .start(&self.path_facts(src));
        let part = self.network.part(plan, 0);
        let stop = match flow.work {
            Work::Send(_) => None,
            Work::Until(stop) => Some(stop),
        };
        self.network.outcomes.path(plan, ordinal);
        let sender = Sender {
            connection: plan,
            ordinal,
            under_way: part,
            sending: part,
            goes_on: self.network.next_in_stream(plan).is_some(),
            src,
            size: part.end,
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
        let turn = Turn {
            sender: NONE,
            state: sender.state(),
            next_at: self.now,
            held_until: Time::ZERO,
        };
        let place = self.senders.add(plan, sender);
        self.reuse_delay(place, plan);
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
        sender.under_way.end = sender.size;
        sender.sending.end = sender.size;
        if sender.is_over() {
            self.ended += 1;
        }
        self.update_turn(place);
        self.free_if_unused(place);
    }

    /// Makes the next packet of the flow at `place` and sends it.
    pub(super) fn send_data(&mut self, host: u32, place: usize) {
        let nic = &mut self.nics[host as usize];
        nic.last = place;
        let (port, at) = (nic.port, nic.flows[place].sender);
        let sender = &mut self.senders[at];
        while sender.next >= sender.sending.end {
            let next = self.network.next_part(sender.sending);
            sender.sending = next.expect("the next byte is of a flow that has started");
        }
        let left = sender.sending.end - sender.next;
        let payload = left.min(u64::from(self.config.hosts.nic().payload)) as u16;
        let wire_bytes = payload + super::data_header(self.feedback);
        let id = self.packets.add(Packet {
            seq: sender.next,
            sent: self.now,
            flow: sender.sending.flow,
            connection: sender.connection,
            next: NONE,
            wire_bytes,
            payload,
            ordinal: sender.ordinal,
            at_port: 0,
            hop: 0,
            kind: Kind::Data,
            marked: false,
            path: sender.there,
        });
        if let Some(timeout) = self.config.hosts.nic().timeout {
            if sender.next == sender.unacked {
                sender.timeout_at = self.now + timeout;
            }
            if !sender.timed {
                sender.timed = true;
                let what = What::Timeout {
                    connection: sender.connection,
                };
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

    /// The sender hears of its data.
    pub(super) fn acknowledged(&mut self, id: u32) {
        let packet = self.packets[id];
        let Some(at) = self.senders.place(packet.connection) else {
            return;
        };
        let sender = &mut self.senders[at];
        if sender.is_over() {
            return;
        }
        if packet.seq > sender.unacked {
            sender.unacked = packet.seq;
            if let Some(timeout) = self.config.hosts.nic().timeout {
                sender.timeout_at = self.now + timeout;
            }
        }
        self.ended += sender.end_flows(&self.network, self.now);
        if packet.kind == Kind::Nack {
            let again = sender.go_back(self.config.hosts.nic().payload);
            self.counters.retransmissions += u64::from(again);
        } else if self.config.rounding == Rounding::Exact {
            sender.next = sender.next.max(sender.unacked);
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
        self.update_turn(at);
        if self.config.hosts.nic().algorithm.moves_next_packet() {
            self.move_next_packet(at, before);
        }
        self.free_if_unused(at);
    }

    /// The rate of a flow was `before`: its next packet goes when the new one lets it. ns-3 looks at
    /// its NIC's wake even if the rate is the same.
    fn move_next_packet(&mut self, at: u32, before: Rate) {
        let sender = &self.senders[at];
        let (host, place, after) = (sender.src, sender.turn, sender.limits.rate);
        if place == NONE || (after == before && self.config.rounding == Rounding::Exact) {
            return;
        }
        let wire_bytes = u32::from(sender.last_wire_bytes);
        let gap = |rate| self.config.rounding.wire_time(wire_bytes, rate);
        let turn = &mut self.nics[host as usize].flows[place as usize];
        turn.next_at += gap(after) - gap(before);
        let next_at = turn.next_at;
        self.wake_earlier(host, next_at);
    }

    /// A flow may have waited too long for an acknowledgement: then it starts again from there.
    pub(crate) fn look_for_timeout(&mut self, connection: u32) {
        let Some(at) = self.senders.place(connection) else {
            return;
        };
        let sender = &mut self.senders[at];
        let Some(timeout) = self
            .config
            .hosts
            .nic()
            .timeout
            .filter(|_| !sender.is_idle())
        else {
            sender.timed = false;
            return;
        };
        let waited = self.now >= sender.timeout_at && sender.next > sender.unacked;
        let host = sender.src;
        if waited {
            let again = sender.go_back(self.config.hosts.nic().payload);
            sender.sent.timeouts += 1;
            self.counters.timeouts += 1;
            self.counters.retransmissions += u64::from(again);
        }
        if self.now >= sender.timeout_at {
            sender.timeout_at = self.now + timeout;
        }
        let what = What::Timeout { connection };
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
            let (flow, connection) = (sender.under_way.flow, sender.connection);
            self.network.outcomes.sent(flow, sender.sent);
            self.senders.remove(connection);
        }
    }
}
