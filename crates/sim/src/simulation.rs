// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One simulation: a network with its traffic, in one domain or in several that run in parallel. Results do
//! not depend on the number of domains.

use crate::domain::{self, Domain, InitialState, Step};
use crate::engine::rounding::{Rounding, WireTimes};
use crate::engine::team::Team;
use crate::flows::chains::Chains;
use crate::flows::flow::{Flow, Outcome};
use crate::flows::network::Network;
use crate::host::config::{Config, Hosts, Law, Probing};
use crate::host::delays::Delays;
use crate::host::edge::HostLaw;
use crate::host::kernel::rounds::{Round, Rounds};
use crate::host::kernel::signals::{Pair, Signals};
use crate::host::nic::data_header;
use crate::host::per_host::PerHost;
use crate::host::rtts::{RttSample, Rtts};
use crate::host::site::hints::uses_hints;
use crate::host::site::huygens::{mesh, ClockWindow, Edge, Synchroniser};
use crate::host::site::Site;
use crate::net::carried::Carries;
use crate::net::config::Buffer;
use crate::net::counters::Counters;
use crate::net::fabric;
use crate::net::fabric::memory::Memory;
use crate::net::fabric::port::{Port, PortState};
use crate::net::fabric::switch::Pfc;
use crate::net::partition::Partition;
use crate::net::topology::{Link, Topology};
use crate::watch::capture::{CaptureError, Output};
use onramp_cc::int::{IntFormat, TooManyRates};
use onramp_cc::nic::Feedback;
use onramp_cc::switch::{Lines, SwitchRule};
use onramp_scenario::{Op, Work};
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use std::collections::HashSet;
use std::sync::{Arc, MutexGuard};

/// Largest packet on the wire.
const MAX_WIRE_BYTES: u32 = 9_216;
/// The least that PFC's headroom counts for a packet: 1500 B and what lines may add to them.
const FRAME: u64 = 1600;
/// Hops in ns-3's header of telemetry.
const INT_HOPS: usize = 5;

/// Errors of a simulation's flows and network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum ConfigError {
    #[error(transparent)]
    TooManyRates(#[from] TooManyRates),
    #[error("flow {flow}: node {node} is not a host")]
    NotAHost { flow: usize, node: u32 },
    #[error("flow {flow} goes from host {host} to itself")]
    ToItself { flow: usize, host: u32 },
    #[error("group {number} has hosts of another kind, of an earlier group, or that do not exist")]
    Group { number: usize },
    #[error("the buffer of switch {switch} is {buffer}, below {least}: headroom and reserve of its ports for PFC")]
    Buffer {
        switch: u32,
        buffer: Bytes,
        least: Bytes,
    },
    #[error(
        "paths have up to {switches} switches, above max {INT_HOPS}: in ns3 rounding, telemetry (HPCC) has room for that \
         many, and what comes behind is undefined"
    )]
    Telemetry { switches: usize },
    #[error("flow {flow} has no bytes")]
    Empty { flow: usize },
    #[error("flow {flow} starts before the one above it")]
    Unordered { flow: usize },
    #[error("{flows} flows, above max {}", u32::MAX)]
    TooManyFlows { flows: usize },
    #[error(
        "flow {flow} is a read, which needs NIC hosts, a congestion control that sends bursts, exact rounding, no \
         control law, and no other flow to wait for"
    )]
    CannotRead { flow: usize },
}

/// A network with its traffic, at one instant.
pub struct Simulation {
    pub(crate) network: Arc<Network>,
    pub(crate) team: Team<Domain>,
    pub(crate) synchroniser: Option<Synchroniser>,
}

impl Simulation {
    /// A network at time zero. `flows` must be sorted by start.
    ///
    /// # Errors
    /// Flows that are not sorted, or not between two hosts; more link rates than telemetry can encode; a lossless buffer
    /// below what PFC sets aside; in ns-3's rounding, telemetry of more than five switches.
    pub fn new(
        config: Config,
        topology: &Topology,
        flows: Vec<Flow>,
    ) -> Result<Simulation, ConfigError> {
        Simulation::in_parts(config, topology, flows, Partition::whole(topology))
    }

    /// Like [`Simulation::new`], with a thread for each domain of `partition`. It uses one thread with `ns3`
    /// rounding, whose order of events is that of one thread, and for kernel hosts with flows that wait for
    /// others.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn in_parts(
        config: Config,
        topology: &Topology,
        flows: Vec<Flow>,
        partition: Partition,
    ) -> Result<Simulation, ConfigError> {
        check(topology, &flows, config.chains.as_deref())?;
        check_groups(&config, topology)?;
        check_reads(&config, &flows)?;
        let network = network_of(&config, topology, flows, partition);
        check_telemetry(&config, &network)?;
        let mut ports = make_ports(topology, &network);
        let rates = number_rates(&mut ports);
        // Marks and thresholds are proportional to this rate.
        let host_rate = topology.host_rate();
        let memories = provision(&config, topology, &mut ports)?;
        let wire_times = |&rate: &Rate| WireTimes::new(config.rounding, rate, MAX_WIRE_BYTES);
        let has_law = config.laws().any(|law| law.is_some());
        let laws = PerHost::new(&config, topology.nodes(), config.laws());
        // Receivers count under any host's law, whether or not they have it themselves.
        let counts = config.laws().flatten().map(Law::measures).find(uses_hints);
        let nodes = 0..topology.nodes() as u32;
        let rates_of: Vec<Rate> = nodes
            .map(|node| ports[network.port_of(node) as usize].rate)
            .collect();
        let hosts: Vec<u32> = topology.hosts().collect();
        let mesh_of = |probing: Probing| mesh(&hosts, probing.degree, config.seed);
        let edges: Arc<[Edge]> = config.probing.map(mesh_of).unwrap_or_default().into();
        let synchroniser = config
            .probing
            .map(|probing| Synchroniser::new(probing, edges.clone(), hosts));
        let is_kernel = config.hosts.is_kernel();
        let initial = InitialState {
            edges,
            laws: match has_law {
                true => laws_of_lines(&laws, &rates_of),
                false => [].into(),
            },
            lines: counts.map_or_else(|| [].into(), |law| law_of_lines(law, &rates_of)),
            network: network.clone(),
            fabric: fabric::InitialState {
                rounding: config.rounding,
                seed: config.seed,
                domains: network.partition.count(),
                switch: config.switch.clone(),
                host_rate,
                int: IntFormat::new(host_rate, &rates)?,
                wire_times: rates.iter().map(wire_times).collect(),
                carries: Carries {
                    int: config.feedback() == Feedback::Int && !is_kernel,
                    stamps: has_law && (!is_kernel || counts.is_some()),
                    acknowledgements: is_kernel,
                },
                ports,
                memories,
            },
            config,
        };
        let domain = |me| Domain::new(&initial, me);
        let domains = (0..network.partition.count()).map(domain).collect();
        let team = Team::new(domains, network.partition.lookahead());
        Ok(Simulation {
            network,
            team,
            synchroniser,
        })
    }

    /// Simulates up to `end`, or until no event remains.
    pub fn run_until(&mut self, end: Time<Sim>) {
        let window_end = |s: &Simulation| s.synchroniser.as_ref().map(|s| s.end);
        while let Some(at) = window_end(self).filter(|at| *at <= end) {
            self.team.run_until(at);
            if let Some(synchroniser) = &mut self.synchroniser {
                let mut domains: Vec<_> = (0..self.network.partition.count())
                    .map(|n| self.team.domain(n))
                    .collect();
                let mut sites: Vec<&mut Site> = domains.iter_mut().map(|d| &mut d.site).collect();
                synchroniser.synchronise(&mut sites);
            }
        }
        self.team.run_until(end);
    }

    /// The result of each window of clock synchronisation, if there is any.
    pub fn clock_windows(&self) -> &[ClockWindow] {
        self.synchroniser.as_ref().map_or(&[], |s| &s.windows)
    }

    /// Handles one event, if there is one up to `end`, and returns its kind; for profiles.
    ///
    /// # Panics
    /// There are several domains.
    pub fn step(&mut self, end: Time<Sim>) -> Option<Step> {
        assert_eq!(self.domains(), 1, "steps are those of one domain");
        self.team.domain(0).step(end)
    }

    /// Number of domains.
    pub fn domains(&self) -> usize {
        self.network.partition.count()
    }

    /// Whether flows of kernel hosts wait for others.
    pub(crate) fn waits_in_kernels(&self) -> bool {
        waits_in_kernels(&self.team.domain(0).site.config)
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// All domains.
    pub(crate) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, Domain>> {
        (0..self.domains()).map(|n| self.team.domain(n))
    }

    /// The domain in which `port` is.
    pub(crate) fn domain_of(&self, port: u32) -> MutexGuard<'_, Domain> {
        self.team.domain(self.network.domain_of(port))
    }

    /// Time of the last event.
    pub fn now(&self) -> Time<Sim> {
        let times = self.each().map(|domain| domain.site.net.now);
        times.max().unwrap_or(Time::ZERO)
    }

    /// Number of unfinished flows.
    pub fn unfinished(&self) -> usize {
        let in_time = self.network.in_time();
        let started: usize = self.each().map(|d| d.site.starts.started).sum();
        let ended: usize = self.each().map(|domain| domain.site.starts.ended).sum();
        in_time + started - ended
    }

    /// The outcome of each flow of the plan so far.
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.each_outcome().collect()
    }

    /// The outcomes as an iterator.
    pub(crate) fn each_outcome(&self) -> impl Iterator<Item = Outcome> + '_ {
        self.note_outcomes();
        let flows = 0..self.network.flows.len();
        flows.map(|plan| self.network.outcome(plan))
    }

    /// Updates the outcomes of flows in progress.
    fn note_outcomes(&self) {
        self.each().for_each(|domain| domain.note_outcomes());
    }

    /// Measures the delays of data packets to `host` from now on.
    pub(crate) fn measure_delays(&mut self, host: u32) {
        let mut domain = self.domain_of(self.network.port_of(host));
        domain.arrivals.measure(host);
    }

    /// Stops the measurement and returns its delays.
    pub(crate) fn measured_delays(&mut self, host: u32) -> Option<Delays> {
        let mut domain = self.domain_of(self.network.port_of(host));
        domain.arrivals.take_measured()
    }

    /// Records the delays of packets and the last measurements of their senders from now on.
    pub(crate) fn watch_signals(&mut self) {
        self.each().for_each(|mut domain| match &mut domain.hosts {
            domain::Hosts::Kernel(kernels) => kernels.signals = Some(Signals::default()),
            domain::Hosts::Nic(_) => {}
        });
    }

    /// Records rounds of connections until `end`.
    pub(crate) fn watch_rounds(&mut self, end: Time<Sim>) {
        self.each().for_each(|mut domain| match &mut domain.hosts {
            domain::Hosts::Kernel(kernels) => kernels.rounds = Some(Rounds::new(end)),
            domain::Hosts::Nic(_) => {}
        });
    }

    /// Those that have ended, by time.
    pub(crate) fn rounds(&self) -> Vec<Round> {
        let of = |domain: &Domain| match &domain.hosts {
            domain::Hosts::Kernel(kernels) => Some(kernels.rounds.as_ref()?.ended.clone()),
            domain::Hosts::Nic(_) => None,
        };
        let rounds = self.each().filter_map(|domain| of(&domain));
        let mut rounds: Vec<Round> = rounds.flatten().collect();
        rounds.sort_unstable();
        rounds
    }

    /// Records round-trip times until `end`, and all of the first `kept` flows.
    pub(crate) fn watch_rtts(&mut self, end: Time<Sim>, kept: u32) {
        self.each()
            .for_each(|mut domain| domain.site.rtts = Some(Rtts::new(end, kept)));
    }

    /// All recorded round-trip times; none if they are not recorded or there were none.
    pub(crate) fn rtts(&self) -> Option<Delays> {
        let mut all = Delays::new();
        for domain in self.each() {
            all.add(&domain.site.rtts.as_ref()?.delays);
        }
        (all.count() > 0).then_some(all)
    }

    /// Those of the first flows, by time.
    pub(crate) fn rtt_samples(&self) -> Vec<RttSample> {
        let of = |domain: &Domain| Some(domain.site.rtts.as_ref()?.samples.clone());
        let samples = self.each().filter_map(|domain| of(&domain));
        let mut samples: Vec<RttSample> = samples.flatten().collect();
        samples.sort_by_key(|sample| (sample.at, sample.plan, sample.rtt));
        samples
    }

    /// The records so far, by time.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        let of = |domain: &Domain| match &domain.hosts {
            domain::Hosts::Kernel(kernels) => Some(kernels.signals.as_ref()?.pairs.clone()),
            domain::Hosts::Nic(_) => None,
        };
        let pairs = self.each().filter_map(|domain| of(&domain));
        let mut pairs: Vec<Pair> = pairs.flatten().collect();
        pairs.sort_by_key(|pair| (pair.at, pair.plan, pair.owd));
        pairs
    }

    /// Counters of the run so far.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        self.each()
            .for_each(|domain| all += domain.site.net.counters);
        all
    }

    /// Packets that exist now.
    pub fn packets_in_flight(&self) -> usize {
        self.each()
            .map(|domain| domain.site.net.packets.len())
            .sum()
    }

    /// Payload that the receiver of each flow of the plan has received in order.
    pub fn received(&self) -> Vec<Bytes> {
        self.each_outcome().map(|o| o.received).collect()
    }

    /// Completion time of flow `plan` in an empty network, as the HPCC authors define it: the base
    /// round-trip time, plus its bytes with headers but without telemetry at the rate of the slowest line
    /// on its path. `None`: it has no size.
    pub fn ideal_fct(&self, plan: usize) -> Option<Span> {
        self.network.ideal_fct(plan)
    }

    /// The switch port that leads to `host`, now.
    pub fn port_to(&self, host: u32, now: Time<Sim>) -> PortState {
        self.port_state(self.network.port_of(host) ^ 1, now)
    }

    /// The ports of switches.
    pub(crate) fn switch_ports(&self) -> Vec<u32> {
        // Each domain has all ports.
        let ports = |domain: MutexGuard<'_, Domain>| {
            let ports = (0..).zip(&domain.site.net.ports);
            let of_switch = ports.filter(|(_, port)| port.on_switch);
            of_switch.map(|(number, _)| number).collect()
        };
        self.each().next().map(ports).unwrap_or_default()
    }

    pub(crate) fn port_state(&self, port: u32, now: Time<Sim>) -> PortState {
        self.domain_of(port).site.net.port_state(port, now)
    }

    /// Writes all packets that `port` sends from now on to `out`, as packets of interface `name`.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub(crate) fn start_capture(
        &mut self,
        port: u32,
        name: &str,
        out: Output,
    ) -> Result<(), CaptureError> {
        let mut domain = self.domain_of(port);
        let Domain { captures, site, .. } = &mut *domain;
        let line = &mut site.net.ports[port as usize];
        captures.start((port, line), name, out)
    }

    /// Ends all captures.
    ///
    /// # Errors
    /// The first capture that could not be written.
    pub(crate) fn end_captures(&mut self) -> Result<(), CaptureError> {
        self.each().try_for_each(|mut domain| domain.captures.end())
    }
}

fn waits_in_kernels(config: &Config) -> bool {
    config.hosts.is_kernel() && config.chains.is_some()
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

/// All hosts are of one kind, and each is in one group at most.
fn check_groups(config: &Config, topology: &Topology) -> Result<(), ConfigError> {
    let mut hosts: HashSet<u32> = topology.hosts().collect();
    for (number, group) in config.groups.iter().enumerate() {
        let fits = group.hosts.is_kernel() == config.hosts.is_kernel();
        if !fits || !group.members.iter().all(|host| hosts.remove(host)) {
            return Err(ConfigError::Group { number });
        }
    }
    Ok(())
}

/// Reads use bursts (host/nic/reads.rs). Their hosts neither hold them nor start them after other flows.
fn check_reads(config: &Config, flows: &[Flow]) -> Result<(), ConfigError> {
    let sends_bursts = |hosts: &Hosts| match hosts {
        Hosts::Nic(nic) => nic.algorithm.sends_bursts(),
        Hosts::Kernel(_) => false,
    };
    let can_read = config.each_hosts().all(sends_bursts)
        && config.rounding == Rounding::Exact
        && config.laws().all(|law| law.is_none());
    let in_time = config
        .chains
        .as_ref()
        .map_or(flows.len(), |chains| chains.first);
    let mut flows = flows.iter().enumerate();
    match flows.find(|(n, flow)| flow.op == Op::Read && !(can_read && *n < in_time)) {
        Some((flow, _)) => Err(ConfigError::CannotRead { flow }),
        None => Ok(()),
    }
}

/// ns-3's header of telemetry has room for a few switches. Exact telemetry has room for all.
fn check_telemetry(config: &Config, network: &Network) -> Result<(), ConfigError> {
    let switches = network.switches_passed();
    let is_limited = config.rounding == Rounding::Ns3 && config.feedback() == Feedback::Int;
    match is_limited && switches > INT_HOPS {
        true => Err(ConfigError::Telemetry { switches }),
        false => Ok(()),
    }
}

fn make_ports(topology: &Topology, network: &Network) -> Vec<Port> {
    let port = |node, other, link: &Link| {
        let leads_to = network.partition.of(other) as u16;
        let line = (link.rate, link.delay);
        Port::new(node, topology.is_switch(node), line, leads_to)
    };
    let ends = |link: &Link| [port(link.a, link.b, link), port(link.b, link.a, link)];
    topology.links().iter().flat_map(ends).collect()
}

/// The distinct rates, and the index of each port's rate.
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

/// Bytes on the wire.
fn largest_packet(config: &Config) -> u64 {
    let header = |hosts: &Hosts| match hosts {
        Hosts::Nic(_) => data_header(config.feedback()),
        Hosts::Kernel(_) => hosts.header(),
    };
    let packets = config
        .each_hosts()
        .map(|hosts| hosts.payload() + header(hosts));
    packets.map(u64::from).max().unwrap_or(0).max(FRAME)
}

fn provision(
    config: &Config,
    topology: &Topology,
    ports: &mut [Port],
) -> Result<Vec<Memory>, ConfigError> {
    let bytes = match config.switch.buffer {
        Buffer::PerPort(_) => 0,
        Buffer::Shared(bytes) | Buffer::Lossless(bytes) => bytes.get(),
    };
    let whole = Memory {
        shared: bytes,
        used: 0,
    };
    let mut memories = vec![whole; topology.nodes()];
    let mut set_aside = vec![0; topology.nodes()];
    let pfc = Pfc {
        rounding: config.rounding,
        alpha_log2: config.switch.alpha_log2,
        host_rate: match config.rounding {
            Rounding::Exact => topology.host_rate(),
            Rounding::Ns3 => topology.first_host_rate(),
        },
        largest_packet: largest_packet(config),
    };
    for port in ports.iter_mut().filter(|port| port.on_switch) {
        if let Buffer::Lossless(_) = config.switch.buffer {
            port.provision(&pfc);
            set_aside[port.node as usize] += port.set_aside();
        }
        if let Some(rule) = &config.switch.rule {
            let lines = Lines {
                port: port.rate,
                hosts: topology.host_rate(),
            };
            port.asks_from = rule.at(lines).asked_from().get();
        }
    }
    for (switch, (memory, bytes)) in (0..).zip(memories.iter_mut().zip(set_aside)) {
        memory.shared = match memory.shared.checked_sub(bytes) {
            Some(rest) => rest,
            None => {
                return Err(ConfigError::Buffer {
                    switch,
                    buffer: Bytes::new(memory.shared),
                    least: Bytes::new(bytes),
                })
            }
        };
    }
    Ok(memories)
}

fn network_of(
    config: &Config,
    topology: &Topology,
    flows: Vec<Flow>,
    partition: Partition,
) -> Arc<Network> {
    // Kernel hosts' flows that wait for others request their connections without delay, so there is
    // no lookahead.
    let in_one = waits_in_kernels(config);
    let partition = match config.rounding {
        Rounding::Exact if !in_one => partition,
        _ => Partition::whole(topology),
    };
    Network::new(
        (config.hosts.payload(), config.hosts.header()),
        config.rounding,
        topology,
        (flows, config.chains.clone()),
        partition,
        config.switch.paths.clone(),
    )
}

/// By node: the law for a line of its rate.
fn law_of_lines(law: onramp_law::Config, rates: &[Rate]) -> Arc<[onramp_law::Config]> {
    rates.iter().map(|rate| law.line_rate(*rate)).collect()
}

/// By node: its own law for its line.
fn laws_of_lines(laws: &PerHost<Option<&Law>>, rates: &[Rate]) -> Arc<[Option<HostLaw>]> {
    let law_of = |(node, rate): (u32, &Rate)| laws[node].map(|law| HostLaw::new(law, *rate));
    (0..).zip(rates).map(law_of).collect()
}
