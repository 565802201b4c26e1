//! A scenario's run into a simulation.

use crate::capture::CaptureError;
use crate::cc::{self, Preset};
use crate::clock::ClockErrors;
use crate::config::{Buffer, Config, Ecn, Flow, Nic, Switch};
use crate::port_name::UnknownPort;
use crate::rounding::Rounding;
use crate::simulation::{ConfigError, Simulation};
use crate::topology::{Line, Topology, TopologyError};
use onramp_scenario::{self as scenario, Arrival, HostKind, Law, Run, Sharing};
use onramp_units::{Bytes, Rate, Span};

/// A NIC in a network that drops packets goes back after this long without progress.
const TIMEOUT: Span = Span::from_ms(4);

/// Why a run cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum BuildError {
    #[error("host.kind is kernel, which the simulator does not have: set host.kind to nic and host.cc to one of its congestion controls")]
    KernelHost,
    #[error("network.topology: {0}")]
    Topology(#[from] TopologyError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Port(#[from] UnknownPort),
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// The simulation of `run`, whose plan is `arrivals`.
///
/// # Errors
/// What the simulator cannot do.
pub fn build(run: &Run, arrivals: &[Arrival]) -> Result<Simulation, BuildError> {
    if run.host.kind == HostKind::Kernel {
        return Err(BuildError::KernelHost);
    }
    let preset = cc::preset(&run.host.cc.to_string()).ok_or(BuildError::KernelHost)?;
    let flows = arrivals.iter().map(flow).collect();
    let topology = topology(&run.network)?;
    Ok(Simulation::new(config(run, preset), &topology, flows)?)
}

fn flow(arrival: &Arrival) -> Flow {
    Flow {
        start: arrival.at,
        src: arrival.src,
        dst: arrival.dst,
        work: arrival.work,
    }
}

fn config(run: &Run, preset: &Preset) -> Config {
    let line = run.network.link.rate;
    let lossless = run.network.sharing == Sharing::Lossless;
    let given = |ecn: &scenario::Ecn| Ecn {
        min: ecn.threshold,
        max: ecn.max,
        max_fraction: ecn.max_fraction.get(),
    };
    Config {
        rounding: Rounding::Exact,
        algorithm: (preset.algorithm)(line),
        nic: Nic {
            timeout: (!lossless).then_some(TIMEOUT),
            ..Nic::REFERENCE
        },
        law: law(&run.onramp, line),
        clocks: ClockErrors {
            offset: run.clock.offset,
            drift: run.clock.drift.get(),
            noise: run.clock.noise,
        },
        switch: Switch {
            buffer: match run.network.sharing {
                Sharing::PerPort => Buffer::PerPort(run.network.buffer),
                Sharing::Shared => Buffer::Shared(run.network.buffer),
                Sharing::Lossless => Buffer::Lossless(run.network.buffer),
            },
            ecn: Some(run.network.ecn.as_ref().map_or((preset.ecn)(line), given)),
            control_acks: preset.control_acks,
        },
        seed: run.seed,
    }
}

/// A NIC's segment is a packet, which is what the gate may have in flight uncounted.
fn law(onramp: &scenario::OnRamp, line: Rate) -> Option<onramp_law::Config> {
    let law = match onramp.law {
        Law::Off => return None,
        Law::Strawman => onramp_law::Law::Strawman,
        Law::Final => onramp_law::Law::Final,
        Law::Gate => onramp_law::Law::Gate,
    };
    let config = onramp_law::Config::new(law, onramp.threshold)
        .max_pause(onramp.max_pause)
        .gain_q16(onramp.gain.q16())
        .line_rate(line)
        .gate_allowance(Bytes::new(u64::from(Nic::REFERENCE.payload)));
    Some(config)
}

pub(super) fn topology(network: &scenario::Network) -> Result<Topology, TopologyError> {
    let line = |link: scenario::Link| Line {
        rate: link.rate,
        delay: link.delay,
    };
    let (edge, fabric) = (line(network.link), line(network.fabric));
    match network.topology {
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
