// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What holds for the law `level` and for the receiver's bits, whatever arrives.

use super::{any_config, at, events, extreme, path_state, sane_config, span, with_law, Sender};
use onramp_law::{Config, Flow, Hint, Law, PathState, Receiver, Verdict};
use onramp_units::Span;
use proptest::prelude::*;

const MSS: u32 = 1_448;
const SEGMENT: u32 = 14_480;
const T_NS: i64 = 40_000;
const OWN_NS: i64 = 10_000; // of the idle path
const TAU_NS: i64 = 1_000_000;
/// Two managed flows and nothing else fill the receiver's port.
const OURS: u16 = 31 << 11 | 7 << 8 | 2;
/// Half of the arrivals is managed.
const MIXED: u16 = 16 << 11 | 7 << 8 | 1;
/// A sixteenth of the arrivals is managed.
const FOREIGN: u16 = 2 << 11 | 7 << 8 | 1;

fn level() -> Config {
    Config::new(Law::Level, Span::from_ns(T_NS)).line_rate("10 Gbit/s".parse().unwrap())
}

/// A flow with much in flight: each sample leaves and arrives with its receiver's bits.
struct Held {
    flow: Flow,
    now: i64,
    ahead: i64,
}

impl Held {
    fn new() -> Held {
        let (flow, now, ahead) = (Flow::default(), 1_000_000_000, 0);
        Held { flow, now, ahead }
    }

    /// A sample of `owd` comes back.
    fn sample(&mut self, owd: i64, bits: u16) {
        let record = self.flow.sent(&level(), at(self.now), 0, SEGMENT);
        self.now += owd;
        self.flow.set_path(&PathState {
            least: Some(Span::from_ns(OWN_NS)),
            fleet_ahead: Span::from_ns(self.ahead),
            hint: Hint::of_bits(bits),
        });
        let now = at(self.now);
        let verdict = self.flow.orack(&level(), &record, SEGMENT - 1, now, now);
        assert_eq!(verdict, Verdict::Used);
    }

    fn stay(&mut self, owd: i64, bits: u16, span: i64) {
        let end = self.now + span;
        while self.now < end {
            self.sample(owd, bits);
        }
    }

    fn is_free(&self) -> bool {
        self.flow.abi().free != 0
    }

    /// For how long the head waits with `bytes` more in flight.
    fn hold(&self, bytes: u32) -> i64 {
        let mut flow = self.flow;
        flow.sent(&level(), at(self.now), 0, bytes);
        let opens = flow.may_go(&level(), at(self.now));
        opens.map_or(0, |opens| opens.ticks() - self.now)
    }
}

#[test]
fn a_queue_of_managed_flows_never_frees_a_flow() {
    let mut held = Held::new();
    held.stay(2_000_000, OURS, 2_000 * TAU_NS);
    assert!(!held.is_free());
}

#[test]
fn a_flow_among_others_traffic_is_let_go_and_tries_again_at_common_times() {
    let mut held = Held::new();
    held.stay(800_000, FOREIGN, 4 * TAU_NS);
    assert!(held.is_free(), "after one and a half tau");
    // What is in flight is there already, and a quarter more.
    assert_eq!(held.hold(900_000), 0, "720 us at the line rate");
    // At most 4 tau 2^6 later it is held again, for a while.
    let (mut trials, mut was_free) = (0, true);
    let end = held.now + 3_000 * TAU_NS;
    while held.now < end {
        held.sample(800_000, FOREIGN);
        trials += i64::from(was_free && !held.is_free());
        was_free = held.is_free();
    }
    assert!((8..=40).contains(&trials), "{trials} trials in 3 s");
}

/// What fills the port after a trial or two is no burst.
#[test]
fn each_trial_in_vain_is_half_as_long_as_the_one_before() {
    let mut held = Held::new();
    let mut trials = vec![];
    while trials.len() < 6 {
        let began = held.now;
        while !held.is_free() {
            held.sample(200_000, MIXED);
        }
        trials.push((held.now - began) as f64 / TAU_NS as f64);
        while held.is_free() {
            held.sample(200_000, MIXED);
        }
    }
    for (taus, expected) in trials.iter().zip([10.0, 5.0, 2.5, 1.5, 1.5, 1.5]) {
        assert!((0.0..0.7).contains(&(taus - expected)), "{trials:?}");
    }
}

#[test]
fn the_delay_at_the_threshold_ends_freedom() {
    let mut held = Held::new();
    held.stay(800_000, FOREIGN, 4 * TAU_NS);
    assert!(held.is_free());
    held.stay(OWN_NS, FOREIGN, 2 * TAU_NS);
    assert!(!held.is_free());
}

#[test]
fn fleet_time_that_jumps_costs_a_trial_at_most() {
    let mut held = Held::new();
    held.stay(800_000, FOREIGN, 4 * TAU_NS);
    for ahead in [i64::MAX / 2_000, i64::MIN / 2_000, 0, 3_600_000_000_000] {
        held.ahead = ahead;
        held.stay(800_000, FOREIGN, 4 * TAU_NS);
        assert!(held.is_free(), "ahead by {ahead}");
    }
}

#[test]
fn a_threshold_below_the_idle_path_holds_nothing_that_the_path_needs() {
    // 1 ms each way, T = 40 us, and a window of the bandwidth and the round trip.
    let mut held = Held::new();
    let least = Some(Span::from_us(1_000));
    for _ in 0..100 {
        let record = held.flow.sent(&level(), at(held.now), 0, SEGMENT);
        held.flow.set_path(&PathState {
            least,
            fleet_ahead: Span::ZERO,
            hint: Hint::of_bits(OURS),
        });
        let (received, back) = (held.now + 1_000_000, held.now + 2_000_000);
        held.flow
            .orack(&level(), &record, 0, at(back), at(received));
        held.now += 11_584;
    }
    held.now += 2_000_000;
    assert_eq!(held.hold(1_000_000), 0);
}

#[test]
fn a_receiver_counts_what_arrives() {
    let config = level();
    let mut receiver = Receiver::default();
    let mut hint = Hint::default();
    for packet in 0..10_000_i64 {
        let managed = packet % 4 != 0;
        receiver.arrived(&config, at(1_000_000_000 + packet * 1_250), 1_514, managed);
        if managed {
            hint = receiver.sampled(&config, packet as u32 % 100);
        }
    }
    let bits = hint.bits();
    assert_eq!(bits >> 11, 23, "three quarters of 31");
    assert_eq!(bits >> 8 & 7, 7, "a line of 10 Gbit/s is nearly full");
    let flows = bits & 255;
    assert!((65..=85).contains(&flows), "{flows} of 75 flows");
}

proptest! {
    /// A receiver that says nothing, and a line rate that is not known: nothing is held.
    #[test]
    fn without_the_receivers_bits_nothing_is_held(
        config in prop_oneof![any_config(), sane_config()],
        events in events(prop_oneof![0i64..400_000, extreme()]), path in path_state(),
    ) {
        let config = with_law(&config, Law::Level);
        let mut s = Sender::default();
        for event in &events {
            s.play(&config, event);
            let mut asked = s.flow;
            asked.set_path(&PathState { hint: Hint::default(), ..path });
            prop_assert_eq!(asked.may_go(&config, at(s.now)), None);
        }
    }

    /// The state that is divided by or multiplied stays in its bounds.
    #[test]
    fn the_rate_is_between_the_lines_and_a_thousandth_of_it(
        config in any_config(), events in events(prop_oneof![0i64..400_000, extreme()]),
    ) {
        let config = with_law(&config, Law::Level);
        let line = u64::from(config.abi().line_ns_per_byte_q16);
        let mut s = Sender::default();
        for event in events {
            s.play(&config, &event);
            let flow = s.flow.abi();
            prop_assert!(flow.inv_q16 == 0 || (line..=1_000 * line).contains(&flow.inv_q16));
            prop_assert!(flow.rate_bytes >> 32 == 0 && flow.rate_ns >> 32 == 0);
            prop_assert!(flow.doublings <= 3 && flow.tries <= 6);
        }
    }

    /// After idling, what leaves at once drains within tau above T: a young flow's allowance.
    #[test]
    fn after_idling_a_burst_is_at_most_a_young_flows(
        events in events(0i64..400_000), idle in 12_000_000i64..10_000_000_000,
    ) {
        let mut s = Sender::default();
        for event in &events {
            s.play(&level(), event);
        }
        prop_assume!(s.flow.abi().inv_q16 != 0);
        s.flow.set_path(&PathState { least: Some(span(OWN_NS)), hint: Hint::of_bits(OURS), ..PathState::default() });
        let (mut sent, now) = (0, at(s.now + idle));
        while s.flow.may_go(&level(), now).is_none() && sent < 100_000_000 {
            s.flow.sent(&level(), now, 0, MSS);
            sent += i64::from(MSS);
        }
        let room = s.flow.abi().allowed_ns.max(s.flow.abi().level_ns + TAU_NS);
        let most = room * 10 / 8 + 3 * i64::from(MSS);
        prop_assume!(room < 50 * TAU_NS);
        prop_assert!(sent <= most, "{sent} B at once, {most} allowed");
    }

    /// Any history of arrivals gives bits that a sender takes for counted ones.
    #[test]
    fn a_receiver_that_counts_never_says_unknown(
        config in any_config(),
        arrivals in prop::collection::vec((extreme(), any::<u32>(), any::<bool>(), any::<u32>()), 1..50),
    ) {
        let mut receiver = Receiver::default();
        for (now, bytes, managed, flow) in arrivals {
            receiver.arrived(&config, at(now & i64::MAX), bytes, managed);
            let bits = receiver.sampled(&config, flow).bits();
            prop_assert!(bits >> 11 >= 1 && bits & 255 >= 1, "{bits:x}");
        }
    }
}
