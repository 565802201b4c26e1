//! One simulation: the network's state, and the loop that takes events and hands them on.

use crate::capture::Captures;
use crate::cc::{Feedback, PathFacts};
use crate::chains::{Chains, Progress};
use crate::clock::Clocks;
use crate::config::{Buffer, Config, Counters, Flow, Outcome};
use crate::delays::Delays;
use crate::ecmp;
use crate::edge::Stamp;
use crate::events::{Event, Events, What};
use crate::int::{IntFormat, IntStack, TooManyRates};
use crate::kernel::{self, Connection, KernelHost};
use crate::nic::{Nic, QueuePair, DATA_HEADER};
use crate::packet::{Kind, Packets, Path};
use crate::port::Port;
use crate::random::Random;
use crate::rounding::WireTimes;
use crate::slab::Slab;
use crate::switch::Memory;
use crate::tcp::Acknowledgement;
use crate::topology::{Routes, Topology, MAX_HOPS};
use crate::way::{Way, Ways};
use onramp_scenario::Work;
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use std::collections::HashMap;

/// Largest packet on the wire.
const MAX_WIRE_BYTES: u32 = 9_216;

/// Why a simulation cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum ConfigError {
    #[error(transparent)]
    TooManyRates(#[from] TooManyRates),
    #[error("flow {flow}: node {node} is not a host")]
    NotAHost { flow: usize, node: u32 },
    #[error("flow {flow} goes from host {host} to itself")]
    ToItself { flow: usize, host: u32 },
    #[error("flow {flow} has no bytes")]
    Empty { flow: usize },
    #[error("flow {flow} starts before the one above it")]
    Unordered { flow: usize },
    #[error("{flows} flows, above max {}", u32::MAX)]
    TooManyFlows { flows: usize },
}

/// Kinds of events, for profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A packet is at a switch.
    SwitchArrival,
    /// A packet is at a host.
    HostArrival,
    /// A switch's line is free.
    SwitchLine,
    /// A host's line is free.
    HostLine,
    /// A host's next packet is due.
    Wake,
    /// A flow starts, stops or has waited too long.
    Flow,
}

/// A network with its traffic, at one instant.
pub struct Simulation {
    pub(crate) config: Config,
    pub(crate) feedback: Feedback,
    pub(crate) uses_int: bool,
    is_kernel: bool,
    pub(crate) int: IntFormat,
    pub(crate) now: Time<Sim>,
    /// Of the event under way.
    pub(crate) number: u64,
    pub(crate) events: Events,
    pub(crate) packets: Packets,
    pub(crate) clocks: Clocks,
    /// What On-Ramp's law keeps, by packet.
    pub(crate) stamps: Vec<Stamp>,
    /// Telemetry by packet.
    pub(crate) stacks: Vec<IntStack>,
    pub(crate) ports: Vec<Port>,
    pub(crate) captures: Captures,
    /// By rate.
    pub(crate) wire_times: Vec<WireTimes>,
    /// Of switches, by node.
    pub(crate) memories: Vec<Memory>,
    /// Of hosts, by node.
    pub(crate) nics: Vec<Nic>,
    /// The same of kernel hosts.
    pub(crate) hosts: Vec<KernelHost>,
    pub(crate) connections: Slab<Connection>,
    /// Those without a flow, by sender and receiver.
    pub(crate) idle_connections: HashMap<(u32, u32), Vec<u32>>,
    /// TCP's acknowledgements, by packet.
    pub(crate) acknowledgements: Vec<Acknowledgement>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) chains: Progress,
    /// The control law as each node's line has it; none without a law.
    pub(crate) laws: Vec<onramp_law::Config>,
    /// The last delay from a host to another, in ns, and when it was learned; if delays are reused.
    pub(crate) last_delays: HashMap<(u32, u32), (Span, Time<Sim>)>,
    /// Flows without end yet.
    pub(crate) unfinished: usize,
    next_flow: usize,
    pub(crate) pairs: Slab<QueuePair>,
    /// Flows so far of each pair of hosts.
    pair_flows: HashMap<(u32, u32), u32>,
    routes: Routes,
    ways: Ways,
    longest: Way,
    pub(crate) random: Random,
    pub(crate) counters: Counters,
}

impl Simulation {
    /// A network in which nothing has happened yet. `flows` come in the order of their starts.
    ///
    /// # Errors
    /// Flows that are not in order, or not between two hosts; more link rates than telemetry can
    /// name.
    pub fn new(
        config: Config,
        topology: &Topology,
        flows: Vec<Flow>,
    ) -> Result<Simulation, ConfigError> {
        check(topology, &flows, config.chains.as_deref())?;
        let mut ports = make_ports(topology);
        let rates = number_rates(&mut ports);
        // What marks and thresholds are in proportion to.
        let host_rate = topology.host_rate();
        let memories = provision(&config, topology, &mut ports, host_rate);
        let mut nics: Vec<Nic> = (0..topology.nodes()).map(|_| Nic::new(0)).collect();
        for (number, port) in (0..).zip(&ports) {
            nics[port.node as usize].port = number;
        }
        let routes = Routes::new(topology);
        let (payload, header) = match config.kernel {
            Some(_) => (kernel::MSS, kernel::HEADER),
            None => (config.nic.payload, DATA_HEADER),
        };
        let ways = Ways::new(config.rounding, payload, header);
        let longest = ways.longest(topology, &routes, &ports, &nics);
        let wire_times = |&rate: &Rate| WireTimes::new(config.rounding, rate, MAX_WIRE_BYTES);
        let feedback = config.algorithm.feedback();
        let of_line = |law: onramp_law::Config| {
            let rate = |nic: &Nic| ports[nic.port as usize].rate;
            nics.iter().map(|nic| law.line_rate(rate(nic))).collect()
        };
        let laws = config.law.map_or_else(Vec::new, of_line);
        let in_time = config
            .chains
            .as_ref()
            .map_or(flows.len(), |chains| chains.first);
        let mut simulation = Simulation {
            feedback,
            uses_int: feedback == Feedback::Int && config.kernel.is_none(),
            is_kernel: config.kernel.is_some(),
            int: IntFormat::new(host_rate, rates.clone())?,
            now: Time::ZERO,
            number: 0,
            events: Events::new(),
            packets: Packets::new(),
            clocks: Clocks::new(&config.clocks, config.seed, topology.nodes()),
            stamps: Vec::new(),
            stacks: Vec::new(),
            wire_times: rates.iter().map(wire_times).collect(),
            ports,
            captures: Captures::default(),
            memories,
            nics,
            hosts: (0..topology.nodes())
                .map(|_| KernelHost::default())
                .collect(),
            connections: Slab::new(),
            idle_connections: HashMap::new(),
            acknowledgements: Vec::new(),
            outcomes: vec![Outcome::default(); flows.len()],
            chains: Progress::default(),
            laws,
            last_delays: HashMap::new(),
            unfinished: in_time,
            next_flow: 0,
            flows,
            pairs: Slab::new(),
            pair_flows: HashMap::new(),
            routes,
            ways,
            longest,
            random: Random::new(config.rounding, config.seed, topology.nodes()),
            counters: Counters::default(),
            config,
        };
        simulation.await_next_flow();
        Ok(simulation)
    }

    /// Measures the delays of data packets to `host` from now on.
    pub(crate) fn measure_delays(&mut self, host: u32) {
        self.nics[host as usize].delays = Some(Delays::new());
    }

    /// Those so far; they are no longer measured.
    pub(crate) fn measured_delays(&mut self, host: u32) -> Option<Delays> {
        self.nics[host as usize].delays.take()
    }

    /// Ports that a flow's data passes, its host's first; `None`: it has not started.
    pub(crate) fn ports_of(&self, plan: usize) -> Option<Vec<u32>> {
        let (flow, outcome) = (&self.flows[plan], &self.outcomes[plan]);
        let mut ports = vec![self.nics[flow.src as usize].port];
        for &port in &outcome.path {
            ports.push(port.into());
            // Port 0 leads from the first link's first end; an empty path leads nowhere.
            if self.ports[usize::from(port) ^ 1].node == flow.dst {
                return Some(ports);
            }
        }
        None
    }

    /// Lets time go by, to `end` or until nothing is left to do.
    pub fn run_until(&mut self, end: Time<Sim>) {
        while let Some(event) = self.events.pop(end) {
            self.handle(event);
        }
    }

    /// Handles one event, if there is one up to `end`; for profiles. What it was.
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
            What::Interrupt { .. } => Step::HostArrival,
            What::Timeout { .. }
            | What::TcpTimer { .. }
            | What::Stop { .. }
            | What::FlowsDue
            | What::FlowStart { .. } => Step::Flow,
        };
        self.handle(event);
        Some(step)
    }

    fn handle(&mut self, Event { at, number, what }: Event) {
        self.now = at;
        self.number = number;
        self.counters.events += 1;
        match what {
            What::Arrival { packet } => self.arrive(packet),
            What::LineFree { port } => self.line_freed(port),
            What::Wake { host } if self.is_kernel => self.kernel_woken(host),
            What::Wake { host } => self.nic_woken(host),
            What::Timeout { pair } => self.look_for_timeout(pair),
            What::TcpTimer { connection } => self.look_at_timers(connection),
            What::Interrupt { host } => self.interrupt(host),
            What::Stop { pair } if self.is_kernel => self.stop_connection(pair),
            What::Stop { pair } => self.stop_flow(pair),
            What::FlowsDue => self.flows_due(),
            What::FlowStart { flow } if self.is_kernel => self.start_connection(flow),
            What::FlowStart { flow } => self.start_flow(flow),
        }
    }

    /// Time of the last event.
    pub fn now(&self) -> Time<Sim> {
        self.now
    }

    /// Flows that are not over.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// What became of each flow of the plan.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Counters of the run so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Packets that exist now.
    pub fn packets_in_flight(&self) -> usize {
        self.packets.len()
    }

    /// Payload that the receiver of each flow of the plan has in order.
    pub fn received(&self) -> Vec<Bytes> {
        let mut received: Vec<Bytes> = self.outcomes.iter().map(|o| o.received).collect();
        for pair in self.pairs.iter().filter(|pair| !pair.is_over()) {
            received[pair.plan as usize] = Bytes::new(pair.received());
        }
        for connection in self.connections.iter().filter(|c| !c.is_over()) {
            received[connection.plan as usize] = Bytes::new(connection.received());
        }
        received
    }

    /// Completion time of flow `plan` in an otherwise empty network, as the HPCC authors define
    /// it: the base round-trip time, and its bytes with headers but without telemetry at the rate
    /// of the slowest line on its way.
    /// `None`: it has no size.
    pub fn ideal_fct(&self, plan: usize) -> Option<Span> {
        let flow = &self.flows[plan];
        let Work::Send(size) = flow.work else {
            return None;
        };
        let way = self
            .ways
            .between(flow.src, flow.dst, &self.routes, &self.ports, &self.nics);
        Some(self.ways.ideal_fct(&way, size.get()))
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
    pub(crate) fn line_wanted(&mut self, port: u32) {
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

    /// Starts every flow whose time it is. Their starts are events of their own: what has been
    /// scheduled for the same time comes first.
    fn flows_due(&mut self) {
        while let Some(flow) = self.next_in_time().filter(|f| f.start == self.now) {
            let what = What::FlowStart {
                flow: self.next_flow as u32,
            };
            self.events.schedule(flow.start, what);
            self.next_flow += 1;
        }
        self.await_next_flow();
    }

    /// The next flow that waits for nothing but its time.
    fn next_in_time(&self) -> Option<Flow> {
        let chains = self.config.chains.as_ref();
        let in_time = chains.map_or(self.flows.len(), |chains| chains.first);
        self.flows[..in_time].get(self.next_flow).copied()
    }

    fn await_next_flow(&mut self) {
        if let Some(flow) = self.next_in_time() {
            self.events.schedule(flow.start, What::FlowsDue);
        }
    }

    /// Round-trip time of an idle network between the hosts that are furthest apart.
    pub(crate) fn base_rtt(&self) -> Span {
        self.longest.rtt
    }

    /// What a flow from `src` knows before it starts.
    pub(crate) fn path_facts(&self, src: u32) -> PathFacts {
        let line_rate = self.ports[self.nics[src as usize].port as usize].rate;
        PathFacts {
            line_rate,
            base_rtt: self.base_rtt(),
            // Of this line, where hosts' lines differ.
            bdp_bytes: self
                .longest
                .bdp_bytes
                .min(line_rate.bytes_in(self.base_rtt()).get()),
            payload_bytes: u64::from(self.config.nic.payload),
        }
    }

    /// The ways of a new flow's packets from `src` to `dst`, and of their answers.
    pub(crate) fn paths(&mut self, src: u32, dst: u32) -> (Path, Path) {
        let number = self.pair_flows.entry((src, dst)).or_insert(0);
        let (source, destination) = ecmp::flow_ports(*number);
        *number += 1;
        (
            self.path(src, dst, (source, destination)),
            self.path(dst, src, (destination, source)),
        )
    }

    /// The way of a flow's packets from `src` to `dst`.
    fn path(&self, src: u32, dst: u32, ports: (u16, u16)) -> Path {
        let mut path = [0; MAX_HOPS];
        let mut switch = self.routes.edge(src);
        for hop in &mut path {
            let ways = self.routes.next(switch, dst);
            let choice = match ways {
                [_] => 0,
                _ => ecmp::hash(src, dst, ports, switch) as usize % ways.len(),
            };
            *hop = ways[choice];
            switch = self.ports[usize::from(*hop ^ 1)].node;
            if switch == dst {
                break;
            }
        }
        path
    }
}

fn check(topology: &Topology, flows: &[Flow], chains: Option<&Chains>) -> Result<(), ConfigError> {
    if u32::try_from(flows.len()).is_err() {
        return Err(ConfigError::TooManyFlows { flows: flows.len() });
    }
    let is_host = |node: u32| (node as usize) < topology.nodes() && !topology.is_switch(node);
    for (n, flow) in flows.iter().enumerate() {
        for node in [flow.src, flow.dst] {
            if !is_host(node) {
                return Err(ConfigError::NotAHost { flow: n, node });
            }
        }
        if flow.src == flow.dst {
            let host = flow.src;
            return Err(ConfigError::ToItself { flow: n, host });
        }
        if flow.work == Work::Send(Bytes::ZERO) {
            return Err(ConfigError::Empty { flow: n });
        }
    }
    let in_time = chains.map_or(flows.len(), |chains| chains.first);
    match flows[..in_time]
        .windows(2)
        .position(|two| two[1].start < two[0].start)
    {
        Some(n) => Err(ConfigError::Unordered { flow: n + 1 }),
        None => Ok(()),
    }
}

fn make_ports(topology: &Topology) -> Vec<Port> {
    let ends = topology.links().iter().flat_map(|link| {
        [link.a, link.b]
            .map(|node| Port::new(node, topology.is_switch(node), link.rate, link.delay))
    });
    ends.collect()
}

/// The different rates, and which one each port has.
fn number_rates(ports: &mut [Port]) -> Vec<Rate> {
    let mut rates: Vec<Rate> = ports.iter().map(|port| port.rate).collect();
    rates.sort();
    rates.dedup();
    for port in ports {
        let index = rates.binary_search(&port.rate);
        port.rate_index = index.map_or(0, |index| index as u8);
    }
    rates
}

fn provision(
    config: &Config,
    topology: &Topology,
    ports: &mut [Port],
    host_rate: Rate,
) -> Vec<Memory> {
    let bytes = match config.switch.buffer {
        Buffer::PerPort(_) => 0,
        Buffer::Shared(bytes) | Buffer::Lossless(bytes) => bytes.get(),
    };
    let whole = Memory {
        shared: bytes,
        used: 0,
    };
    let mut memories = vec![whole; topology.nodes()];
    for port in ports.iter_mut().filter(|port| port.on_switch) {
        if let Buffer::Lossless(_) = config.switch.buffer {
            let alpha_log2 = config.switch.alpha_log2;
            port.provision(&mut memories[port.node as usize], host_rate, alpha_log2);
        }
        if let Some(ecn) = &config.switch.ecn {
            port.set_ecn(ecn, host_rate);
        }
    }
    memories
}
