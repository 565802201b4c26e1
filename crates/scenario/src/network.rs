// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [network], and the network that they make: topology, links, buffers, marks.

use crate::fraction::Fraction;
use crate::graph::{Graph, Link};
use crate::hosts::{HostId, HostKind};
use crate::key::{both, mbit_per_s, simulated, Rack, Scope};
use crate::measure::PortName;
use crate::topology::{shapes, Shape, FILE, INLINE};
use crate::values::{registered, Alpha, FilePath, Nodes};
use onramp_cc::{path, switch, Curve, Tuning};
use onramp_keys::Absent::{By, Is, Required, Without};
use onramp_keys::{choice, section, Source};
use onramp_units::{Bytes, Rate, Span};
use std::sync::Arc;

registered! {
    /// A kind of topology.
    TopologyName: shapes()
        .map(|shape| (shape.name, shape.about))
        .chain([
            (FILE, "the file `topology.path` lists nodes and links"),
            (INLINE, "`[network.graph]` lists them"),
        ])
        .collect();
    /// A rule of switches.
    RuleName: std::iter::once((switch::ECN, "marks by the length of the queue, with the keys `network.ecn`"))
        .chain(switch::entries().map(|rule| (rule.name, rule.about)))
        .collect();
    /// A way to choose among paths.
    PathName: path::entries().map(|entry| (entry.name, entry.about)).collect();
}

const ANY_RATE: (Rate, Rate) = (mbit_per_s(1), mbit_per_s(1_000_000));
const ANY_QUEUE: (Bytes, Bytes) = (Bytes::ZERO, Bytes::new(1_000_000_000));
const ANY_DELAY: (Span, Span) = (Span::ZERO, Span::from_ms(100));

section! {
    /// What the network is.
    pub(crate) struct TopologyKeys in "network.topology" with Scope {
        kind: TopologyName = Required, both().fixed().rack_only(&["star"]),
            "Shape of the network.";
        hosts: Option<u32> [2, 4096] = Without("required unless `kind` is file or inline"), both(),
            "Number of hosts. Every switch with hosts has the same number of hosts.";
        path: Option<FilePath> = Without("required for file"), both().rack(Rack::Ignores("simulator")),
            "File with the nodes and links. A name that ends in `.toml`: `switches` is a list of names; each `[[hosts]]` has `at`, `rate`, `delay` and optionally `count`; each `[[links]]` has `from`, `to`, `rate`, `delay`. Any other name: the HPCC authors' format, which has `nodes switches links`, then the numbers of the switches, then a line `a b rate delay 0` for each link. Hosts are numbered in the file's order.";
    }
}

section! {
    /// The network as a table.
    pub(crate) struct GraphKeys in "network" with Scope {
        graph: Option<Nodes> = Without("required for inline"), both().fixed().rack(Rack::Ignores("simulator")),
            "Nodes and links, as in a TOML file of `topology.path`: `[network.graph]` with `switches`, `[[network.graph.hosts]]`, `[[network.graph.links]]`.";
    }
}

section! {
    /// Links of hosts.
    pub(crate) struct LinkKeys in "network.link" with Scope {
        rate: Option<Rate> [ANY_RATE.0, ANY_RATE.1] = Without("required unless `topology.kind` is file or inline"), both(),
            "Rate of every host's link, in each direction.";
        delay: Option<Span> [ANY_DELAY.0, ANY_DELAY.1] = Without("required unless `topology.kind` is file or inline"), both(),
            "Propagation delay of a host's link in one direction. A path over one switch has two such links.";
    }
}

section! {
    /// Links between switches.
    pub(crate) struct FabricKeys in "network.fabric" with Scope {
        rate: Option<Rate> [ANY_RATE.0, ANY_RATE.1] = By("`network.link.rate`", |run| run.text(LinkKeys::rate)), both().rack(Rack::Ignores("simulator")),
            "Rate of every link between switches.";
        delay: Option<Span> [ANY_DELAY.0, ANY_DELAY.1] = By("`network.link.delay`", |run| run.text(LinkKeys::delay)), both().rack(Rack::Ignores("simulator")),
            "Propagation delay of a link between switches in one direction.";
    }
}

section! {
    /// Links that are down.
    pub(crate) struct FailedKeys in "network" with Scope {
        failed: Vec<PortName> = Without("none"), simulated(),
            "Links that are down during the whole run, by the port at one end: `[\"switch0-switch4\"]`, or `[\"leaf0-spine1\"]` where `graph` names its switches. Hosts must still reach each other.";
    }
}

section! {
    /// Buffers of the switches, and what links lose.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Ports in "network" with Scope {
        alpha: Option<Alpha> = Without("`1`; `1/8` if `sharing` is lossless"), simulated(),
            "Dynamic threshold. `shared`: the ratio of the free memory that one queue may use. `lossless`: the ratio of the free memory that the packets from one port may use before the switch pauses that port. The value applies to ports at the hosts' rate. It grows in proportion to the port's rate, up to all free memory.";
        buffer: Bytes [Bytes::new(2_000), Bytes::new(1_000_000_000)] = By("300 kB; 32 MiB if ports share the buffer", buffer), both(),
            "Size of the buffer of each switch port, or of each switch if its ports share the buffer.";
        sharing: Sharing = By("`per_port`; `lossless` with nic hosts", sharing), both().rack_only(&["per_port"]),
            "Which ports share a `buffer`. `per_port`: each port has its own and drops packets that do not fit. `shared`: the ports of a switch share one buffer, and `alpha` limits each queue. `lossless`: the ports of a switch share one buffer, and priority flow control (PFC) prevents drops.";
        loss: Fraction [0.0, 0.5] = Is("0"), both().rack_only(&["0"]),
            "Fraction of data packets, and of the requests of reads, that the link of the receiving host loses, at random, in addition to what switches drop.";
    }
}

section! {
    /// The rule of the switches, and their choice of paths.
    pub(crate) struct RuleKeys in "network" with Scope {
        rule: RuleName = Is("ecn"), both().later().rack_only(&["ecn"]),
            "Rule by which switches mark or drop packets although the buffer has room.";
        paths: PathName = Is("hash"), both().later().rack_only(&["hash"]),
            "How switches choose among equal-cost paths to a host, for all packets of a flow.";
    }
}

section! {
    /// Marks by the length of a queue.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct EcnKeys in "network.ecn" with Scope {
        threshold: Option<Bytes> [ANY_QUEUE.0, ANY_QUEUE.1] = Without("no marks"), both(),
            "A switch port may mark a packet (CE) if the queue is longer than this. Must be at most `network.buffer`. The value applies to ports at the rate `at` and grows in proportion to the port's rate.";
        at: Option<Rate> [ANY_RATE.0, ANY_RATE.1] = Without("the hosts' rate; required if their links differ in rate"), both(),
            "Rate of the ports whose queues `threshold`, `max` and `bdp` mean. `onramp scenario validate` prints the threshold of each rate.";
        max: Option<Bytes> [ANY_QUEUE.0, ANY_QUEUE.1] = By("`network.ecn.threshold`: every packet above it is marked", max), both(),
            "A switch port marks every packet if the queue is longer than this. Between `threshold` and `max` the fraction of marked packets grows.";
        max_fraction: Fraction [0.0, 1.0] = Is("1"), both(),
            "Fraction of packets that are marked if the queue is just below `max`.";
        steps: Option<u32> [2, 64] = Without("the fraction grows continuously"), both(),
            "Number of equal steps in which the fraction of marked packets grows between `threshold` and `max`. Some switches have 8. In step i of n the fraction is `max_fraction` times (i - 1/2)/n.";
        bdp: Option<Bytes> [Bytes::new(1_000), Bytes::new(1_000_000_000)] = Without("the fraction grows in a line"), both(),
            "Bandwidth-delay product B of the port, for the curve of Tiny Buffer TCP: x bytes above `threshold` the fraction of marked packets is x/(x + B), and 1/2 from B bytes on, times `max_fraction`. Not with `max` or `steps`.";
        mark: Mark = By("`enqueue`; `dequeue` with nic hosts", mark), both().rack_only(&["enqueue"]),
            "When the length of the queue decides about a mark. `enqueue`: when the packet enters the queue. `dequeue`: when it leaves.";
    }
}

fn has_nics(run: &dyn Source) -> Option<bool> {
    let kind = run.text(crate::Host::kind)?;
    Some(kind == HostKind::Nic.name())
}

fn sharing(run: &dyn Source) -> Option<String> {
    let sharing = match has_nics(run)? {
        true => Sharing::Lossless,
        false => Sharing::PerPort,
    };
    Some(sharing.to_string())
}

fn buffer(run: &dyn Source) -> Option<String> {
    let size = match run.text(Ports::sharing)?.parse().ok()? {
        Sharing::PerPort => Bytes::new(300_000),
        Sharing::Shared | Sharing::Lossless => Bytes::new(32 << 20),
    };
    Some(size.to_string())
}

fn max(run: &dyn Source) -> Option<String> {
    match run.text(EcnKeys::bdp) {
        Some(_) => None,
        None => run.text(EcnKeys::threshold),
    }
}

fn mark(run: &dyn Source) -> Option<String> {
    let mark = match has_nics(run)? {
        true => Mark::Dequeue,
        false => Mark::Enqueue,
    };
    Some(mark.to_string())
}

choice! {
    /// Who shares the memory of the switches.
    pub enum Sharing {
        /// Each port has its own and drops packets that do not fit.
        PerPort = "per_port",
        /// The ports of a switch share it; a queue may take as much as is free.
        Shared = "shared",
        /// The ports of a switch share it, and priority flow control keeps it from overflowing.
        Lossless = "lossless",
    }
}

choice! {
    /// The queue that decides on a packet's mark.
    pub enum Mark {
        /// The queue that the packet finds.
        Enqueue = "enqueue",
        /// The queue that the packet leaves behind.
        Dequeue = "dequeue",
    }
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
    /// Links that are down, by the port at one end.
    pub failed: Vec<PortName>,
    /// Buffers, and what links lose.
    pub ports: Ports,
    /// The rule of the switches, if it is another one than `ecn`.
    pub rule: Option<Chosen<switch::Entry>>,
    /// How switches choose among equal-cost paths.
    pub paths: Chosen<path::Entry>,
    /// Congestion marks at the switch ports, if any.
    pub ecn: Option<Ecn>,
}

/// A part of a registry with the parameters that the scenario sets.
#[derive(Debug, PartialEq)]
pub struct Chosen<E: 'static> {
    /// As the registry has it.
    pub entry: &'static E,
    /// Parameters that differ from its source's.
    pub tuning: Tuning,
}

impl<E> Clone for Chosen<E> {
    fn clone(&self) -> Chosen<E> {
        Chosen {
            entry: self.entry,
            tuning: self.tuning.clone(),
        }
    }
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

/// Marks by the length of a port's queue: no packet up to the threshold, every packet above `max`, and a
/// growing fraction in between. If both are equal, a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ecn {
    /// Queue above which packets are marked.
    pub threshold: Bytes,
    /// Rate of the ports for which the lengths are; `None`: that of all hosts. Others' are in proportion.
    pub at: Option<Rate>,
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

    /// Rates of all links, ascending.
    pub fn rates(&self) -> Vec<Rate> {
        let mut rates: Vec<Rate> = match &self.topology {
            Topology::File { graph, .. } | Topology::Inline(Inline { graph, .. }) => {
                graph.edges.iter().map(|edge| edge.rate).collect()
            }
            Topology::Shape(shape) if shape.kind().switch_links > 0 => vec![self.fabric.rate],
            Topology::Shape(_) => Vec::new(),
        };
        rates.extend(self.host_rates());
        rates.sort();
        rates.dedup();
        rates
    }

    /// Rates of hosts' links, of each host or once.
    pub(crate) fn host_rates(&self) -> impl Iterator<Item = Rate> + '_ {
        let of_all = self.host_links.is_empty().then_some(&self.link);
        self.host_links.iter().chain(of_all).map(|link| link.rate)
    }

    /// Congestion marks at ports of a rate, whose lengths are in proportion to it.
    pub fn ecn_at(&self, rate: Rate) -> Option<Ecn> {
        let ecn = self.ecn?;
        let hosts = ecn.at.or_else(|| self.host_rates().max())?;
        let lines = switch::Lines { port: rate, hosts };
        Some(Ecn {
            threshold: lines.in_proportion(ecn.threshold),
            at: Some(rate),
            max: lines.in_proportion(ecn.max),
            bdp: ecn.bdp.map(|bdp| lines.in_proportion(bdp)),
            ..ecn
        })
    }

    /// The link of one host.
    pub fn link_of(&self, host: HostId) -> Link {
        self.host_links
            .get(host as usize)
            .copied()
            .unwrap_or(self.link)
    }
}
