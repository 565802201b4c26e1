// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Coded pairs of one edge, put together from the messages and stamps that come in: at its near end,
//! which probes, and at its far end, which acks. No sockets, no clocks.

use std::collections::VecDeque;

use onramp_sync::probe::{Far, Near, Pair, Probe as OneWayDelays};
use onramp_units::Time;

use crate::wire::Probe;

/// Pairs that the near end waits for: transmit stamps of acks come with the next pair's.
const OUTSTANDING: usize = 8;

/// A stamp, ns of the clock of who made it.
type Stamp = Option<i64>;

/// A pair on its way there and back; each by index.
#[derive(Debug, Clone, Copy, Default)]
struct Trip {
    seq: u64,
    sent: [Stamp; 2],
    received: [Stamp; 2],
    ack_sent: [Stamp; 2],
    ack_received: [Stamp; 2],
    /// The stamps of the far end in its fleet time.
    received_fleet: [Stamp; 2],
    ack_sent_fleet: [Stamp; 2],
    out_done: bool,
    back_done: bool,
}

/// A pair of one direction as one end knows it: its own stamps on its own clock, and the other end's in fleet time, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// It went to the other end; otherwise it came from there.
    pub is_out: bool,
    /// By index.
    pub own: [i64; 2],
    /// Likewise.
    pub other_fleet: [i64; 2],
}

/// A round trip that is complete at the near end, for the far end: stamps of the near end on its own clock, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complete {
    /// Low half of the pair's number.
    pub pair: u32,
    /// When its probes left.
    pub sent: [i64; 2],
    /// When its acks arrived.
    pub received: [i64; 2],
}

/// The near end of an edge.
#[derive(Default)]
pub struct NearEnd {
    trips: VecDeque<Trip>,
    /// The epoch of the far clock, once it was heard.
    pub far_epoch: Option<u32>,
    /// Pairs to the far end that are complete.
    pub out: Vec<Pair<Near, Far>>,
    /// Pairs from it.
    pub back: Vec<Pair<Far, Near>>,
    /// Pairs that are complete since somebody has looked, for the check of fleet time.
    pub seen: Vec<Seen>,
    /// Half the gap between the clouds in the last windows, ns, the oldest first.
    pub gaps: VecDeque<f64>,
}

impl NearEnd {
    /// Pair `seq` is about to be sent.
    pub fn begin(&mut self, seq: u64) {
        if self.trips.len() == OUTSTANDING {
            self.trips.pop_front();
        }
        self.trips.push_back(Trip {
            seq,
            ..Trip::default()
        });
    }

    /// The newest round trip of which all stamps of this end are known.
    pub fn complete(&self) -> Option<Complete> {
        let complete = |trip: &Trip| {
            Some(Complete {
                pair: trip.seq as u32,
                sent: [trip.sent[0]?, trip.sent[1]?],
                received: [trip.ack_received[0]?, trip.ack_received[1]?],
            })
        };
        self.trips.iter().rev().find_map(complete)
    }

    /// A probe of pair `seq` left at `at`.
    pub fn sent(&mut self, seq: u64, index: u8, at: i64) {
        self.with(seq, |trip| {
            trip.sent[usize::from(index)].get_or_insert(at);
        });
    }

    /// An ack arrived at `at`, if the kernel said when. False: of no pair that we wait for.
    pub fn ack(&mut self, ack: &Probe, at: Stamp) -> bool {
        if self.far_epoch.is_some_and(|epoch| epoch != ack.epoch) {
            *self = NearEnd::default(); // all that is known is of another clock
        }
        self.far_epoch = Some(ack.epoch);
        let index = usize::from(ack.index);
        let known = self.with(ack.seq, |trip| {
            // What comes first counts, here and below: a repeated ack arrives late.
            trip.received[index] = trip.received[index].or(stamp(ack.received_mono_ns));
            trip.received_fleet[index] =
                trip.received_fleet[index].or(stamp(ack.received_fleet_ns));
            trip.ack_received[index] = trip.ack_received[index].or(at);
        });
        let before = self.trips.iter().find(|trip| trip.seq as u32 == ack.before);
        if let (true, Some(before)) = (known, before.map(|trip| trip.seq)) {
            self.with(before, |trip| {
                trip.ack_sent[index] = trip.ack_sent[index].or(stamp(ack.sent_mono_ns));
                trip.ack_sent_fleet[index] =
                    trip.ack_sent_fleet[index].or(stamp(ack.sent_fleet_ns));
            });
        }
        known
    }

    /// Forgets what is under way: its stamps are of a clock that has been stepped.
    pub fn forget(&mut self) {
        self.trips.clear();
    }

    fn with(&mut self, seq: u64, change: impl FnOnce(&mut Trip)) -> bool {
        let Some(trip) = self.trips.iter_mut().find(|trip| trip.seq == seq) else {
            return false;
        };
        change(trip);
        if !trip.out_done {
            if let Some(pair) = pair(trip.sent, trip.received) {
                trip.out_done = true;
                self.out.push(pair);
                self.seen.extend(seen(true, trip.sent, trip.received_fleet));
            }
        }
        if !trip.back_done {
            if let Some(pair) = pair(trip.ack_sent, trip.ack_received) {
                trip.back_done = true;
                self.back.push(pair);
                self.seen
                    .extend(seen(false, trip.ack_received, trip.ack_sent_fleet));
            }
        }
        true
    }
}

/// None if a stamp lacks, or if the other end has no fleet time.
fn seen(is_out: bool, own: [Stamp; 2], other_fleet: [Stamp; 2]) -> Option<Seen> {
    Some(Seen {
        is_out,
        own: [own[0]?, own[1]?],
        other_fleet: [other_fleet[0]?, other_fleet[1]?],
    })
}

fn stamp(ns: i64) -> Stamp {
    (ns != 0).then_some(ns)
}

fn pair<From, To>(sent: [Stamp; 2], received: [Stamp; 2]) -> Option<Pair<From, To>>
where
    From: onramp_units::Clock,
    To: onramp_units::Clock,
{
    let way = |index: usize| {
        Some(OneWayDelays {
            sent: Time::from_ticks(sent[index]?),
            received: Time::from_ticks(received[index]?),
        })
    };
    Some(Pair {
        first: way(0)?,
        second: way(1)?,
    })
}

/// The far end of an edge: what it has to ack, and when its last acks left.
#[derive(Debug, Default)]
pub struct FarEnd {
    asked: Option<Asked>,
    /// The last acks, the newest last.
    acked: VecDeque<Acked>,
    /// The epoch of the near clock, once it was heard.
    epoch: Option<u32>,
    /// Pairs that are complete since somebody has looked, for the check of fleet time.
    pub seen: Vec<Seen>,
}

/// An acked pair; each by index.
#[derive(Debug, Clone, Copy)]
struct Acked {
    seq: u64,
    received: [Stamp; 2],
    ack_sent: [Stamp; 2],
    /// The stamps of the near end in its fleet time.
    sent_fleet: [Stamp; 2],
    ack_received_fleet: [Stamp; 2],
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    seq: u64,
    received: [Stamp; 2],
    /// Its second probe has come: it waits to be acked.
    complete: bool,
}

impl FarEnd {
    /// A probe arrived at `at`. True: with it its pair is complete, and may be acked.
    ///
    /// A pair that comes before the last one is acked does not take its place: half of it might be
    /// acked then, and the rest again, and the near end would take the stamps of one ack for the other's.
    pub fn probe(&mut self, probe: &Probe, at: Stamp) -> bool {
        if self.epoch.is_some_and(|epoch| epoch != probe.epoch) {
            self.forget();
        }
        self.epoch = Some(probe.epoch);
        self.hear(probe);
        let mut asked = match self.asked {
            Some(asked) if asked.seq == probe.seq => asked,
            Some(asked) if asked.complete => return false,
            _ => Asked {
                seq: probe.seq,
                received: [None; 2],
                complete: false,
            },
        };
        asked.received[usize::from(probe.index)] = at;
        asked.complete = probe.index == 1;
        self.asked = Some(asked);
        asked.complete
    }

    /// The acks of the last complete pair, which they end; `id` is our number for them. They lack fleet time.
    pub fn acks(&mut self, id: u32) -> Option<[Probe; 2]> {
        let asked = self.asked.take()?;
        let before = self.acked.back();
        let ack = |index: usize| Probe {
            index: index as u8,
            seq: asked.seq,
            received_mono_ns: asked.received[index].unwrap_or(0),
            sent_mono_ns: before.map_or(0, |acked| acked.ack_sent[index].unwrap_or(0)),
            before: before.map_or(0, |acked| acked.seq as u32),
            id,
            ..Probe::default()
        };
        let acks = [ack(0), ack(1)];
        if self.acked.len() == OUTSTANDING {
            self.acked.pop_front();
        }
        self.acked.push_back(Acked {
            seq: asked.seq,
            received: asked.received,
            ack_sent: [None; 2],
            sent_fleet: [None; 2],
            ack_received_fleet: [None; 2],
        });
        Some(acks)
    }

    /// A probe names an earlier pair, with the near end's stamps of it in fleet time.
    fn hear(&mut self, probe: &Probe) {
        let index = usize::from(probe.index);
        let earlier = self.acked.iter_mut();
        let Some(acked) = earlier.rev().find(|acked| acked.seq as u32 == probe.before) else {
            return;
        };
        let is_whole = |acked: &Acked| acked.sent_fleet.iter().all(Option::is_some);
        let was_whole = is_whole(acked);
        acked.sent_fleet[index] = acked.sent_fleet[index].or(stamp(probe.sent_fleet_ns));
        acked.ack_received_fleet[index] =
            acked.ack_received_fleet[index].or(stamp(probe.received_fleet_ns));
        if is_whole(acked) && !was_whole {
            self.seen
                .extend(seen(false, acked.received, acked.sent_fleet));
            self.seen
                .extend(seen(true, acked.ack_sent, acked.ack_received_fleet));
        }
    }

    /// An ack of pair `seq` left at `at`.
    pub fn sent(&mut self, seq: u64, index: u8, at: i64) {
        if let Some(acked) = self.acked.iter_mut().rev().find(|acked| acked.seq == seq) {
            acked.ack_sent[usize::from(index)].get_or_insert(at);
        }
    }

    /// Forgets what is under way: its stamps are of a clock that has been stepped.
    pub fn forget(&mut self) {
        *self = FarEnd::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AHEAD: i64 = 1_000_000;
    const DELAY: i64 = 5_000;

    /// Both ends, the far clock 1 ms ahead, 5 us each way.
    struct Edge {
        near: NearEnd,
        far: FarEnd,
    }

    impl Edge {
        fn new() -> Edge {
            Edge {
                near: NearEnd::default(),
                far: FarEnd::default(),
            }
        }

        fn exchange(&mut self, seq: u64, at: i64, lose: impl Fn(bool, u8) -> bool) {
            self.near.begin(seq);
            for index in 0..2u8 {
                let sent = at + 50_000 * i64::from(index);
                self.near.sent(seq, index, sent);
                let probe = Probe {
                    seq,
                    index,
                    ..Probe::default()
                };
                if !lose(true, index) {
                    self.far.probe(&probe, Some(sent + DELAY + AHEAD));
                }
            }
            for ack in self.far.acks(7).into_iter().flatten() {
                let sent = at + 1_000_000 + 50_000 * i64::from(ack.index);
                self.far.sent(ack.seq, ack.index, sent + AHEAD);
                if !lose(false, ack.index) {
                    assert!(self.near.ack(&ack, Some(sent + DELAY)));
                }
            }
        }
    }

    #[test]
    fn stamps_meet_across_two_exchanges() {
        let mut edge = Edge::new();
        for n in 0..10 {
            edge.exchange(100 + n, n as i64 * 7_000_000, |_, _| false);
        }
        assert_eq!((edge.near.out.len(), edge.near.back.len()), (10, 9));
        for pair in &edge.near.out {
            assert_eq!(
                pair.first.received.ticks() - pair.first.sent.ticks(),
                AHEAD + DELAY
            );
            assert_eq!(pair.distortion().as_ns(), 0);
        }
        for pair in &edge.near.back {
            assert_eq!(
                pair.first.received.ticks() - pair.first.sent.ticks(),
                DELAY - AHEAD
            );
        }
    }

    #[test]
    fn half_a_pair_is_none() {
        let mut edge = Edge::new();
        edge.exchange(1, 0, |_, _| false);
        edge.exchange(2, 7_000_000, |out, index| out && index == 0);
        edge.exchange(3, 14_000_000, |out, index| !out && index == 1);
        edge.exchange(4, 21_000_000, |_, _| false);
        assert_eq!(edge.near.out.len(), 2);
        // One stamp of pair 2's acks was in the ack that was lost, of pair 4's nobody has told yet.
        assert_eq!(edge.near.back.len(), 1);
    }

    /// Two pairs come between two ticks of the far end, the second one's second probe after the tick:
    /// its acks leave with the next one, and every other ack is lost.
    #[test]
    fn a_pair_is_acked_once_however_late() {
        let probe = |seq, index| Probe {
            seq,
            index,
            ..Probe::default()
        };
        let mut far = FarEnd::default();
        assert!(!far.probe(&probe(1, 0), Some(10)));
        assert!(far.probe(&probe(1, 1), Some(11)));
        assert!(!far.probe(&probe(2, 0), Some(20)));
        let acked = |far: &mut FarEnd| far.acks(7).map(|acks| acks[0].seq);
        assert_eq!(acked(&mut far), Some(1));
        assert!(far.probe(&probe(2, 1), Some(21)));
        assert_eq!(acked(&mut far), Some(2));
        assert_eq!(acked(&mut far), None);
    }

    #[test]
    fn the_first_stamp_of_an_ack_counts() {
        let mut near = NearEnd::default();
        near.begin(1);
        near.begin(2);
        for (seq, index, sent_mono_ns) in [(1, 0, 0), (1, 1, 0), (2, 0, 5), (2, 0, 9), (2, 1, 6)] {
            let ack = Probe {
                seq,
                index,
                before: 1,
                sent_mono_ns,
                ..Probe::default()
            };
            near.ack(&ack, Some(7));
        }
        assert_eq!(near.back[0].first.sent.ticks(), 5);
    }

    #[test]
    fn unasked_acks_are_told_apart() {
        let mut near = NearEnd::default();
        near.begin(5);
        assert!(!near.ack(
            &Probe {
                seq: 4,
                ..Probe::default()
            },
            Some(1)
        ));
        assert!(near.ack(
            &Probe {
                seq: 5,
                ..Probe::default()
            },
            Some(1)
        ));
    }

    proptest! {
        /// Whatever arrives in whatever order, a pair is made of its own stamps, once.
        #[test]
        fn nothing_is_counted_twice(acks in prop::collection::vec((0u64..12, 0u8..2, 0u32..12), 0..100)) {
            let mut near = NearEnd::default();
            (0..12).for_each(|seq| near.begin(seq));
            for (seq, index, before) in acks {
                near.sent(seq, index, 1);
                let ack = Probe {
                    seq,
                    index,
                    before,
                    received_mono_ns: 2,
                    sent_mono_ns: 3,
                    ..Probe::default()
                };
                near.ack(&ack, Some(4));
            }
            prop_assert!(near.out.len() <= OUTSTANDING && near.back.len() <= OUTSTANDING);
        }
    }
}
