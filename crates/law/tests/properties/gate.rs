// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The gate: the rate it believes, and what may be in flight.

use super::{any_config, at, events, extreme, Sender};
use onramp_law::abi::onr_cfg;
use onramp_law::{Config, Flow, Law, Verdict};
use onramp_units::{Rate, Span};
use proptest::prelude::*;

const T_NS: i64 = 50_000;
const MSS: u32 = 1_448;
/// 30 tau of the default 1 ms.
const LASTING_NS: i64 = 30_000_000;
/// T and 100 allowances at 10 Gbit/s: 1448 B * 0.8 ns * 100, and rounding.
const FAR_NS: i64 = T_NS + 115_900;

fn gate() -> Config {
    let line = Rate::from_bits_per_s(10_000_000_000).expect("not zero");
    Config::new(Law::Gate, Span::from_ns(T_NS)).line_rate(line)
}

/// Bytes that leave at `now`, a segment at a time, until the gate holds one.
fn burst(flow: &mut Flow, config: &Config, now: i64) -> i64 {
    (0..1_000)
        .take_while(|i| {
            let goes = flow.may_go(config, at(now)).is_none();
            if goes {
                flow.sent(config, at(now), i * MSS, MSS);
            }
            goes
        })
        .count() as i64
        * i64::from(MSS)
}

/// A sender in a queue of a given delay, with twice that delay's worth in flight at line rate.
struct Backlogged {
    flow: Flow,
    config: Config,
    now: i64,
    next_seq: u32,
}

impl Backlogged {
    const SEGMENT: u32 = 10 * MSS;

    fn new() -> Backlogged {
        let mut backlogged = Backlogged {
            flow: Flow::default(),
            config: gate(),
            now: 0,
            next_seq: 0,
        };
        backlogged.sample(0); // the first OR-ACK is only where counting starts
        backlogged
    }

    /// A segment leaves, and right after it what fills the window; `owd` later its OR-ACK is here.
    fn sample(&mut self, owd: i64) {
        let (config, seq) = (&self.config, self.next_seq);
        let record = self.flow.sent(config, at(self.now), seq, Self::SEGMENT);
        let window = 2 * owd * 10 / 8;
        self.flow.sent(config, at(self.now), 0, window as u32);
        (self.now, self.next_seq) = (self.now + owd, seq.wrapping_add(Self::SEGMENT));
        let now = at(self.now);
        let verdict = self.flow.orack(config, &record, seq, now, now);
        assert_eq!(verdict, Verdict::Used);
    }

    /// Samples of `owd` for at least `span`.
    fn stay(&mut self, owd: i64, span: i64) {
        let end = self.now + span;
        while self.now < end {
            self.sample(owd);
        }
    }

    /// For how long the head is held from the newest OR-ACK on.
    fn hold(&self) -> i64 {
        let mut flow = self.flow; // asking marks the flow
        let opens = flow.may_go(&self.config, at(self.now));
        opens.map_or(0, |opens| opens.ticks() - self.now)
    }

    /// Whether the gate holds what is in flight down to T, where `owd` was the newest delay.
    fn gated(&self, owd: i64) -> bool {
        self.hold() > owd - T_NS
    }
}

#[test]
fn only_a_queue_far_above_the_threshold_for_long_is_not_ours() {
    for owd in [FAR_NS + 1_000, 400_000, 2_000_000] {
        let mut sender = Backlogged::new();
        sender.stay(owd, LASTING_NS - owd);
        assert!(sender.gated(owd), "{owd} ns, not yet for long");
        sender.stay(owd, 3 * owd);
        assert_eq!(sender.hold(), (owd - T_NS) / 2, "{owd} ns, for long");
    }
    let (mut sender, owd) = (Backlogged::new(), FAR_NS - 1_000);
    sender.stay(owd, 10 * LASTING_NS);
    assert!(sender.gated(owd), "a hundred flows of ours do that");
}

#[test]
fn a_single_delay_at_the_threshold_makes_the_queue_ours_again() {
    for owd in [400_000, 2_000_000] {
        let mut sender = Backlogged::new();
        sender.stay(owd, 2 * LASTING_NS);
        sender.sample(T_NS + 2);
        assert_eq!(sender.hold(), 1, "still above it");
        sender.sample(T_NS);
        assert!(sender.gated(T_NS), "at it");
        sender.stay(owd, LASTING_NS - owd);
        assert!(sender.gated(owd), "the wait begins anew");
    }
}

/// A queue as long as before is seen by who comes back, but he did not hold anything meanwhile.
#[test]
fn idling_makes_the_queue_ours_again() {
    let mut sender = Backlogged::new();
    sender.stay(400_000, 2 * LASTING_NS);
    let since = |sender: &Backlogged| {
        let flow = sender.flow.abi();
        (flow.above_since_mono_ns, flow.far_since_mono_ns)
    };
    assert!(since(&sender).0 > 0 && since(&sender).1 > 0);
    sender.now += 3_600_000_000_000;
    sender.flow.sent(&sender.config, at(sender.now), 0, MSS);
    assert_eq!(since(&sender), (0, 0));
}

proptest! {
    /// In a queue of others the head waits for half of the strawman's pause, or for what is in
    /// flight to be two delays' worth: not all that waited may burst at once.
    #[test]
    fn in_a_queue_of_others_a_flow_waits_for_half_the_pause_and_at_most_doubles(
        owd in FAR_NS + 1_000..2_400_000, more in 0u32..100_000_000,
    ) {
        let mut sender = Backlogged::new();
        sender.stay(owd, 2 * LASTING_NS);
        sender.flow.sent(&sender.config, at(sender.now), 0, more);
        let excess = (i64::from(more) + 14_480) * 8 / 10 - T_NS; // beyond 2 owd
        let most = ((owd - T_NS) / 2).max(excess) + 1; // rounding
        prop_assert!(sender.hold() <= most, "{} ns held, {most} at most", sender.hold());
    }

    #[test]
    fn the_rate_is_between_the_lines_and_a_hundredth_of_it(
        config in any_config(), events in events(prop_oneof![0i64..400_000, extreme()]),
    ) {
        let cfg = onr_cfg { law: Law::Gate as u32, ..*config.abi() };
        let line = u64::from(cfg.line_ns_per_byte_q16);
        let mut s = Sender::default();
        for event in events {
            let verdict = s.play(&Config::from(cfg), &event);
            let inv = s.flow.abi().inv_q16;
            if verdict == Some(Verdict::Used) || inv != 0 {
                prop_assert!((line..=100 * line).contains(&inv), "{inv} at line {line}");
            }
        }
    }

    /// What a flow did before does not matter: after idling, what leaves at once drains within T.
    #[test]
    fn after_idling_a_burst_is_at_most_the_thresholds_worth(
        events in events(0i64..400_000), idle in 12_000_000i64..10_000_000_000,
    ) {
        let config = gate();
        let mut s = Sender::default();
        for event in &events {
            s.play(&config, event);
        }
        prop_assume!(s.flow.abi().inv_q16 != 0);
        let sent = burst(&mut s.flow, &config, s.now + idle);
        // The first head is what ends the idling; a is not counted; the last one fits partly.
        let most = T_NS * 10 / 8 + 3 * i64::from(MSS);
        prop_assert!(sent <= most, "{sent} B at once, {most} allowed");
    }

    /// A trickle that never lets an OR-ACK's sample out earns no credit either.
    #[test]
    fn a_trickle_earns_no_burst(gap in 1_000i64..5_000_000, segments in 1u32..200) {
        let config = gate();
        let mut flow = Flow::default();
        let first = flow.sent(&config, at(0), 0, MSS);
        flow.orack(&config, &first, 0, at(30_000), at(20_000));
        let mut now = 30_000;
        for i in 1..=segments {
            now += gap;
            flow.sent(&config, at(now), i * 100, 100);
        }
        let sent = burst(&mut flow, &config, now);
        prop_assert!(sent <= T_NS * 10 / 8 + 3 * i64::from(MSS), "{sent} B at once");
    }
}
