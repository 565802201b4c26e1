// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! When a processor is taken away: a sequence of times without it, as a neighbour's virtual machine causes them.

use rand_chacha::ChaCha8Rng;

use crate::exponential_ns;

/// How a processor is taken away.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Starvation {
    /// Part of the time, 0 to below 1.
    pub part: f64,
    /// Mean length of a burst, ns. No burst is longer than twice that.
    pub burst_ns: i64,
}

/// Times without a processor, in their order, drawn as far as somebody has asked.
#[derive(Debug, Clone)]
pub struct Bursts {
    starvation: Starvation,
    rng: ChaCha8Rng,
    /// Beginning and end of each.
    bursts: Vec<(i64, i64)>,
    drawn_until: i64,
}

impl Bursts {
    /// From true time `since` on.
    pub fn new(starvation: Starvation, since: i64, rng: ChaCha8Rng) -> Bursts {
        Bursts {
            starvation,
            rng,
            bursts: vec![],
            drawn_until: since,
        }
    }

    /// None ever.
    pub fn none(rng: ChaCha8Rng) -> Bursts {
        let never = Starvation {
            part: 0.0,
            burst_ns: 1,
        };
        Bursts::new(never, 0, rng)
    }

    /// Takes the processor away between these times, too. Not for times that somebody has asked for.
    pub fn add(&mut self, from: i64, until: i64) {
        self.bursts.push((from, until));
        self.bursts.sort_unstable();
    }

    /// The first time, `at` or later, at which there is a processor.
    pub fn runs_from(&mut self, at: i64) -> i64 {
        self.draw(at);
        let mut at = at;
        let first = self.bursts.partition_point(|(from, _)| *from <= at);
        // Bursts that were added may overlap with those that were drawn.
        for (from, until) in &self.bursts[first.saturating_sub(4)..] {
            if *from > at {
                break;
            }
            at = at.max(*until);
        }
        at
    }

    /// Whether a burst begins between these times.
    pub fn begins_between(&mut self, from: i64, until: i64) -> bool {
        self.draw(until);
        let next = self.bursts.partition_point(|(begin, _)| *begin <= from);
        self.bursts
            .get(next)
            .is_some_and(|(begin, _)| *begin <= until)
    }

    /// Time without a processor until `at`, ns.
    pub fn lacked_ns(&mut self, at: i64) -> i64 {
        self.draw(at);
        let lacked = |(from, until): &(i64, i64)| (at.min(*until) - from).max(0);
        self.bursts.iter().map(lacked).sum()
    }

    fn draw(&mut self, until: i64) {
        let Starvation { part, burst_ns } = self.starvation;
        if part <= 0.0 {
            return;
        }
        while self.drawn_until <= until {
            let gap_ns = burst_ns as f64 * (1.0 - part) / part;
            let from = self.drawn_until + exponential_ns(gap_ns, &mut self.rng);
            let length_ns = exponential_ns(burst_ns as f64, &mut self.rng).min(2 * burst_ns);
            self.bursts.push((from, from + length_ns));
            self.drawn_until = from + length_ns;
        }
        self.bursts.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_taken_as_was_said() {
        for part in [0.1, 0.5, 0.9] {
            let starvation = Starvation {
                part,
                burst_ns: 10_000_000,
            };
            let mut bursts = Bursts::new(starvation, 0, crate::stream(1, 1));
            let all_ns = 100_000_000_000;
            let lacked = bursts.lacked_ns(all_ns) as f64 / all_ns as f64;
            // Bursts are cut at twice their mean, so there are somewhat shorter ones.
            assert!(
                (part - 0.1..part + 0.05).contains(&lacked),
                "{part}: {lacked}"
            );
        }
        assert_eq!(Bursts::none(crate::stream(1, 1)).lacked_ns(1 << 60), 0);
    }

    #[test]
    fn a_burst_is_waited_for() {
        let mut bursts = Bursts::none(crate::stream(1, 1));
        bursts.add(100, 200);
        bursts.add(150, 300);
        assert_eq!(
            [99, 100, 250, 300].map(|at| bursts.runs_from(at)),
            [99, 300, 300, 300]
        );
        assert!(bursts.begins_between(99, 100) && !bursts.begins_between(150, 400));
    }
}
