// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Huygens: hosts probe each other over this network. At the end of every window, crates/sync computes
//! corrections of all clocks from the time stamps. The simulator knows true time, so it measures the errors
//! of the corrected clocks ([`ClockWindow`]).
//!
//! An edge of the mesh sends a pair of probes every interval. The far host answers each at once, so that
//! there is a pair in both directions. Probes are packets of the data class. A probe is stamped when it is
//! sent and when it arrives, on the host's own clock, with the noise of the NIC or kernel
//! (facts/huygens.md, "Synthetic test").
//!
//! [`probes`] sends, answers and stamps; [`window`] is the central step. The messages between hosts and
//! coordinator are not simulated: a correction applies at the end of its window.

mod probes;
mod window;

pub(crate) use probes::Prober;
pub use window::ClockWindow;
pub(crate) use window::Synchroniser;

use crate::engine::random::{Purpose, Streams};
use onramp_sync::synthetic::uniform;

/// An edge of the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The host that probes, and the one that answers.
    pub near: u32,
    pub far: u32,
}

/// The edges of the mesh: each host probes its successor, so that all are connected, and random others.
pub(crate) fn mesh(hosts: &[u32], degree: u32, seed: u64) -> Vec<Edge> {
    // A stream that no host has.
    let own = hosts.iter().max().map_or(0, |last| last + 1);
    let mut streams = Streams::new(seed, Purpose::Probes, own as usize + 1);
    let rng = streams.of(own);
    let degree = (degree as usize).min(hosts.len() - 1);
    let mut edges = Vec::with_capacity(hosts.len() * degree);
    for (place, &near) in hosts.iter().enumerate() {
        let mut steps = vec![1];
        while steps.len() < degree {
            let step = 1 + (uniform(rng) * (hosts.len() - 1) as f64) as usize;
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        let far = |step: usize| hosts[(place + step) % hosts.len()];
        edges.extend(steps.into_iter().map(|step| Edge {
            near,
            far: far(step),
        }));
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_probes_so_many_others_once() {
        let hosts: Vec<u32> = (5..25).collect();
        let edges = mesh(&hosts, 10, 1);
        assert_eq!(edges.len(), 200);
        for &host in &hosts {
            let mut far: Vec<u32> = edges
                .iter()
                .filter(|edge| edge.near == host)
                .map(|edge| edge.far)
                .collect();
            far.sort_unstable();
            far.dedup();
            assert_eq!(far.len(), 10);
            assert!(!far.contains(&host));
        }
        assert_eq!(edges, mesh(&hosts, 10, 1));
        assert_ne!(edges, mesh(&hosts, 10, 2));
    }

    #[test]
    fn two_hosts_probe_each_other_whatever_the_degree() {
        assert_eq!(mesh(&[0, 1], 10, 1).len(), 2);
    }
}
