//! The event queue: what happens next, in one total order.
//!
//! **Order.** Events come by time; of the same picosecond, by their number. A number is given when
//! the cause of the event is handled, so that effects keep the order of their causes. The end of a
//! transmission takes its number when the transmission starts, whether or not anybody will wait for
//! it ([`Events::reserve`]). The order depends on nothing but the run: one seed, one order.
//!
//! A timing wheel of 256 ps buckets holds the next 2 us; what is further away waits in a heap. A
//! bucket is sorted when its turn comes.

use onramp_units::{Sim, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Width of a bucket is 2^8 ps: a few events each on the papers' fabric at full load.
const BUCKET_BITS: u32 = 8;
/// Buckets of the wheel, a power of two: 2 us, beyond a link's delay of 1 us.
const BUCKETS: usize = 1 << 13;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A packet is at the port that it was sent to.
    Arrival { packet: u32 },
    /// A port's line is free.
    LineFree { port: u32 },
    /// A host wanted to be asked again.
    Wake { host: u32 },
    /// A flow may have waited too long.
    Timeout { pair: u32 },
    /// A timer of a TCP connection may be due.
    TcpTimer { connection: u32 },
    /// A host's NIC interrupts.
    Interrupt { host: u32 },
    /// A flow without size stops.
    Stop { pair: u32 },
    /// Flows of the plan are due.
    FlowsDue,
    /// A flow starts.
    FlowStart { flow: u32 },
}

/// When it happens, its number, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    pub at: Time<Sim>,
    pub number: u64,
    pub what: What,
}

/// Events to come.
pub(crate) struct Events {
    /// The bucket under way, its next event last.
    current: Vec<Event>,
    /// Number of that bucket since time zero.
    bucket: i64,
    wheel: Vec<Vec<Event>>,
    /// A bit for each bucket of the wheel that is not empty.
    occupied: [u64; BUCKETS / 64],
    far: BinaryHeap<Reverse<Event>>,
    next_number: u64,
}

fn bucket_of(at: Time<Sim>) -> i64 {
    at.ticks() >> BUCKET_BITS
}

impl Events {
    pub fn new() -> Events {
        Events {
            current: Vec::new(),
            bucket: 0,
            wheel: vec![Vec::new(); BUCKETS],
            occupied: [0; BUCKETS / 64],
            far: BinaryHeap::new(),
            next_number: 0,
        }
    }

    /// A number for an event that may be scheduled later.
    pub fn reserve(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Schedules `what` after everything that has been scheduled for the same time.
    pub fn schedule(&mut self, at: Time<Sim>, what: What) -> u64 {
        let number = self.reserve();
        self.schedule_reserved(at, number, what);
        number
    }

    /// Schedules `what` with a number from [`Events::reserve`]. `(at, number)` is still to come.
    pub fn schedule_reserved(&mut self, at: Time<Sim>, number: u64, what: What) {
        let event = Event { at, number, what };
        let bucket = bucket_of(at);
        debug_assert!(bucket >= self.bucket, "an event in the past");
        if bucket == self.bucket {
            let place = self.current.partition_point(|other| *other > event);
            self.current.insert(place, event);
        } else if bucket - self.bucket < BUCKETS as i64 {
            self.put(bucket, event);
        } else {
            self.far.push(Reverse(event));
        }
    }

    fn put(&mut self, bucket: i64, event: Event) {
        let slot = bucket as usize % BUCKETS;
        self.wheel[slot].push(event);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// The next event, if it is not after `end`.
    pub fn pop(&mut self, end: Time<Sim>) -> Option<Event> {
        if self.current.is_empty() {
            self.turn();
        }
        if self.current.last()?.at > end {
            return None;
        }
        self.current.pop()
    }

    /// Goes to the next bucket that holds an event.
    fn turn(&mut self) {
        let on_wheel = self.next_on_wheel();
        let far = self.far.peek().map(|Reverse(event)| bucket_of(event.at));
        let Some(next) = on_wheel.or(far) else { return };
        self.bucket = next;
        while let Some(Reverse(event)) = self.far.peek().copied() {
            let bucket = bucket_of(event.at);
            if bucket - next >= BUCKETS as i64 {
                break;
            }
            self.far.pop();
            self.put(bucket, event);
        }
        let slot = next as usize % BUCKETS;
        std::mem::swap(&mut self.current, &mut self.wheel[slot]);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        self.current
            .sort_unstable_by_key(|event| Reverse((event.at, event.number)));
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
    use proptest::prelude::*;

    const END: Time<Sim> = Time::from_ticks(i64::MAX);

    fn at(ps: i64) -> Time<Sim> {
        Time::from_ticks(ps)
    }

    #[test]
    fn a_reserved_number_comes_before_later_ones_of_its_time() {
        let mut events = Events::new();
        let early = events.reserve();
        events.schedule(at(5), What::FlowsDue);
        events.schedule_reserved(at(5), early, What::Wake { host: 1 });
        assert_eq!(events.pop(END).unwrap().what, What::Wake { host: 1 });
        assert_eq!(events.pop(END).unwrap().what, What::FlowsDue);
        assert_eq!(events.pop(END), None);
    }

    #[test]
    fn nothing_after_the_end_is_taken() {
        let mut events = Events::new();
        events.schedule(at(10), What::FlowsDue);
        assert_eq!(events.pop(at(9)), None);
        assert!(events.pop(at(10)).is_some());
    }

    #[test]
    fn an_hour_without_events_is_one_step() {
        let mut events = Events::new();
        events.schedule(at(3_600_000_000_000_000), What::FlowsDue);
        assert!(events.pop(END).is_some());
    }

    proptest! {
        /// Whatever is scheduled while time goes by comes out in the order of (time, number).
        #[test]
        fn events_come_in_their_order(
            steps in prop::collection::vec(
                (prop_oneof![0i64..1_000, 0i64..5_000_000, 0i64..1_000_000_000], 0usize..3),
                1..300,
            )
        ) {
            let (mut events, mut now) = (Events::new(), at(0));
            let (mut scheduled, mut seen) = (Vec::new(), Vec::new());
            for (ahead, pops) in steps {
                let when = at(now.ticks() + ahead);
                scheduled.push((when, events.schedule(when, What::FlowsDue)));
                for _ in 0..pops {
                    if let Some(event) = events.pop(END) {
                        now = event.at;
                        seen.push((event.at, event.number));
                    }
                }
            }
            while let Some(event) = events.pop(END) {
                seen.push((event.at, event.number));
            }
            scheduled.sort();
            prop_assert_eq!(scheduled, seen);
        }
    }
}
