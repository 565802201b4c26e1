// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The event queue: events in one total order.
//!
//! **Order.** Events are ordered by time, and within the same picosecond by [`Rank`]: arrivals in a
//! pseudo-random order (otherwise the lowest port would get the last room in every buffer), then lines by
//! port, then events that a node has scheduled for itself in scheduling order, then flows in the order of
//! the plan. Nodes affect each other only over lines, which takes time. So within a picosecond only the
//! order of one node's events matters, and this order depends neither on other nodes nor on the threads.
//!
//! For comparison with ns-3 the queue can use the order of ns-3: the order in which events were scheduled.
//! The end of a transmission gets its rank when the transmission starts, even if nothing waits for it, and
//! flows come last.
//!
//! A timing wheel of buckets has the next 2 us; later events are in a heap. A bucket is sorted when the time
//! reaches it. In a bucket an event has 16 bytes: its time within the bucket and its rank are one number.

use crate::engine::rounding::Rounding;
use onramp_units::{Sim, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Width of a bucket is 2^10 ps: some ten events each on the papers' fabric at full load.
const BUCKET_BITS: u32 = 10;
/// Buckets of the wheel, a power of two: 2 us, beyond a link's delay of 1 us.
const BUCKETS: usize = 1 << 11;
/// Bits of a place; the bits above hold a time within a bucket.
const PLACE_BITS: u32 = u64::BITS - BUCKET_BITS;

/// Rank among the events of the same picosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// At a port; two packets cannot arrive there at the same time.
    Arrival(u32),
    /// An event of a port's line.
    Line(u32),
    /// An event that a node schedules for itself, in scheduling order.
    Own,
    /// An event of a flow of the plan.
    Flow(u32),
}

/// Time, place among the events of that time, and event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event<W> {
    pub at: Time<Sim>,
    pub place: u64,
    pub what: W,
}

/// An event in its bucket.
#[derive(Debug, Clone, Copy)]
struct Entry<W> {
    /// Time within the bucket, then place.
    key: u64,
    what: W,
}

/// Events to come.
pub(crate) struct Events<W> {
    /// The current bucket, its next event last.
    current: Vec<Entry<W>>,
    /// Number of that bucket since time zero.
    bucket: i64,
    wheel: Vec<Vec<Entry<W>>>,
    /// A bit for each bucket of the wheel that is not empty.
    occupied: [u64; BUCKETS / 64],
    far: BinaryHeap<Reverse<Event<W>>>,
    next_number: u64,
    /// ns-3's order.
    as_scheduled: bool,
}

/// The ranks, in the highest bits of a place.
const LINE: u64 = 1 << (PLACE_BITS - 2);
const OWN: u64 = 2 * LINE;
const FLOW: u64 = 3 * LINE;

/// A place among arrivals that differs between ports, in another order at each time: the mixing function
/// of SplitMix64 (Steele et al., OOPSLA 2014).
fn drawn(at: Time<Sim>, port: u32) -> u64 {
    let mixed = (at.ticks() as u64 ^ u64::from(port) << 44).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 34) << 16 | u64::from(port as u16)
}

fn bucket_of(at: Time<Sim>) -> i64 {
    at.ticks() >> BUCKET_BITS
}

impl<W: Copy> Entry<W> {
    fn new(at: Time<Sim>, place: u64, what: W) -> Entry<W> {
        debug_assert!(place >> PLACE_BITS == 0);
        Entry {
            key: (at.ticks() as u64) << PLACE_BITS | place,
            what,
        }
    }

    /// In that bucket.
    fn event(&self, bucket: i64) -> Event<W> {
        Event {
            at: Time::from_ticks(bucket << BUCKET_BITS | (self.key >> PLACE_BITS) as i64),
            place: self.key & ((1 << PLACE_BITS) - 1),
            what: self.what,
        }
    }
}

impl<W: Copy + Ord> Events<W> {
    pub fn new(rounding: Rounding) -> Events<W> {
        Events {
            current: Vec::new(),
            bucket: 0,
            wheel: vec![Vec::new(); BUCKETS],
            occupied: [0; BUCKETS / 64],
            far: BinaryHeap::new(),
            next_number: 0,
            as_scheduled: rounding == Rounding::Ns3,
        }
    }

    /// Reserves the place of an event at `at`, which is scheduled now or later.
    #[inline]
    pub fn place(&mut self, at: Time<Sim>, rank: Rank) -> u64 {
        match rank {
            Rank::Flow(plan) => FLOW | u64::from(plan),
            Rank::Arrival(port) if !self.as_scheduled => drawn(at, port),
            Rank::Line(port) if !self.as_scheduled => LINE | u64::from(port),
            _ => {
                self.next_number += 1;
                OWN | self.next_number
            }
        }
    }

    /// Schedules `what` and returns its place.
    #[inline]
    pub fn schedule(&mut self, at: Time<Sim>, rank: Rank, what: W) -> u64 {
        let place = self.place(at, rank);
        self.schedule_in_place(at, place, what);
        place
    }

    /// Schedules `what` at a place from [`Events::place`]. `(at, place)` must be in the future.
    #[inline]
    pub fn schedule_in_place(&mut self, at: Time<Sim>, place: u64, what: W) {
        let bucket = bucket_of(at);
        debug_assert!(bucket >= self.bucket, "an event in the past");
        if (1..BUCKETS as i64).contains(&(bucket - self.bucket)) {
            self.put(bucket, Entry::new(at, place, what));
        } else {
            self.schedule_off_wheel(Event { at, place, what });
        }
    }

    /// An event in the current bucket, or beyond the wheel.
    #[inline(never)]
    fn schedule_off_wheel(&mut self, event: Event<W>) {
        if bucket_of(event.at) == self.bucket {
            let entry = Entry::new(event.at, event.place, event.what);
            let n = self.current.partition_point(|other| other.key > entry.key);
            self.current.insert(n, entry);
        } else {
            self.far.push(Reverse(event));
        }
    }

    #[inline]
    fn put(&mut self, bucket: i64, entry: Entry<W>) {
        let slot = bucket as usize % BUCKETS;
        self.wheel[slot].push(entry);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// The next event, if it is not after `end`.
    #[inline]
    pub fn pop(&mut self, end: Time<Sim>) -> Option<Event<W>> {
        if self.current.is_empty() {
            self.advance(end);
        }
        let event = self.current.last()?.event(self.bucket);
        if event.at > end {
            return None;
        }
        self.current.pop();
        Some(event)
    }

    /// The next event, if it is in the current bucket.
    pub fn next_soon(&self) -> Option<W> {
        Some(self.current.last()?.what)
    }

    /// Time of the next event, if there is one.
    pub fn next_at(&self) -> Option<Time<Sim>> {
        if let Some(entry) = self.current.last() {
            return Some(entry.event(self.bucket).at);
        }
        match self.next_on_wheel() {
            Some(bucket) => {
                let entries = &self.wheel[bucket as usize % BUCKETS];
                let first = entries.iter().min_by_key(|entry| entry.key)?;
                Some(first.event(bucket).at)
            }
            None => self.far.peek().map(|Reverse(event)| event.at),
        }
    }

    /// Advances to the next bucket with an event, if it begins by `end`.
    #[inline(never)]
    fn advance(&mut self, end: Time<Sim>) {
        let on_wheel = self.next_on_wheel();
        let far = self.far.peek().map(|Reverse(event)| bucket_of(event.at));
        let next = on_wheel.or(far).filter(|&next| next <= bucket_of(end));
        let Some(next) = next else { return };
        self.bucket = next;
        while let Some(Reverse(event)) = self.far.peek().copied() {
            let bucket = bucket_of(event.at);
            if bucket - next >= BUCKETS as i64 {
                break;
            }
            self.far.pop();
            self.put(bucket, Entry::new(event.at, event.place, event.what));
        }
        let slot = next as usize % BUCKETS;
        std::mem::swap(&mut self.current, &mut self.wheel[slot]);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        self.current
            .sort_unstable_by_key(|entry| Reverse(entry.key));
    }

    /// The first occupied bucket of the wheel after the current one.
    fn next_on_wheel(&self) -> Option<i64> {
        let start = (self.bucket as usize + 1) % BUCKETS;
        let words = self.occupied.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= !0 << (start % 64);
            } else if step == words {
                bits &= !(!0 << (start % 64));
            }
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                let ahead = (slot + BUCKETS - start) % BUCKETS;
                return Some(self.bucket + 1 + ahead as i64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event with a number.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct What(u32);
    use proptest::prelude::*;

    const END: Time<Sim> = Time::from_ticks(i64::MAX);

    fn at(ps: i64) -> Time<Sim> {
        Time::from_ticks(ps)
    }

    fn events() -> Events<What> {
        Events::new(Rounding::Exact)
    }

    fn start(flow: u32) -> What {
        What(flow)
    }

    #[test]
    fn ranks_order_what_happens_at_once() {
        let ranks = [
            Rank::Flow(0),
            Rank::Own,
            Rank::Own,
            Rank::Line(1),
            Rank::Line(0),
            Rank::Arrival(6),
        ];
        let mut events = events();
        for (n, rank) in (0..).zip(ranks) {
            events.schedule(at(5), rank, start(n));
        }
        let seen: Vec<What> = std::iter::from_fn(|| Some(events.pop(END)?.what)).collect();
        assert_eq!(seen, [5, 4, 3, 1, 2, 0].map(start));
    }

    #[test]
    fn no_port_is_always_first() {
        let first = |ps: i64| (0..4).min_by_key(|port| drawn(at(ps), *port)).unwrap();
        let mut wins = [0; 4];
        (0..4_000).for_each(|n| wins[first(n * 83_840) as usize] += 1);
        // Within five standard deviations.
        assert!(wins.iter().all(|n| (863..1137).contains(n)), "{wins:?}");
        assert!((0..1000).all(|port| drawn(at(1 << 60), port) < LINE));
    }

    #[test]
    fn in_the_order_of_ns_3_a_place_is_kept_from_when_it_was_taken() {
        let mut events = Events::new(Rounding::Ns3);
        let early = events.place(at(5), Rank::Line(9));
        events.schedule(at(5), Rank::Arrival(0), start(0));
        events.schedule_in_place(at(5), early, start(1));
        assert_eq!(events.pop(END).unwrap().what, start(1));
        assert_eq!(events.pop(END).unwrap().what, start(0));
        assert_eq!(events.pop(END), None);
    }

    #[test]
    fn nothing_after_the_end_is_taken() {
        let mut events = events();
        events.schedule(at(10), Rank::Own, start(0));
        assert_eq!(events.pop(at(9)), None);
        assert!(events.pop(at(10)).is_some());
    }

    /// Events from another thread may precede all events in the queue.
    #[test]
    fn after_an_end_events_may_be_scheduled_before_the_next() {
        let mut events = events();
        for first in [5_000, 1_000_000_000] {
            events.schedule(at(first), Rank::Own, start(0));
            assert_eq!(events.pop(at(10)), None);
            assert_eq!(events.next_at(), Some(at(first)));
            events.schedule(at(1_500), Rank::Own, start(1));
            assert_eq!(events.next_at(), Some(at(1_500)));
            assert_eq!(events.pop(END).unwrap().at, at(1_500));
            assert_eq!(events.pop(END).unwrap().at, at(first));
            events = Events::new(Rounding::Exact);
        }
    }

    #[test]
    fn an_hour_without_events_is_one_step() {
        let mut events = events();
        events.schedule(at(3_600_000_000_000_000), Rank::Own, start(0));
        assert!(events.pop(END).is_some());
    }

    proptest! {
        /// Events that are scheduled while time advances come out in the order of (time, place).
        #[test]
        fn events_come_in_their_order(
            steps in prop::collection::vec(
                (prop_oneof![0i64..1_000, 0i64..5_000_000, 0i64..1_000_000_000], 0usize..3),
                1..300,
            )
        ) {
            let (mut events, mut now) = (events(), at(0));
            let (mut scheduled, mut seen) = (Vec::new(), Vec::new());
            for (ahead, pops) in steps {
                let when = at(now.ticks() + ahead);
                scheduled.push((when, events.schedule(when, Rank::Own, start(0))));
                for _ in 0..pops {
                    let next = events.next_at();
                    let event = events.pop(END);
                    prop_assert_eq!(next, event.map(|event| event.at));
                    if let Some(event) = event {
                        now = event.at;
                        seen.push((event.at, event.place));
                    }
                }
            }
            while let Some(event) = events.pop(END) {
                seen.push((event.at, event.place));
            }
            scheduled.sort();
            prop_assert_eq!(scheduled, seen);
        }
    }
}
