// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Builds the simulation of a scenario's run.

use super::parts::{partition, Parts};
use crate::engine::rounding::Rounding;
use crate::flows::chains::Chains;
use crate::flows::flow::Flow;
use crate::host::clock::ClockErrors;
use crate::host::config::{self, Config, Group, Hosts, Kernel, Nic, OtherLaw, Probing};
use crate::host::rtts::RttErrors;
use crate::net::config::{Buffer, Switch};
use crate::net::partition::Partition;
use crate::net::port_name::{find, UnknownPort};
use crate::net::topology::{Line, Topology, TopologyError};
use crate::simulation::{ConfigError, Simulation};
use crate::watch::capture::CaptureError;
use onramp_cc::path::Paths;
use onramp_cc::switch::{Ecn, Rule};
use onramp_cc::{nic::Preset, tcp::Entry, Cc, Mistake, Mistakes};
use onramp_scenario::{
    self as scenario, Arrival, Connections, ControlLaw, Graph, HostKind, HostSettings, Law,
    PortName, ProbeStamps, Qdisc, Run, Sharing,
};
use onramp_sync::probe::Stamps;
use onramp_sync::synthetic::Spread;
use onramp_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A run cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum BuildError {
    #[error("network.topology: {0}")]
    Topology(#[from] TopologyError),
    #[error("network.failed: {0}")]
    NoSuchLink(UnknownPort),
    #[error("network.failed: {0}")]
    Failed(TopologyError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Port(#[from] UnknownPort),
    #[error("there is no flow{flow}; flows are flow0 to flow{last}")]
    NoSuchFlow { flow: u32, last: u32 },
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Mistake(#[from] Mistake),
}

/// The simulation of `run`, whose plan is `arrivals`.
///
/// # Errors
/// A run that the simulator does not support.
pub fn build(run: &Run, arrivals: &[Arrival]) -> Result<Simulation, BuildError> {
    build_in_parts(run, arrivals, Parts::AtMost(1))
}

/// Like [`build`], in several domains in parallel.
///
/// # Errors
/// As [`build`].
pub fn build_in_parts(
    run: &Run,
    arrivals: &[Arrival],
    parts: Parts,
) -> Result<Simulation, BuildError> {
    Setup::of(run, arrivals, parts)?.simulation()
}

/// The input of a simulation.
pub(super) struct Setup {
    config: Config,
    topology: Topology,
    flows: Vec<Flow>,
    partition: Partition,
}

impl Setup {
    /// That of `run`, whose plan is `arrivals`.
    pub fn of(run: &Run, arrivals: &[Arrival], parts: Parts) -> Result<Setup, BuildError> {
        let end = Time::ZERO + run.duration;
        let topology = topology(&run.network)?;
        Ok(Setup {
            config: Config {
                chains: Chains::of(arrivals, end).map(Arc::new),
                ..config(run)
            },
            flows: arrivals.iter().map(|arrival| flow(run, arrival)).collect(),
            partition: partition(run, arrivals, &topology, parts),
            topology,
        })
    }

    /// The mistakes of its parts of other crates.
    pub fn mistakes(&self) -> Vec<Mistakes> {
        let groups = self.config.groups.iter().map(|group| &group.hosts);
        let hosts = std::iter::once(&self.config.hosts).chain(groups);
        let of_hosts = hosts.filter_map(|hosts| match hosts {
            Hosts::Nic(nic) => nic.algorithm.mistakes(),
            Hosts::Kernel(kernel) => kernel.algorithm.mistakes(),
        });
        let switch = &self.config.switch;
        let of_rule = switch.rule.as_ref().and_then(Rule::mistakes);
        let of_switch = of_rule.into_iter().chain([switch.paths.mistakes()]);
        let of_laws = self.config.laws().filter_map(|law| match law? {
            config::Law::BuiltIn(_) => None,
            config::Law::Other(other) => Some(other.law.mistakes()),
        });
        of_hosts.chain(of_laws).chain(of_switch).cloned().collect()
    }

    pub fn simulation(self) -> Result<Simulation, BuildError> {
        let Setup {
            config,
            topology,
            flows,
            partition,
        } = self;
        Ok(Simulation::in_parts(config, &topology, flows, partition)?)
    }
}

/// The configuration of the simulation of `run`.
pub fn config(run: &Run) -> Config {
    let hosts = hosts(run, run.others(), run.network.link.rate);
    let law = |of: HostSettings<'_>| law(of, Bytes::new(hosts.payload().into()));
    let group = |group: &scenario::Group| Group {
        members: group.hosts.iter().collect(),
        hosts: self::hosts(
            run,
            group.settings(),
            group.link_rate.unwrap_or(run.network.link.rate),
        ),
        law: law(group.settings()),
        reuse: group.onramp.reuse.0,
    };
    Config {
        rounding: Rounding::Exact,
        law: law(run.others()),
        groups: run.groups.iter().map(group).collect(),
        loss: run.network.ports.loss.get(),
        hosts: hosts.clone(),
        clocks: ClockErrors {
            hosts: Spread {
                offset: run.clock.offset,
                drift: run.clock.drift.get(),
                wander: run.clock.wander.get(),
            },
            noise: run.clock.noise,
        },
        reuse: run.onramp.reuse.0,
        or_ack_every: match (run.shared_onramp().orack_every, run.host.kind) {
            (Some(every), _) => every.get() as u32, // at most 1 MB
            (None, HostKind::Kernel) => onramp_law::SAMPLE_BYTES,
            (None, HostKind::Nic) => 1,
        },
        chains: None,
        probing: probing(&run.clock),
        switch: Switch {
            buffer: buffer(run),
            rule: rule(run),
            paths: Paths::new(run.network.paths.entry, &run.network.paths.tuning),
            alpha_log2: run.network.ports.alpha.map(|alpha| alpha.log2),
            acks_first: run.host.ack_priority,
        },
        seed: run.seed,
    }
}

fn flow(run: &Run, arrival: &Arrival) -> Flow {
    Flow {
        start: arrival.at,
        src: arrival.src,
        dst: arrival.dst,
        work: arrival.work,
        op: run.traffic[arrival.traffic].generator().op(),
    }
}

/// Hosts with these settings, whose links have rate `line`.
fn hosts(run: &Run, of: HostSettings<'_>, line: Rate) -> Hosts {
    match of.host.cc {
        Cc::Nic(preset) => Hosts::Nic(nic(run, of, preset, line)),
        Cc::Kernel(entry) => Hosts::Kernel(kernel(of, entry)),
    }
}

fn nic(run: &Run, of: HostSettings<'_>, preset: &Preset, line: Rate) -> Nic {
    let lossless = run.network.ports.sharing == Sharing::Lossless;
    Nic {
        algorithm: (preset.algorithm)(line).tuned(of.tuning),
        timeout: (!lossless).then_some(of.host.transport.min_rto),
        piggyback: run.shared_onramp().piggyback,
        rtt_errors: RttErrors {
            stamps: of.host.rtt_stamps,
            noise: of.host.rtt_noise,
        },
        ..Nic::of(preset, line)
    }
}

fn kernel(of: HostSettings<'_>, entry: &Entry) -> Kernel {
    let HostSettings {
        host,
        tuning,
        onramp,
        ..
    } = of;
    let has_law = onramp.law != Law::Off;
    Kernel {
        algorithm: (entry.algorithm)().tuned(tuning),
        transport: Arc::new(host.transport),
        gso: match has_law {
            true => host.gso.min(onramp.gso),
            false => host.gso,
        },
        gro: host.gro,
        paced: host.qdisc == Qdisc::Fq,
        edge_paced: has_law && onramp.pacing,
        or_acks: host.qdisc == Qdisc::Edge,
        persistent: host.connections == Connections::Persistent,
        codel: host.qdisc == Qdisc::FqCodel,
        coalescing: host.coalescing,
        nic_queue: host.nic_queue,
        stamps_at_wire: onramp.subtract_nic_queue,
    }
}

/// The rule of the switches.
fn rule(run: &Run) -> Option<Rule> {
    match &run.network.rule {
        Some(rule) => Some((rule.entry.rule)().tuned(&rule.tuning)),
        None => ecn(run),
    }
}

/// Marks of the switches, if congestion controls of some hosts use them. NICs' are by default as in the source of
/// `host.cc`, which no group contradicts.
fn ecn(run: &Run) -> Option<Rule> {
    let own = run.network.ecn.as_ref().map(given);
    let marks = |of: HostSettings<'_>| matches!(of.host.cc, Cc::Kernel(entry) if entry.marks);
    match run.host.cc {
        Cc::Nic(preset) => own.or_else(|| Some((preset.ecn)(run.network.link.rate).into())),
        Cc::Kernel(_) => own.filter(|_| run.each_settings().any(marks)),
    }
}

fn probing(clock: &scenario::Clock) -> Option<Probing> {
    (clock.sync == scenario::ClockSync::Huygens).then_some(Probing {
        stamps: match clock.stamps {
            ProbeStamps::Hardware => Stamps::Hardware,
            ProbeStamps::Software => Stamps::Software,
        },
        degree: clock.degree,
        interval: clock.probe_interval,
        window: clock.window,
    })
}

fn buffer(run: &Run) -> Buffer {
    match run.network.ports.sharing {
        Sharing::PerPort => Buffer::PerPort(run.network.ports.buffer),
        Sharing::Shared => Buffer::Shared(run.network.ports.buffer),
        Sharing::Lossless => Buffer::Lossless(run.network.ports.buffer),
    }
}

fn given(ecn: &scenario::Ecn) -> Rule {
    Rule::Ecn(Ecn {
        min: ecn.threshold,
        max: ecn.curve_ends(),
        max_fraction: ecn.max_fraction.get(),
        at: ecn.at,
        curve: ecn.curve(),
        at_enqueue: ecn.mark == scenario::Mark::Enqueue,
    })
}

/// The gate does not count a full packet in flight. The rate of each host's line is added later.
pub(super) fn law(of: HostSettings<'_>, payload: Bytes) -> Option<config::Law> {
    let onramp = of.onramp;
    match onramp.law {
        ControlLaw::BuiltIn(Law::Off) => None,
        ControlLaw::BuiltIn(law) => {
            let config = onramp_law::Config::new(law, onramp.t())
                .max_pause(onramp.max_pause)
                .gain_q16(onramp.gain.q16())
                .guard(onramp.guard.0.unwrap_or(Span::ZERO))
                .gate_allowance(payload);
            Some(config.into())
        }
        ControlLaw::Custom(entry) => Some(config::Law::Other(OtherLaw {
            law: (entry.law)().tuned(of.law_tuning),
            threshold: onramp.t(),
            max_pause: onramp.max_pause,
            payload,
        })),
    }
}

pub(super) fn topology(network: &scenario::Network) -> Result<Topology, BuildError> {
    let line = |link: scenario::Link| Line {
        rate: link.rate,
        delay: link.delay,
    };
    let (edge, fabric) = (line(network.link), line(network.fabric));
    let topology = match network.topology {
        scenario::Topology::File { ref graph, .. }
        | scenario::Topology::Inline(scenario::Inline { ref graph, .. }) => {
            Topology::of(Graph::clone(graph))
        }
        scenario::Topology::Shape(ref shape) => Topology::of_shape(shape, edge, fabric),
    }?;
    let topology = match network.host_links.is_empty() {
        true => topology,
        false => topology.with_host_rates(|host| network.link_of(host).rate),
    };
    if network.failed.is_empty() {
        return Ok(topology);
    }
    let names = topology.port_names();
    let link = |port: &PortName| find(&names, &port.0).map(|port| port as usize / 2);
    let failed: Result<BTreeSet<usize>, _> = network.failed.iter().map(link).collect();
    let failed = failed.map_err(BuildError::NoSuchLink)?;
    topology.without(&failed).map_err(BuildError::Failed)
}
