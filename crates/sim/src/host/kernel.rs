// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The kernel host: TCP (tcp/) above a queueing discipline above a plain NIC.
//!
//! **Sending.** A connection hands GSO segments to the queueing discipline, at its pacing rate if it has one
//! (a segment's time stamp is then its departure time, as in Linux since 4.20), and no more than TCP small
//! queues (TSQ) allow. The discipline serves connections by deficit round robin, as sch_fq does. A segment
//! leaves as one burst at line rate. Acknowledgements leave between bursts. With a NIC queue (ring.rs) segments
//! and acknowledgements leave the discipline earlier and wait for the wire in order. Packets that arrive within
//! the coalescing time are handled together. With On-Ramp the control law decides before a segment leaves the
//! discipline, and an OR-ACK answers every 14,480 bytes (law/sample.h).
//!
//! **Connections** are persistent, as in the rack, unless the scenario sets new ones. A flow uses the idle
//! connection of its hosts that was used last, with its window and its state of the control law, or a new
//! one. The receiver chooses the connection when it requests the flow. The request takes half of an idle
//! round trip, uses no line, and acknowledges earlier data. Flows in order (streams.rs) share a connection
//! without requests.
//!
//! Does not model processors or receive windows. The handshake of a new connection is complete, and has
//! measured the round-trip time of the idle network.

mod codel;
mod edge;
mod receive;
mod ring;
pub(crate) mod rounds;
mod scheduler;
pub(crate) mod signals;

pub(crate) use receive::Incoming;

use self::codel::Codel;
use self::ring::Ring;
use self::rounds::{Heard, Rounds};
use self::signals::Signals;
use crate::engine::events::Rank;
use crate::flows::outcomes::{Outcomes, Sent};
use crate::flows::streams::Part;
use crate::flows::table::FlowTable;
use crate::host::config::{Config, Hosts, Kernel, MSS};
use crate::host::edge::{law_of, Held};
use crate::host::per_host::PerHost;
use crate::host::site::Site;
use crate::net::packet::{Packet, Path};
use crate::net::what::What;
use crate::tcp::sender::{Segment, Sender};
use onramp_cc::tcp::Device;
use onramp_law::Records;
use onramp_scenario::Work;
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use std::collections::{HashMap, VecDeque};

/// sch_fq: two frames.
const QUANTUM: i64 = 3028;
/// Packets at the start of a connection that are not paced, as sch_fq did before TCP set the times.
const UNPACED: u32 = 10;
/// A segment is worth this much of the pace (sk_pacing_shift), at least so many packets (tcp_min_tso_segs), and a part of
/// the largest one that halves with each 2^this us of the shortest round-trip time (tcp_tso_rtt_log).
const TSO_WORTH: Span = Span::from_ns(1_000_000_000 >> 10);
const LEAST_SEGMENT: u32 = 2;
const TSO_RTT_LOG: u32 = 9;
/// A time that is never reached.
const NEVER: Time<Sim> = Time::from_ticks(i64::MAX);

/// A kernel host.
#[derive(Default)]
pub(crate) struct KernelHost {
    /// Connections with segments to send.
    entries: Vec<Scheduled>,
    /// The connection that is served.
    current: usize,
    ring: Ring,
    wake: Option<(Time<Sim>, u64)>,
    /// Packets that wait for the interrupt.
    arrived: Vec<u32>,
}

/// A connection in the round robin, by the index of its sending end.
#[derive(Debug, Clone, Copy)]
struct Scheduled {
    connection: u32,
    credit: i64,
    /// Time at which the control law decides again.
    held_until: Time<Sim>,
}

/// First byte of packet `number` in its connection's sequence. All packets before it count as full, so a
/// flow begins with a packet.
fn position(number: u32) -> u64 {
    u64::from(number) * u64::from(MSS)
}

/// The sending end of a connection.
pub(crate) struct Outgoing {
    /// The first flow in progress, its number among those of its hosts, and the flow that opened the
    /// connection.
    pub plan: u32,
    ordinal: u16,
    number: u32,
    /// Number of the opening flow among those of its hosts, which identifies the path.
    path: u16,
    pub(crate) src: u32,
    sender: Sender,
    /// The bytes of flows with a size: first `ended_parts` flows that have ended but may have copies below
    /// TCP, then the flows in progress.
    parts: VecDeque<Part>,
    ended_parts: usize,
    there: Path,
    /// Segments in the queueing discipline with their arrival times, and the number of packets there and in
    /// the NIC.
    queue: VecDeque<(Time<Sim>, Segment)>,
    queued: u32,
    codel: Codel,
    /// Earliest time of the next segment by the pacing rate, and whether an event waits for it.
    paced_until: Time<Sim>,
    resume_at: Option<Time<Sim>>,
    law: Held,
    /// The law's records of transmissions, if the host has the law.
    records: Option<Records>,
    pub held_since: Option<Time<Sim>>,
    /// Time for which the law has held the flow.
    pub held: Span,
    /// The timer event that is scheduled.
    timer_at: Time<Sim>,
    over: bool,
}

impl Outgoing {
    /// The flow that packet `number` is of, and its payload.
    fn packet(&self, number: u32) -> (u32, u16) {
        let at = position(number);
        match self.parts.iter().find(|part| at < part.end) {
            Some(part) => (part.flow, (part.end - at).min(MSS.into()) as u16),
            None => (self.plan, MSS),
        }
    }

    /// Payload of a segment.
    fn bytes(&self, segment: &Segment) -> u32 {
        let (first, behind) = (segment.first, segment.first + segment.count);
        let ends_here = |part: &&Part| position(first) < part.end && part.end <= position(behind);
        let ends = self.parts.iter().filter(ends_here);
        let missing = ends.map(|part| part.end.next_multiple_of(MSS.into()) - part.end);
        segment.count * u32::from(MSS) - missing.sum::<u64>() as u32
    }

    /// Sequence numbers of a segment: all packets but its last count as full.
    fn span(&self, segment: &Segment) -> u32 {
        let last = segment.first + segment.count - 1;
        (segment.count - 1) * u32::from(MSS) + u32::from(self.packet(last).1)
    }

    /// Removes ended flows without packets from `lowest` on.
    fn forget_parts(&mut self, lowest: u32) {
        let gone = self.parts.iter().take(self.ended_parts);
        let gone = gone.take_while(|part| part.end <= position(lowest)).count();
        self.parts.drain(..gone);
        self.ended_parts -= gone;
    }

    /// Ends the first flow in progress, if it is completely acknowledged.
    fn acknowledged_flow(&mut self) -> Option<u32> {
        let part = self.parts.get(self.ended_parts)?;
        let flow = (part.end <= position(self.sender.unacked())).then_some(part.flow)?;
        self.ended_parts += 1;
        Some(flow)
    }

    /// Assigns events from now on to flow `plan`, which follows the previous one.
    fn begin(&mut self, plan: u32) {
        self.plan = plan;
        self.held = Span::ZERO;
        self.sender.forget_counts();
    }

    pub fn note_outcome(&self, outcomes: &Outcomes) {
        let sent = Sent {
            held: self.held,
            retransmissions: self.sender.retransmissions,
            timeouts: self.sender.timeouts,
        };
        outcomes.sent(self.plan, sent);
    }

    /// Congestion window.
    pub fn window_packets(&self) -> u32 {
        self.sender.window().packets
    }

    /// Packets sent so far, each once.
    pub fn sent_packets(&self) -> u32 {
        self.sender.next()
    }

    /// Packets in flight, by the sender's estimate.
    pub fn in_flight_packets(&self) -> u32 {
        self.sender.in_flight()
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Packets below TCP that have not left.
    #[cfg(test)]
    pub fn queued_packets(&self) -> u32 {
        self.queued
    }

    /// TCP's pacing rate, payload.
    pub fn pace(&self) -> Option<Rate> {
        let packet_bits = f64::from(MSS) * 8.0;
        Rate::from_bits_per_s((self.sender.packets_per_s()? * packet_bits) as u64)
    }

    /// A segment is handed down that takes `gap` at the pace (tcp_update_skb_after_send). One that is late shortens the gap
    /// behind it, by half at most, and the first packets of a connection have none.
    fn pace_after(&mut self, now: Time<Sim>, gap: Span) {
        let late = (now - self.paced_until).max(Span::ZERO);
        self.paced_until = match self.sender.next() < UNPACED {
            true => now,
            false => now + gap - late.min(gap / 2),
        };
    }

    /// Whether the congestion control sets the pace.
    pub fn has_own_pace(&self) -> bool {
        self.sender.paces()
    }

    /// The last estimate of the available bandwidth, payload.
    pub fn estimate(&self) -> Option<Rate> {
        Rate::from_bits_per_s((self.sender.estimate()? * 8.0) as u64)
    }

    /// Packets of a segment, `most` at most: 1 ms of the pace, and more on short paths (tcp_tso_autosize, since Linux 5.18).
    fn autosized(&self, most: u32) -> u32 {
        let halvings = self
            .sender
            .min_rtt()
            .map_or(0, |rtt| (rtt.as_ns() / 1000) >> TSO_RTT_LOG);
        if halvings == 0 {
            return most;
        }
        let paced = self.pace().map_or(0, |pace| pace.bytes_in(TSO_WORTH).get()) / u64::from(MSS);
        let by_rtt = u64::from(most) >> halvings.min(31);
        ((paced + by_rtt) as u32).clamp(LEAST_SEGMENT.min(most), most)
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

    /// Whether segments of any congestion control leave at TCP's pace.
    pub(crate) fn paces(&self) -> bool {
        self.paced || self.edge_paced
    }
}

/// The kernel hosts of a domain.
pub(crate) struct Kernels {
    pub own: PerHost<Kernel>,
    /// By node.
    hosts: Vec<KernelHost>,
    /// Ends of connections, by the flow that opened them.
    pub outgoing: FlowTable<Outgoing>,
    incoming_ends: FlowTable<Incoming>,
    /// By sender and receiver here: receiving ends without a flow.
    idle: HashMap<(u32, u32), Vec<u32>>,
    /// Records of the senders' measurements, if requested.
    pub signals: Option<Signals>,
    /// Rounds of connections, if requested.
    pub rounds: Option<Rounds>,
}

impl Kernels {
    /// One for each of `nodes` nodes.
    pub fn new(config: &Config, nodes: usize) -> Kernels {
        let kernel = |hosts: &Hosts| match hosts {
            Hosts::Kernel(kernel) => kernel.clone(),
            Hosts::Nic(_) => unreachable!("all hosts are of one kind"),
        };
        Kernels {
            own: PerHost::new(config, nodes, config.each_hosts().map(kernel)),
            hosts: (0..nodes).map(|_| KernelHost::default()).collect(),
            outgoing: FlowTable::new(),
            incoming_ends: FlowTable::new(),
            idle: HashMap::new(),
            signals: None,
            rounds: None,
        }
    }

    /// Updates `outcomes` of flows in progress.
    pub fn note_outcomes(&self, outcomes: &Outcomes) {
        for (_, connection) in self.outgoing.iter() {
            connection.note_outcome(outcomes);
        }
        for (_, connection) in self.incoming_ends.iter() {
            outcomes.received(connection.current.flow, connection.received());
        }
    }

    /// Starts a flow of the plan without a request. A flow that has waited for others uses an idle connection
    /// if there is one, as if it had just been requested; other flows use a new one.
    pub(crate) fn start(&mut self, site: &mut Site, plan: u32) {
        let opener = site.network.opener(plan);
        if let Some(place) = self.outgoing.place(opener) {
            return self.append(site, place, plan);
        }
        if site.network.waits(plan) {
            let request = self.request(site, plan);
            return self.asked(site, request);
        }
        let ordinal = site.starts.next_ordinal(plan);
        let place = self.open_connection(site, plan, ordinal);
        self.start_on(site, place, plan, ordinal);
    }

    /// Starts a requested flow of the plan.
    pub(crate) fn asked(&mut self, site: &mut Site, id: u32) {
        let Packet {
            flow, connection, ..
        } = site.net.packets[id];
        let ordinal = site.starts.next_ordinal(flow);
        let place = match self.outgoing.place(connection) {
            Some(place) => {
                self.take_acknowledgement(site, id, place);
                place
            }
            None => self.open_connection(site, flow, ordinal),
        };
        site.net.packets.free(id);
        self.start_on(site, place, flow, ordinal);
    }

    /// Starts flow `plan` on the idle connection at `place`.
    fn start_on(&mut self, site: &mut Site, place: u32, plan: u32, ordinal: u16) {
        let connection = &mut self.outgoing[place];
        connection.ordinal = ordinal;
        connection.begin(plan);
        self.append(site, place, plan);
    }

    /// Appends flow `plan` to the data of the connection at `place`.
    fn append(&mut self, site: &mut Site, place: u32, plan: u32) {
        let flow = site.network.flows[plan as usize];
        if self.outgoing[place].over {
            self.law_starts(site, place, flow.src, flow.dst);
        }
        let in_nic = self.hosts[flow.src as usize].ring.first_packet_of(place);
        let connection = &mut self.outgoing[place];
        site.network.outcomes.path(plan, connection.path);
        connection.over = false;
        let first = connection.sender.total();
        let queued = connection.queue.iter().map(|(_, segment)| segment.first);
        let below_tcp = queued.chain(in_nic).min();
        connection.forget_parts(below_tcp.unwrap_or(first));
        match flow.work {
            Work::Send(size) => {
                let part = site.network.part(plan, position(first));
                connection.parts.push_back(part);
                connection.sender.resume(site.net.now, packets(size.get()));
            }
            Work::Until(stop) => {
                connection.sender.resume(site.net.now, u32::MAX - first);
                let what = What::Stop {
                    flow: connection.number,
                };
                site.net.events.schedule(stop, Rank::Own, what);
            }
        }
        self.hand_down(site, place);
    }

    fn open_connection(&mut self, site: &mut Site, plan: u32, ordinal: u16) -> u32 {
        let src = site.network.flows[plan as usize].src;
        let kernel = &self.own[src];
        let device = Device {
            segment: kernel.segment(),
            paces: kernel.paced,
        };
        let handshake = site.network.base_rtt();
        let transport = kernel.transport.clone();
        let sender = Sender::new(&kernel.algorithm, transport, device, handshake)
            .with_pacing_timer(kernel.edge_paced && !kernel.paced);
        let connection = Outgoing {
            plan,
            ordinal,
            number: plan,
            src,
            path: ordinal,
            sender,
            parts: VecDeque::new(),
            ended_parts: 0,
            there: site.network.there(plan, ordinal),
            queue: VecDeque::new(),
            queued: 0,
            codel: Codel::NEW,
            paced_until: site.net.now,
            resume_at: None,
            law: Held::new(law_of(&site.laws, src)),
            records: None,
            held_since: None,
            held: Span::ZERO,
            timer_at: NEVER,
            over: true,
        };
        self.outgoing.add(plan, connection)
    }

    /// Stops a flow without size: it sends no new data.
    pub(crate) fn stop_connection(&mut self, site: &mut Site, number: u32) {
        if let Some(place) = self.outgoing.place(number) {
            self.outgoing[place].sender.stop();
            self.end_if_done(site, place);
        }
    }

    /// TCP hands down the segments that window, small queue and pacing rate allow.
    fn hand_down(&mut self, site: &mut Site, id: u32) {
        let kernel = &self.own[self.outgoing[id].src];
        let (segment, paced) = (kernel.segment(), kernel.paces());
        let small_queue = kernel.transport.small_queue;
        let connection = &mut self.outgoing[id];
        let segment = match connection.sender.clocks_gaps() {
            true => 1,
            false => connection.autosized(segment),
        };
        let paced = paced || connection.sender.paces();
        let most = connection.small_queue(segment, small_queue);
        connection.resume_at = None;
        while connection.queued < most {
            if paced && site.net.now < connection.paced_until {
                connection.resume_at = Some(connection.paced_until);
                break;
            }
            let Some(segment) = connection.sender.next_segment(site.net.now, segment) else {
                break;
            };
            if let Some(gap) = connection.sender.gap(&segment) {
                connection.paced_until = site.net.now + gap;
            } else if let Some(pace) = connection.pace().filter(|_| paced) {
                let bytes = Bytes::new(u64::from(connection.bytes(&segment)));
                connection.pace_after(site.net.now, pace.time_to_send(bytes));
            }
            connection.queued += segment.count;
            connection.queue.push_back((site.net.now, segment));
            if connection.queue.len() == 1 {
                self.hosts[connection.src as usize].entries.push(Scheduled {
                    connection: id,
                    credit: QUANTUM,
                    held_until: Time::ZERO,
                });
            }
        }
        let host = connection.src;
        self.set_timer(site, id);
        self.send(site, host);
    }

    /// Ensures that the sender's next timer has an event.
    fn set_timer(&mut self, site: &mut Site, id: u32) {
        let connection = &mut self.outgoing[id];
        let timers = [connection.sender.timer(), connection.resume_at];
        let Some(due) = timers.into_iter().flatten().min() else {
            return;
        };
        if due < connection.timer_at {
            connection.timer_at = due;
            let what = What::TcpTimer {
                connection: connection.number,
            };
            site.net
                .events
                .schedule(due.max(site.net.now), Rank::Own, what);
        }
    }

    /// Handles a timer of a sender, if it has expired.
    pub(crate) fn look_at_timers(&mut self, site: &mut Site, number: u32) {
        let Some(id) = self.outgoing.place(number) else {
            return;
        };
        let connection = &mut self.outgoing[id];
        if connection.timer_at <= site.net.now {
            connection.timer_at = NEVER;
        }
        let now = site.net.now;
        let due = |timer: Option<Time<Sim>>| timer.is_some_and(|at| at <= now);
        if !connection.over && due(connection.sender.timer()) {
            let timeouts = connection.sender.timeouts;
            connection.sender.timer_expired(now);
            site.net.counters.timeouts += u64::from(connection.sender.timeouts - timeouts);
            self.hand_down(site, id);
        }
        let connection = &self.outgoing[id];
        if !connection.over && due(connection.resume_at) {
            self.hand_down(site, id);
        }
        self.set_timer(site, id);
    }

    /// Handles an acknowledgement at the sending end of the connection at `place`.
    fn take_acknowledgement(&mut self, site: &mut Site, id: u32, place: u32) {
        let connection = &mut self.outgoing[place];
        if connection.over {
            return;
        }
        let acknowledgement = site.net.carried.acknowledgements.of(id);
        let delivered = connection.sender.delivered();
        let rtt = connection
            .sender
            .acknowledged(site.net.now, acknowledgement);
        if let Some(rounds) = &mut self.rounds {
            let heard = Heard {
                at: site.net.now,
                plan: connection.plan,
                packets: (connection.sender.delivered() - delivered) as u32,
                marked: acknowledgement.marked,
                rtt,
                unacked: connection.sender.unacked(),
                next: connection.sender.next(),
            };
            rounds.note(connection.number, &heard);
        }
        if let Some(rtt) = connection.sender.last_rtt() {
            site.note_rtt(connection.plan, rtt);
        }
        if !self.end_if_done(site, place) {
            self.hand_down(site, place);
        }
    }

    /// Ends completely acknowledged flows. Returns whether no flow is in progress on the connection.
    fn end_if_done(&mut self, site: &mut Site, id: u32) -> bool {
        if self.outgoing[id].over {
            return true;
        }
        let goes_on = self.end_flows(site, id);
        let connection = &mut self.outgoing[id];
        let persistent = self.own[connection.src].persistent;
        if !connection.sender.is_done() {
            return false;
        }
        connection.over = true;
        // Scheduled retransmissions are cancelled, and leave the small queue.
        let unsent = connection.queue.drain(..).map(|(_, segment)| segment.count);
        connection.queued -= unsent.sum::<u32>();
        connection.resume_at = None;
        if !persistent && !goes_on {
            connection.records = None;
        }
        let host = &mut self.hosts[connection.src as usize];
        host.entries.retain(|entry| entry.connection != id);
        true
    }

    /// Reports the connection's completely acknowledged flows to the outcomes. Returns whether another flow
    /// follows the last of them.
    fn end_flows(&mut self, site: &mut Site, id: u32) -> bool {
        let connection = &mut self.outgoing[id];
        let is_done = connection.sender.is_done();
        if let Some(since) = connection.held_since.take_if(|_| is_done) {
            connection.held += site.net.now - since;
        }
        let (mut ended, mut next) = (0, None);
        while let Some(flow) = connection.acknowledged_flow() {
            let after = site.network.age(flow, site.net.now);
            site.network.outcomes.acked(flow, after);
            connection.note_outcome(&site.network.outcomes);
            ended += 1;
            next = site.network.next_in_stream(flow);
            if let Some(next) = next {
                connection.begin(next);
            }
        }
        let work = site.network.flows[connection.plan as usize].work;
        if is_done && matches!(work, Work::Until(_)) {
            connection.note_outcome(&site.network.outcomes);
            ended += 1;
        }
        site.starts.ended += ended;
        next.is_some()
    }
}

/// Number of packets for this number of bytes.
fn packets(bytes: u64) -> u32 {
    bytes.div_ceil(u64::from(MSS)) as u32
}
