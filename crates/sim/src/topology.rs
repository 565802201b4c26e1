//! What is connected to what: hosts with one port each, switches, links; and the shortest ways.
//!
//! Does: build the usual shapes, read files of nodes and links, find next hops. Does not: know
//! queues or packets.

use onramp_units::{Rate, Span};
use std::collections::VecDeque;

/// Most switches between two hosts.
pub const MAX_HOPS: usize = 8;
/// Most ports of all nodes together.
const MAX_PORTS: usize = u16::MAX as usize;

/// Number of a node.
pub type NodeId = u32;

/// A full-duplex link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// In each direction.
    pub rate: Rate,
    /// Propagation.
    pub delay: Span,
}

/// Rate and propagation of a kind of link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// In each direction.
    pub rate: Rate,
    /// One way.
    pub delay: Span,
}

/// A network: nodes 0, 1, ... of which some are switches and the others hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Whether each node is a switch.
    switches: Vec<bool>,
    links: Vec<Link>,
}

/// What is wrong with a topology or its text. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum TopologyError {
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
    #[error("node {node} is host with {links} links, expected 1")]
    HostLinks { node: NodeId, links: usize },
    #[error("host {node} is linked to host {host}, expected a switch")]
    HostAtHost { node: NodeId, host: NodeId },
    #[error("link {a}-{b} ends where it starts")]
    Loop { a: NodeId, b: NodeId },
    #[error("no way leads from host {from} to host {to}")]
    Disconnected { from: NodeId, to: NodeId },
    #[error("{hops} switches lie between hosts {from} and {to}, above max {MAX_HOPS}")]
    TooFar {
        from: NodeId,
        to: NodeId,
        hops: usize,
    },
    #[error("{ports} ports, above max {MAX_PORTS}")]
    TooManyPorts { ports: usize },
    #[error("{hosts} hosts, below min 2")]
    TooFewHosts { hosts: usize },
}

impl Topology {
    /// Checks and makes a network.
    ///
    /// # Errors
    /// A link to itself, a host without exactly one link, hosts that cannot reach each other or are
    /// too far apart, too many ports.
    pub fn new(switches: Vec<bool>, links: Vec<Link>) -> Result<Topology, TopologyError> {
        let topology = Topology { switches, links };
        topology.check()?;
        Ok(topology)
    }

    /// `hosts` hosts at one switch, which is the last node.
    ///
    /// # Errors
    /// As [`Topology::new`].
    pub fn star(hosts: u32, line: Line) -> Result<Topology, TopologyError> {
        let mut build = Builder::new(hosts);
        let switch = build.switch();
        build.hosts_at(switch, 0..hosts, line);
        build.done()
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
        let mut build = Builder::new(left + right);
        let ends = [build.switch(), build.switch()];
        build.hosts_at(ends[0], 0..left, edge);
        build.hosts_at(ends[1], left..left + right, edge);
        build.link(ends[0], ends[1], middle);
        build.done()
    }

    /// `leaves` switches with `hosts` hosts each, and `spines` switches linked to all leaves.
    ///
    /// # Errors
    /// As [`Topology::new`].
    pub fn leaf_spine(
        leaves: u32,
        spines: u32,
        hosts: u32,
        edge: Line,
        fabric: Line,
    ) -> Result<Topology, TopologyError> {
        let mut build = Builder::new(leaves * hosts);
        let leaf = build.switches(leaves);
        let spine = build.switches(spines);
        for (n, &switch) in (0..).zip(&leaf) {
            build.hosts_at(switch, n * hosts..(n + 1) * hosts, edge);
        }
        for &a in &leaf {
            for &b in &spine {
                build.link(a, b, fabric);
            }
        }
        build.done()
    }

    /// Three stages: `pods` pods of `width` ToR switches, with `hosts` hosts each, and `width`
    /// aggregation switches; the n-th aggregation switch of every pod is linked to the n-th group
    /// of `width` core switches. The papers' fabric is 5 pods of width 4 with 16 hosts a ToR.
    ///
    /// # Errors
    /// As [`Topology::new`].
    pub fn fat_tree(
        pods: u32,
        width: u32,
        hosts: u32,
        edge: Line,
        fabric: Line,
    ) -> Result<Topology, TopologyError> {
        let mut build = Builder::new(pods * width * hosts);
        let tors = build.switches(pods * width);
        let aggregation = build.switches(pods * width);
        let cores = build.switches(width * width);
        for (n, &tor) in (0..).zip(&tors) {
            build.hosts_at(tor, n * hosts..(n + 1) * hosts, edge);
        }
        let width = width as usize;
        for (n, &tor) in tors.iter().enumerate() {
            let pod = n / width * width;
            for &agg in &aggregation[pod..pod + width] {
                build.link(tor, agg, fabric);
            }
        }
        for (n, &agg) in aggregation.iter().enumerate() {
            let group = n % width * width;
            for &core in &cores[group..group + width] {
                build.link(agg, core, fabric);
            }
        }
        build.done()
    }

    /// Reads the HPCC simulator's format: `nodes switches links`, the switches' numbers, then a
    /// line `a b rate delay error` for each link, with rates like 100Gbps and delays like 1000ns.
    /// Lossy links are refused: nothing here loses packets on a line.
    ///
    /// # Errors
    /// Text that is not that; and as [`Topology::new`].
    pub fn parse(text: &str) -> Result<Topology, TopologyError> {
        let mut reader = Reader::new(text);
        let nodes: usize = reader.number("number of nodes", MAX_PORTS)?;
        let switch_count = reader.number("number of switches", nodes)?;
        let link_count = reader.number("number of links", MAX_PORTS)?;
        let mut switches = vec![false; nodes];
        for _ in 0..switch_count {
            let node: usize = reader.number("switch", nodes.saturating_sub(1))?;
            switches[node] = true;
        }
        let mut links = Vec::new();
        while let Some(link) = reader.link(nodes)? {
            links.push(link);
        }
        if links.len() != link_count {
            return Err(TopologyError::Links {
                line: reader.line,
                found: links.len(),
                expected: link_count,
            });
        }
        Topology::new(switches, links)
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

    /// Rate of the first host's link.
    pub fn host_rate(&self) -> Rate {
        let of_host = |link: &&Link| !self.is_switch(link.a) || !self.is_switch(link.b);
        let first = self.links.iter().find(of_host);
        first.expect("a topology has hosts").rate
    }

    /// All links. Link n has the ports 2n, at `a`, and 2n + 1, at `b`.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    fn check(&self) -> Result<(), TopologyError> {
        let ports = self.links.len() * 2;
        if ports > MAX_PORTS {
            return Err(TopologyError::TooManyPorts { ports });
        }
        if let Some(&Link { a, b, .. }) = self.links.iter().find(|link| link.a == link.b) {
            return Err(TopologyError::Loop { a, b });
        }
        let hosts = self.hosts().count();
        if hosts < 2 {
            return Err(TopologyError::TooFewHosts { hosts });
        }
        let adjacent = self.adjacent();
        for node in self.hosts() {
            match adjacent[node as usize][..] {
                [(_, neighbour)] if self.is_switch(neighbour) => {}
                [(_, host)] => return Err(TopologyError::HostAtHost { node, host }),
                ref links => {
                    let links = links.len();
                    return Err(TopologyError::HostLinks { node, links });
                }
            }
        }
        // One host a switch: its neighbours are as far from everything.
        let routes = Routes::new(self);
        let mut edges: Vec<NodeId> = self.hosts().collect();
        edges.sort_by_key(|&host| routes.edge[host as usize]);
        edges.dedup_by_key(|host| routes.edge[*host as usize]);
        for &to in &edges {
            for &from in &edges {
                match routes.switches_between(from, to) {
                    None => return Err(TopologyError::Disconnected { from, to }),
                    Some(hops) if hops > MAX_HOPS => {
                        return Err(TopologyError::TooFar { from, to, hops });
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Ports of each node with the node at their other end, neighbours with high numbers first. The
    /// order decides which of several equal ways a hash means; this one is the reference's, whose
    /// nodes happen to lie in memory that way.
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

/// Makes the shapes.
struct Builder {
    switches: Vec<bool>,
    links: Vec<Link>,
}

impl Builder {
    fn new(hosts: u32) -> Builder {
        Builder {
            switches: vec![false; hosts as usize],
            links: Vec::new(),
        }
    }

    fn switch(&mut self) -> NodeId {
        self.switches.push(true);
        (self.switches.len() - 1) as NodeId
    }

    fn switches(&mut self, count: u32) -> Vec<NodeId> {
        (0..count).map(|_| self.switch()).collect()
    }

    fn link(&mut self, a: NodeId, b: NodeId, Line { rate, delay }: Line) {
        self.links.push(Link { a, b, rate, delay });
    }

    fn hosts_at(&mut self, switch: NodeId, hosts: std::ops::Range<u32>, line: Line) {
        for host in hosts {
            self.link(host, switch, line);
        }
    }

    fn done(self) -> Result<Topology, TopologyError> {
        Topology::new(self.switches, self.links)
    }
}

/// Words of a topology file, with their lines.
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
    ) -> Result<T, TopologyError> {
        let found = self.word().unwrap_or("");
        read(found).ok_or_else(|| TopologyError::Field {
            line: self.line,
            what,
            found: found.to_owned(),
            expected: expected(),
        })
    }

    fn number(&mut self, what: &'static str, max: usize) -> Result<usize, TopologyError> {
        let within = |word: &str| word.parse().ok().filter(|&n: &usize| n <= max);
        self.field(what, || format!("a number up to {max}"), within)
    }

    fn link(&mut self, nodes: usize) -> Result<Option<Link>, TopologyError> {
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
        Ok(Some(Link { a, b, rate, delay }))
    }
}

/// "100Gbps" or "100Gbit/s".
fn read_rate(word: &str) -> Option<Rate> {
    let (number, unit) = split(word);
    let unit = unit
        .strip_suffix("bps")
        .map(|prefix| format!("{prefix}bit/s"));
    let unit = unit.unwrap_or_else(|| split(word).1.to_owned());
    format!("{number} {unit}").parse().ok()
}

/// "1000ns", "0.001ms".
fn read_delay(word: &str) -> Option<Span> {
    let (number, unit) = split(word);
    let delay: Span = format!("{number} {unit}").parse().ok()?;
    (Span::ZERO..=Span::from_s(1))
        .contains(&delay)
        .then_some(delay)
}

fn split(word: &str) -> (&str, &str) {
    word.split_at(word.find(|c: char| c.is_alphabetic()).unwrap_or(word.len()))
}

/// All shortest ways to every host.
pub(crate) struct Routes {
    /// Switch of each host, by node.
    edge: Vec<NodeId>,
    /// Port of that switch to the host, by node.
    last: Vec<[u16; 1]>,
    /// For each switch that has hosts, for each node: the ways there.
    ways: Vec<Option<Ways>>,
}

/// The shortest ways to one switch, by node.
struct Ways {
    /// Ports that lead closer.
    next: Vec<Vec<u16>>,
    /// Links to go.
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

    /// Ports of `switch` on a shortest way to the host `to`.
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

    /// Switches on a shortest way between two hosts, if there is a way.
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
        let text = include_str!("../tests/reference/fat.txt");
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

    #[test]
    fn bad_files_are_refused_with_line_and_value() {
        let error = |text| Topology::parse(text).unwrap_err().to_string();
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
            "link 0-0 ends where it starts"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in "[0-9 ]{0,12}\n[0-9 ]{0,8}\n([0-9] [0-9] 1Gbps 1us 0\n){0,6}") {
            let _ = Topology::parse(&text);
        }
    }
}
