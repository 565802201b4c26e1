// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Networks in TOML.

use super::{read_delay, read_rate, Edge, Graph, GraphError, NodeId, MAX_COUNT};
use crate::graph::Link;
use crate::measure::is_name;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use toml::de::Error;
use toml::Spanned;

/// [`Graph::parse_toml`], of a deserializer, if the text is TOML at all.
pub(super) fn read<'de>(
    source: Result<impl Deserializer<'de, Error = Error>, Error>,
    line_at: &dyn Fn(usize) -> usize,
) -> Result<Graph, GraphError> {
    let file = source.and_then(File::deserialize).map_err(|error| {
        let message = error.message().replace('\n', ", ");
        let line = line_at(error.span().map_or(0, |span| span.start));
        GraphError::Toml { message }.at(line)
    })?;
    Reader {
        nodes: file.nodes(line_at)?,
        line_at,
        edges: Vec::new(),
        lines: Vec::new(),
    }
    .graph(&file)
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

/// Makes links of a file.
struct Reader<'a> {
    /// Switches by name.
    nodes: BTreeMap<&'a str, NodeId>,
    line_at: &'a dyn Fn(usize) -> usize,
    edges: Vec<Edge>,
    /// Lines of the edges in the file.
    lines: Vec<usize>,
}

impl Hosts {
    fn count(&self) -> usize {
        self.count.as_ref().map_or(1, |count| *count.get_ref())
    }
}

impl Links {
    fn names(&self) -> &[String] {
        match self.to.get_ref() {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        }
    }
}

impl File {
    fn host_count(&self) -> usize {
        self.hosts.iter().map(Hosts::count).sum()
    }

    /// Switches by name, behind the hosts.
    fn nodes(
        &self,
        line_at: &dyn Fn(usize) -> usize,
    ) -> Result<BTreeMap<&str, NodeId>, GraphError> {
        for count in self.hosts.iter().filter_map(|hosts| hosts.count.as_ref()) {
            if !(1..=MAX_COUNT).contains(count.get_ref()) {
                let (found, expected) = (count.get_ref().to_string(), format!("1 to {MAX_COUNT}"));
                let error = GraphError::field("count", &found, expected);
                return Err(error.at(line_at(count.span().start)));
            }
        }
        let hosts = self.host_count();
        let count = hosts + self.switches.len();
        if count > MAX_COUNT {
            let message =
                format!("the number of hosts and switches is {count}, above max {MAX_COUNT}");
            let first = self.switches.first().map_or(0, |name| name.span().start);
            return Err(GraphError::Toml { message }.at(line_at(first)));
        }
        let mut nodes = BTreeMap::new();
        for (number, name) in (hosts as NodeId..).zip(&self.switches) {
            if !is_switch_name(name.get_ref()) {
                let expected = "letters, digits, \"-\", \"_\" or \".\", and not the name of a host, like \"host3\"";
                let error = GraphError::field("switch", name.get_ref(), expected);
                return Err(error.at(line_at(name.span().start)));
            }
            if nodes.insert(name.get_ref().as_str(), number).is_some() {
                let error =
                    GraphError::field("switch", name.get_ref(), "a name that no other switch has");
                return Err(error.at(line_at(name.span().start)));
            }
        }
        Ok(nodes)
    }
}

/// Whether a switch can have it: it is no host's.
fn is_switch_name(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_host = name.strip_prefix("host").is_some_and(is_number);
    is_name(name) && !is_host
}

impl Reader<'_> {
    fn graph(mut self, file: &File) -> Result<Graph, GraphError> {
        let mut host = 0;
        for group in &file.hosts {
            let at = group.at.span().start;
            let b = self.node(at, group.at.get_ref())?;
            let link = self.link(&group.rate, &group.delay)?;
            for _ in 0..group.count() {
                self.add(host, b, link, at);
                host += 1;
            }
        }
        for group in &file.links {
            let a = self.node(group.from.span().start, group.from.get_ref())?;
            let link = self.link(&group.rate, &group.delay)?;
            let at = group.to.span().start;
            for name in group.names() {
                let b = self.node(at, name)?;
                if a == b {
                    let node = format!("{name:?}");
                    return Err(GraphError::Loop { node }.at((self.line_at)(at)));
                }
                self.add(a, b, link, at);
            }
        }
        let hosts = file.host_count();
        let is_switch = |n: usize| n >= hosts;
        let switches = (0..hosts + file.switches.len()).map(is_switch).collect();
        let names = file.switches.iter().map(|name| name.get_ref().clone());
        Graph::checked(switches, (self.edges, &self.lines), names.collect())
    }

    fn add(&mut self, a: NodeId, b: NodeId, Link { rate, delay }: Link, at: usize) {
        self.edges.push(Edge { a, b, rate, delay });
        self.lines.push((self.line_at)(at));
    }

    fn node(&self, at: usize, name: &str) -> Result<NodeId, GraphError> {
        let unknown =
            || GraphError::field("node", name, "a name of `switches`").at((self.line_at)(at));
        self.nodes.get(name).copied().ok_or_else(unknown)
    }

    fn link(&self, rate: &Spanned<String>, delay: &Spanned<String>) -> Result<Link, GraphError> {
        let bad = |what, found: &Spanned<String>, expected: &str| {
            let error = GraphError::field(what, found.get_ref(), expected);
            error.at((self.line_at)(found.span().start))
        };
        let no_rate = || bad("rate", rate, "a rate above zero, such as 100 Gbit/s");
        let no_delay = || bad("delay", delay, "a delay of at most 1 s, such as 1 us");
        Ok(Link {
            rate: read_rate(rate.get_ref()).ok_or_else(no_rate)?,
            delay: read_delay(delay.get_ref()).ok_or_else(no_delay)?,
        })
    }
}
