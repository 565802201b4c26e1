//! What a checked scenario consists of. All values are the real network's: `time_dilation` is
//! applied by the rack, never here.
//!
//! These types only come out of [`Scenario::parse`](crate::Scenario::parse), so whoever holds one
//! need not check it again. Meanings, defaults and bounds of every field: docs/scenario.md.

use crate::{Clock, Fraction, Graph, Host, OnRamp, Traffic};
use onramp_cc::Tuning;
use onramp_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use strum::{Display, EnumString, VariantNames};

/// Number of a host, from 0.
pub type HostId = u32;

/// One fully resolved experiment: a case at a sweep point.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What tells this run from the others of its scenario: "case" and every key that a case or
    /// the sweep sets, with its value and unit.
    pub params: BTreeMap<String, String>,
    /// One line for people.
    pub title: String,
    /// Seed of the traffic plan, and of whatever else is random in a world.
    pub seed: u64,
    /// Traffic starts within [0, duration).
    pub duration: Span,
    /// What starts before it is left out of the measures.
    pub warmup: Span,
    /// The rack runs this many times slower, and scales its results back.
    pub time_dilation: NonZeroU64,
    /// Links and switches.
    pub network: Network,
    /// What all hosts have in common.
    pub host: Host,
    /// Parameters of `host.cc` that differ from their source's.
    pub tuning: Tuning,
    /// How wrong their clocks are.
    pub clock: Clock,
    /// The control law.
    pub onramp: OnRamp,
    /// Who sends what, in the file's order.
    pub traffic: Vec<Traffic>,
}

/// Links and switches.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// What is connected to what.
    pub topology: Topology,
    /// Links of hosts; a path from host to host over one switch has two. Of a file the fastest one's.
    pub link: Link,
    /// Each host's, in a network whose hosts may differ; else empty.
    pub host_links: Vec<Link>,
    /// Links between switches.
    pub fabric: Link,
    /// Waiting room: of each switch port, or of each switch.
    pub buffer: Bytes,
    /// Whose it is.
    pub sharing: Sharing,
    /// Dynamic threshold: the part of what is free that a queue may take is 2 to this, if given.
    pub alpha_log2: Option<i8>,
    /// Congestion marks at the switch ports, if any.
    pub ecn: Option<Ecn>,
}

/// What is connected to what.
#[derive(Debug, Clone, PartialEq)]
pub enum Topology {
    /// Nodes and links of a file, hosts first.
    File {
        /// As the scenario gives it.
        path: String,
        /// What it says.
        graph: Arc<Graph>,
    },
    /// Nodes and links of the scenario itself, hosts first.
    Inline(Inline),
    /// All hosts at one switch.
    Star {
        /// Number of hosts.
        hosts: u32,
    },
    /// Half of the hosts at each of two switches.
    Dumbbell {
        /// Number of hosts, even.
        hosts: u32,
    },
    /// Hosts at leaves, every leaf linked to every spine.
    LeafSpine {
        /// Number of hosts, a multiple of the leaves.
        hosts: u32,
        /// Number of leaves.
        leaves: u32,
        /// Number of spines.
        spines: u32,
    },
    /// Three stages: pods of `width` ToR and `width` aggregation switches; the n-th aggregation
    /// switch of each pod is linked to the n-th group of `width` core switches.
    FatTree {
        /// Number of hosts, a multiple of the ToR switches.
        hosts: u32,
        /// Number of pods.
        pods: u32,
        /// ToR and aggregation switches of a pod.
        width: u32,
    },
}

/// A network that a scenario writes out.
#[derive(Debug, Clone, PartialEq)]
pub struct Inline {
    /// As the scenario gives it.
    pub table: toml::Table,
    /// What it says.
    pub graph: Arc<Graph>,
}

impl Topology {
    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        match self {
            Topology::File { graph, .. } | Topology::Inline(Inline { graph, .. }) => {
                graph.hosts().count() as u32
            }
            Topology::Star { hosts }
            | Topology::Dumbbell { hosts }
            | Topology::LeafSpine { hosts, .. }
            | Topology::FatTree { hosts, .. } => *hosts,
        }
    }

    /// Its kind, as scenarios have it.
    pub fn kind(&self) -> TopologyKind {
        match self {
            Topology::File { .. } => TopologyKind::File,
            Topology::Inline(_) => TopologyKind::Inline,
            Topology::Star { .. } => TopologyKind::Star,
            Topology::Dumbbell { .. } => TopologyKind::Dumbbell,
            Topology::LeafSpine { .. } => TopologyKind::LeafSpine,
            Topology::FatTree { .. } => TopologyKind::FatTree,
        }
    }
}

/// Name of a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum TopologyKind {
    /// [`Topology::Star`].
    Star,
    /// [`Topology::Dumbbell`].
    Dumbbell,
    /// [`Topology::LeafSpine`].
    LeafSpine,
    /// [`Topology::FatTree`].
    FatTree,
    /// [`Topology::File`].
    File,
    /// [`Topology::Inline`].
    Inline,
}

/// Whose the switches' memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Sharing {
    /// Each port has its own; what does not fit is dropped.
    PerPort,
    /// The ports of a switch share it; a queue may take as much as is free.
    Shared,
    /// The ports of a switch share it, and priority flow control keeps it from overflowing.
    Lossless,
}

/// A full-duplex link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// In each direction.
    pub rate: Rate,
    /// Propagation, one way.
    pub delay: Span,
}

/// Marks by a port's queue: none up to the threshold, all above `max`, a growing part in between.
/// With both equal, a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ecn {
    /// Queue above which packets are marked.
    pub threshold: Bytes,
    /// Queue above which all are.
    pub max: Bytes,
    /// Part that is marked just below `max`.
    pub max_fraction: Fraction,
    /// The part grows in so many equal steps; `None`: steadily.
    pub steps: Option<u32>,
    /// Which queue counts.
    pub mark: Mark,
}

/// By which queue a packet is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Mark {
    /// That which it finds.
    Enqueue,
    /// That which it leaves behind.
    Dequeue,
}

impl Network {
    /// Most propagation between two hosts, one way: the one-way delay of the idle path but for the
    /// frame's own wire time.
    pub fn base_delay(&self) -> Span {
        let between_switches = match &self.topology {
            Topology::File { graph, .. } | Topology::Inline(Inline { graph, .. }) => {
                return graph.longest_delay();
            }
            Topology::Star { .. } => 0,
            Topology::Dumbbell { .. } => 1,
            Topology::LeafSpine { .. } => 2,
            Topology::FatTree { .. } => 4,
        };
        self.link.delay * 2 + self.fabric.delay * between_switches
    }

    /// The link of one host.
    pub fn link_of(&self, host: HostId) -> Link {
        self.host_links
            .get(host as usize)
            .copied()
            .unwrap_or(self.link)
    }
}
