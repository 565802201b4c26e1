// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Paths between hosts: their shortest delay in each direction, the queues of other traffic at the ports of both ends, loss,
//! and cuts. The queue of a port is a function of time alone: probes are too few to add to it.

use std::collections::{BTreeSet, HashMap};

use onramp_sync::synthetic::uniform;
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

use crate::{exponential_ns, stream};

/// What the paths are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paths {
    /// Shortest delay, from 5 us to this, ns.
    pub longest_ns: i64,
    /// Largest constant difference between the two directions of a path, ns.
    pub asymmetry_ns: i64,
    /// Part of the time in which the port of a host is busy: a host draws its own between 0 and this for each direction.
    pub load: f64,
    /// Part of the packets that are lost.
    pub loss: f64,
}

impl Default for Paths {
    /// Idle, alike in both directions, as in the virtual machines of tests/daemon.
    fn default() -> Paths {
        Paths {
            longest_ns: 25_000,
            asymmetry_ns: 0,
            load: 0.0,
            loss: 0.0,
        }
    }
}

/// Mean time that a burst keeps a port busy, ns: 60 kB at 10 Gbit/s.
const BURST_NS: f64 = 48_000.0;
/// A port's queue is drawn for so long at a time, ns, and begins empty.
const CHUNK_NS: i64 = 50_000_000;
/// Chunks of a port that are remembered: packets of one time are asked for nearly in their order.
const CHUNKS: usize = 3;
const SHORTEST_NS: i64 = 5_000;

/// A network of any number of hosts.
pub struct Network {
    paths: Paths,
    seed: u64,
    rng: ChaCha8Rng,
    /// By host and direction (to the host: 0, from it: 1).
    ports: HashMap<(usize, u8), Port>,
    /// Pairs of hosts that cannot reach each other, the smaller first.
    cut: BTreeSet<(usize, usize)>,
}

struct Port {
    load: f64,
    /// Number of the chunk, and the bursts in it: when, and the time until the queue is empty after it, ns.
    chunks: Vec<(i64, Vec<(i64, i64)>)>,
}

impl Network {
    /// The same for the same seed.
    pub fn new(paths: Paths, seed: u64) -> Network {
        Network {
            paths,
            seed,
            rng: stream(seed, 2),
            ports: HashMap::new(),
            cut: BTreeSet::new(),
        }
    }

    /// Cuts two hosts off from each other, or connects them again.
    pub fn cut(&mut self, a: usize, b: usize, is_cut: bool) {
        let pair = (a.min(b), a.max(b));
        match is_cut {
            true => self.cut.insert(pair),
            false => self.cut.remove(&pair),
        };
    }

    /// When a packet that leaves `from` at `at` arrives; none if it is lost.
    pub fn arrives(&mut self, from: usize, to: usize, at: i64) -> Option<i64> {
        let is_lost = self.paths.loss > 0.0 && uniform(&mut self.rng) < self.paths.loss;
        if is_lost || self.cut.contains(&(from.min(to), from.max(to))) {
            return None;
        }
        let at = at + self.waits(from, 1, at) + self.delay_ns(from, to);
        Some(at + self.waits(to, 0, at))
    }

    /// The shortest delay of a direction.
    fn delay_ns(&self, from: usize, to: usize) -> i64 {
        let of = |a: usize, b: usize| {
            let key = self.seed ^ (a as u64) << 20 ^ (b as u64) << 40;
            uniform(&mut ChaCha8Rng::seed_from_u64(key))
        };
        let spread_ns = (self.paths.longest_ns - SHORTEST_NS) as f64;
        let both_ns = spread_ns * of(from.min(to), from.max(to));
        // One direction has half of the difference more, the other half less.
        let half_ns =
            self.paths.asymmetry_ns as f64 / 2.0 * (2.0 * of(to.max(from), to.min(from)) - 1.0);
        let sign = if from < to { 1.0 } else { -1.0 };
        SHORTEST_NS.max(0) + (both_ns + sign * half_ns) as i64
    }

    /// How long a packet waits at a port.
    fn waits(&mut self, host: usize, direction: u8, at: i64) -> i64 {
        if self.paths.load <= 0.0 {
            return 0;
        }
        let (seed, most) = (self.seed, self.paths.load);
        let port = self.ports.entry((host, direction)).or_insert_with(|| {
            let mut rng = stream(seed, 1_000 + 2 * host as u64 + u64::from(direction));
            Port {
                load: most * uniform(&mut rng),
                chunks: vec![],
            }
        });
        let number = at.div_euclid(CHUNK_NS);
        if !port.chunks.iter().any(|(chunk, _)| *chunk == number) {
            let salt = (host as u64) << 8 | u64::from(direction);
            let mut rng = stream(seed ^ salt << 32, 3);
            rng.set_word_pos((number as u128) << 20);
            let bursts = bursts(number * CHUNK_NS, port.load, &mut rng);
            port.chunks.push((number, bursts));
            if port.chunks.len() > CHUNKS {
                port.chunks.remove(0);
            }
        }
        let chunk = port.chunks.iter().find(|(chunk, _)| *chunk == number);
        let bursts = &chunk.expect("it was drawn").1;
        let before = bursts.partition_point(|(from, _)| *from <= at);
        let last = before.checked_sub(1).map(|last| bursts[last]);
        last.map_or(0, |(from, left_ns)| (from + left_ns - at).max(0))
    }
}

/// The bursts of a chunk.
fn bursts(begin: i64, load: f64, rng: &mut ChaCha8Rng) -> Vec<(i64, i64)> {
    let mut bursts = vec![];
    let (mut at, mut free_at) = (begin, begin);
    loop {
        at += exponential_ns(BURST_NS / load.max(1e-3), rng);
        if at >= begin + CHUNK_NS {
            return bursts;
        }
        free_at = free_at.max(at) + exponential_ns(BURST_NS, rng);
        bursts.push((at, free_at - at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_busy_for_the_part_that_was_said_whatever_the_order_of_questions() {
        let paths = Paths {
            load: 0.8,
            ..Paths::default()
        };
        let mut network = Network::new(paths, 7);
        let times: Vec<i64> = (0..200_000).map(|n| n * 10_000).collect();
        let first: Vec<i64> = times.iter().map(|at| network.waits(1, 0, *at)).collect();
        let busy = first.iter().filter(|ns| **ns > 0).count() as f64 / times.len() as f64;
        let load = network.ports[&(1, 0)].load;
        assert!((busy - load).abs() < 0.05, "{busy}, {load}");
        let again = times.iter().rev().map(|at| network.waits(1, 0, *at));
        assert!(again.eq(first.into_iter().rev()));
    }

    #[test]
    fn directions_differ_by_no_more_than_was_said_and_cuts_cut() {
        let paths = Paths {
            asymmetry_ns: 2_000,
            ..Paths::default()
        };
        let mut network = Network::new(paths, 3);
        for to in 1..50 {
            let (out, back) = (network.delay_ns(0, to), network.delay_ns(to, 0));
            assert!((out - back).abs() <= 2_001 && out.min(back) >= 4_000);
        }
        network.cut(2, 1, true);
        assert_eq!(network.arrives(1, 2, 0), None);
        network.cut(1, 2, false);
        assert!(network.arrives(1, 2, 0).is_some());
    }
}
