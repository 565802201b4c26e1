// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Random numbers of a simulation, which decide about marks.
//!
//! Exact runs use ChaCha8 with one stream for each switch. For comparison, the numbers of ns-3 are
//! available: ns-3 opens a new stream of MRG32k3a (L'Ecuyer, Operations Research 47(1), 1999) for every
//! mark and uses its first number.

use crate::engine::rounding::Rounding;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A source of numbers in [0, 1).
pub(crate) enum Random {
    Exact(Streams),
    Ns3(Box<Ns3Streams>),
}

impl Random {
    /// For a run of `seed` in a network of `nodes` nodes.
    pub fn new(rounding: Rounding, seed: u64, nodes: usize) -> Random {
        match rounding {
            Rounding::Exact => Random::Exact(Streams::new(seed, Purpose::Marks, nodes)),
            Rounding::Ns3 => Random::Ns3(Box::new(Ns3Streams::new(seed, nodes))),
        }
    }

    /// The next number of `node`.
    pub fn uniform(&mut self, node: u32) -> f64 {
        match self {
            // 53 random bits.
            Random::Exact(streams) => {
                (streams.of(node).next_u64() >> 11) as f64 / (1u64 << 53) as f64
            }
            Random::Ns3(streams) => streams.next(),
        }
    }

    /// Called for each PFC frame: ns-3 draws a number for its identification.
    pub fn pfc_frame(&mut self) {
        if let Random::Ns3(streams) = self {
            streams.next();
        }
    }
}

/// Purpose of the numbers. Different purposes have different streams.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Marks,
    Noise,
    Probes,
    Rtts,
}

/// A stream of ChaCha8 for each node, so that what one node draws does not depend on the others.
pub(crate) struct Streams {
    seed: u64,
    purpose: Purpose,
    /// By node, for the nodes that have drawn.
    streams: Vec<Option<Box<ChaCha8Rng>>>,
}

impl Streams {
    pub fn new(seed: u64, purpose: Purpose, nodes: usize) -> Streams {
        Streams {
            seed,
            purpose,
            streams: vec![None; nodes],
        }
    }

    /// The stream of `node`.
    pub fn of(&mut self, node: u32) -> &mut ChaCha8Rng {
        let stream = u64::from(node) << 2 | self.purpose as u64;
        self.streams[node as usize].get_or_insert_with(|| {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(stream);
            Box::new(rng)
        })
    }
}

type Vector = [u64; 3];
type Matrix = [Vector; 3];

/// One of the two components of MRG32k3a: a recurrence of order 3 modulo `modulus`.
struct Component {
    modulus: u64,
    /// State at the start of the next stream.
    state: Vector,
    /// The recurrence as matrices: to the start of the next stream (2^127 steps), and to the run's substream.
    step: Matrix,
    to_next_stream: Matrix,
    to_substream: Matrix,
}

impl Component {
    fn new(modulus: u64, last_row: Vector, run: u64) -> Component {
        let step = [[0, 1, 0], [0, 0, 1], last_row];
        let substream = doubled(step, 76, modulus);
        Component {
            modulus,
            state: [1; 3], // ns-3's seed is 1
            step,
            to_next_stream: doubled(step, 127, modulus),
            to_substream: power(substream, run, modulus),
        }
    }

    /// First number of the next stream's substream.
    fn next(&mut self) -> u64 {
        let substream = times(&self.to_substream, &self.state, self.modulus);
        self.state = times(&self.to_next_stream, &self.state, self.modulus);
        times(&self.step, &substream, self.modulus)[2]
    }
}

/// First numbers of successive streams.
pub(crate) struct Ns3Streams {
    components: [Component; 2],
}

impl Ns3Streams {
    /// `run` is ns-3's RngRun. Before the first mark its internet stack has opened six streams a
    /// node, and its error model two.
    fn new(run: u64, nodes: usize) -> Ns3Streams {
        let (m1, m2) = (4_294_967_087, 4_294_944_443);
        let components = [
            Component::new(m1, [m1 - 810_728, 1_403_580, 0], run),
            Component::new(m2, [m2 - 1_370_589, 0, 527_612], run),
        ];
        let mut streams = Ns3Streams { components };
        for _ in 0..6 * nodes + 2 {
            streams.next();
        }
        streams
    }

    fn next(&mut self) -> f64 {
        let [a, b] = &mut self.components;
        let modulus = a.modulus;
        let (a, b) = (a.next(), b.next());
        let difference = if a > b { a - b } else { a + modulus - b };
        difference as f64 / (modulus + 1) as f64
    }
}

fn times(matrix: &Matrix, vector: &Vector, modulus: u64) -> Vector {
    // Products are below 2^64, but the sum of three is not.
    matrix.map(|row| {
        let sum: u128 = row.iter().zip(vector).map(|(a, b)| u128::from(a * b)).sum();
        (sum % u128::from(modulus)) as u64
    })
}

fn product(a: &Matrix, b: &Matrix, modulus: u64) -> Matrix {
    let column = |j: usize| times(a, &[b[0][j], b[1][j], b[2][j]], modulus);
    let columns = [column(0), column(1), column(2)];
    [0, 1, 2].map(|i| columns.map(|column| column[i]))
}

/// `matrix` to the power 2^times.
fn doubled(matrix: Matrix, times: u32, modulus: u64) -> Matrix {
    (0..times).fold(matrix, |m, _| product(&m, &m, modulus))
}

fn power(matrix: Matrix, exponent: u64, modulus: u64) -> Matrix {
    let identity = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    let bits = (0..u64::BITS).rev().map(|bit| exponent >> bit & 1);
    bits.fold(identity, |m, bit| {
        let square = product(&m, &m, modulus);
        match bit {
            1 => product(&square, &matrix, modulus),
            _ => square,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_uniform_and_depend_on_the_seed_alone() {
        for rounding in [Rounding::Exact, Rounding::Ns3] {
            let draw = |seed| {
                let mut random = Random::new(rounding, seed, 5);
                (0..2000).map(|_| random.uniform(3)).collect::<Vec<f64>>()
            };
            let numbers = draw(1);
            assert_eq!(numbers, draw(1));
            assert_ne!(numbers, draw(2));
            let mean = numbers.iter().sum::<f64>() / 2000.0;
            // Five standard deviations.
            assert!(
                (mean - 0.5).abs() < 5.0 / (12.0f64 * 2000.0).sqrt(),
                "{mean}"
            );
        }
    }

    #[test]
    fn what_a_node_draws_does_not_depend_on_the_others() {
        let mut random = Random::new(Rounding::Exact, 1, 5);
        let mut busy = Random::new(Rounding::Exact, 1, 5);
        for _ in 0..100 {
            let other = busy.uniform(2);
            assert_ne!(other, busy.uniform(2));
            assert_eq!(random.uniform(4), busy.uniform(4));
        }
    }

    #[test]
    fn a_power_is_repeated_multiplication() {
        let matrix = [[1, 2, 3], [0, 1, 4], [5, 6, 0]];
        let cubed = product(&product(&matrix, &matrix, 97), &matrix, 97);
        assert_eq!(power(matrix, 3, 97), cubed);
        assert_eq!(doubled(matrix, 2, 97), power(matrix, 4, 97));
    }
}
