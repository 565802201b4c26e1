// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Partitions a network into domains, which run in parallel. Domains synchronise at intervals of the
//! shortest delay between two domains (conservative parallel simulation; Fujimoto, CACM 33(10), 1990).
//! Results do not depend on the partition.
//!
//! Does not run anything, and does not know traffic.

use crate::net::topology::Topology;
use onramp_units::Span;
use std::cmp::Reverse;

/// The domain of each node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// By node, from 0 without gaps.
    domains: Vec<u16>,
    count: usize,
    /// Delay of the shortest line between two domains.
    lookahead: Span,
}

impl Partition {
    /// One domain.
    pub fn whole(topology: &Topology) -> Partition {
        Partition::new(topology, vec![0; topology.nodes()])
    }

    /// A domain for each distinct number in `domains`, which has a number for each node. Domains that a line
    /// without delay connects are merged.
    pub fn new(topology: &Topology, mut domains: Vec<u16>) -> Partition {
        domains.resize(topology.nodes(), 0);
        for link in topology
            .links()
            .iter()
            .filter(|link| link.delay == Span::ZERO)
        {
            let (one, other) = (domains[link.a as usize], domains[link.b as usize]);
            for domain in domains.iter_mut().filter(|domain| **domain == other) {
                *domain = one;
            }
        }
        let mut used = domains.clone();
        used.sort_unstable();
        used.dedup();
        for domain in &mut domains {
            *domain = used.partition_point(|other| other < domain) as u16;
        }
        let crosses = |a: u32, b: u32| domains[a as usize] != domains[b as usize];
        let crossing = topology
            .links()
            .iter()
            .filter(|link| crosses(link.a, link.b));
        let lookahead = crossing.map(|link| link.delay).min();
        Partition {
            count: used.len(),
            lookahead: lookahead.unwrap_or(Span::ZERO),
            domains,
        }
    }

    /// At most `most` domains with about the same number of hosts. Hosts stay with their switch. A switch
    /// without hosts goes to the domain with most of its capacity, unless that domain has too much work.
    pub fn of_racks(topology: &Topology, most: usize) -> Partition {
        let racks = racks(topology);
        let hosts: usize = racks.iter().map(|(_, hosts)| hosts).sum();
        let count = most.clamp(1, racks.len());
        let mut domains: Vec<Option<u16>> = vec![None; topology.nodes()];
        let mut before = 0;
        for (switch, hosts_here) in &racks {
            // By the middle host of the rack, so that domains differ by half a rack at most.
            let middle = before + hosts_here / 2;
            domains[*switch as usize] = Some((middle * count / hosts) as u16);
            before += hosts_here;
        }
        for link in topology.links() {
            for (node, other) in [(link.a, link.b), (link.b, link.a)] {
                if !topology.is_switch(node) {
                    domains[node as usize] = domains[other as usize];
                }
            }
        }
        let mut spread = Spread::new(topology, domains, count);
        while spread.step() {}
        let domains = spread.domains.into_iter();
        Partition::new(topology, domains.map(|d| d.unwrap_or(0)).collect())
    }

    /// The domain of a node.
    pub fn of(&self, node: u32) -> usize {
        usize::from(self.domains[node as usize])
    }

    /// Number of domains.
    pub fn count(&self) -> usize {
        self.count
    }

    /// An event in one domain does not affect another domain within this time.
    pub fn lookahead(&self) -> Span {
        self.lookahead
    }
}

/// Switches with hosts, and their number of hosts.
fn racks(topology: &Topology) -> Vec<(u32, usize)> {
    let mut hosts = vec![0; topology.nodes()];
    for link in topology.links() {
        for (node, other) in [(link.a, link.b), (link.b, link.a)] {
            hosts[node as usize] += usize::from(!topology.is_switch(other));
        }
    }
    let switches = (0..topology.nodes() as u32).filter(|&node| topology.is_switch(node));
    let with_hosts = switches.map(|switch| (switch, hosts[switch as usize]));
    with_hosts.filter(|(_, hosts)| *hosts > 0).collect()
}

/// Assigns domains to nodes without one. A node's work is assumed to be proportional to its capacity.
struct Spread {
    /// Neighbours of each node, with the capacity of the links.
    links: Vec<Vec<(usize, u64)>>,
    domains: Vec<Option<u16>>,
    /// By domain.
    work: Vec<u64>,
    /// Upper bound of a domain's work.
    fair: u64,
}

impl Spread {
    fn new(topology: &Topology, domains: Vec<Option<u16>>, count: usize) -> Spread {
        let mut links = vec![Vec::new(); topology.nodes()];
        for link in topology.links() {
            let rate = link.rate.bits_per_s();
            links[link.a as usize].push((link.b as usize, rate));
            links[link.b as usize].push((link.a as usize, rate));
        }
        let mut spread = Spread {
            links,
            work: vec![0; count],
            fair: 0,
            domains,
        };
        for node in 0..topology.nodes() {
            let work = spread.work_of(node);
            spread.fair += work;
            if let Some(domain) = spread.domains[node] {
                spread.work[usize::from(domain)] += work;
            }
        }
        spread.fair = spread.fair.div_ceil(count as u64);
        spread
    }

    fn work_of(&self, node: usize) -> u64 {
        self.links[node].iter().map(|(_, rate)| rate).sum()
    }

    /// Domains of a node's neighbours with the capacity of the links, the largest first.
    fn neighbours(&self, node: usize) -> Vec<(usize, u64)> {
        let mut capacity = vec![0; self.work.len()];
        for &(other, rate) in &self.links[node] {
            if let Some(domain) = self.domains[other] {
                capacity[usize::from(domain)] += rate;
            }
        }
        let mut found: Vec<(usize, u64)> = capacity.into_iter().enumerate().collect();
        found.retain(|(_, rate)| *rate > 0);
        found.sort_by_key(|&(domain, rate)| (Reverse(rate), self.work[domain]));
        found
    }

    /// Assigns domains to neighbours of assigned nodes, the clearest cases first. Returns whether there were
    /// any.
    fn step(&mut self) -> bool {
        let margin = |found: &[(usize, u64)]| found[0].1 - found.get(1).map_or(0, |other| other.1);
        let mut nodes: Vec<(u64, usize)> = (0..self.domains.len())
            .filter(|&node| self.domains[node].is_none())
            .map(|node| (self.neighbours(node), node))
            .filter(|(found, _)| !found.is_empty())
            .map(|(found, node)| (margin(&found), node))
            .collect();
        nodes.sort_by_key(|&(margin, node)| (Reverse(margin), node));
        for &(_, node) in &nodes {
            let work = self.work_of(node);
            let found = self.neighbours(node);
            let has_room = |domain: usize| self.work[domain] + work / 2 <= self.fair;
            let with_room = found
                .iter()
                .map(|(domain, _)| *domain)
                .find(|&d| has_room(d));
            let emptiest = || (0..self.work.len()).min_by_key(|&domain| self.work[domain]);
            let domain = with_room.or_else(emptiest).unwrap_or(0);
            self.domains[node] = Some(domain as u16);
            self.work[domain] += work;
        }
        !nodes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::topology::Line;

    fn line(delay: Span) -> Line {
        Line {
            rate: "100 Gbit/s".parse().unwrap(),
            delay,
        }
    }

    fn sizes(topology: &Topology, partition: &Partition) -> Vec<usize> {
        let mut sizes = vec![0; partition.count()];
        topology
            .hosts()
            .for_each(|host| sizes[partition.of(host)] += 1);
        sizes
    }

    #[test]
    fn the_papers_fabric_is_split_into_equal_parts() {
        let line = line(Span::from_us(1));
        let topology = Topology::fat_tree(5, 4, 16, line, line).unwrap();
        let two = Partition::of_racks(&topology, 2);
        assert_eq!(sizes(&topology, &two), [160, 160]);
        assert_eq!(two.lookahead(), Span::from_us(1));
        let four = Partition::of_racks(&topology, 4);
        assert_eq!(sizes(&topology, &four), [80; 4]);
        let switches = (320..topology.nodes() as u32).filter(|&n| two.of(n) == 0);
        assert_eq!(switches.count(), (20 + 20 + 16) / 2);
    }

    #[test]
    fn hosts_stay_with_their_switch() {
        let line = line(Span::from_us(1));
        let topology = Topology::leaf_spine(3, 2, 4, line, line).unwrap();
        let partition = Partition::of_racks(&topology, 8);
        assert_eq!(partition.count(), 3);
        for host in topology.hosts() {
            assert_eq!(partition.of(host), partition.of(12 + host / 4));
        }
        let star = Topology::star(5, line).unwrap();
        assert_eq!(Partition::of_racks(&star, 8).count(), 1);
    }

    #[test]
    fn what_no_delay_separates_is_one() {
        let (edge, none) = (line(Span::from_us(1)), line(Span::ZERO));
        let topology = Topology::dumbbell(2, 2, edge, none).unwrap();
        assert_eq!(Partition::of_racks(&topology, 2).count(), 1);
        let apart = Partition::new(&topology, vec![7, 3, 7, 7, 5, 5]);
        assert_eq!(apart.count(), 3);
        assert_eq!(apart.of(1), 0);
        assert_eq!(apart.lookahead(), Span::from_us(1));
    }
}
