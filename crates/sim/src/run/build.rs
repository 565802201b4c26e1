//! Builds the simulation of a scenario's run.

use super::parts::{partition, Parts};
use crate::engine::rounding::Rounding;
use crate::flows::chains::Chains;
use crate::flows::flow::Flow;
use crate::host::clock::ClockErrors;
use crate::host::config::{Algorithms, Config, Hosts, Kernel, Nic};
use crate::host::huygens::Probing;
use crate::host::rtts::RttErrors;
use crate::net::config::{Buffer, Ecn, Switch};
use crate::net::partition::Partition;
use crate::net::port_name::UnknownPort;
use crate::net::topology::{Line, Topology, TopologyError};
use crate::simulation::{ConfigError, Simulation};
use crate::watch::capture::CaptureError;
use onramp_cc::{nic::Preset, tcp::Entry, Cc};
use onramp_scenario::{
    self as scenario, Arrival, Connections, Graph, HostKind, Law, ProbeStamps, Qdisc, Receivers,
    Run, Sharing,
};
use onramp_sync::probe::Stamps;
use onramp_sync::synthetic::Spread;
use onramp_units::{Bytes, Span, Time};
use std::sync::Arc;

/// A run cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum BuildError {
    #[error("network.topology: {0}")]
    Topology(#[from] TopologyError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Port(#[from] UnknownPort),
    #[error("there is no flow{flow}; flows are flow0 to flow{last}")]
    NoSuchFlow { flow: u32, last: u32 },
    #[error(transparent)]
    Capture(#[from] CaptureError),
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
    let (hosts, ecn) = match run.host.cc {
        Cc::Kernel(entry) => kernel_hosts(run, entry),
        Cc::Nic(preset) => nic_hosts(run, preset),
    };
    Config {
        rounding: Rounding::Exact,
        law: law(&run.onramp, u64::from(hosts.payload())),
        managed: range(run.onramp.hosts),
        loss: run.network.loss.get(),
        hosts,
        clocks: ClockErrors {
            hosts: Spread {
                offset: run.clock.offset,
                drift: run.clock.drift.get(),
                wander: run.clock.wander.get(),
            },
            noise: run.clock.noise,
        },
        reuse: run.onramp.reuse,
        or_ack_every: match (run.onramp.orack_every, run.host.kind) {
            (Some(every), _) => every.get() as u32, // at most 1 MB
            (None, HostKind::Kernel) => onramp_law::SAMPLE_BYTES,
            (None, HostKind::Nic) => 1,
        },
        chains: None,
        probing: probing(&run.clock),
        switch: Switch {
            buffer: buffer(run),
            ecn,
            alpha_log2: run.network.alpha_log2,
            acks_first: run.host.ack_priority,
        },
        seed: run.seed,
    }
}

/// First and last of them; `None`: all.
fn range(named: Receivers) -> Option<(u32, u32)> {
    match named {
        Receivers::All => None,
        Receivers::Host(host) => Some((host, host)),
        Receivers::Range(first, last) => Some((first, last)),
    }
}

fn flow(run: &Run, arrival: &Arrival) -> Flow {
    Flow {
        start: arrival.at,
        src: arrival.src,
        dst: arrival.dst,
        work: arrival.work,
        op: run.traffic[arrival.traffic].op(),
    }
}

fn nic_hosts(run: &Run, preset: &Preset) -> (Hosts, Option<Ecn>) {
    let line = run.network.link.rate;
    let lossless = run.network.sharing == Sharing::Lossless;
    let nic = Nic {
        algorithm: (preset.algorithm)(line).tuned(&run.tuning),
        timeout: (!lossless).then_some(run.host.transport.min_rto),
        piggyback: run.onramp.piggyback,
        rtt_errors: RttErrors {
            stamps: run.host.rtt_stamps,
            noise: run.host.rtt_noise,
        },
        ..Nic::of(preset, line)
    };
    let ecn = run.network.ecn.as_ref();
    let ecn = ecn.map_or_else(|| (preset.ecn)(line).into(), given);
    (Hosts::Nic(nic), Some(ecn))
}

fn kernel_hosts(run: &Run, entry: &Entry) -> (Hosts, Option<Ecn>) {
    let other = match run.host.other_cc {
        Some(Cc::Kernel(other)) => Some(other),
        Some(Cc::Nic(_)) | None => None, // a NIC's is refused by the scenario
    };
    let algorithms = Algorithms {
        own: (entry.algorithm)().tuned(&run.tuning),
        hosts: range(run.host.cc_hosts),
        others: other.map(|other| (other.algorithm)().tuned(&run.other_tuning)),
    };
    let kernel = Kernel {
        algorithms,
        transport: Arc::new(run.host.transport),
        gso: run.host.gso,
        managed_gso: run.host.gso.min(run.onramp.gso),
        gro: run.host.gro,
        paced: run.host.qdisc == Qdisc::Fq,
        managed_paced: run.onramp.pacing,
        persistent: run.host.connections == Connections::Persistent,
        codel: run.host.qdisc == Qdisc::FqCodel,
        coalescing: run.host.coalescing,
        nic_queue: run.host.nic_queue,
        stamps_at_wire: run.onramp.subtract_nic_queue,
    };
    let marks = entry.marks || other.is_some_and(|other| other.marks);
    let ecn = run.network.ecn.as_ref().filter(|_| marks);
    (Hosts::Kernel(kernel), ecn.map(given))
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
    match run.network.sharing {
        Sharing::PerPort => Buffer::PerPort(run.network.buffer),
        Sharing::Shared => Buffer::Shared(run.network.buffer),
        Sharing::Lossless => Buffer::Lossless(run.network.buffer),
    }
}

fn given(ecn: &scenario::Ecn) -> Ecn {
    Ecn {
        min: ecn.threshold,
        max: ecn.curve_ends(),
        max_fraction: ecn.max_fraction.get(),
        curve: ecn.curve(),
        at_enqueue: ecn.mark == scenario::Mark::Enqueue,
    }
}

/// The gate does not count a full packet in flight. The rate of each host's line is added later.
pub(super) fn law(onramp: &scenario::OnRamp, payload: u64) -> Option<onramp_law::Config> {
    if onramp.law == Law::Off {
        return None;
    }
    let config = onramp_law::Config::new(onramp.law, onramp.threshold)
        .max_pause(onramp.max_pause)
        .gain_q16(onramp.gain.q16())
        .guard(onramp.guard.unwrap_or(Span::ZERO))
        .gate_allowance(Bytes::new(payload));
    Some(config)
}

pub(super) fn topology(network: &scenario::Network) -> Result<Topology, TopologyError> {
    let line = |link: scenario::Link| Line {
        rate: link.rate,
        delay: link.delay,
    };
    let (edge, fabric) = (line(network.link), line(network.fabric));
    match network.topology {
        scenario::Topology::File { ref graph, .. }
        | scenario::Topology::Inline(scenario::Inline { ref graph, .. }) => {
            Topology::of(Graph::clone(graph))
        }
        scenario::Topology::Star { hosts } => Topology::star(hosts, edge),
        scenario::Topology::Dumbbell { hosts } => {
            Topology::dumbbell(hosts / 2, hosts / 2, edge, fabric)
        }
        scenario::Topology::LeafSpine {
            hosts,
            leaves,
            spines,
        } => Topology::leaf_spine(leaves, spines, hosts / leaves, edge, fabric),
        scenario::Topology::FatTree { hosts, pods, width } => {
            Topology::fat_tree(pods, width, hosts / (pods * width), edge, fabric)
        }
    }
}
