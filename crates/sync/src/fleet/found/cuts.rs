// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Groups of hosts that hang together by bad edges. A host's own edges may all be good, and those of its neighbours too; how well it
//! is known beside the rest is what the edges between its group and the rest say together.

use crate::fleet::Report;

/// A group of hosts that edges of at least some weight connect.
#[derive(Default)]
struct Group {
    hosts: Vec<usize>,
    /// Sum of the weights of the edges that leave it, 1 / ns^2.
    leaving: f64,
}

/// By host: the least variance that the edges between its group and the rest leave, for the group in which they leave most. Groups
/// grow from single hosts by their best edges, as in Kruskal's algorithm; the smaller one of two that meet is known beside the larger
/// one, or each beside the other if they are of like size.
pub(super) fn least_variances(hosts: usize, reports: &[Report], weights: &[f64]) -> Vec<f64> {
    let mut edges: Vec<(usize, usize, f64)> = reports
        .iter()
        .zip(weights)
        .filter(|(_, weight)| **weight > 0.0)
        .map(|(report, weight)| (report.near, report.far, *weight))
        .collect();
    edges.sort_by(|a, b| b.2.total_cmp(&a.2));
    let mut ends: Vec<Vec<(usize, f64)>> = vec![vec![]; hosts];
    for (near, far, weight) in &edges {
        ends[*near].push((*far, *weight));
        ends[*far].push((*near, *weight));
    }
    let alone = |host: usize| Group {
        hosts: vec![host],
        leaving: ends[host].iter().map(|(_, weight)| weight).sum(),
    };
    let mut groups: Vec<Group> = (0..hosts).map(alone).collect();
    let mut group_of: Vec<usize> = (0..hosts).collect();
    let mut least = vec![0.0; hosts];
    for (near, far, weight) in edges {
        let (a, b) = (group_of[near], group_of[far]);
        if a == b {
            continue;
        }
        let is_larger = groups[a].hosts.len() >= groups[b].hosts.len();
        let (large, small) = if is_larger { (a, b) } else { (b, a) };
        let few = std::mem::take(&mut groups[small]);
        know(&mut least, &few, weight);
        if 2 * few.hosts.len() >= groups[large].hosts.len() {
            know(&mut least, &groups[large], weight);
        }
        let between = few.hosts.iter().flat_map(|host| &ends[*host]);
        let between: f64 = between
            .filter(|(other, _)| group_of[*other] == large)
            .map(|(_, weight)| weight)
            .sum();
        let all = &mut groups[large];
        all.leaving += few.leaving - 2.0 * between;
        for host in &few.hosts {
            group_of[*host] = large;
        }
        all.hosts.extend(few.hosts);
    }
    least
}

/// The hosts of a group are known as well as the edges that leave it say, of which one has this weight.
fn know(least: &mut [f64], group: &Group, one: f64) {
    let variance = group.leaving.max(one).recip();
    for host in &group.hosts {
        least[*host] = least[*host].max(variance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Line;
    use onramp_units::Time;

    fn report(near: usize, far: usize) -> Report {
        let line = Line {
            at: Time::from_ticks(0),
            about_ns: 0,
            ahead_ns: 0.0,
            drift: 0.0,
            delay_ns: 5_000.0,
            points: 60,
            sigma_ns: 1.0,
            drift_sigma: 1e-9,
        };
        Report { near, far, line }
    }

    /// Hosts 0 to 3 and 4 and 5 have good edges among themselves, and one bad edge lies between.
    #[test]
    fn a_group_behind_a_bad_edge_is_known_as_badly() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (3, 4)];
        let reports = edges.map(|(near, far)| report(near, far));
        let weights = [1.0, 1.0, 1.0, 1.0, 1.0, 1e-4];
        let least = least_variances(7, &reports, &weights);
        for host in [4, 5] {
            assert!((least[host] / 1e4 - 1.0).abs() < 0.01, "{least:?}");
        }
        assert_eq!(least[6], 0.0, "nobody speaks of it");
    }

    /// In a mesh of equal edges a host's own edges say most.
    #[test]
    fn a_mesh_adds_nothing() {
        let pairs = (0..8).flat_map(|near| (near + 1..8).map(move |far| (near, far)));
        let reports: Vec<Report> = pairs.map(|(near, far)| report(near, far)).collect();
        let least = least_variances(8, &reports, &vec![1.0; reports.len()]);
        assert!(
            least.iter().all(|least| *least <= 1.0 / 7.0 + 1e-9),
            "{least:?}"
        );
    }
}
