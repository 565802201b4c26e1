// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a world is like.

use crate::network::Paths;

/// A world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// Hosts, numbered from 0.
    pub hosts: usize,
    /// The paths between them.
    pub paths: Paths,
    /// Drifts lie within this of 0.
    pub drift: f64,
    /// Amplitude of each drift's oscillation, which has a period of 10 to 60 minutes.
    pub wander: f64,
    /// Noise of its hosts' stamps, in multiples of that of software stamps.
    pub noise: f64,
    /// Whether the system clocks follow the leader's.
    pub discipline: bool,
    /// Everything random follows from it.
    pub seed: u64,
}

impl Default for Spec {
    /// Four hosts whose clocks are up to 1 ms and 15 ppm off, as in facts/huygens.md, section "Synthetic test".
    fn default() -> Spec {
        Spec {
            hosts: 4,
            paths: Paths::default(),
            drift: 15e-6,
            wander: 1e-6,
            noise: 1.0,
            discipline: false,
            seed: 1,
        }
    }
}
