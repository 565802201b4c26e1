// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about the sending end, in virtual time.

use super::timers::PROBE;
use super::*;
use crate::tcp::receiver::{Delays, Receiver};
use onramp_cc::tcp::reno;
use proptest::prelude::*;

fn at(us: i64) -> Time<Sim> {
    Time::ZERO + Span::from_us(us)
}

fn ack(cumulative: u32, block: (u32, u32)) -> Acknowledgement {
    Acknowledgement {
        cumulative,
        blocks: [block, (0, 0), (0, 0)],
        marked: 0,
        short: 0,
        last: None,
    }
}

fn new_sender(algorithm: &TcpAlgorithm) -> Sender {
    let transport = Arc::new(Transport::default());
    let device = Device {
        segment: 45,
        paces: false,
    };
    Sender::new(algorithm, transport, device, Span::from_us(100))
}

/// After the first window of 10 packets was sent at 0 and nothing else.
fn started(total: u32) -> Sender {
    let mut sender = new_sender(&TcpAlgorithm::Reno(reno::Params::default()));
    sender.resume(Time::ZERO, total);
    let segment = sender.next_segment(at(0), 64).unwrap();
    assert_eq!((segment.first, segment.count), (0, total.min(10)));
    assert_eq!(sender.next_segment(at(0), 64), None);
    sender
}

#[test]
fn slow_start_sends_two_for_each_acknowledged() {
    let mut sender = started(100);
    sender.acknowledged(at(100), &ack(4, (0, 0)));
    let segment = sender.next_segment(at(100), 64).unwrap();
    assert_eq!(
        (segment.first, segment.count, segment.again),
        (10, 8, false)
    );
}

#[test]
fn three_packets_above_a_hole_bring_it_back_and_halve_the_window() {
    let mut sender = started(100);
    sender.acknowledged(at(100), &ack(0, (1, 2)));
    assert_eq!(sender.retransmissions, 0);
    sender.acknowledged(at(101), &ack(0, (1, 4)));
    let segment = sender.next_segment(at(101), 64).unwrap();
    let hole = Segment {
        first: 0,
        count: 1,
        again: true,
    };
    assert_eq!(segment, hole);
    sender.acknowledged(at(201), &ack(10, (0, 0)));
    // And it grows by one for the seven packets that this delivers.
    assert_eq!(sender.window().packets, 5 + 1);
}

#[test]
fn one_packet_above_a_hole_is_given_time() {
    let mut sender = started(100);
    sender.acknowledged(at(100), &ack(0, (1, 2)));
    assert!(sender.next_segment(at(100), 64).is_none_or(|s| !s.again));
    // A quarter of the shortest RTT later.
    assert_eq!(sender.timer(), Some(at(125)));
    sender.timer_expired(at(125));
    assert!(sender.next_segment(at(125), 64).unwrap().again);
}

/// An interrupt brings two acknowledgements: the first makes room for new data, the second shows the hole.
#[test]
fn what_is_sent_again_is_not_lost_again_for_data_that_left_before_it_at_the_same_instant() {
    let mut sender = started(100);
    sender.acknowledged(at(100), &ack(2, (0, 0)));
    assert_eq!(sender.next_segment(at(100), 64).unwrap().first, 10);
    sender.acknowledged(at(100), &ack(2, (3, 10)));
    let again = sender.next_segment(at(100), 64).unwrap();
    assert_eq!((again.first, again.again), (2, true));
    sender.acknowledged(at(200), &ack(2, (3, 14)));
    assert!(sender
        .next_segment(at(200), 64)
        .is_none_or(|segment| !segment.again));
    assert_eq!(sender.retransmissions, 1);
}

#[test]
fn a_lost_tail_is_probed_before_the_timeout() {
    let mut sender = started(10);
    sender.acknowledged(at(100), &ack(8, (0, 0)));
    let probe_at = at(100) + Span::from_us(200) + PROBE;
    assert_eq!(sender.timer(), Some(probe_at));
    sender.timer_expired(probe_at);
    let segment = sender.next_segment(probe_at, 64).unwrap();
    assert_eq!((segment.first, segment.again), (9, true));
    // The probe's acknowledgement shows the hole.
    let answered = probe_at + Span::from_us(100);
    sender.acknowledged(answered, &ack(8, (9, 10)));
    let segment = sender.next_segment(answered, 64).unwrap();
    assert_eq!((segment.first, segment.again), (8, true));
    sender.acknowledged(answered + Span::from_us(100), &ack(10, (0, 0)));
    assert!(sender.is_done());
    assert_eq!((sender.timeouts, sender.timer()), (0, None));
}

#[test]
fn a_timeout_starts_again_with_one_packet_and_doubles() {
    let mut sender = started(10);
    let probe_at = at(200) + PROBE;
    sender.timer_expired(probe_at);
    assert_eq!(sender.next_segment(probe_at, 64).unwrap().first, 9);
    let timeout_at = probe_at + Span::from_us(200_100);
    assert_eq!(sender.timer(), Some(timeout_at));
    sender.timer_expired(timeout_at);
    let segment = sender.next_segment(timeout_at, 64).unwrap();
    assert_eq!((segment.first, segment.count), (0, 1));
    assert_eq!(sender.next_segment(timeout_at, 64), None);
    assert_eq!(sender.timer(), Some(timeout_at + Span::from_us(400_200)));
    assert_eq!(sender.timeouts, 1);
    let answered = timeout_at + Span::from_us(100);
    sender.acknowledged(answered, &ack(1, (0, 0)));
    let segment = sender.next_segment(answered, 64).unwrap();
    assert_eq!((segment.first, segment.count, segment.again), (1, 2, true));
}

/// What was sent once was sent before all that follows it, on which [`Sender::find_losses`] relies.
fn is_in_order(sender: &Sender) -> bool {
    let mut soonest = Time::from_ticks(i64::MAX);
    sender.outstanding.iter().rev().all(|packet| {
        let is_before = packet.again || packet.sent_at <= soonest;
        soonest = soonest.min(packet.sent_at);
        is_before
    })
}

proptest! {
    /// A network that loses what it likes and acknowledges each packet: every packet arrives.
    #[test]
    fn whatever_is_lost_arrives_in_the_end(
        total in 1u32..200,
        losses in prop::collection::vec(any::<bool>(), 0..200),
        most in 1u32..50,
    ) {
        for algorithm in onramp_cc::tcp::entries().map(|entry| (entry.algorithm)()) {
            let mut sender = new_sender(&algorithm);
            sender.resume(Time::ZERO, total);
            let mut receiver = Receiver::default();
            let delays = Delays {
                delay: Span::from_ms(40),
                pause: Span::from_ms(200),
            };
            let mut lost = losses.iter().copied();
            let mut wire: VecDeque<(Time<Sim>, u32)> = VecDeque::new();
            let mut now = at(0);
            while !sender.is_done() {
                while let Some(segment) = sender.next_segment(now, most) {
                    for number in segment.first..segment.first + segment.count {
                        if !lost.next().unwrap_or(false) {
                            wire.push_back((now + Span::from_us(100), number));
                        }
                    }
                }
                prop_assert!(sender.in_flight() <= 200);
                let timer = sender.timer().expect("something is outstanding");
                match wire.front().copied().filter(|(arrival, _)| *arrival <= timer) {
                    Some((arrival, number)) => {
                        wire.pop_front();
                        now = arrival;
                        receiver.arrived(now, number, false, delays);
                        sender.acknowledged(now, &receiver.acknowledge());
                    }
                    None => {
                        now = timer;
                        sender.timer_expired(now);
                    }
                }
                prop_assert!(now < at(3_600_000_000), "stuck");
                prop_assert!(is_in_order(&sender), "{:?}", sender.outstanding);
            }
            prop_assert_eq!(receiver.expected, total);
        }
    }
}
