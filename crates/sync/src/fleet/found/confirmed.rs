// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! New hosts for which one other host alone speaks. Nothing shows whether that one is right: it may lie, and be the only one
//! that was heard because all others were stopped.

use super::{component_of_most, Found};
use crate::{
    fleet::{Clock, Report},
    mesh::{self, Edge},
};

impl Found {
    /// By host: whether it is new and only edges of one other host connect it with those that are known, though there are
    /// others that could confirm it. Of a fleet that begins nobody is known, and most hosts count as those that are.
    pub fn unconfirmed(&self, reports: &[Report], clocks: &[Clock]) -> Vec<bool> {
        let hosts = clocks.len();
        let mut unconfirmed = vec![false; hosts];
        let members = (0..hosts).filter(|host| self.is_member(*host));
        let (new, known): (Vec<usize>, Vec<usize>) =
            members.partition(|host| clocks[*host].windows == 0);
        if new.is_empty() || new.len() + known.len() < 3 {
            return unconfirmed;
        }
        let edges = self.trusted(reports);
        for one in cut_vertices(hosts, &edges) {
            let is_apart = |edge: &&Edge| edge.near != one && edge.far != one;
            let rest: Vec<Edge> = edges.iter().filter(is_apart).copied().collect();
            let parts = mesh::connected(hosts, &rest);
            let confirming: Vec<usize> = match known.is_empty() {
                true => vec![component_of_most(&parts, others(&new, one))],
                false => others(&known, one).map(|host| parts[host]).collect(),
            };
            for host in others(&new, one).filter(|_| !confirming.is_empty()) {
                unconfirmed[host] |= !confirming.contains(&parts[host]);
            }
        }
        unconfirmed
    }

    /// The edges between members that the agreement trusts, or by which a host was placed.
    fn trusted(&self, reports: &[Report]) -> Vec<Edge> {
        let counts = |(report, trust): &(&Report, &f64)| {
            let ends = [report.near, report.far];
            let is_placed = ends.into_iter().any(|end| self.placed[end].is_some());
            (**trust > 0.0 || is_placed) && ends.into_iter().all(|end| self.is_member(end))
        };
        let edge = |(report, _): (&Report, &f64)| Edge {
            near: report.near,
            far: report.far,
            ahead: 0.0,
            weight: 1.0,
        };
        let all = reports.iter().zip(&self.offsets.trust);
        all.filter(counts).map(edge).collect()
    }
}

fn others(hosts: &[usize], one: usize) -> impl Iterator<Item = usize> + '_ {
    hosts.iter().copied().filter(move |host| *host != one)
}

/// The hosts without which others are not connected any more: Tarjan's algorithm (1972), which looks at each edge twice.
fn cut_vertices(hosts: usize, edges: &[Edge]) -> Vec<usize> {
    let mut neighbours = vec![vec![]; hosts];
    for edge in edges {
        neighbours[edge.near].push(edge.far);
        neighbours[edge.far].push(edge.near);
    }
    // In the order of a depth-first search, from 1: each host, and the first one that its subtree reaches.
    let (mut order, mut reaches) = (vec![0; hosts], vec![0; hosts]);
    let (mut visited, mut cuts) = (0, vec![false; hosts]);
    for root in 0..hosts {
        let (mut path, mut subtrees) = (vec![], 0);
        let mut next = (order[root] == 0).then_some(root);
        loop {
            if let Some(host) = next.take() {
                visited += 1;
                (order[host], reaches[host]) = (visited, visited);
                path.push((host, neighbours[host].iter()));
            }
            let Some((host, left)) = path.last_mut() else {
                break;
            };
            let host = *host;
            match left.next() {
                Some(other) if order[*other] == 0 => next = Some(*other),
                Some(other) => reaches[host] = usize::min(reaches[host], order[*other]),
                None => {
                    path.pop();
                    let Some((parent, _)) = path.last() else {
                        break;
                    };
                    reaches[*parent] = usize::min(reaches[*parent], reaches[host]);
                    subtrees += usize::from(*parent == root);
                    cuts[*parent] |= *parent != root && reaches[host] >= order[*parent];
                }
            }
        }
        cuts[root] |= subtrees > 1;
    }
    (0..hosts).filter(|host| cuts[*host]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edge((near, far): (usize, usize)) -> Edge {
        Edge {
            near,
            far,
            ahead: 0.0,
            weight: 1.0,
        }
    }

    /// How many components the other hosts have.
    fn parts(hosts: usize, edges: &[Edge], without: Option<usize>) -> usize {
        let is_left = |host: usize| Some(host) != without;
        let left = edges
            .iter()
            .filter(|edge| is_left(edge.near) && is_left(edge.far));
        let components = mesh::connected(hosts, &left.copied().collect::<Vec<_>>());
        let mut of_others: Vec<usize> = (0..hosts)
            .filter(|host| is_left(*host))
            .map(|host| components[host])
            .collect();
        of_others.sort_unstable();
        of_others.dedup();
        of_others.len()
    }

    proptest! {
        #[test]
        fn a_cut_vertex_is_one_without_which_there_are_more_parts(
            pairs in prop::collection::vec((0_usize..12, 0_usize..12), 0..24)
        ) {
            let pairs = pairs.into_iter().filter(|(near, far)| near != far);
            let edges: Vec<Edge> = pairs.map(edge).collect();
            let all = parts(12, &edges, None);
            let cuts: Vec<usize> = (0..12).filter(|host| parts(12, &edges, Some(*host)) > all).collect();
            prop_assert_eq!(cut_vertices(12, &edges), cuts);
        }
    }
}
