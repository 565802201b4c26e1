// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The receiving end: reassembly, and when to acknowledge.

use super::Acknowledgement;
use onramp_units::{Sim, Span, Time};

/// TCP_MAX_QUICKACKS: acknowledgements at the start that are not delayed.
const QUICK_ACKS: u32 = 16;

/// State of one connection.
#[derive(Debug, Clone, Default)]
pub struct Receiver {
    /// The packet expected next.
    pub expected: u32,
    /// Runs that have arrived above it, the newest first.
    runs: Vec<(u32, u32)>,
    /// Arrived in order since the last acknowledgement, and how many of all were marked.
    unacknowledged: u32,
    marked: u32,
    /// Whether the last packet was marked.
    marking: bool,
    urgent: bool,
    acks_sent: u32,
    /// The packet that arrived last, and when.
    last: Option<(u32, Time<Sim>)>,
    /// When an acknowledgement is sent at the latest.
    pub delayed_until: Option<Time<Sim>>,
}

impl Receiver {
    /// Packet `number` has arrived.
    pub fn arrived(&mut self, now: Time<Sim>, number: u32, marked: bool) {
        self.last = Some((number, now));
        self.marked += u32::from(marked);
        // RFC 8257 §3.2: a change of marks is told at once.
        self.urgent |= marked != self.marking;
        self.marking = marked;
        self.unacknowledged += 1;
        if number == self.expected {
            self.expected += 1;
            self.swallow_runs();
            self.urgent |= !self.runs.is_empty();
        } else {
            // RFC 5681 §4.2: out of order or a duplicate.
            self.urgent = true;
            if number > self.expected {
                self.add(number);
            }
        }
    }

    /// The run that starts where the expected packet is, if there is one, is in order now.
    fn swallow_runs(&mut self) {
        while let Some(n) = self.runs.iter().position(|run| run.0 <= self.expected) {
            self.expected = self.expected.max(self.runs.remove(n).1);
        }
    }

    /// Joins the runs that touch `number`, and puts the result first.
    fn add(&mut self, number: u32) {
        let mut run = (number, number + 1);
        self.runs.retain(|&(start, end)| {
            let apart = end < run.0 || start > run.1;
            if !apart {
                run = (run.0.min(start), run.1.max(end));
            }
            apart
        });
        self.runs.insert(0, run);
    }

    /// Whether to acknowledge now; else it will be done after `delay` at the latest. Ask after each
    /// batch of arrivals.
    pub fn must_acknowledge(&mut self, now: Time<Sim>, delay: Span) -> bool {
        if self.unacknowledged == 0 {
            return false;
        }
        let now_or_never = self.urgent || self.unacknowledged >= 2 || self.acks_sent < QUICK_ACKS;
        if !now_or_never {
            self.delayed_until.get_or_insert(now + delay);
        }
        now_or_never
    }

    /// The acknowledgement to send.
    pub fn acknowledge(&mut self) -> Acknowledgement {
        let mut blocks = [(0, 0); 3];
        for (block, run) in blocks.iter_mut().zip(&self.runs) {
            *block = *run;
        }
        let acknowledgement = Acknowledgement {
            cumulative: self.expected,
            blocks,
            marked: self.marked,
            short: 0,
            last: self.last,
        };
        self.unacknowledged = 0;
        self.marked = 0;
        self.urgent = false;
        self.acks_sent += 1;
        self.delayed_until = None;
        acknowledgement
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Time<Sim> = Time::ZERO;
    const DELAY: Span = Span::from_ms(40);

    #[test]
    fn every_second_packet_is_acknowledged_once_the_start_is_over() {
        let mut receiver = Receiver::default();
        for number in 0..QUICK_ACKS {
            receiver.arrived(NOW, number, false);
            assert!(receiver.must_acknowledge(NOW, DELAY));
            receiver.acknowledge();
        }
        receiver.arrived(NOW, 16, false);
        assert!(!receiver.must_acknowledge(NOW, DELAY));
        assert_eq!(receiver.delayed_until, Some(NOW + DELAY));
        receiver.arrived(NOW, 17, false);
        assert!(receiver.must_acknowledge(NOW, DELAY));
        assert_eq!(receiver.acknowledge().cumulative, 18);
        assert_eq!(receiver.delayed_until, None);
    }

    #[test]
    fn the_newest_run_comes_first() {
        let mut receiver = Receiver::default();
        for number in [2, 3, 7, 5, 4] {
            receiver.arrived(NOW, number, false);
        }
        let acknowledgement = receiver.acknowledge();
        assert_eq!(acknowledgement.cumulative, 0);
        assert_eq!(acknowledgement.blocks, [(2, 6), (7, 8), (0, 0)]);
        receiver.arrived(NOW, 0, false);
        receiver.arrived(NOW, 1, false);
        assert_eq!(receiver.acknowledge().cumulative, 6);
    }

    proptest! {
        /// In any order, with repetitions: in the end all are there.
        #[test]
        fn everything_that_arrives_is_acknowledged(
            order in Just((0u32..60).collect::<Vec<u32>>()).prop_shuffle(),
            again in prop::collection::vec(0u32..60, 0..30),
        ) {
            let mut receiver = Receiver::default();
            for number in again.iter().chain(&order) {
                receiver.arrived(NOW, *number, false);
                let ack = receiver.acknowledge();
                for (start, end) in ack.blocks {
                    prop_assert!(start == end || start > ack.cumulative);
                }
            }
            prop_assert_eq!(receiver.expected, 60);
            prop_assert!(receiver.runs.is_empty());
        }
    }
}
