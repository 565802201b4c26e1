// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Estimates the remaining time of runs from their progress so far.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Threads;

/// A run in progress.
#[derive(Debug, Clone, Copy)]
pub struct Underway {
    /// Its remaining weight.
    pub left: f64,
    /// Its number of threads.
    pub threads: usize,
}

/// Seconds until all runs are complete. Runs of `waiting` (weights) start in order when threads become
/// free. `pace` is the seconds that one thread needs for one unit of weight.
pub fn seconds_left(underway: &[Underway], waiting: &[f64], threads: Threads, pace: f64) -> f64 {
    let time = |run: &Underway| run.left.max(0.0) * pace / run.threads as f64;
    // Microseconds, because integers have a total order.
    let at = |seconds: f64| (seconds * 1e6) as u64;
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = underway
        .iter()
        .map(|run| Reverse((at(time(run)), run.threads)))
        .collect();
    let used: usize = underway.iter().map(|run| run.threads).sum();
    let mut free = threads.in_all.saturating_sub(used);
    let mut waiting = waiting;
    let mut now = 0;
    loop {
        while let ([next, rest @ ..], true) = (waiting, free > 0) {
            let threads = threads.share(free, waiting.len());
            let run = Underway {
                left: *next,
                threads,
            };
            ends.push(Reverse((now + at(time(&run)), threads)));
            free = free.saturating_sub(threads);
            waiting = rest;
        }
        let Some(Reverse((end, threads))) = ends.pop() else {
            return now as f64 / 1e6;
        };
        now = end;
        free += threads;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Threads = Threads {
        in_all: 2,
        of_a_run: 1,
    };

    fn run(left: f64) -> Underway {
        Underway { left, threads: 1 }
    }

    #[test]
    fn the_longest_chain_of_runs_counts() {
        let seconds = seconds_left(&[run(1.0), run(3.0)], &[1.0, 4.0], TWO, 2.0);
        assert_eq!(seconds, 12.0); // 1 + 1 + 4, or 3 on the other thread
        assert_eq!(seconds_left(&[], &[], TWO, 2.0), 0.0);
    }

    /// Two of three equal runs on two threads are half of the time.
    #[test]
    fn a_last_run_alone_takes_as_long_as_two_side_by_side() {
        assert_eq!(seconds_left(&[run(1.0)], &[], TWO, 5.0), 5.0);
    }

    #[test]
    fn threads_that_are_free_help_the_last_runs() {
        let four = Threads {
            in_all: 4,
            of_a_run: usize::MAX,
        };
        assert_eq!(seconds_left(&[], &[8.0], four, 1.0), 2.0);
    }
}
