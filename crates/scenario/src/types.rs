// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The parts of a checked scenario. All values are those of the real network: only the rack applies
//! `time_dilation`.
//!
//! These types only come out of [`Scenario::parse`](crate::Scenario::parse), so whoever holds one
//! need not check it again. Meanings, defaults and bounds of every field: docs/scenario.md.

use crate::{Clock, Fraction, Graph, Group, Host, OnRamp, Shape, Traffic};
use onramp_cc::{switch, Curve, Tuning};
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
    /// The difference between this run and others of its scenario: "case" and every key that a case or
    /// the sweep sets, with its value and unit.
    pub params: BTreeMap<String, String>,
    /// One line for people.
    pub title: String,
    /// Seed of the traffic plan and of all other random numbers.
    pub seed: u64,
    /// Traffic starts within [0, duration).
    pub duration: Span,
    /// Measures leave out traffic that starts before it.
    pub warmup: Span,
    /// The rack runs slower by this factor and scales its results back.
    pub time_dilation: NonZeroU64,
    /// Links and switches.
    pub network: Network,
    /// Properties of the hosts without a group.
    pub host: Host,
    /// Parameters of `host.cc` that differ from its source's.
    pub tuning: Tuning,
    /// Errors of the hosts' clocks.
    pub clock: Clock,
    /// The control law of the hosts without a group.
    pub onramp: OnRamp,
    /// Hosts with settings of their own, in the file's order. No host is in two groups.
    pub groups: Vec<Group>,
    /// Who sends what, in the file's order.
    pub traffic: Vec<Traffic>,
}

/// Links and switches.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Nodes and their connections.
    pub topology: Topology,
    /// Links of hosts; a path from host to host over one switch has two. For a file: the fastest one.
    pub link: Link,
    /// The link of each host, if they may differ; otherwise empty.
    pub host_links: Vec<Link>,
    /// Links between switches.
    pub fabric: Link,
    /// Buffer of each switch port, or of each switch.
    pub buffer: Bytes,
    /// Who shares the buffer.
    pub sharing: Sharing,
    /// Dynamic threshold: a queue may take the free memory times 2 to the power of this, if given.
    pub alpha_log2: Option<i8>,
    /// The rule of the switches, if it is another one than `ecn`.
    pub rule: Option<NetworkRule>,
    /// Congestion marks at the switch ports, if any.
    pub ecn: Option<Ecn>,
    /// Fraction of data packets that the links of receiving hosts lose.
    pub loss: Fraction,
}

/// A rule of switches with the parameters that the scenario sets.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkRule {
    /// As the registry has it.
    pub entry: &'static switch::Entry,
    /// Parameters that differ from its source's.
    pub tuning: Tuning,
}

/// Nodes and their connections.
#[derive(Debug, Clone, PartialEq)]
pub enum Topology {
    /// Nodes and links of a file, hosts first.
    File {
        /// Path as the scenario gives it.
        path: String,
        /// Its content.
        graph: Arc<Graph>,
    },
    /// Nodes and links of the scenario itself, hosts first.
    Inline(Inline),
    /// A regular shape.
    Shape(Shape),
}

/// A network that a scenario writes out.
#[derive(Debug, Clone, PartialEq)]
pub struct Inline {
    /// The table as the scenario gives it.
    pub table: toml::Table,
    /// Its content.
    pub graph: Arc<Graph>,
}

impl Topology {
    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        match self {
            Topology::File { graph, .. } | Topology::Inline(Inline { graph, .. }) => {
                graph.hosts().count() as u32
            }
            Topology::Shape(shape) => shape.hosts(),
        }
    }

    /// Its kind, as scenarios have it.
    pub fn kind(&self) -> &'static str {
        match self {
            Topology::File { .. } => FILE,
            Topology::Inline(_) => INLINE,
            Topology::Shape(shape) => shape.kind().name,
        }
    }
}

/// The kind of a topology whose nodes and links a file lists.
pub(crate) const FILE: &str = "file";
/// The kind of a topology whose nodes and links the scenario lists.
pub(crate) const INLINE: &str = "inline";

/// Who shares the memory of the switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Sharing {
    /// Each port has its own and drops packets that do not fit.
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

/// Marks by the length of a port's queue: no packet up to the threshold, every packet above `max`, and a
/// growing fraction in between. If both are equal, a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ecn {
    /// Queue above which packets are marked.
    pub threshold: Bytes,
    /// Queue above which all packets are marked.
    pub max: Bytes,
    /// Fraction that is marked just below `max`.
    pub max_fraction: Fraction,
    /// The fraction grows in this number of equal steps; `None`: continuously.
    pub steps: Option<u32>,
    /// The curve of Tiny Buffer TCP for this bandwidth-delay product, in place of `max` and `steps`.
    pub bdp: Option<Bytes>,
    /// The queue that decides.
    pub mark: Mark,
}

impl Ecn {
    /// How the fraction grows.
    pub fn curve(&self) -> Curve {
        match (self.bdp, self.steps) {
            (Some(_), _) => Curve::Hyperbola,
            (None, Some(steps)) => Curve::Steps(steps),
            (None, None) => Curve::Line,
        }
    }

    /// Queue at the end of the curve.
    pub fn curve_ends(&self) -> Bytes {
        self.bdp.map_or(self.max, |bdp| self.threshold + bdp)
    }
}

/// The queue that decides on a packet's mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Mark {
    /// The queue that the packet finds.
    Enqueue,
    /// The queue that the packet leaves behind.
    Dequeue,
}

impl Network {
    /// Largest propagation delay between two hosts in one direction: the one-way delay of the idle path
    /// without the frame's own transmission time.
    pub fn base_delay(&self) -> Span {
        match &self.topology {
            Topology::File { graph, .. } | Topology::Inline(Inline { graph, .. }) => {
                graph.longest_delay()
            }
            Topology::Shape(shape) => {
                self.link.delay * 2 + self.fabric.delay * shape.kind().switch_links
            }
        }
    }

    /// The link of one host.
    pub fn link_of(&self, host: HostId) -> Link {
        self.host_links
            .get(host as usize)
            .copied()
            .unwrap_or(self.link)
    }
}
