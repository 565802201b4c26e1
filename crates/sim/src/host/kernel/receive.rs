//! The receiving end of connections: questions, data in, acknowledgements out; what the NIC's interrupt
//! brings, of both directions.

use super::{last_payload, packets, HEADER, MSS};
use crate::domain::Domain;
use crate::engine::events::{Rank, What};
use crate::net::packet::{Kind, Packet, Path, NONE};
use crate::net::topology::MAX_HOPS;
use crate::tcp::receiver::Receiver;
use crate::tcp::Acknowledgement;
use onramp_units::{Sim, Span, Time};

/// The receiving end of a connection.
pub(crate) struct Incoming {
    /// The flow under way or the last, its number among those of its hosts, and the one that opened it.
    pub plan: u32,
    ordinal: u16,
    number: u32,
    dst: u32,
    receiver: Receiver,
    /// The flow's first packet; of a flow with a size the packet behind its last, and the last one's payload.
    first: u32,
    end: Option<u32>,
    last_payload: u16,
    arrived: bool,
    /// The packet behind the last flow that arrived, and what the one before it lacks to be full.
    behind: u32,
    short: u16,
    pub(super) back: Path,
    /// When the event of the acknowledgement that is put off comes.
    delayed_at: Option<Time<Sim>>,
}

impl Incoming {
    /// Payload of the flow that is there in order.
    pub fn received(&self) -> u64 {
        let packets = u64::from(self.receiver.expected - self.first);
        let missing = match self.end {
            Some(end) if self.receiver.expected == end => MSS - self.last_payload,
            _ => 0,
        };
        packets * u64::from(MSS) - u64::from(missing)
    }

    /// Begins to receive flow `plan` of `size` bytes, whose first packet is `first`.
    fn begin(&mut self, plan: u32, first: u32, size: Option<u64>) {
        self.plan = plan;
        self.first = first;
        self.end = size.map(|bytes| self.first + packets(bytes));
        self.last_payload = size.map_or(MSS, last_payload);
        self.arrived = false;
    }
}

impl Domain {
    /// The receiver of flow `plan` asks for it.
    pub(crate) fn ask(&mut self, plan: u32) {
        let question = self.question(plan);
        let flow = &self.network.flows[plan as usize];
        let there = self.network.partition.of(flow.src);
        self.send_to(there, flow.start, question);
    }

    /// The question for flow `plan`, on an idle connection if there is one.
    pub(super) fn question(&mut self, plan: u32) -> u32 {
        let flow = self.network.flows[plan as usize];
        let idle = self.idle_connections.get_mut(&(flow.src, flow.dst));
        let idle = idle.filter(|_| self.network.next_in_stream(plan).is_none());
        let (connection, acknowledgement) = match idle.and_then(Vec::pop) {
            Some(place) => {
                let incoming = &mut self.incoming_connections[place];
                (incoming.number, incoming.receiver.acknowledge())
            }
            None => (plan, Acknowledgement::default()),
        };
        let question = self.packets.add(Packet {
            seq: 0,
            sent: self.now,
            flow: plan,
            connection,
            next: NONE,
            wire_bytes: 0,
            payload: 0,
            ordinal: 0,
            at_port: 0,
            hop: 0,
            kind: Kind::Request,
            marked: false,
            path: [0; MAX_HOPS],
        });
        self.acknowledgements.set(question, acknowledgement);
        question
    }

    /// A packet is at a kernel host.
    pub(crate) fn kernel_receive(&mut self, id: u32) {
        let port = u32::from(self.packets[id].at_port);
        let host = self.ports[port as usize].node;
        match self.packets[id].kind {
            Kind::Pause | Kind::Resume => return self.set_paused(port, id),
            Kind::OrAck => return self.connection_or_acked(id, host),
            Kind::Probe | Kind::ProbeAnswer => return self.probe_arrived(host, id),
            Kind::Data => self.sample(id, host),
            Kind::Ack | Kind::Nack | Kind::Request => {}
        }
        let coalescing = self.kernel().coalescing;
        if coalescing == Span::ZERO {
            return self.handle_arrivals(host, &[id]);
        }
        let arrived = &mut self.hosts[host as usize].arrived;
        arrived.push(id);
        if arrived.len() == 1 {
            let what = What::Interrupt { host };
            self.events.schedule(self.now + coalescing, Rank::Own, what);
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
            if packet.kind == Kind::Data {
                let place = self.take_data(&packet);
                receivers.push(place);
                if !merges {
                    self.acknowledge_if_must(place);
                }
            } else if let Some(place) = self.outgoing_connections.place(packet.connection) {
                self.take_acknowledgement(id, place);
            }
            self.packets.free(id);
        }
        for place in receivers {
            self.acknowledge_if_must(place);
        }
        self.kernel_send(host);
    }

    /// The place of the receiving end of a data packet's connection.
    pub(super) fn incoming_of(&mut self, data: &Packet) -> u32 {
        if let Some(place) = self.incoming_connections.place(data.connection) {
            return place;
        }
        let opener = &self.network.flows[data.connection as usize];
        let mut incoming = Incoming {
            plan: data.connection,
            ordinal: data.ordinal,
            number: data.connection,
            dst: opener.dst,
            receiver: Receiver::default(),
            first: 0,
            end: None,
            last_payload: MSS,
            arrived: false,
            behind: 0,
            short: 0,
            back: self.network.back(data.flow, data.ordinal),
            delayed_at: None,
        };
        incoming.begin(data.connection, 0, opener.size());
        self.incoming_connections.add(data.connection, incoming)
    }

    /// The place of the connection.
    fn take_data(&mut self, data: &Packet) -> u32 {
        let place = self.incoming_of(data);
        let incoming = &mut self.incoming_connections[place];
        let number = data.seq as u32;
        // The flow before is all there, so what is not a duplicate of its packets is the next one's.
        let expected = incoming.receiver.expected;
        if incoming.arrived && data.flow != incoming.plan && number >= expected {
            let size = self.network.flows[data.flow as usize].size();
            incoming.begin(data.flow, expected, size);
            incoming.ordinal = data.ordinal;
        }
        incoming.receiver.arrived(number, data.marked);
        while let Some(plan) = self.arrived_flow(place) {
            let after = self.network.age(plan, self.now);
            self.network.outcomes.arrived(plan, after);
            self.flow_arrived(plan);
        }
        place
    }

    /// The flow under way on the connection at `place`, if it is all there now: then the next one is under
    /// way, or the connection is idle.
    fn arrived_flow(&mut self, place: u32) -> Option<u32> {
        let incoming = &mut self.incoming_connections[place];
        let end = incoming.end?;
        if incoming.arrived || incoming.receiver.expected < end {
            return None;
        }
        let plan = incoming.plan;
        let network = &self.network;
        (incoming.behind, incoming.short) = (end, MSS - incoming.last_payload);
        if let Some(next) = network.next_in_stream(plan) {
            incoming.begin(next, end, network.flows[next as usize].size());
            return Some(plan);
        }
        incoming.arrived = true;
        let flow = &network.flows[plan as usize];
        let hosts = (flow.src, flow.dst);
        if self.kernel().persistent && network.opener(plan) == plan {
            self.idle_connections.entry(hosts).or_default().push(place);
        }
        Some(plan)
    }

    fn acknowledge_if_must(&mut self, place: u32) {
        let delay = self.kernel().transport.delayed_ack;
        let receiver = &mut self.incoming_connections[place].receiver;
        if receiver.must_acknowledge(self.now, delay) {
            self.send_acknowledgement(place);
        } else {
            self.await_acknowledgement(place);
        }
    }

    /// Sees to it that an acknowledgement that is put off is sent in time.
    fn await_acknowledgement(&mut self, place: u32) {
        let incoming = &mut self.incoming_connections[place];
        let Some(due) = incoming.receiver.delayed_until else {
            return;
        };
        if incoming.delayed_at.is_none_or(|at| due < at) {
            incoming.delayed_at = Some(due);
            let what = What::Acknowledge {
                connection: incoming.number,
            };
            self.events.schedule(due, Rank::Own, what);
        }
    }

    /// An acknowledgement may have been put off until now.
    pub(crate) fn acknowledge_late(&mut self, number: u32) {
        let Some(place) = self.incoming_connections.place(number) else {
            return;
        };
        let incoming = &mut self.incoming_connections[place];
        if incoming.delayed_at.is_some_and(|at| at <= self.now) {
            incoming.delayed_at = None;
        }
        let due = incoming.receiver.delayed_until;
        if due.is_some_and(|at| at <= self.now) {
            self.send_acknowledgement(place);
        }
        self.await_acknowledgement(place);
    }

    fn send_acknowledgement(&mut self, place: u32) {
        let incoming = &mut self.incoming_connections[place];
        let mut acknowledgement = incoming.receiver.acknowledge();
        if acknowledgement.cumulative == incoming.behind {
            acknowledgement.short = incoming.short;
        }
        let host = incoming.dst;
        let ack = self.packets.add(Packet {
            seq: u64::from(acknowledgement.cumulative),
            sent: self.now,
            flow: incoming.plan,
            connection: incoming.number,
            next: NONE,
            wire_bytes: HEADER,
            payload: 0,
            ordinal: incoming.ordinal,
            at_port: 0,
            hop: 0,
            kind: Kind::Ack,
            marked: false,
            path: incoming.back,
        });
        self.acknowledgements.set(ack, acknowledgement);
        let port = self.nics[host as usize].port;
        self.ports[port as usize]
            .control
            .push(&mut self.packets, ack);
        self.kernel_send(host);
    }
}
