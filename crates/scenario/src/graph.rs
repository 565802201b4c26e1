//! Networks given as nodes and links: the HPCC simulator's format, and TOML.
//!
//! Does: read, check, tell hosts' links and the longest idle path. Does not: know routes or queues.

use crate::Link;
use onramp_units::{Rate, Span};
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use toml::Spanned;

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
}

/// What is wrong with a network or its text. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum GraphError {
    #[error("line {line}: {what} is \"{found}\", expected {expected}")]
    Field {
        line: usize,
        what: &'static str,
        found: String,
        expected: String,
    },
    #[error("line {line}: {found} links, expected {expected} as the first line says")]
    Links {
        line: usize,
        found: usize,
        expected: usize,
    },
    #[error("line {line}: {message}")]
    Toml { line: usize, message: String },
    #[error("line {line}: {error}")]
    At { line: usize, error: Box<GraphError> },
    #[error("node {node} is host with {links} links, expected 1")]
    HostLinks { node: NodeId, links: usize },
    #[error("host {node} is linked to host {host}, expected a switch")]
    HostAtHost { node: NodeId, host: NodeId },
    #[error("link {a}-{b} ends where it starts")]
    Loop { a: NodeId, b: NodeId },
    #[error("no way leads from host {from} to host {to}")]
    Disconnected { from: NodeId, to: NodeId },
    #[error("{hosts} hosts, below min 2")]
    TooFewHosts { hosts: usize },
}

impl Graph {
    /// Checks and makes a network.
    ///
    /// # Errors
    /// A link to itself, a host without exactly one link, hosts that cannot reach each other.
    pub fn new(switches: Vec<bool>, edges: Vec<Edge>) -> Result<Graph, GraphError> {
        let graph = Graph { switches, edges };
        graph.check().map_err(|(_, error)| error)?;
        Ok(graph)
    }

    /// Reads the HPCC simulator's format: `nodes switches links`, the switches' numbers, then a
    /// line `a b rate delay error` for each link, with rates like 100Gbps and delays like 1000ns.
    /// Lossy links are refused: nothing here loses packets on a line.
    ///
    /// # Errors
    /// Text that is not that; and as [`Graph::new`].
    pub fn parse(text: &str) -> Result<Graph, GraphError> {
        let mut reader = Reader::new(text);
        let nodes: usize = reader.number("number of nodes", MAX_COUNT)?;
        let switch_count = reader.number("number of switches", nodes)?;
        let link_count = reader.number("number of links", MAX_COUNT)?;
        let mut switches = vec![false; nodes];
        for _ in 0..switch_count {
            let node: usize = reader.number("switch", nodes.saturating_sub(1))?;
            switches[node] = true;
        }
        let (mut edges, mut lines) = (Vec::new(), Vec::new());
        while let Some(edge) = reader.edge(nodes)? {
            edges.push(edge);
            lines.push(reader.line);
        }
        if edges.len() != link_count {
            return Err(GraphError::Links {
                line: reader.line,
                found: edges.len(),
                expected: link_count,
            });
        }
        Graph::checked(switches, edges, &lines)
    }

    /// Reads TOML: `switches`, their names; `[[hosts]]` with `at`, `rate`, `delay` and, if they are
    /// several, `count`; `[[links]]` with `from`, `to` (a name or a list), `rate`, `delay`. Hosts are
    /// numbered in the file's order, then come the switches.
    ///
    /// # Errors
    /// Text that is not that; and as [`Graph::new`].
    pub fn parse_toml(text: &str) -> Result<Graph, GraphError> {
        let line_at = |offset: usize| 1 + text[..offset].matches('\n').count();
        let file: File = toml::from_str(text).map_err(|error| GraphError::Toml {
            line: line_at(error.span().map_or(0, |span| span.start)),
            message: error.message().replace('\n', ", "),
        })?;
        file.graph(&|offset| line_at(offset))
    }

    fn checked(
        switches: Vec<bool>,
        edges: Vec<Edge>,
        lines: &[usize],
    ) -> Result<Graph, GraphError> {
        let graph = Graph { switches, edges };
        graph.check().map_err(|(edge, error)| match edge {
            Some(edge) => GraphError::At {
                line: lines[edge],
                error: Box::new(error),
            },
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

    /// What is wrong, and at which link, if at one.
    fn check(&self) -> Result<(), (Option<usize>, GraphError)> {
        if let Some(n) = self.edges.iter().position(|edge| edge.a == edge.b) {
            let Edge { a, b, .. } = self.edges[n];
            return Err((Some(n), GraphError::Loop { a, b }));
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

/// A network in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    switches: Vec<Spanned<String>>,
    hosts: Vec<Hosts>,
    #[serde(default)]
    links: Vec<Links>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hosts {
    #[serde(default)]
    count: Option<Spanned<usize>>,
    at: Spanned<String>,
    rate: Spanned<String>,
    delay: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Links {
    from: Spanned<String>,
    to: Spanned<Names>,
    rate: Spanned<String>,
    delay: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

impl File {
    fn graph(&self, line_at: &dyn Fn(usize) -> usize) -> Result<Graph, GraphError> {
        let field =
            |span: std::ops::Range<usize>, what, found: &str, expected: &str| GraphError::Field {
                line: line_at(span.start),
                what,
                found: found.to_owned(),
                expected: expected.to_owned(),
            };
        let mut counts = Vec::new();
        for hosts in &self.hosts {
            let count = hosts.count.as_ref();
            let found = count.map_or(1, |count| *count.get_ref());
            if let Some(count) = count.filter(|_| !(1..=MAX_COUNT).contains(&found)) {
                let expected = format!("1 to {MAX_COUNT}");
                return Err(field(count.span(), "count", &found.to_string(), &expected));
            }
            counts.push(found);
        }
        let hosts: usize = counts.iter().sum();
        if hosts + self.switches.len() > MAX_COUNT {
            return Err(GraphError::Toml {
                line: 1,
                message: format!("{hosts} hosts, above max {MAX_COUNT}"),
            });
        }
        let mut nodes: BTreeMap<&str, NodeId> = BTreeMap::new();
        for (number, name) in (hosts as NodeId..).zip(&self.switches) {
            if nodes.insert(name.get_ref(), number).is_some() {
                let expected = "a name of its own";
                return Err(field(name.span(), "switch", name.get_ref(), expected));
            }
        }
        let node = |span, name: &str| {
            let known = nodes.get(name).copied();
            known.ok_or_else(|| field(span, "node", name, "one of switches"))
        };
        let line = |rate: &Spanned<String>, delay: &Spanned<String>| {
            let no_rate = || {
                field(
                    rate.span(),
                    "rate",
                    rate.get_ref(),
                    "a rate above zero like 100 Gbit/s",
                )
            };
            let no_delay = || {
                field(
                    delay.span(),
                    "delay",
                    delay.get_ref(),
                    "a delay of at most 1 s like 1 us",
                )
            };
            Ok((
                read_rate(rate.get_ref()).ok_or_else(no_rate)?,
                read_delay(delay.get_ref()).ok_or_else(no_delay)?,
            ))
        };
        let (mut edges, mut lines) = (Vec::new(), Vec::new());
        let mut host = 0;
        for (group, count) in self.hosts.iter().zip(counts) {
            let b = node(group.at.span(), group.at.get_ref())?;
            let (rate, delay) = line(&group.rate, &group.delay)?;
            for a in host..host + count as NodeId {
                edges.push(Edge { a, b, rate, delay });
                lines.push(line_at(group.at.span().start));
            }
            host += count as NodeId;
        }
        for group in &self.links {
            let a = node(group.from.span(), group.from.get_ref())?;
            let (rate, delay) = line(&group.rate, &group.delay)?;
            let names = match group.to.get_ref() {
                Names::One(name) => std::slice::from_ref(name),
                Names::Several(names) => names.as_slice(),
            };
            for name in names {
                let b = node(group.to.span(), name)?;
                edges.push(Edge { a, b, rate, delay });
                lines.push(line_at(group.to.span().start));
            }
        }
        let is_switch = |n: usize| n >= hosts;
        let switches = (0..hosts + self.switches.len()).map(is_switch).collect();
        Graph::checked(switches, edges, &lines)
    }
}

/// Words of a file in the HPCC simulator's format, with their lines.
struct Reader<'a> {
    words: std::vec::IntoIter<(usize, &'a str)>,
    line: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        let lines = (1..).zip(text.lines());
        let words: Vec<_> = lines
            .flat_map(|(n, line)| line.split_whitespace().map(move |word| (n, word)))
            .collect();
        Reader {
            words: words.into_iter(),
            line: 1,
        }
    }

    fn word(&mut self) -> Option<&'a str> {
        let (line, word) = self.words.next()?;
        self.line = line;
        Some(word)
    }

    fn field<T>(
        &mut self,
        what: &'static str,
        expected: impl Fn() -> String,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, GraphError> {
        let found = self.word().unwrap_or("");
        read(found).ok_or_else(|| GraphError::Field {
            line: self.line,
            what,
            found: found.to_owned(),
            expected: expected(),
        })
    }

    fn number(&mut self, what: &'static str, max: usize) -> Result<usize, GraphError> {
        let within = |word: &str| word.parse().ok().filter(|&n: &usize| n <= max);
        self.field(what, || format!("a number up to {max}"), within)
    }

    fn edge(&mut self, nodes: usize) -> Result<Option<Edge>, GraphError> {
        if self.words.len() == 0 {
            return Ok(None);
        }
        let a = self.number("node", nodes.saturating_sub(1))? as NodeId;
        let b = self.number("node", nodes.saturating_sub(1))? as NodeId;
        let rate = || "a rate above zero like 100Gbps".to_owned();
        let rate = self.field("rate", rate, read_rate)?;
        let delay = || "a delay of at most 1 s like 1000ns".to_owned();
        let delay = self.field("delay", delay, read_delay)?;
        let none = || "0: lossy links are not modelled".to_owned();
        let zero = |word: &str| word.parse().ok().filter(|&loss: &f64| loss == 0.0);
        self.field("error rate", none, zero)?;
        Ok(Some(Edge { a, b, rate, delay }))
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
mod tests {
    use super::*;

    const RACKS: &str = r#"switches = ["tor1", "tor2", "spine"]
[[hosts]]
count = 2
at = "tor1"
rate = "25 Gbit/s"
delay = "1 us"
[[hosts]]
at = "tor2"
rate = "100 Gbit/s"
delay = "2 us"
[[links]]
from = "spine"
to = ["tor1", "tor2"]
rate = "100 Gbit/s"
delay = "3 us"
"#;

    #[test]
    fn a_toml_network_has_its_hosts_first_with_links_of_their_own() {
        let graph = Graph::parse_toml(RACKS).unwrap();
        assert_eq!(graph.hosts().collect::<Vec<_>>(), [0, 1, 2]);
        let rates: Vec<String> = graph
            .host_links()
            .iter()
            .map(|l| l.rate.to_string())
            .collect();
        assert_eq!(rates, ["25 Gbit/s", "25 Gbit/s", "100 Gbit/s"]);
        assert_eq!(graph.edges.len(), 5);
        assert_eq!(graph.longest_delay(), Span::from_us(1 + 3 + 3 + 2));
    }

    #[test]
    fn bad_toml_networks_are_refused_with_line_and_value() {
        let error = |from: &str, to: &str| {
            let text = RACKS.replacen(from, to, 1);
            assert_ne!(text, RACKS);
            Graph::parse_toml(&text).unwrap_err().to_string()
        };
        assert_eq!(
            error("at = \"tor1\"", "at = \"tor3\""),
            "line 4: node is \"tor3\", expected one of switches"
        );
        assert_eq!(
            error("rate = \"25 Gbit/s\"", "rate = \"0 Gbit/s\""),
            "line 5: rate is \"0 Gbit/s\", expected a rate above zero like 100 Gbit/s"
        );
        assert_eq!(
            error("to = [\"tor1\", \"tor2\"]", "to = \"tor1\""),
            "no way leads from host 2 to host 0"
        );
        assert_eq!(
            error("to = [\"tor1\"", "to = [\"spine\""),
            "line 13: link 5-5 ends where it starts"
        );
        assert_eq!(
            error("count = 2", "count = 0"),
            "line 3: count is \"0\", expected 1 to 65535"
        );
        assert_eq!(
            error("\"tor2\", \"spine\"", "\"tor1\", \"spine\""),
            "line 1: switch is \"tor1\", expected a name of its own"
        );
        assert!(error("count = 2", "number = 2").starts_with("line 3: unknown field `number`"));
    }

    #[test]
    fn bad_files_are_refused_with_line_and_value() {
        let error = |text| Graph::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 0Gbps 1us 0\n"),
            "line 4: rate is \"0Gbps\", expected a rate above zero like 100Gbps"
        );
        assert_eq!(
            error("3 1 2\n7\n"),
            "line 2: switch is \"7\", expected a number up to 2"
        );
        assert_eq!(
            error("3 1 2\n2\n0 2 1Gbps 1us 0\n"),
            "line 3: 1 links, expected 2 as the first line says"
        );
        assert_eq!(
            error("4 2 2\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n"),
            "no way leads from host 1 to host 0"
        );
        assert_eq!(
            error("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0.1\n"),
            "line 4: error rate is \"0.1\", expected 0: lossy links are not modelled"
        );
        assert_eq!(
            error("2 1 1\n1\n0 0 1Gbps 1us 0\n"),
            "line 3: link 0-0 ends where it starts"
        );
        assert_eq!(
            error(
                "4 2 4\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n2 3 1Gbps 1us 0\n0 3 1Gbps 1us 0\n"
            ),
            "line 6: node 0 is host with 2 links, expected 1"
        );
    }

    #[test]
    fn hosts_come_first_when_asked() {
        let graph = Graph::parse("3 1 2\n0\n1 0 1Gbps 1us 0\n0 2 2Gbps 1us 0\n").unwrap();
        let first = graph.hosts_first();
        assert_eq!(first.switches, [false, false, true]);
        assert_eq!((first.edges[0].a, first.edges[0].b), (0, 2));
        assert_eq!((first.edges[1].a, first.edges[1].b), (2, 1));
    }
}
