// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Topologies: hosts with one port each, switches, links, and shortest paths.
//!
//! Takes shapes and graphs of scenarios, reads files of nodes and links, and finds next hops. Does not know queues or
//! packets.

use onramp_scenario::{shape, Graph, GraphError, Shape};
use onramp_units::{Rate, Span};
use std::collections::{BTreeSet, VecDeque};

pub use onramp_scenario::{Edge as Link, NodeId};

/// Most switches between two hosts.
pub const MAX_HOPS: usize = 8;
/// Most ports of all nodes together.
const MAX_PORTS: usize = u16::MAX as usize;

/// Rate and propagation of a kind of link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// In each direction.
    pub rate: Rate,
    /// In one direction.
    pub delay: Span,
}

impl From<Line> for onramp_scenario::Link {
    fn from(Line { rate, delay }: Line) -> onramp_scenario::Link {
        onramp_scenario::Link { rate, delay }
    }
}

/// A network: nodes 0, 1, ... of which some are switches and the others hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Whether each node is a switch.
    switches: Vec<bool>,
    links: Vec<Link>,
    /// Names of the switches, in the order of their numbers; empty: they have none.
    names: Vec<String>,
}

/// Errors of a topology or its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum TopologyError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error("{hops} switches lie between hosts {from} and {to}, above max {MAX_HOPS}")]
    TooFar {
        from: NodeId,
        to: NodeId,
        hops: usize,
    },
    #[error("{ports} ports, above max {MAX_PORTS}")]
    TooManyPorts { ports: usize },
}

impl Topology {
    /// Checks and makes a network.
    ///
    /// # Errors
    /// A link to itself, a host without exactly one link, hosts that cannot reach each other or are
    /// too far apart, too many ports.
    pub fn new(switches: Vec<bool>, links: Vec<Link>) -> Result<Topology, TopologyError> {
        Topology::of(Graph::new(switches, links)?)
    }

    /// Makes a network of a graph.
    ///
    /// # Errors
    /// Hosts that are too far apart, too many ports.
    pub fn of(graph: Graph) -> Result<Topology, TopologyError> {
        let topology = Topology {
            switches: graph.switches,
            links: graph.edges,
            names: graph.names,
        };
        topology.check()?;
        Ok(topology)
    }

    /// `hosts` hosts at one switch, which is the last node.
    ///
    /// # Errors
    /// As [`Topology::of_shape`].
    pub fn star(hosts: u32, line: Line) -> Result<Topology, TopologyError> {
        Topology::named("star", hosts, &[], line, line)
    }

    /// `left` and `right` hosts at a switch each, with one link between the switches.
    ///
    /// # Errors
    /// As [`Topology::new`].
    pub fn dumbbell(
        left: u32,
        right: u32,
        edge: Line,
        middle: Line,
    ) -> Result<Topology, TopologyError> {
        let hosts = left + right;
        let link = |a, b, Line { rate, delay }: Line| Link { a, b, rate, delay };
        let switch_of = |host| hosts + u32::from(host >= left);
        let mut links: Vec<Link> = (0..hosts)
            .map(|host| link(host, switch_of(host), edge))
            .collect();
        links.push(link(hosts, hosts + 1, middle));
        let switches = (0..hosts + 2).map(|node| node >= hosts);
        Topology::new(switches.collect(), links)
    }

    /// `leaves` switches with `hosts` hosts each, and `spines` switches linked to all leaves.
    ///
    /// # Errors
    /// As [`Topology::of_shape`].
    pub fn leaf_spine(
        leaves: u32,
        spines: u32,
        hosts: u32,
        edge: Line,
        fabric: Line,
    ) -> Result<Topology, TopologyError> {
        Topology::named(
            "leaf_spine",
            leaves * hosts,
            &[leaves, spines],
            edge,
            fabric,
        )
    }

    /// `pods` pods of `width` ToR switches, with `hosts` hosts each. The papers' fabric is 5 pods of width 4 with 16
    /// hosts a ToR.
    ///
    /// # Errors
    /// As [`Topology::of_shape`].
    pub fn fat_tree(
        pods: u32,
        width: u32,
        hosts: u32,
        edge: Line,
        fabric: Line,
    ) -> Result<Topology, TopologyError> {
        Topology::named(
            "fat_tree",
            pods * width * hosts,
            &[pods, width],
            edge,
            fabric,
        )
    }

    /// A shape of a scenario, with these links of hosts and between switches.
    ///
    /// # Errors
    /// A shape that links what it should not; hosts that are too far apart, too many ports.
    pub fn of_shape(shape: &Shape, edge: Line, fabric: Line) -> Result<Topology, TopologyError> {
        Topology::of(shape.graph(edge.into(), fabric.into())?)
    }

    fn named(
        kind: &str,
        hosts: u32,
        counts: &[u32],
        edge: Line,
        fabric: Line,
    ) -> Result<Topology, TopologyError> {
        let kind = shape(kind).expect("scenarios have it");
        Topology::of_shape(&Shape::new(kind, hosts, counts.to_vec()), edge, fabric)
    }

    /// Reads the HPCC simulator's format: see [`Graph::parse`].
    ///
    /// # Errors
    /// Text of another format; and as [`Topology::new`].
    pub fn parse(text: &str) -> Result<Topology, TopologyError> {
        Topology::of(Graph::parse(text)?)
    }

    /// Nodes, hosts and switches.
    pub fn nodes(&self) -> usize {
        self.switches.len()
    }

    /// Whether `node` is a switch.
    pub fn is_switch(&self, node: NodeId) -> bool {
        self.switches[node as usize]
    }

    /// The hosts, in order of their numbers.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.nodes() as NodeId).filter(|&node| !self.is_switch(node))
    }

    /// Rate of the fastest host's link.
    pub fn host_rate(&self) -> Rate {
        let of_host = |link: &&Link| !self.is_switch(link.a) || !self.is_switch(link.b);
        let rates = self.links.iter().filter(of_host).map(|link| link.rate);
        rates.max().expect("a topology has hosts")
    }

    /// Rate of the first host's link.
    pub(crate) fn first_host_rate(&self) -> Rate {
        let first = self.hosts().next();
        let links = self.links.iter();
        let mut of_first = links.filter(|link| [link.a, link.b].map(Some).contains(&first));
        of_first.next().expect("a topology has hosts").rate
    }

    /// The names of the switches, in the order of their numbers, if they have some.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Without the links of these numbers.
    ///
    /// # Errors
    /// What is left connects the hosts no longer, or not by so few switches.
    pub(crate) fn without(self, failed: &BTreeSet<usize>) -> Result<Topology, TopologyError> {
        let links = self.links.into_iter().enumerate();
        let left = links.filter(|(number, _)| !failed.contains(number));
        Topology::of(Graph {
            names: self.names,
            ..Graph::new(self.switches, left.map(|(_, link)| link).collect())?
        })
    }

    /// All links. Link n has the ports 2n, at `a`, and 2n + 1, at `b`.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// With this rate on the link of each host.
    pub(crate) fn with_host_rates(mut self, rate: impl Fn(NodeId) -> Rate) -> Topology {
        let switches = &self.switches;
        for link in &mut self.links {
            let ends = [link.a, link.b];
            if let Some(host) = ends.into_iter().find(|end| !switches[*end as usize]) {
                link.rate = rate(host);
            }
        }
        self
    }

    fn check(&self) -> Result<(), TopologyError> {
        let ports = self.links.len() * 2;
        if ports > MAX_PORTS {
            return Err(TopologyError::TooManyPorts { ports });
        }
        // One host for each switch: the other hosts of the switch have the same distances.
        let routes = Routes::new(self);
        let mut edges: Vec<NodeId> = self.hosts().collect();
        edges.sort_by_key(|&host| routes.edge[host as usize]);
        edges.dedup_by_key(|host| routes.edge[*host as usize]);
        for &to in &edges {
            for &from in &edges {
                // A graph has a path between any two hosts.
                let hops = routes.switches_between(from, to).unwrap_or(0);
                if hops > MAX_HOPS {
                    return Err(TopologyError::TooFar { from, to, hops });
                }
            }
        }
        Ok(())
    }

    /// Ports of each node with the node at their other end, neighbours with high numbers first. The order
    /// determines the path of a hash value among equal-cost paths. This is the order of the reference, which
    /// follows from its memory layout.
    fn adjacent(&self) -> Vec<Vec<(u16, NodeId)>> {
        let mut adjacent = vec![Vec::new(); self.nodes()];
        for (n, link) in self.links.iter().enumerate() {
            adjacent[link.a as usize].push((2 * n as u16, link.b));
            adjacent[link.b as usize].push((2 * n as u16 + 1, link.a));
        }
        for ports in &mut adjacent {
            ports.sort_by_key(|&(port, node)| (std::cmp::Reverse(node), port));
        }
        adjacent
    }
}

/// All shortest paths to every host.
pub(crate) struct Routes {
    /// Switch of each host, by node.
    edge: Vec<NodeId>,
    /// Port of that switch to the host, by node.
    last: Vec<[u16; 1]>,
    /// The paths to each switch with hosts, by node.
    ways: Vec<Option<Ways>>,
}

/// The shortest paths to one switch, by node.
struct Ways {
    /// Ports on a shortest path.
    next: Vec<Vec<u16>>,
    /// Number of links to the switch.
    distance: Vec<Option<usize>>,
}

impl Routes {
    pub fn new(topology: &Topology) -> Routes {
        let adjacent = topology.adjacent();
        let mut routes = Routes {
            edge: vec![0; topology.nodes()],
            last: vec![[0]; topology.nodes()],
            ways: (0..topology.nodes()).map(|_| None).collect(),
        };
        for host in topology.hosts() {
            let (port, switch) = adjacent[host as usize][0];
            routes.edge[host as usize] = switch;
            routes.last[host as usize] = [port ^ 1]; // the other end of the link
            routes.ways[switch as usize]
                .get_or_insert_with(|| Ways::to(switch, topology, &adjacent));
        }
        routes
    }

    /// Ports of `switch` on a shortest path to the host `to`.
    pub fn next(&self, switch: NodeId, to: NodeId) -> &[u16] {
        let edge = self.edge[to as usize];
        match &self.ways[edge as usize] {
            Some(ways) if switch != edge => &ways.next[switch as usize],
            _ => &self.last[to as usize],
        }
    }

    /// Switch of a host.
    pub fn edge(&self, host: NodeId) -> NodeId {
        self.edge[host as usize]
    }

    /// Switches on a shortest path between two hosts, if there is a path.
    pub fn switches_between(&self, from: NodeId, to: NodeId) -> Option<usize> {
        let ways = self.ways[self.edge(to) as usize].as_ref()?;
        Some(ways.distance[self.edge(from) as usize]? + 1)
    }
}

impl Ways {
    /// Breadth first; hosts forward nothing.
    fn to(target: NodeId, topology: &Topology, adjacent: &[Vec<(u16, NodeId)>]) -> Ways {
        let mut next = vec![Vec::new(); topology.nodes()];
        let mut distance = vec![None; topology.nodes()];
        distance[target as usize] = Some(0);
        let mut queue = VecDeque::from([target]);
        while let Some(node) = queue.pop_front() {
            let further = distance[node as usize].map(|links: usize| links + 1);
            let switches = adjacent[node as usize]
                .iter()
                .filter(|&&(_, neighbour)| topology.is_switch(neighbour));
            for &(port, neighbour) in switches {
                if distance[neighbour as usize].is_none() {
                    distance[neighbour as usize] = further;
                    queue.push_back(neighbour);
                }
                if distance[neighbour as usize] == further {
                    next[neighbour as usize].push(port ^ 1);
                }
            }
        }
        Ways { next, distance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(rate: &str) -> Line {
        Line {
            rate: rate.parse().unwrap(),
            delay: Span::from_us(1),
        }
    }

    #[test]
    fn the_papers_fabric_is_a_fat_tree() {
        let text = include_str!("../../tests/reference/fat.txt");
        let file = Topology::parse(text).unwrap();
        let (edge, fabric) = (line("100 Gbit/s"), line("400 Gbit/s"));
        assert_eq!(file, Topology::fat_tree(5, 4, 16, edge, fabric).unwrap());
        let routes = Routes::new(&file);
        assert_eq!(routes.switches_between(0, 319), Some(5));
        assert_eq!(routes.next(320, 319).len(), 4);
        assert_eq!(routes.next(320, 15).len(), 1);
    }

    #[test]
    fn equal_ways_are_all_found() {
        let edge = line("10 Gbit/s");
        let topology = Topology::leaf_spine(2, 3, 2, edge, edge).unwrap();
        let routes = Routes::new(&topology);
        assert_eq!(routes.next(4, 3).len(), 3);
        assert_eq!(routes.switches_between(0, 1), Some(1));
        assert_eq!(routes.switches_between(0, 3), Some(3));
    }
}
