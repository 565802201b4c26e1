// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The round-trip times of a flow that sends bursts: a time for each burst (TIMELY, section 3.1), and the planned time of
//! the next one (sections 3.3 and 5). Does not send.

use crate::engine::rounding::Rounding;
use onramp_cc::nic::{Burst, Completion, USED};
use onramp_units::{Rate, Sim, Span, Time};
use std::collections::VecDeque;

/// Bursts of one flow.
#[derive(Default)]
pub(super) struct Segments {
    /// Those that are not acknowledged, in order.
    open: VecDeque<Segment>,
    /// The one that leaves now: since when it is due and since when it leaves, and its bytes on the wire so far.
    leaving: Option<(Time<Sim>, Time<Sim>, u32)>,
    last: Option<Last>,
    /// The next one is not due before, because the window was full.
    room_at: Option<Time<Sim>>,
    /// End of the last complete one.
    completed: u64,
}

/// The burst that left last.
#[derive(Clone, Copy)]
struct Last {
    began: Time<Sim>,
    wire_bytes: u32,
    /// When the next one is due at the rate that the flow had then.
    next_at: Time<Sim>,
}

#[derive(Clone, Copy)]
struct Segment {
    end: u64,
    /// When it was handed to the NIC.
    posted: Time<Sim>,
    /// Its own time on the line.
    wire_time: Span,
    is_limited: bool,
}

/// The packet that has just been made.
pub(super) struct Made {
    pub now: Time<Sim>,
    /// Its burst was due at this time, if it is the first.
    pub due: Time<Sim>,
    pub wire_bytes: u32,
    /// Sequence number behind it.
    pub end: u64,
    pub is_last: bool,
}

impl Segments {
    /// A packet leaves at `rate`, which is the flow's; returns when the next one is due.
    pub fn left(
        &mut self,
        packet: &Made,
        burst: Burst,
        rate: Rate,
        rounding: Rounding,
    ) -> Time<Sim> {
        let first = (packet.due.min(packet.now), packet.now, 0);
        let (posted, began, before) = self.leaving.unwrap_or(first);
        let wire_bytes = before + packet.wire_bytes;
        if !packet.is_last {
            self.leaving = Some((posted, began, wire_bytes));
            return packet.now + rounding.wire_time(packet.wire_bytes, burst.rate);
        }
        self.open.push_back(Segment {
            end: packet.end,
            posted,
            wire_time: rounding.wire_time(wire_bytes, burst.rate),
            is_limited: self.is_late(began),
        });
        let next_at = began + rounding.wire_time(wire_bytes, rate);
        self.last = Some(Last {
            began,
            wire_bytes,
            next_at,
        });
        self.leaving = None;
        next_at
    }

    /// Whether a part of a burst has left.
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Whether the rest of a burst follows at once, because it leaves at the rate of the line.
    pub fn goes_on(&self, next_at: Time<Sim>, line_free_at: Time<Sim>) -> bool {
        self.leaving.is_some() && next_at <= line_free_at
    }

    /// Whether a burst that begins now is so late that the flow uses less of its rate than it should.
    fn is_late(&self, began: Time<Sim>) -> bool {
        let Some(last) = self.last else {
            return false;
        };
        let (planned, taken) = (last.next_at - last.began, began - last.began);
        planned.as_s_f64() < USED * taken.as_s_f64()
    }

    /// The window was full until now. The wait for room is no round-trip time: nothing was handed to the NIC.
    pub fn has_room(&mut self, now: Time<Sim>) {
        self.room_at = Some(now);
    }

    /// When the next burst is due at the present rate: a lower rate delays a planned one, a higher one changes nothing.
    /// None while a burst leaves.
    pub fn planned_again(&self, rate: Rate, rounding: Rounding) -> Option<Time<Sim>> {
        let last = self.last.filter(|_| self.leaving.is_none())?;
        let at_rate = last.began + rounding.wire_time(last.wire_bytes, rate);
        Some(
            at_rate
                .max(last.next_at)
                .max(self.room_at.unwrap_or(at_rate)),
        )
    }

    /// The oldest burst that an acknowledgement of all bytes below `acked` completes now.
    pub fn complete(&mut self, acked: u64, now: Time<Sim>) -> Option<Completion> {
        let segment = *self.open.front().filter(|segment| segment.end <= acked)?;
        self.open.pop_front();
        let bytes = segment.end - self.completed.min(segment.end);
        self.completed = segment.end;
        Some(Completion {
            now,
            bytes,
            rtt: now - segment.posted - segment.wire_time,
            is_limited: segment.is_limited,
        })
    }

    /// The flow sends again from `byte` on. What it had sent has no round-trip time.
    pub fn go_back(&mut self, byte: u64) {
        self.open.clear();
        self.leaving = None;
        self.completed = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = match Rate::from_bits_per_s(100_000_000) {
        Some(rate) => rate,
        None => panic!("above zero"),
    };
    const LINE: Rate = match Rate::from_bits_per_s(10_000_000_000) {
        Some(rate) => rate,
        None => panic!("above zero"),
    };
    const BURST: Burst = Burst {
        bytes: 2_000,
        rate: LINE,
    };

    fn at(us: i64) -> Time<Sim> {
        Time::ZERO + Span::from_us(us)
    }

    /// A packet of 1,250 bytes (1 us of the line) leaves at `now`, due at `due`.
    fn leave(segments: &mut Segments, due_us: i64, now_us: i64, end: u64) -> Time<Sim> {
        let packet = Made {
            now: at(now_us),
            due: at(due_us),
            wire_bytes: 1_250,
            end,
            is_last: end.is_multiple_of(2_000),
        };
        segments.left(&packet, BURST, RATE, Rounding::Exact)
    }

    #[test]
    fn a_burst_has_one_round_trip_time_without_its_own_time_on_the_line() {
        let mut segments = Segments::default();
        assert_eq!(leave(&mut segments, 5, 10, 1_000), at(11));
        // 2,500 bytes at 100 Mbit/s since the first packet.
        assert_eq!(leave(&mut segments, 11, 11, 2_000), at(210));
        assert_eq!(segments.complete(1_000, at(40)), None);
        let completion = segments.complete(2_000, at(40)).expect("it is complete");
        // Since it was due: it waited for 5 us in the NIC.
        assert_eq!(completion.rtt, Span::from_us(40 - 5 - 2));
        assert_eq!((completion.bytes, completion.is_limited), (2_000, false));
        assert_eq!(segments.complete(2_000, at(41)), None);
    }

    #[test]
    fn a_lower_rate_delays_the_next_burst_and_a_higher_one_does_not_hasten_it() {
        let mut segments = Segments::default();
        leave(&mut segments, 0, 0, 1_000);
        assert_eq!(segments.planned_again(RATE, Rounding::Exact), None);
        leave(&mut segments, 1, 1, 2_000);
        let half = Rate::from_bits_per_s(50_000_000).expect("above zero");
        assert_eq!(segments.planned_again(half, Rounding::Exact), Some(at(400)));
        assert_eq!(segments.planned_again(LINE, Rounding::Exact), Some(at(200)));
    }

    #[test]
    fn a_flow_that_uses_less_than_four_fifths_of_its_rate_is_limited() {
        for (began_us, is_limited) in [(249, false), (251, true)] {
            let mut segments = Segments::default();
            leave(&mut segments, 0, 0, 1_000);
            leave(&mut segments, 1, 1, 2_000);
            leave(&mut segments, 200, began_us, 3_000);
            leave(&mut segments, began_us, began_us + 1, 4_000);
            let second = [4_000, 4_000].map(|acked| segments.complete(acked, at(999)))[1];
            assert_eq!(second.expect("complete").is_limited, is_limited);
        }
    }

    #[test]
    fn what_is_sent_again_has_no_round_trip_time() {
        let mut segments = Segments::default();
        leave(&mut segments, 0, 0, 1_000);
        leave(&mut segments, 1, 1, 2_000);
        segments.go_back(0);
        assert_eq!(segments.complete(2_000, at(50)), None);
    }
}
