//! A part of the network with all that happens there: the loop that takes events and hands them on.
//!
//! A domain owns its nodes, and the ends of flows that are on its hosts. Other domains' nodes have
//! places in its arrays, so that numbers are the same everywhere, but nothing happens there. What goes
//! to another domain is a packet (mail.rs).

use crate::config::{Config, Counters};
use crate::engine::events::{Event, Events, Rank, What};
use crate::engine::random::Random;
use crate::engine::rounding::WireTimes;
use crate::engine::slab::Slab;
use crate::flows::chains::Progress;
use crate::flows::table::FlowTable;
use crate::host::clock::Clocks;
use crate::host::edge::Stamp;
use crate::host::huygens::{Edge, Prober};
use crate::host::kernel::KernelHost;
use crate::host::nic::Nic;
use crate::host::{kernel, nic};
use crate::net::mail::Mail;
use crate::net::network::Network;
use crate::net::packet::{Kind, Packets, PerPacket};
use crate::net::port::Port;
use crate::net::switch::Memory;
use crate::simulation::Step;
use crate::tcp::Acknowledgement;
use crate::watch::capture::Captures;
use crate::watch::probe::Probes;
use crate::watch::signals::Signals;
use onramp_cc::int::{IntFormat, IntStack};
use onramp_cc::nic::{Feedback, PathFacts};
use onramp_units::{Sim, Span, Time};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

/// A part of a network, at one instant.
pub(crate) struct Domain {
    pub network: Arc<Network>,
    /// Its number.
    pub me: usize,
    pub config: Config,
    pub feedback: Feedback,
    pub uses_int: bool,
    pub uses_stamps: bool,
    pub is_kernel: bool,
    pub int: IntFormat,
    /// Of the event under way, or the last.
    pub now: Time<Sim>,
    pub place: u64,
    pub events: Events,
    pub packets: Packets,
    pub clocks: Clocks,
    /// Of hosts that synchronise their clocks.
    pub prober: Option<Prober>,
    /// What On-Ramp's law keeps.
    pub stamps: PerPacket<Stamp>,
    /// Telemetry.
    pub stacks: PerPacket<IntStack>,
    /// TCP's acknowledgements.
    pub acknowledgements: PerPacket<Acknowledgement>,
    pub ports: Vec<Port>,
    pub captures: Captures,
    pub probes: Probes,
    /// By rate.
    pub wire_times: Arc<[WireTimes]>,
    /// Of switches, by node.
    pub memories: Vec<Memory>,
    /// Of hosts, by node.
    pub nics: Vec<Nic>,
    /// The same of kernel hosts.
    pub hosts: Vec<KernelHost>,
    /// Ends of connections between NICs, by the flow that opened them.
    pub senders: FlowTable<nic::Sender>,
    pub receivers: FlowTable<nic::Receiver>,
    /// Ends of connections, by the flow that opened them.
    pub outgoing_connections: FlowTable<kernel::Outgoing>,
    pub incoming_connections: FlowTable<kernel::Incoming>,
    /// Those without a flow at their receivers here, by sender and receiver.
    pub idle_connections: HashMap<(u32, u32), Vec<u32>>,
    /// Flows so far from hosts here, by sender and receiver.
    pair_flows: HashMap<(u32, u32), u16>,
    /// Of flows that wait for others.
    pub chains: Progress,
    /// The control law as each node's line has it; none for those without a law, empty if no node has one.
    pub laws: Arc<[Option<onramp_law::Config>]>,
    /// The last delay from a host here to another, and when it was learned; if delays are reused.
    pub last_delays: HashMap<(u32, u32), (Span, Time<Sim>)>,
    /// For whoever asks what senders know.
    pub signals: Option<Signals>,
    /// Flows of the plan that are not due yet.
    next_start: usize,
    next_question: usize,
    /// Flows whose end is known here.
    pub ended: usize,
    pub random: Random,
    pub counters: Counters,
    /// Packets for other domains.
    pub outgoing: Vec<Mail>,
}

/// What all domains of a simulation begin with.
pub(crate) struct Beginning {
    pub network: Arc<Network>,
    pub config: Config,
    pub int: IntFormat,
    pub wire_times: Arc<[WireTimes]>,
    pub laws: Arc<[Option<onramp_law::Config>]>,
    pub nodes: usize,
    /// Who probes whom.
    pub edges: Arc<[Edge]>,
}

impl Domain {
    /// Number `me`, in which nothing has happened yet.
    pub fn new(
        beginning: &Beginning,
        me: usize,
        ports: Vec<Port>,
        memories: Vec<Memory>,
    ) -> Domain {
        let Beginning {
            network,
            config,
            nodes,
            ..
        } = beginning;
        let feedback = config.hosts.feedback();
        let is_kernel = config.hosts.is_kernel();
        let port_of = |node| network.port_of(node);
        let mut domain = Domain {
            network: network.clone(),
            me,
            feedback,
            uses_int: feedback == Feedback::Int && !is_kernel,
            uses_stamps: config.law.is_some() && !is_kernel,
            is_kernel,
            int: beginning.int.clone(),
            now: Time::ZERO,
            place: 0,
            events: Events::new(config.rounding),
            packets: Slab::new(),
            clocks: {
                let synchronised = config.probing.is_some();
                Clocks::new(&config.clocks, synchronised, config.seed, *nodes)
            },
            prober: config.probing.map(|probing| {
                let edges = beginning.edges.clone();
                Prober::new(probing, edges, network, config.seed, *nodes)
            }),
            stamps: PerPacket::new(),
            stacks: PerPacket::new(),
            acknowledgements: PerPacket::new(),
            ports,
            captures: Captures::default(),
            probes: Probes::default(),
            wire_times: beginning.wire_times.clone(),
            memories,
            nics: (0..*nodes as u32)
                .map(|node| Nic::new(port_of(node)))
                .collect(),
            hosts: (0..*nodes).map(|_| KernelHost::default()).collect(),
            senders: FlowTable::new(),
            receivers: FlowTable::new(),
            outgoing_connections: FlowTable::new(),
            incoming_connections: FlowTable::new(),
            idle_connections: HashMap::new(),
            pair_flows: HashMap::new(),
            chains: Progress::default(),
            laws: beginning.laws.clone(),
            last_delays: HashMap::new(),
            signals: None,
            next_start: 0,
            next_question: 0,
            ended: 0,
            random: Random::new(config.rounding, config.seed, *nodes),
            counters: Counters::default(),
            outgoing: (0..network.partition.count())
                .map(|_| Mail::default())
                .collect(),
            config: config.clone(),
        };
        domain.begin_probing();
        domain.await_next_flow();
        domain.await_next_question();
        domain
    }

    /// Lets time go by, to `end`.
    pub fn run_until(&mut self, end: Time<Sim>) {
        while let Some(at) = self.probes.next_at().filter(|at| *at <= end) {
            self.handle_until(at);
            self.look(at);
        }
        self.handle_until(end);
    }

    fn handle_until(&mut self, end: Time<Sim>) {
        while let Some(event) = self.events.pop(end) {
            self.touch_next();
            self.handle(event);
        }
    }

    /// Reads what the next event will need, so that it is on its way from memory meanwhile.
    fn touch_next(&self) {
        match self.events.next_soon() {
            Some(What::Arrival { packet }) => {
                black_box(self.packets[packet].seq);
            }
            Some(What::LineFree { port }) => {
                black_box(self.ports[port as usize].free_at);
            }
            _ => {}
        }
    }

    /// Handles one event, if there is one up to `end`. What it was.
    pub fn step(&mut self, end: Time<Sim>) -> Option<Step> {
        let event = self.events.pop(end)?;
        let at_switch = |port: u32| self.ports[port as usize].on_switch;
        let step = match event.what {
            What::Arrival { packet } => match at_switch(u32::from(self.packets[packet].at_port)) {
                true => Step::SwitchArrival,
                false => Step::HostArrival,
            },
            What::LineFree { port } if at_switch(port) => Step::SwitchLine,
            What::LineFree { .. } => Step::HostLine,
            What::Wake { .. } => Step::Wake,
            What::Interrupt { .. } | What::Probe { .. } => Step::HostArrival,
            What::Timeout { .. }
            | What::TcpTimer { .. }
            | What::Acknowledge { .. }
            | What::Stop { .. }
            | What::FlowStart { .. }
            | What::Ask { .. }
            | What::Asked { .. } => Step::Flow,
        };
        self.handle(event);
        Some(step)
    }

    fn handle(&mut self, Event { at, place, what }: Event) {
        self.now = at;
        self.place = place;
        self.counters.events += 1;
        match what {
            What::Arrival { packet } => self.arrive(packet),
            What::LineFree { port } => self.line_freed(port),
            What::Wake { host } if self.is_kernel => self.kernel_woken(host),
            What::Wake { host } => self.nic_woken(host),
            What::Probe { edge } => self.send_next_probe(edge),
            What::Timeout { connection } => self.look_for_timeout(connection),
            What::TcpTimer { connection } => self.look_at_timers(connection),
            What::Acknowledge { connection } => self.acknowledge_late(connection),
            What::Interrupt { host } => self.interrupt(host),
            What::Stop { flow } if self.is_kernel => self.stop_connection(flow),
            What::Stop { flow } => self.stop_flow(flow),
            What::FlowStart { flow } => self.flow_due(flow),
            What::Ask { flow } => {
                self.ask(flow);
                self.await_next_question();
            }
            What::Asked { packet } => self.asked(packet),
        }
    }

    fn arrive(&mut self, id: u32) {
        let packet = &self.packets[id];
        let port = &self.ports[usize::from(packet.at_port)];
        if port.on_switch {
            return self.switch_receive(id);
        }
        if packet.kind == Kind::Data {
            self.nics[port.node as usize].note_delay(self.now - packet.sent);
        }
        if self.is_kernel {
            self.kernel_receive(id);
        } else {
            self.nic_receive(id);
        }
    }

    fn line_freed(&mut self, port: u32) {
        self.ports[port as usize].awaited = false;
        self.line_wanted(port);
    }

    /// The port's node looks for something to send there.
    pub fn line_wanted(&mut self, port: u32) {
        let Port {
            node, on_switch, ..
        } = self.ports[port as usize];
        if on_switch {
            self.switch_send(port);
        } else if self.is_kernel {
            self.kernel_send(node);
        } else {
            self.nic_send(node);
        }
    }

    /// A flow from here starts, and the next one is awaited.
    fn flow_due(&mut self, plan: u32) {
        if !self.has_waited(plan) {
            self.await_next_flow();
        }
        if self.is_kernel {
            self.start_unasked(plan);
        } else {
            self.start_flow(plan);
        }
    }

    /// The next flow from a host here that starts by itself.
    fn await_next_flow(&mut self) {
        let (network, me) = (&self.network, self.me);
        let in_time = &network.flows[..self.in_time()];
        while let Some(flow) = in_time.get(self.next_start) {
            let plan = self.next_start as u32;
            self.next_start += 1;
            if network.partition.of(flow.src) == me && !self.is_asked_for(flow.start) {
                let what = What::FlowStart { flow: plan };
                self.events.schedule(flow.start, Rank::Flow(plan), what);
                return;
            }
        }
    }

    /// The next flow that a host here asks for.
    fn await_next_question(&mut self) {
        let (network, me) = (&self.network, self.me);
        let in_time = &network.flows[..self.in_time()];
        while let Some(flow) = in_time.get(self.next_question) {
            let plan = self.next_question as u32;
            self.next_question += 1;
            if network.partition.of(flow.dst) == me && self.is_asked_for(flow.start) {
                let at = flow.start - self.question_time();
                let what = What::Ask { flow: plan };
                self.events.schedule(at, Rank::Flow(plan), what);
                return;
            }
        }
    }

    /// How long the question for a flow is under way: half of an idle round trip.
    pub fn question_time(&self) -> Span {
        self.network.base_rtt() / 2
    }

    /// Whether a flow that starts then is asked for by its receiver: kernel hosts' are, except those
    /// for which it is too late.
    fn is_asked_for(&self, start: Time<Sim>) -> bool {
        self.is_kernel && start >= Time::ZERO + self.question_time()
    }

    /// What a flow from `src` knows before it starts.
    pub fn path_facts(&self, src: u32) -> PathFacts {
        self.network.path_facts(src, self.config.hosts.payload())
    }

    /// How many flows the hosts of flow `plan` had before it; asked once for each, in order.
    pub fn next_ordinal(&mut self, plan: u32) -> u16 {
        let flow = &self.network.flows[plan as usize];
        let next = self.pair_flows.entry((flow.src, flow.dst)).or_insert(0);
        *next = next.wrapping_add(1);
        next.wrapping_sub(1)
    }

    /// Tells the outcomes what is known of flows that are under way.
    pub fn note_outcomes(&self) {
        let outcomes = &self.network.outcomes;
        for (_, sender) in self.senders.iter() {
            outcomes.sent(sender.under_way.flow, sender.sent);
        }
        for (_, receiver) in self.receivers.iter() {
            outcomes.received(receiver.under_way.flow, receiver.received());
        }
        for (_, connection) in self.outgoing_connections.iter() {
            connection.note_outcome(outcomes);
        }
        for (_, connection) in self.incoming_connections.iter() {
            outcomes.received(connection.plan, connection.received());
        }
    }
}
