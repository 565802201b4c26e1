// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Fleets of simulated hosts: the synchronisation of `onramp-clock`, unchanged, on simulated time, clocks, processors and
//! networks, inside one thread. One seed gives the same run.
//!
//! Does: machines whose processor is taken away ([`starvation`]), clocks that wander and step ([`clock`]), paths that queue,
//! lose and differ by direction ([`network`]), a model of etcd ([`etcd`]), the loop of events ([`world`]), with hosts that register, errors against sigmas
//! ([`errors`]), and the grid of worlds in docs/clock.md ([`grid`]).
//! Does not: congestion control, TCP, or the estimator; it knows the true time, which the hosts do not.
#![warn(missing_docs)]

pub mod clock;
pub mod errors;
pub mod etcd;
pub mod grid;
mod machine;
pub mod network;
mod registered;
pub mod spec;
pub mod starvation;
pub mod world;

use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

/// Random numbers of one purpose of a world, so that more of one do not change another.
fn stream(seed: u64, purpose: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose);
    rng
}

/// Exponentially distributed, at least 1 ns.
fn exponential_ns(mean_ns: f64, rng: &mut ChaCha8Rng) -> i64 {
    let ns = -mean_ns * libm::log(onramp_sync::synthetic::uniform(rng));
    (ns as i64).max(1)
}
