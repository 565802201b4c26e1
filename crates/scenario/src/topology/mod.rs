// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Topologies by kind: hosts and switches in a regular shape, which a few counts determine.
//!
//! Each has one file. A new one needs a file and a line in the list below (docs/extend.md). Shapes from outside this
//! crate come by [`register_shape`]. Does not know queues or routes.

mod dumbbell;
mod fat_tree;
mod leaf_spine;
mod star;

use crate::graph::{Edge, Graph, GraphError, Link, NodeId};
use onramp_cc::Plugs;
use std::ops::Range;

/// The kind of a topology whose nodes and links a file lists.
pub(crate) const FILE: &str = "file";
/// The kind of a topology whose nodes and links the scenario lists.
pub(crate) const INLINE: &str = "inline";

/// The shapes of this crate, in the order of the documentation.
const BUILT_IN: &[&ShapeKind] = &[
    &star::KIND,
    &dumbbell::KIND,
    &leaf_spine::KIND,
    &fat_tree::KIND,
];

/// A kind of topology.
#[non_exhaustive]
pub struct ShapeKind {
    /// As scenarios have it: `network.topology.kind`.
    pub name: &'static str,
    /// What it is, for the documentation: one sentence without a full stop.
    pub about: &'static str,
    /// What determines it besides the number of hosts.
    pub counts: &'static [Count],
    /// Number of switches with hosts, which all have the same number of them.
    pub racks: fn(&[u32]) -> u32,
    /// Most links between switches on a shortest path between two hosts.
    pub switch_links: i64,
    /// Adds switches and links.
    pub build: fn(&mut Builder, &Size<'_>),
}

/// A count that determines a shape.
#[non_exhaustive]
pub struct Count {
    /// "network.topology.leaves".
    pub key: &'static str,
    /// Least and greatest value.
    pub bounds: (u32, u32),
    /// One sentence or more, for the documentation.
    pub meaning: &'static str,
}

/// The size of a shape, and its links.
pub struct Size<'a> {
    /// Hosts of each switch that has hosts.
    pub hosts_each: u32,
    /// In the order of the kind.
    pub counts: &'a [u32],
    /// Links of hosts.
    pub edge: Link,
    /// Links between switches.
    pub fabric: Link,
}

impl ShapeKind {
    /// A shape that the number of hosts determines, with one switch on every path.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        racks: fn(&[u32]) -> u32,
        build: fn(&mut Builder, &Size<'_>),
    ) -> ShapeKind {
        ShapeKind {
            name,
            about,
            counts: &[],
            racks,
            switch_links: 0,
            build,
        }
    }
}

impl Count {
    /// "network.topology.leaves", its least and its greatest value, and its meaning: a sentence or more.
    pub const fn new(key: &'static str, bounds: (u32, u32), meaning: &'static str) -> Count {
        Count {
            key,
            bounds,
            meaning,
        }
    }
}

onramp_cc::setters!(ShapeKind {
    /// What determines it besides the number of hosts.
    counts: &'static [Count];
    /// Most links between switches on a shortest path between two hosts.
    switch_links: i64;
});

onramp_cc::named!(ShapeKind, "topology");

/// A network of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    kind: &'static ShapeKind,
    hosts: u32,
    counts: Vec<u32>,
}

impl Shape {
    /// `hosts` is a multiple of the switches with hosts; the counts are in the order of the kind.
    pub fn new(kind: &'static ShapeKind, hosts: u32, counts: Vec<u32>) -> Shape {
        Shape {
            kind,
            hosts,
            counts,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> &'static ShapeKind {
        self.kind
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Its counts, in the order of the kind.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Its nodes and links, hosts first.
    ///
    /// # Errors
    /// As [`Graph::new`]; shapes of this crate have none.
    pub fn graph(&self, edge: Link, fabric: Link) -> Result<Graph, GraphError> {
        let racks = (self.kind.racks)(&self.counts);
        let size = Size {
            hosts_each: self.hosts / racks,
            counts: &self.counts,
            edge,
            fabric,
        };
        let mut builder = Builder::new(self.hosts);
        (self.kind.build)(&mut builder, &size);
        Graph::new(builder.switches, builder.links)
    }
}

static PLUGS: Plugs<ShapeKind> = Plugs::new();

/// Adds a shape of another crate.
///
/// # Panics
/// A topology has this name, or a scenario has been read already.
pub fn register_shape(kind: &'static ShapeKind) {
    let is_taken = [FILE, INLINE].contains(&kind.name);
    assert!(!is_taken, "there is a topology {kind:?}");
    PLUGS.add(kind, BUILT_IN.iter().copied());
}

/// All shapes, in the order of the documentation.
pub fn shapes() -> impl Iterator<Item = &'static ShapeKind> {
    BUILT_IN.iter().copied().chain(PLUGS.all().iter().copied())
}

/// The shape of that name.
pub fn shape(name: &str) -> Option<&'static ShapeKind> {
    shapes().find(|kind| kind.name == name)
}

/// Makes a shape. Hosts are nodes 0, 1, ..., and switches come after them.
pub struct Builder {
    switches: Vec<bool>,
    links: Vec<Edge>,
    /// The next host without a link.
    next_host: NodeId,
}

impl Builder {
    fn new(hosts: u32) -> Builder {
        Builder {
            switches: vec![false; hosts as usize],
            links: Vec::new(),
            next_host: 0,
        }
    }

    /// Adds a switch.
    pub fn switch(&mut self) -> NodeId {
        self.switches.push(true);
        (self.switches.len() - 1) as NodeId
    }

    /// Adds switches.
    pub fn switches(&mut self, count: u32) -> Vec<NodeId> {
        (0..count).map(|_| self.switch()).collect()
    }

    /// Links two nodes.
    pub fn link(&mut self, a: NodeId, b: NodeId, Link { rate, delay }: Link) {
        self.links.push(Edge { a, b, rate, delay });
    }

    /// Links the next hosts to a switch.
    pub fn hosts_at(&mut self, switch: NodeId, size: &Size<'_>) {
        let hosts: Range<NodeId> = self.next_host..self.next_host + size.hosts_each;
        self.next_host = hosts.end;
        for host in hosts {
            self.link(host, switch, size.edge);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_units::Span;

    /// All that are registered, small, with links whose delays can be told apart.
    #[test]
    fn every_shape_is_what_it_declares() {
        let link = |delay| Link {
            rate: "10 Gbit/s".parse().unwrap(),
            delay,
        };
        let (edge, fabric) = (link(Span::from_us(1)), link(Span::from_us(100)));
        for kind in shapes() {
            let counts: Vec<u32> = kind.counts.iter().map(|c| c.bounds.0.max(2)).collect();
            let hosts = 2 * (kind.racks)(&counts);
            let graph = Shape::new(kind, hosts, counts).graph(edge, fabric).unwrap();
            assert_eq!(graph.hosts().count() as u32, hosts, "{kind:?}");
            let longest = edge.delay * 2 + fabric.delay * kind.switch_links;
            assert_eq!(graph.longest_delay(), longest, "{kind:?}");
        }
    }
}
