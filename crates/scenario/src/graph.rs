// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Networks given as nodes and links, in the HPCC simulator's format (words.rs) or in TOML (tables.rs).
//!
//! Checks them, and finds the hosts' links and the longest idle path. Does not know routes or queues.

mod tables;
mod words;

use onramp_units::{Rate, Span};
use std::collections::{BTreeMap, VecDeque};
use toml::de::{DeValue, ValueDeserializer};
use toml::Spanned;

/// A full-duplex link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// In each direction.
    pub rate: Rate,
    /// Propagation, one way.
    pub delay: Span,
}

/// Number of a node.
pub type NodeId = u32;

/// Most nodes, and most links.
const MAX_COUNT: usize = u16::MAX as usize;
/// Longest propagation over one link.
const MAX_DELAY: Span = Span::from_s(1);

/// A full-duplex link between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// In each direction.
    pub rate: Rate,
    /// Propagation.
    pub delay: Span,
}

/// Nodes 0, 1, ... of which some are switches and the others hosts with one link each to a switch;
/// every host reaches every other.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Whether each node is a switch.
    pub switches: Vec<bool>,
    /// The links.
    pub edges: Vec<Edge>,
    /// Names of the switches, in the order of their numbers; empty: they have none.
    pub names: Vec<String>,
}

/// Errors of a network or its text. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum GraphError {
    #[error("{what} is \"{found}\", expected {expected}")]
    Field {
        what: &'static str,
        found: String,
        expected: String,
    },
    #[error("the number of links is {found}, but the first line gives {expected}")]
    Links { found: usize, expected: usize },
    #[error("{message}")]
    Toml { message: String },
    #[error("line {line}: {error}")]
    At { line: usize, error: Box<GraphError> },
    #[error("host {node} has {links} links, expected 1")]
    HostLinks { node: NodeId, links: usize },
    #[error("host {node} has a link to host {host}, expected a link to a switch")]
    HostAtHost { node: NodeId, host: NodeId },
    #[error("a link leads to node {node}, above max {max}")]
    NoSuchNode { node: NodeId, max: usize },
    #[error("node {node} has a link to itself, expected a link to another node")]
    Loop { node: String },
    #[error("no path connects host {from} with host {to}: add a link")]
    Disconnected { from: NodeId, to: NodeId },
    #[error("the number of hosts is {hosts}, below min 2")]
    TooFewHosts { hosts: usize },
}

impl GraphError {
    fn at(self, line: usize) -> GraphError {
        let error = Box::new(self);
        GraphError::At { line, error }
    }

    fn field(what: &'static str, found: &str, expected: impl Into<String>) -> GraphError {
        GraphError::Field {
            what,
            found: found.to_owned(),
            expected: expected.into(),
        }
    }
}

impl Graph {
    /// Checks and makes a network.
    ///
    /// # Errors
    /// A link to itself, a host without exactly one link, hosts that cannot reach each other.
    pub fn new(switches: Vec<bool>, edges: Vec<Edge>) -> Result<Graph, GraphError> {
        let graph = Graph {
            switches,
            edges,
            names: Vec::new(),
        };
        graph.check().map_err(|(_, error)| error)?;
        Ok(graph)
    }

    /// Reads the HPCC simulator's format: `nodes switches links`, the switches' numbers, then a
    /// line `a b rate delay error` for each link, with rates like 100Gbps and delays like 1000ns. Without a unit they are in
    /// bit/s and seconds, as ns-3 reads them.
    /// Lossy links are refused, because links are modelled without loss.
    ///
    /// # Errors
    /// Text that is not that; and as [`Graph::new`].
    pub fn parse(text: &str) -> Result<Graph, GraphError> {
        words::read(text)
    }

    /// Reads TOML: `switches`, their names; `[[hosts]]` with `at`, `rate`, `delay` and, if they are
    /// several, `count`; `[[links]]` with `from`, `to` (a name or a list), `rate`, `delay`. Hosts are
    /// numbered in the file's order, then come the switches.
    ///
    /// # Errors
    /// Text that is not that; and as [`Graph::new`].
    pub fn parse_toml(text: &str) -> Result<Graph, GraphError> {
        let line_at = |offset: usize| 1 + text[..offset].matches('\n').count();
        tables::read(toml::Deserializer::parse(text), &line_at)
    }

    /// Like [`Graph::parse_toml`], for a table of a longer text; `line_at` maps offsets to lines.
    pub(crate) fn from_table(
        table: Spanned<DeValue<'_>>,
        line_at: &dyn Fn(usize) -> usize,
    ) -> Result<Graph, GraphError> {
        tables::read(Ok(ValueDeserializer::from(table)), line_at)
    }

    fn checked(
        switches: Vec<bool>,
        (edges, lines): (Vec<Edge>, &[usize]),
        names: Vec<String>,
    ) -> Result<Graph, GraphError> {
        let graph = Graph {
            switches,
            edges,
            names,
        };
        graph.check().map_err(|(edge, error)| match edge {
            Some(edge) => error.at(lines[edge]),
            None => error,
        })?;
        Ok(graph)
    }

    /// The same with hosts first: the n-th host is node n.
    #[must_use]
    pub fn hosts_first(mut self) -> Graph {
        let hosts = self.hosts().count() as NodeId;
        let (mut next_host, mut next_switch) = (0, hosts);
        let mut number = |&is_switch: &bool| {
            let next = if is_switch {
                &mut next_switch
            } else {
                &mut next_host
            };
            *next += 1;
            *next - 1
        };
        let numbers: Vec<NodeId> = self.switches.iter().map(&mut number).collect();
        for edge in &mut self.edges {
            (edge.a, edge.b) = (numbers[edge.a as usize], numbers[edge.b as usize]);
        }
        self.switches.sort_unstable();
        self
    }

    /// The hosts, in order of their numbers.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.switches.len() as NodeId).filter(|&node| !self.switches[node as usize])
    }

    /// The link of each host, in order of their numbers.
    pub fn host_links(&self) -> Vec<Link> {
        let mut links = vec![None; self.switches.len()];
        for &Edge { a, b, rate, delay } in &self.edges {
            links[a as usize] = Some(Link { rate, delay });
            links[b as usize] = Some(Link { rate, delay });
        }
        let of_host = |host: NodeId| links[host as usize];
        self.hosts().filter_map(of_host).collect()
    }

    /// Most propagation on a way of fewest links between two hosts; of several such ways, the
    /// shortest counts.
    pub fn longest_delay(&self) -> Span {
        let adjacent = self.adjacent();
        // Of the hosts at each switch, the two that are furthest away.
        let mut edges: BTreeMap<NodeId, (Span, Option<Span>)> = BTreeMap::new();
        for host in self.hosts() {
            let (switch, edge) = adjacent[host as usize][0];
            let delay = self.edges[edge].delay;
            let far = edges.entry(switch);
            far.and_modify(|(first, second)| {
                *second = Some(second.map_or(delay.min(*first), |s| s.max(delay.min(*first))));
                *first = delay.max(*first);
            })
            .or_insert((delay, None));
        }
        let mut longest = Span::ZERO;
        for (&from, &(first, second)) in &edges {
            let delays = self.delays_from(from, &adjacent);
            for (&to, &(last, _)) in edges.iter().filter(|(&to, _)| to != from) {
                let between = delays[to as usize].map_or(Span::ZERO, |(_, delay)| delay);
                longest = longest.max(first + between + last);
            }
            longest = longest.max(second.map_or(Span::ZERO, |second| first + second));
        }
        longest
    }

    /// Links and propagation from a switch to every node that switches lead to.
    fn delays_from(
        &self,
        from: NodeId,
        adjacent: &[Vec<(NodeId, usize)>],
    ) -> Vec<Option<(usize, Span)>> {
        let mut delays = vec![None; self.switches.len()];
        delays[from as usize] = Some((0, Span::ZERO));
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            let Some((links, delay)) =
                delays[node as usize].filter(|_| self.switches[node as usize])
            else {
                continue;
            };
            for &(next, edge) in &adjacent[node as usize] {
                let there = (links + 1, delay + self.edges[edge].delay);
                match delays[next as usize] {
                    None => queue.push_back(next),
                    Some(known) if there < known => {}
                    Some(_) => continue,
                }
                delays[next as usize] = Some(there);
            }
        }
        delays
    }

    /// Neighbours of each node, with the links there.
    fn adjacent(&self) -> Vec<Vec<(NodeId, usize)>> {
        let mut adjacent = vec![Vec::new(); self.switches.len()];
        for (n, edge) in self.edges.iter().enumerate() {
            adjacent[edge.a as usize].push((edge.b, n));
            adjacent[edge.b as usize].push((edge.a, n));
        }
        adjacent
    }

    /// The error, and the link that has it, if one has.
    fn check(&self) -> Result<(), (Option<usize>, GraphError)> {
        let max = self.switches.len().saturating_sub(1);
        let beyond = |edge: &Edge| edge.a.max(edge.b) as usize > max;
        if let Some(n) = self.edges.iter().position(beyond) {
            let node = self.edges[n].a.max(self.edges[n].b);
            return Err((Some(n), GraphError::NoSuchNode { node, max }));
        }
        if let Some(n) = self.edges.iter().position(|edge| edge.a == edge.b) {
            let node = self.edges[n].a.to_string();
            return Err((Some(n), GraphError::Loop { node }));
        }
        let hosts = self.hosts().count();
        if hosts < 2 {
            return Err((None, GraphError::TooFewHosts { hosts }));
        }
        let adjacent = self.adjacent();
        for node in self.hosts() {
            match adjacent[node as usize][..] {
                [(neighbour, _)] if self.switches[neighbour as usize] => {}
                [(host, n)] => return Err((Some(n), GraphError::HostAtHost { node, host })),
                ref links => {
                    let at = links.last().map(|&(_, n)| n);
                    let links = links.len();
                    return Err((at, GraphError::HostLinks { node, links }));
                }
            }
        }
        let to = self.hosts().next().unwrap_or(0);
        let reached = self.delays_from(adjacent[to as usize][0].0, &adjacent);
        match self.hosts().find(|&host| reached[host as usize].is_none()) {
            Some(from) => Err((None, GraphError::Disconnected { from, to })),
            None => Ok(()),
        }
    }
}

/// "100Gbps" or "100 Gbit/s".
fn read_rate(word: &str) -> Option<Rate> {
    let (number, unit) = split(word);
    let unit = match unit.strip_suffix("bps") {
        Some(prefix) => format!("{prefix}bit/s"),
        None => unit.to_owned(),
    };
    format!("{number} {unit}").parse().ok()
}

/// "1000ns", "0.001 ms".
fn read_delay(word: &str) -> Option<Span> {
    let (number, unit) = split(word);
    let delay: Span = format!("{number} {unit}").parse().ok()?;
    (Span::ZERO..=MAX_DELAY).contains(&delay).then_some(delay)
}

fn split(word: &str) -> (&str, &str) {
    let (number, unit) =
        word.split_at(word.find(|c: char| c.is_alphabetic()).unwrap_or(word.len()));
    (number.trim_end(), unit)
}

#[cfg(test)]
mod tests;
