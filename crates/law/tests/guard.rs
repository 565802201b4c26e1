// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The guard on one flow whose path or clock changes: a line of 100 Mbit/s and a window that never ends.
//! Nothing queues but in the sender, so each OR-ACK shows the path's delay and the clock's error.

use onramp_law::{defaults, sampled_byte, Config, Flow, Law, Records, SAMPLE_BYTES};
use onramp_units::{Bytes, Mono, Rate, Span, Time};
use std::collections::VecDeque;

const FRAME: u32 = 1_448;
const FRAME_NS: i64 = 120_000; // of 1500 B at 100 Mbit/s
const T_NS: i64 = 1_500_000;
const MS: i64 = 1_000_000;
const S: i64 = 1_000 * MS;
/// When the path or the clock changes.
const CHANGE: i64 = 2 * S;

fn at(ns: i64) -> Time<Mono> {
    Time::from_ticks(ns)
}

/// The part of the line that the flow uses in the second after one second of the change. `path` gives the
/// one-way delay at a time, `error` the receiver's clock minus the sender's.
fn used(law: Law, guard: Span, path: fn(i64) -> i64, error: fn(i64) -> i64) -> f64 {
    let line = Rate::from_bits_per_s(100_000_000).expect("not zero");
    let config = Config::new(law, Span::from_ns(T_NS))
        .line_rate(line)
        .gate_allowance(Bytes::new(FRAME.into()))
        .guard(guard);
    let (mut flow, mut records) = (Flow::default(), Records::default());
    let mut oracks: VecDeque<(i64, u32, i64)> = VecDeque::new();
    let (mut seq, mut sent) = (0u32, 0);
    for slot in 1..(CHANGE + 2 * S) / FRAME_NS {
        let now = slot * FRAME_NS;
        while let Some(&(_, byte, received)) = oracks.front().filter(|orack| orack.0 <= now) {
            records.orack(&config, &mut flow, byte, at(now), at(received));
            oracks.pop_front();
        }
        if flow.may_go(&config, at(now)).is_some() {
            continue;
        }
        records.sent(&config, &mut flow, at(now), seq, FRAME);
        if let Some(byte) = sampled_byte(seq, FRAME, SAMPLE_BYTES) {
            let received = now + FRAME_NS + path(now);
            oracks.push_back((received + path(now), byte, received + error(now)));
        }
        seq = seq.wrapping_add(FRAME);
        sent += i64::from(now >= CHANGE + S);
    }
    sent as f64 * FRAME_NS as f64 / S as f64
}

fn longer_route(now: i64) -> i64 {
    if now < CHANGE {
        MS
    } else {
        10 * MS
    }
}

fn shorter_route(now: i64) -> i64 {
    11 * MS - longer_route(now)
}

fn short_route(_now: i64) -> i64 {
    MS
}

fn right_clock(_now: i64) -> i64 {
    0
}

fn clock_ahead(now: i64) -> i64 {
    if now < CHANGE {
        0
    } else {
        40 * MS
    }
}

fn clock_behind(now: i64) -> i64 {
    -clock_ahead(now)
}

#[test]
fn a_second_after_a_change_the_flow_has_the_line() {
    for law in [Law::Strawman, Law::Final, Law::Gate] {
        for (what, path, error) in [
            (
                "a longer route",
                longer_route as fn(i64) -> i64,
                right_clock as fn(i64) -> i64,
            ),
            ("a shorter route", shorter_route, right_clock),
            ("a clock ahead", short_route, clock_ahead),
            ("a clock behind", short_route, clock_behind),
        ] {
            let used = used(law, defaults::GUARD_WINDOW, path, error);
            assert!(used > 0.9, "{law}, {what}: {used} of the line");
        }
    }
}

#[test]
fn without_a_guard_a_longer_route_costs_a_fifth_of_the_line() {
    for law in [Law::Strawman, Law::Final, Law::Gate] {
        let used = used(law, Span::ZERO, longer_route, right_clock);
        assert!(used < 0.8, "{law}: {used} of the line");
    }
}
