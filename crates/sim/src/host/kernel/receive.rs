// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The receiving end of connections: requests for flows, data and acknowledgements; and the NIC's interrupt,
//! which handles packets of both directions.

use super::{packets, position, Kernels};
use crate::engine::events::Rank;
use crate::flows::streams::Part;
use crate::host::config::{HEADER, MSS};
use crate::host::site::Site;
use crate::net::packet::{Kind, Packet, Path};
use crate::net::topology::MAX_HOPS;
use crate::net::what::What;
use crate::tcp::receiver::{Delays, Receiver};
use crate::tcp::Acknowledgement;
use onramp_units::{Sim, Span, Time};

/// Full packets in 64 kB.
const MOST_MERGED: u32 = 65_536 / MSS as u32;

/// The receiving end of a connection.
pub(crate) struct Incoming {
    /// The current flow, or the last one if it has arrived; and its number among those of its hosts.
    pub current: Part,
    arrived: bool,
    ordinal: u16,
    /// The flow that opened the connection.
    number: u32,
    dst: u32,
    receiver: Receiver,
    /// The packet after the last flow that arrived, and the bytes by which the packet before it is less than
    /// full.
    behind: u32,
    short: u16,
    pub(super) back: Path,
    /// Time of the event of the delayed acknowledgement.
    delayed_at: Option<Time<Sim>>,
}

/// Packets of a connection that GRO (dev_gro_receive) has merged: the receiver gets them at once.
struct Merged {
    /// Index of the receiving end.
    place: u32,
    first: u64,
    packets: u32,
    marked: bool,
    /// The last packet was not full.
    is_over: bool,
}

impl Merged {
    /// Before its first packet.
    fn starting(place: u32, packet: &Packet) -> Merged {
        Merged {
            place,
            first: packet.seq,
            packets: 0,
            marked: packet.marked,
            is_over: false,
        }
    }

    /// Whether `packet` continues it: in order, with the same mark (inet_gro_receive), behind full packets
    /// (tcp_gro_receive), up to 64 kB (GRO_LEGACY_MAX_SIZE).
    fn takes(&self, packet: &Packet) -> bool {
        let is_next = packet.seq == self.first + u64::from(self.packets) && !self.is_over;
        is_next && packet.marked == self.marked && self.packets < MOST_MERGED
    }
}

impl Incoming {
    /// Payload of the flow received in order.
    pub fn received(&self) -> u64 {
        let Part { first, end, .. } = self.current;
        position(self.receiver.expected).min(end) - first
    }
}

impl Kernels {
    /// The receiver of flow `plan` requests it.
    pub(crate) fn ask(&mut self, site: &mut Site, plan: u32) {
        let request = self.request(site, plan);
        let flow = &site.network.flows[plan as usize];
        let there = site.network.partition.of(flow.src);
        site.net.send_to(there, flow.start, request);
    }

    /// The request for flow `plan`, on an idle connection if there is one.
    pub(super) fn request(&mut self, site: &mut Site, plan: u32) -> u32 {
        let flow = site.network.flows[plan as usize];
        let idle = self.idle.get_mut(&(flow.src, flow.dst));
        let idle = idle.filter(|_| site.network.next_in_stream(plan).is_none());
        let (connection, acknowledgement) = match idle.and_then(Vec::pop) {
            Some(place) => {
                let delays = self.delays(flow.dst);
                let incoming = &mut self.incoming_ends[place];
                let acknowledgement = incoming.receiver.requests(site.net.now, delays);
                (incoming.number, acknowledgement)
            }
            None => (plan, Acknowledgement::default()),
        };
        let request = site.net.packets.add(Packet {
            flow: plan,
            connection,
            ..Packet::new(Kind::Request, site.net.now, [0; MAX_HOPS])
        });
        site.net
            .carried
            .acknowledgements
            .set(request, acknowledgement);
        request
    }

    /// Handles an event of kernel hosts.
    pub fn handle(&mut self, site: &mut Site, what: What) {
        match what {
            What::Wake { host } => self.woken(site, host),
            What::TcpTimer { connection } => self.look_at_timers(site, connection),
            What::Acknowledge { connection } => self.acknowledge_late(site, connection),
            What::Interrupt { host } => self.interrupt(site, host),
            What::Stop { flow } => self.stop_connection(site, flow),
            What::FlowStart { flow } => self.start(site, flow),
            What::Ask { flow } => {
                self.ask(site, flow);
                site.starts.await_next_request(&mut site.net);
            }
            What::Asked { packet } => self.asked(site, packet),
            _ => unreachable!("not an event of kernel hosts: {what:?}"),
        }
    }

    /// Handles a packet that arrives at a kernel host.
    pub(crate) fn receive(&mut self, site: &mut Site, id: u32) {
        let port = u32::from(site.net.packets[id].at_port);
        let host = site.net.ports[port as usize].node;
        site.count_arrival(host, id);
        match site.net.packets[id].kind {
            Kind::Pause | Kind::Resume => {
                if site.net.set_paused(port, id) {
                    self.send(site, host);
                }
                return;
            }
            Kind::OrAck => return self.connection_or_acked(site, id, host),
            Kind::Probe | Kind::ProbeAnswer => {
                if site.probe_arrived(host, id) {
                    self.send(site, host);
                }
                return;
            }
            Kind::Data => self.sample(site, id, host),
            Kind::Ack | Kind::Nack | Kind::Request | Kind::ReadRequest | Kind::ReadResponse => {}
        }
        let coalescing = self.own[host].coalescing;
        if coalescing == Span::ZERO {
            return self.handle_arrivals(site, host, &[id]);
        }
        let arrived = &mut self.hosts[host as usize].arrived;
        arrived.push(id);
        if arrived.len() == 1 {
            let what = What::Interrupt { host };
            site.net
                .events
                .schedule(site.net.now + coalescing, Rank::Own, what);
        }
    }

    /// Handles the NIC's interrupt: processes the packets that have arrived.
    pub(crate) fn interrupt(&mut self, site: &mut Site, host: u32) {
        let arrived = std::mem::take(&mut self.hosts[host as usize].arrived);
        self.handle_arrivals(site, host, &arrived);
    }

    fn handle_arrivals(&mut self, site: &mut Site, host: u32, arrived: &[u32]) {
        let merges = self.own[host].gro;
        let mut runs: Vec<Merged> = Vec::new();
        for &id in arrived {
            let packet = site.net.packets[id];
            if packet.kind == Kind::Data && merges {
                self.merge(site, &packet, &mut runs);
            } else if packet.kind == Kind::Data {
                let place = self.take_data(site, &packet);
                self.acknowledge_if_must(site, place);
            } else if let Some(place) = self.outgoing.place(packet.connection) {
                self.take_acknowledgement(site, id, place);
            }
            site.net.packets.free(id);
        }
        for run in runs {
            self.acknowledge_if_must(site, run.place);
        }
        self.send(site, host);
    }

    /// Adds a data packet to the run of its connection. A packet that does not continue it begins a new one, and the
    /// receiver gets the old one.
    fn merge(&mut self, site: &mut Site, packet: &Packet, runs: &mut Vec<Merged>) {
        let place = self.incoming_of(site, packet);
        let known = runs.iter().rposition(|run| run.place == place);
        let known = known.unwrap_or_else(|| {
            runs.push(Merged::starting(place, packet));
            runs.len() - 1
        });
        if !runs[known].takes(packet) {
            self.acknowledge_if_must(site, place);
            runs[known] = Merged::starting(place, packet);
        }
        runs[known].packets += 1;
        runs[known].is_over = packet.payload < MSS;
        self.take_data(site, packet);
    }

    /// When receivers of `host` acknowledge.
    fn delays(&self, host: u32) -> Delays {
        let transport = &self.own[host].transport;
        Delays {
            delay: transport.delayed_ack,
            pause: transport.min_rto,
        }
    }

    /// The index of the receiving end of a data packet's connection.
    pub(super) fn incoming_of(&mut self, site: &mut Site, data: &Packet) -> u32 {
        if let Some(place) = self.incoming_ends.place(data.connection) {
            return place;
        }
        let opener = &site.network.flows[data.connection as usize];
        let incoming = Incoming {
            current: site.network.part(data.connection, 0),
            arrived: false,
            ordinal: data.ordinal,
            number: data.connection,
            dst: opener.dst,
            receiver: Receiver::default(),
            behind: 0,
            short: 0,
            back: site.network.back(data.flow, data.ordinal),
            delayed_at: None,
        };
        self.incoming_ends.add(data.connection, incoming)
    }

    /// The index of the connection.
    fn take_data(&mut self, site: &mut Site, data: &Packet) -> u32 {
        let place = self.incoming_of(site, data);
        let delays = self.delays(self.incoming_ends[place].dst);
        let incoming = &mut self.incoming_ends[place];
        let number = data.seq as u32;
        // The previous flow is complete, so a packet that is not a duplicate belongs to the next flow.
        let expected = incoming.receiver.expected;
        if incoming.arrived && data.flow != incoming.current.flow && number >= expected {
            incoming.current = site.network.part(data.flow, position(expected));
            (incoming.arrived, incoming.ordinal) = (false, data.ordinal);
        }
        let (receiver, now) = (&mut incoming.receiver, site.net.now);
        receiver.arrived(now, number, data.marked, delays);
        while let Some(plan) = self.arrived_flow(site, place) {
            site.flow_arrived(plan);
        }
        place
    }

    /// Ends the current flow on the connection at `place` if it is complete. Then the next flow is current,
    /// or the connection is idle.
    fn arrived_flow(&mut self, site: &mut Site, place: u32) -> Option<u32> {
        let incoming = &mut self.incoming_ends[place];
        let Part {
            flow: plan, end, ..
        } = incoming.current;
        if incoming.arrived || position(incoming.receiver.expected) < end {
            return None;
        }
        let network = &site.network;
        incoming.behind = packets(end);
        let begins_next = position(incoming.behind);
        incoming.short = (begins_next - end) as u16;
        if let Some(next) = network.next_in_stream(plan) {
            incoming.current = network.part(next, begins_next);
            return Some(plan);
        }
        incoming.arrived = true;
        incoming.receiver.read_all();
        let flow = &network.flows[plan as usize];
        let hosts = (flow.src, flow.dst);
        if self.own[flow.src].persistent && network.opener(plan) == plan {
            self.idle.entry(hosts).or_default().push(place);
        }
        Some(plan)
    }

    fn acknowledge_if_must(&mut self, site: &mut Site, place: u32) {
        let incoming = &mut self.incoming_ends[place];
        let delay = self.own[incoming.dst].transport.delayed_ack;
        let receiver = &mut incoming.receiver;
        if receiver.must_acknowledge(site.net.now, delay) {
            self.send_acknowledgement(site, place);
        } else {
            self.await_acknowledgement(site, place);
        }
    }

    /// Ensures that a delayed acknowledgement is sent in time.
    fn await_acknowledgement(&mut self, site: &mut Site, place: u32) {
        let incoming = &mut self.incoming_ends[place];
        let Some(due) = incoming.receiver.delayed_until else {
            return;
        };
        if incoming.delayed_at.is_none_or(|at| due < at) {
            incoming.delayed_at = Some(due);
            let what = What::Acknowledge {
                connection: incoming.number,
            };
            site.net.events.schedule(due, Rank::Own, what);
        }
    }

    /// Sends the delayed acknowledgement, if one is due.
    pub(crate) fn acknowledge_late(&mut self, site: &mut Site, number: u32) {
        let Some(place) = self.incoming_ends.place(number) else {
            return;
        };
        let incoming = &mut self.incoming_ends[place];
        if incoming.delayed_at.is_some_and(|at| at <= site.net.now) {
            incoming.delayed_at = None;
        }
        let due = incoming.receiver.delayed_until;
        if due.is_some_and(|at| at <= site.net.now) {
            incoming.receiver.delay_is_over();
            self.send_acknowledgement(site, place);
        }
        self.await_acknowledgement(site, place);
    }

    fn send_acknowledgement(&mut self, site: &mut Site, place: u32) {
        let incoming = &mut self.incoming_ends[place];
        let mut acknowledgement = incoming.receiver.acknowledge();
        if acknowledgement.cumulative == incoming.behind {
            acknowledgement.short = incoming.short;
        }
        let host = incoming.dst;
        let ack = site.net.packets.add(Packet {
            seq: u64::from(acknowledgement.cumulative),
            flow: incoming.current.flow,
            connection: incoming.number,
            wire_bytes: HEADER,
            ordinal: incoming.ordinal,
            ..Packet::new(Kind::Ack, site.net.now, incoming.back)
        });
        site.net.carried.acknowledgements.set(ack, acknowledgement);
        let port = site.network.port_of(host);
        site.net.ports[port as usize]
            .control
            .push(&mut site.net.packets, ack);
        self.send(site, host);
    }
}
