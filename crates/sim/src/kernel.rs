//! The kernel host: TCP (tcp/) above a queueing discipline above a plain NIC.
//!
//! A connection hands down GSO segments at its pace, if it has one (then a segment's time stamp is
//! that of its departure, as in Linux since 4.20), as many as TCP small queues let wait (TSQ); connections
//! take turns by bytes (deficit round robin, as sch_fq); a segment leaves as one burst at line rate.
//! Acknowledgements leave between bursts. Packets that arrive within the coalescing time are handled
//! together. With On-Ramp the control law is asked before a segment leaves, and every 14,480 bytes
//! an OR-ACK answers, as law/sample.h says.
//! Connections are persistent, as the rack's: a flow takes the idle one of its hosts that was used last,
//! with the window and the control law's state that it has, else a new one.
//! Does not: model processors or receive windows; a new connection's handshake is over, and has
//! found the round-trip time of the idle network.

mod codel;
mod edge;

use self::codel::Codel;
use crate::config::Kernel;
use crate::events::What;
use crate::packet::{Kind, Packet, Path, NONE};
use crate::simulation::Simulation;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::{Segment, Sender};
use crate::tcp::Acknowledgement;
use onramp_law::Records;
use onramp_scenario::Work;
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use std::collections::VecDeque;

/// Payload of a full packet: 1500 B less IPv4 and TCP headers with time stamps.
pub(crate) const MSS: u16 = 1448;
/// Ethernet, IPv4 and TCP headers; an acknowledgement is nothing else.
pub(crate) const HEADER: u16 = 66;
/// sch_fq: two frames.
const QUANTUM: i64 = 3028;
/// A time that does not come.
const NEVER: Time<Sim> = Time::from_ticks(i64::MAX);

/// A kernel host.
#[derive(Default)]
pub(crate) struct KernelHost {
    /// Connections with segments to send.
    turns: Vec<Turn>,
    /// Whose turn it is.
    current: usize,
    burst: Option<Burst>,
    wake: Option<(Time<Sim>, u64)>,
    /// Packets that wait for the interrupt.
    arrived: Vec<u32>,
}

/// A connection in the round robin.
#[derive(Debug, Clone, Copy)]
struct Turn {
    connection: u32,
    credit: i64,
    /// When the control law is to be asked again.
    held_until: Time<Sim>,
}

/// A segment on its way to the line.
#[derive(Debug, Clone, Copy)]
struct Burst {
    connection: u32,
    segment: Segment,
    sent: u32,
}

/// A connection, at both of its ends.
pub(crate) struct Connection {
    pub plan: u32,
    src: u32,
    dst: u32,
    sender: Sender,
    pub receiver: Receiver,
    /// The flow's first packet; of a flow with a size the packet behind its last, and the last one's payload.
    first: u32,
    end: Option<u32>,
    last_payload: u16,
    there: Path,
    back: Path,
    /// Segments in the queueing discipline, with the times at which they came, and packets there and
    /// in the burst.
    queue: VecDeque<(Time<Sim>, Segment)>,
    queued: u32,
    codel: Codel,
    /// When the pace lets TCP hand down more, and when it waits for that.
    paced_until: Time<Sim>,
    resume_at: Option<Time<Sim>>,
    law: onramp_law::Flow,
    records: Records,
    pub held_since: Option<Time<Sim>>,
    /// The timer event that is scheduled.
    timer_at: Time<Sim>,
    /// Packets, events and bursts that know it.
    references: u32,
    over: bool,
}

impl Connection {
    fn payload(&self, number: u32) -> u16 {
        match self.end {
            Some(end) if number + 1 == end => self.last_payload,
            _ => MSS,
        }
    }

    fn bytes(&self, segment: &Segment) -> u32 {
        let last = segment.first + segment.count - 1;
        (segment.count - 1) * u32::from(MSS) + u32::from(self.payload(last))
    }

    /// Payload that the receiver has in order.
    pub fn received(&self) -> u64 {
        let packets = u64::from(self.receiver.expected - self.first);
        let missing = match self.end {
            Some(end) if self.receiver.expected == end => MSS - self.last_payload,
            _ => 0,
        };
        packets * u64::from(MSS) - u64::from(missing)
    }

    /// Congestion window.
    pub fn window_packets(&self) -> u32 {
        self.sender.window().packets
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The congestion control's, else tcp_update_pacing_rate: twice the window a round trip in the
    /// first half of slow start, else 1.2 times.
    pub fn pace(&self) -> Option<Rate> {
        let packet_bits = f64::from(MSS) * 8.0;
        if let Some(packets_per_s) = self.sender.packets_per_s() {
            return Rate::from_bits_per_s((packets_per_s * packet_bits) as u64);
        }
        let window = self.sender.window();
        let early = window.packets < window.slow_start_below / 2;
        let factor = if early { 2.0 } else { 1.2 };
        let rtt_s = self.sender.smoothed_rtt()?.as_s_f64();
        let bits = f64::from(window.packets) * packet_bits;
        Rate::from_bits_per_s((bits * factor / rtt_s) as u64)
    }

    /// Packets that may wait below TCP: TSQ, at least two segments.
    fn small_queue(&self, segment: u32, worth: Span) -> u32 {
        let paced = self.pace().map_or(0, |pace| pace.bytes_in(worth).get());
        (2 * segment).max((paced / u64::from(MSS)) as u32)
    }
}

impl Kernel {
    /// Packets of the largest segment.
    fn segment(&self) -> u32 {
        (self.gso.get() / u64::from(MSS)).max(1) as u32
    }
}

impl Simulation {
    fn kernel(&self) -> &Kernel {
        self.config.kernel.as_ref().expect("asked of kernel hosts")
    }

    /// A flow of the plan starts, on an idle connection of its hosts if there is one.
    pub(crate) fn start_connection(&mut self, plan: u32) {
        let flow = self.flows[plan as usize];
        let idle = self.idle_connections.get_mut(&(flow.src, flow.dst));
        let id = match idle.and_then(Vec::pop) {
            Some(id) => id,
            None => self.open_connection(flow.src, flow.dst),
        };
        self.acknowledge_by_request(id);
        self.law_starts(id);
        let connection = &mut self.connections[id];
        connection.plan = plan;
        connection.over = false;
        connection.first = connection.receiver.expected;
        self.outcomes[plan as usize].path = connection.there;
        match flow.work {
            Work::Send(size) => {
                let full = u64::from(MSS);
                let packets = size.get().div_ceil(full) as u32;
                connection.end = Some(connection.first + packets);
                connection.last_payload = ((size.get() - 1) % full + 1) as u16;
                connection.sender.resume(self.now, packets);
            }
            Work::Until(stop) => {
                connection.end = None;
                let most = u32::MAX - connection.first;
                connection.sender.resume(self.now, most);
                self.events.schedule(stop, What::Stop { pair: id });
            }
        }
        self.hand_down(id);
    }

    /// What asks for the next flow acknowledges the one before, if that has not been done yet.
    fn acknowledge_by_request(&mut self, id: u32) {
        let connection = &mut self.connections[id];
        if connection.over {
            return;
        }
        let acknowledgement = connection.receiver.acknowledge();
        connection.sender.acknowledged(self.now, &acknowledgement);
        self.end_if_done(id);
    }

    fn open_connection(&mut self, src: u32, dst: u32) -> u32 {
        let (there, back) = self.paths(src, dst);
        let kernel = self.kernel();
        let transport = kernel.transport.clone();
        let sender = Sender::new(&kernel.algorithm, transport, self.base_rtt());
        self.connections.add(Connection {
            plan: NONE,
            src,
            dst,
            sender,
            receiver: Receiver::default(),
            first: 0,
            end: None,
            last_payload: MSS,
            there,
            back,
            queue: VecDeque::new(),
            queued: 0,
            codel: Codel::NEW,
            paced_until: self.now,
            resume_at: None,
            law: onramp_law::Flow::default(),
            records: Records::default(),
            held_since: None,
            timer_at: NEVER,
            references: 0,
            over: true,
        })
    }

    /// A flow without size sends nothing new from now on.
    pub(crate) fn stop_connection(&mut self, id: u32) {
        self.connections[id].sender.stop();
        self.end_if_done(id);
    }

    /// TCP hands down what window, small queue and pace allow.
    fn hand_down(&mut self, id: u32) {
        let (segment, paced) = (self.kernel().segment(), self.kernel().paced);
        let small_queue = self.kernel().transport.small_queue;
        let connection = &mut self.connections[id];
        let paced = paced || connection.sender.packets_per_s().is_some();
        let most = connection.small_queue(segment, small_queue);
        connection.resume_at = None;
        while connection.queued < most {
            if paced && self.now < connection.paced_until {
                connection.resume_at = Some(connection.paced_until);
                break;
            }
            let Some(segment) = connection.sender.next_segment(self.now, segment) else {
                break;
            };
            if let Some(pace) = connection.pace().filter(|_| paced) {
                let bytes = Bytes::new(u64::from(connection.bytes(&segment)));
                connection.paced_until = self.now + pace.time_to_send(bytes);
            }
            connection.queued += segment.count;
            connection.queue.push_back((self.now, segment));
            if connection.queue.len() == 1 {
                self.hosts[connection.src as usize].turns.push(Turn {
                    connection: id,
                    credit: QUANTUM,
                    held_until: Time::ZERO,
                });
            }
        }
        let host = connection.src;
        self.set_timer(id);
        self.kernel_send(host);
    }

    /// Sees to it that the connection's next timer gets its event.
    fn set_timer(&mut self, id: u32) {
        let connection = &mut self.connections[id];
        let timers = [
            connection.sender.timer(),
            connection.receiver.delayed_until,
            connection.resume_at,
        ];
        let Some(due) = timers.into_iter().flatten().min() else {
            return;
        };
        if due < connection.timer_at {
            connection.timer_at = due;
            connection.references += 1;
            let what = What::TcpTimer { connection: id };
            self.events.schedule(due.max(self.now), what);
        }
    }

    /// A timer of a connection may be due.
    pub(crate) fn look_at_timers(&mut self, id: u32) {
        let connection = &mut self.connections[id];
        if connection.timer_at <= self.now {
            connection.timer_at = NEVER;
        }
        let now = self.now;
        let due = |timer: Option<Time<Sim>>| timer.is_some_and(|at| at <= now);
        let (acknowledge, expired) = (
            due(connection.receiver.delayed_until),
            !connection.over && due(connection.sender.timer()),
        );
        if expired {
            let timeouts = connection.sender.timeouts;
            connection.sender.timer_expired(self.now);
            self.counters.timeouts += u64::from(connection.sender.timeouts - timeouts);
            self.hand_down(id);
        }
        if acknowledge {
            self.send_acknowledgement(id);
        }
        let connection = &self.connections[id];
        if !connection.over && due(connection.resume_at) {
            self.hand_down(id);
        }
        self.set_timer(id);
        self.forget_reference(id);
    }

    /// A packet is at a kernel host.
    pub(crate) fn kernel_receive(&mut self, id: u32) {
        let port = u32::from(self.packets[id].at_port);
        let host = self.ports[port as usize].node;
        match self.packets[id].kind {
            Kind::Pause | Kind::Resume => return self.set_paused(port, id),
            Kind::OrAck => return self.connection_or_acked(id, host),
            Kind::Data => self.sample(id, host),
            Kind::Ack | Kind::Nack => {}
        }
        let coalescing = self.kernel().coalescing;
        if coalescing == Span::ZERO {
            return self.handle_arrivals(host, &[id]);
        }
        let arrived = &mut self.hosts[host as usize].arrived;
        arrived.push(id);
        if arrived.len() == 1 {
            let what = What::Interrupt { host };
            self.events.schedule(self.now + coalescing, what);
        }
    }

    /// The NIC interrupts: what has arrived is handled.
    pub(crate) fn interrupt(&mut self, host: u32) {
        let arrived = std::mem::take(&mut self.hosts[host as usize].arrived);
        self.handle_arrivals(host, &arrived);
    }

    fn handle_arrivals(&mut self, host: u32, arrived: &[u32]) {
        let merges = self.kernel().gro;
        let mut receivers = Vec::new();
        for &id in arrived {
            let packet = self.packets[id];
            let connection = packet.flow;
            if packet.kind == Kind::Data {
                self.take_data(&packet);
                receivers.push(connection);
                if !merges {
                    self.acknowledge_if_must(connection);
                }
            } else {
                self.take_acknowledgement(id);
            }
            self.discard_of_connection(id);
        }
        for connection in receivers {
            self.acknowledge_if_must(connection);
            self.forget_reference(connection);
        }
        self.kernel_send(host);
    }

    fn take_data(&mut self, packet: &Packet) {
        let connection = &mut self.connections[packet.flow];
        connection
            .receiver
            .arrived(packet.seq as u32, packet.marked);
        let plan = connection.plan as usize;
        let mut arrived_now = false;
        if connection.end == Some(connection.receiver.expected) {
            let arrived = self.now - self.flows[plan].start;
            let outcome = &mut self.outcomes[plan];
            if outcome.arrived.is_none() {
                outcome.arrived = Some(arrived);
                let hosts = (connection.src, connection.dst);
                self.idle_connections
                    .entry(hosts)
                    .or_default()
                    .push(packet.flow);
                arrived_now = true;
            }
        }
        // It is used once more below, to be acknowledged.
        connection.references += 1;
        if arrived_now {
            self.flow_arrived(plan as u32);
        }
    }

    fn acknowledge_if_must(&mut self, id: u32) {
        let delay = self.kernel().transport.delayed_ack;
        let receiver = &mut self.connections[id].receiver;
        if receiver.must_acknowledge(self.now, delay) {
            self.send_acknowledgement(id);
        } else {
            self.set_timer(id);
        }
    }

    fn send_acknowledgement(&mut self, id: u32) {
        let connection = &mut self.connections[id];
        let acknowledgement = connection.receiver.acknowledge();
        connection.references += 1;
        let (host, path) = (connection.dst, connection.back);
        let ack = self.packets.add(Packet {
            seq: u64::from(acknowledgement.cumulative),
            sent: self.now,
            flow: id,
            next: NONE,
            wire_bytes: HEADER,
            payload: 0,
            at_port: 0,
            hop: 0,
            kind: Kind::Ack,
            marked: false,
            control: false,
            path,
        });
        if self.acknowledgements.len() <= ack as usize {
            let none = Acknowledgement::default();
            self.acknowledgements.resize(self.packets.capacity(), none);
        }
        self.acknowledgements[ack as usize] = acknowledgement;
        let port = self.nics[host as usize].port;
        self.ports[port as usize]
            .control
            .push(&mut self.packets, ack);
        self.kernel_send(host);
    }

    fn take_acknowledgement(&mut self, id: u32) {
        let flow = self.packets[id].flow;
        let connection = &mut self.connections[flow];
        if connection.over {
            return;
        }
        let acknowledgement = &self.acknowledgements[id as usize];
        connection.sender.acknowledged(self.now, acknowledgement);
        if !self.end_if_done(flow) {
            self.hand_down(flow);
        }
    }

    /// Whether the flow is over: everything is acknowledged.
    fn end_if_done(&mut self, id: u32) -> bool {
        let connection = &mut self.connections[id];
        if connection.over || !connection.sender.is_done() {
            return connection.over;
        }
        connection.over = true;
        connection.queue.clear();
        connection.resume_at = None;
        let outcome = &mut self.outcomes[connection.plan as usize];
        if connection.end.is_some() {
            let start = self.flows[connection.plan as usize].start;
            outcome.acked = Some(self.now - start);
        }
        outcome.received = Bytes::new(connection.received());
        outcome.retransmissions = connection.sender.retransmissions;
        outcome.timeouts = connection.sender.timeouts;
        self.unfinished -= 1;
        let host = &mut self.hosts[connection.src as usize];
        host.turns.retain(|turn| turn.connection != id);
        if connection.end.is_none() && connection.references == 0 {
            self.connections.free(id);
        }
        true
    }

    /// One reason less to keep a connection.
    fn forget_reference(&mut self, id: u32) {
        let connection = &mut self.connections[id];
        connection.references -= 1;
        if connection.over && connection.end.is_none() && connection.references == 0 {
            self.connections.free(id);
        }
    }

    /// A packet of a connection is no more.
    pub(crate) fn discard_of_connection(&mut self, id: u32) {
        self.forget_reference(self.packets[id].flow);
        self.packets.free(id);
    }

    /// A wake is due, unless another has replaced it.
    pub(crate) fn kernel_woken(&mut self, host: u32) {
        let wake = &mut self.hosts[host as usize].wake;
        if *wake == Some((self.now, self.number)) {
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
        let connection = &mut self.connections[id];
        let (_, segment) = connection.queue.pop_front().expect("it has a turn");
        let bytes = connection.bytes(&segment);
        turn.credit -= i64::from(bytes) + i64::from(segment.count) * i64::from(HEADER);
        if segment.again {
            self.counters.retransmissions += u64::from(segment.count);
        }
        connection.references += 1;
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
        let connection = &mut self.connections[id];
        let payload = connection.payload(number);
        connection.references += 1;
        let packet = self.packets.add(Packet {
            seq: u64::from(number),
            sent: self.now,
            flow: id,
            next: NONE,
            wire_bytes: payload + HEADER,
            payload,
            at_port: 0,
            hop: 0,
            kind: Kind::Data,
            marked: false,
            control: false,
            path: connection.there,
        });
        self.counters.data_packets += 1;
        self.transmit(port, packet);
        if ends {
            self.hosts[host as usize].burst = None;
            let connection = &mut self.connections[id];
            connection.queued -= segment.count;
            if !connection.over {
                self.hand_down(id);
            }
            self.forget_reference(id);
        }
    }

    fn kernel_sleep(&mut self, host: u32) {
        let state = &self.hosts[host as usize];
        let Some(due) = state.turns.iter().map(|turn| turn.held_until).min() else {
            return;
        };
        if due > self.now && state.wake.is_none_or(|(at, _)| due < at) {
            let number = self.events.schedule(due, What::Wake { host });
            self.hosts[host as usize].wake = Some((due, number));
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
