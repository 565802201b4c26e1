// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The receiving end: reassembly, and when to acknowledge, as Linux 6.7 and later do.
//!
//! Linux acknowledges every second packet, and a lone one after 40 ms, except: at the start of data (16 packets, again after
//! a pause of more than the retransmission timeout, and after duplicates), when a mark comes or ends, out of order, and
//! when the application has read all of a response (tcp_cleanup_rbuf). An end that sends requests soon after what it has
//! received expects to go on with that (pingpong mode) and leaves out the first and the last: its next request carries the
//! acknowledgement. Differs from Linux: it does not acknowledge at once that the sender has reduced its window (CWR).

use super::Acknowledgement;
use onramp_units::{Sim, Span, Time};

/// TCP_MAX_QUICKACKS: acknowledgements at the start that are not delayed.
const QUICK_ACKS: u32 = 16;

/// The times of delayed acknowledgements.
#[derive(Debug, Clone, Copy)]
pub struct Delays {
    /// The longest delay (TCP_ATO_MIN).
    pub delay: Span,
    /// Data that comes after a longer pause is the start of data (icsk_rto).
    pub pause: Span,
}

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
    /// Acknowledgements to come that are not delayed (icsk_ack.quick).
    quick: u32,
    /// Whether it expects to send soon itself.
    pingpong: bool,
    /// The application has read all of a response.
    read: bool,
    /// The packet that arrived last, and when.
    last: Option<(u32, Time<Sim>)>,
    /// When data arrived in order last (icsk_ack.lrcvtime).
    in_order_at: Option<Time<Sim>>,
    /// When an acknowledgement is sent at the latest.
    pub delayed_until: Option<Time<Sim>>,
}

impl Receiver {
    /// Packet `number` has arrived.
    pub fn arrived(&mut self, now: Time<Sim>, number: u32, marked: bool, delays: Delays) {
        self.last = Some((number, now));
        self.marked += u32::from(marked);
        // RFC 8257 §3.2: a change of marks is told at once.
        self.urgent |= marked != self.marking;
        self.marking = marked;
        self.unacknowledged += 1;
        if number == self.expected {
            // tcp_event_data_recv
            if self
                .in_order_at
                .is_none_or(|before| now - before > delays.pause)
            {
                self.quick = QUICK_ACKS;
            }
            self.in_order_at = Some(now);
            self.expected += 1;
            self.swallow_runs();
            self.urgent |= !self.runs.is_empty();
        } else {
            // RFC 5681 §4.2: out of order or a duplicate.
            self.urgent = true;
            if number > self.expected {
                self.add(number);
            } else {
                // tcp_enter_quickack_mode
                (self.quick, self.pingpong) = (QUICK_ACKS, false);
            }
        }
    }

    /// The application has read all that has arrived, which ends a response.
    pub fn read_all(&mut self) {
        self.read = true;
    }

    /// The application sends a request at `now`, which carries the acknowledgement that it returns.
    pub fn requests(&mut self, now: Time<Sim>, delays: Delays) -> Acknowledgement {
        // tcp_event_data_sent
        let is_soon = |before| now - before < delays.delay;
        self.pingpong |= self.in_order_at.is_some_and(is_soon);
        self.acknowledge()
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
        let is_quick = !self.pingpong && (self.quick > 0 || self.read);
        let now_or_never = self.urgent || self.unacknowledged >= 2 || is_quick;
        if !now_or_never {
            self.delayed_until.get_or_insert(now + delay);
        }
        now_or_never
    }

    /// The delay of an acknowledgement is over: the application does not send soon (tcp_delack_timer_handler).
    pub fn delay_is_over(&mut self) {
        self.pingpong = false;
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
        // tcp_dec_quickack_mode
        self.quick -= u32::from(self.unacknowledged > 0 && self.quick > 0);
        self.unacknowledged = 0;
        self.marked = 0;
        (self.urgent, self.read) = (false, false);
        self.delayed_until = None;
        acknowledgement
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Time<Sim> = Time::ZERO;
    const DELAYS: Delays = Delays {
        delay: Span::from_ms(40),
        pause: Span::from_ms(200),
    };

    /// Packet `number` arrives in order; whether it is acknowledged at once.
    fn is_acknowledged(receiver: &mut Receiver, now: Time<Sim>, number: u32) -> bool {
        receiver.arrived(now, number, false, DELAYS);
        let at_once = receiver.must_acknowledge(now, DELAYS.delay);
        if at_once {
            receiver.acknowledge();
        }
        at_once
    }

    /// A receiver of these packets, and what is not acknowledged of them.
    fn of_packets(count: u32) -> Receiver {
        let mut receiver = Receiver::default();
        for number in 0..count {
            is_acknowledged(&mut receiver, NOW, number);
        }
        receiver
    }

    #[test]
    fn every_second_packet_is_acknowledged_once_the_start_is_over() {
        let mut receiver = Receiver::default();
        assert!((0..QUICK_ACKS).all(|number| is_acknowledged(&mut receiver, NOW, number)));
        assert!(!is_acknowledged(&mut receiver, NOW, 16));
        assert_eq!(receiver.delayed_until, Some(NOW + DELAYS.delay));
        assert!(is_acknowledged(&mut receiver, NOW, 17));
        assert_eq!(receiver.acknowledge().cumulative, 18);
        assert_eq!(receiver.delayed_until, None);
    }

    #[test]
    fn after_a_pause_the_start_begins_again() {
        for (pause, is_quick) in [(DELAYS.pause, false), (DELAYS.pause * 2, true)] {
            let mut receiver = of_packets(18);
            assert_eq!(is_acknowledged(&mut receiver, NOW + pause, 18), is_quick);
        }
    }

    #[test]
    fn the_end_of_a_response_is_acknowledged_when_it_is_read() {
        let mut receiver = of_packets(18);
        receiver.arrived(NOW, 18, false, DELAYS);
        receiver.read_all();
        assert!(receiver.must_acknowledge(NOW, DELAYS.delay));
    }

    /// Its next request carries the acknowledgement. If none comes, it does not expect one any more.
    #[test]
    fn an_end_that_requests_soon_after_data_delays_the_acknowledgement_of_the_last() {
        let mut receiver = of_packets(18);
        receiver.requests(NOW + DELAYS.delay / 2, DELAYS);
        receiver.arrived(NOW, 18, false, DELAYS);
        receiver.read_all();
        assert!(!receiver.must_acknowledge(NOW, DELAYS.delay));
        receiver.delay_is_over();
        assert!(receiver.must_acknowledge(NOW, DELAYS.delay));
        let mut late = of_packets(18);
        late.requests(NOW + DELAYS.delay, DELAYS);
        late.arrived(NOW, 18, false, DELAYS);
        late.read_all();
        assert!(late.must_acknowledge(NOW, DELAYS.delay));
    }

    #[test]
    fn the_newest_run_comes_first() {
        let mut receiver = Receiver::default();
        for number in [2, 3, 7, 5, 4] {
            receiver.arrived(NOW, number, false, DELAYS);
        }
        let acknowledgement = receiver.acknowledge();
        assert_eq!(acknowledgement.cumulative, 0);
        assert_eq!(acknowledgement.blocks, [(2, 6), (7, 8), (0, 0)]);
        receiver.arrived(NOW, 0, false, DELAYS);
        receiver.arrived(NOW, 1, false, DELAYS);
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
                receiver.arrived(NOW, *number, false, DELAYS);
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
