// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::{MBIT, Q16, US};
use crate::cc::*;
use proptest::prelude::*;

const SEGMENT: u64 = 16_000;

/// The paper's parameters for 10 Gbit/s.
fn paper() -> TimelyCfg {
    TimelyCfg {
        delta: 10 * MBIT,
        min_rate: 10 * MBIT,
        max_rate: 10_000 * MBIT,
        t_low_ns: 50 * US,
        t_high_ns: 500 * US,
        min_rtt_ns: 20 * US,
        beta_q16: (0.8 * Q16) as u32,
        alpha_q16: (0.875 * Q16) as u32,
        hai_falls: 5,
        hai_steps: 5,
        hai_low: 0,
        segment_bytes: SEGMENT as u32,
        cap_packets: 1000,
    }
}

/// A connection that has this rate, under the paper's parameters.
fn at(bytes_per_s: u64) -> Timely {
    let mut flow = Timely::default();
    timely_begin(&paper(), &mut flow, bytes_per_s);
    flow
}

fn mbit(flow: &Timely) -> f64 {
    flow.rate() as f64 / MBIT as f64
}

/// A segment after this round-trip time.
fn sample(cfg: &TimelyCfg, flow: &mut Timely, rtt_us: u64) {
    timely_sample(cfg, flow, SEGMENT, rtt_us * u64::from(US), 0);
}

/// At 1 Gbit/s after a first sample, then these round-trip times. Mbit/s.
fn after(rtts_us: &[u64]) -> f64 {
    let mut flow = at(1000 * MBIT);
    for rtt_us in rtts_us {
        sample(&paper(), &mut flow, *rtt_us);
    }
    mbit(&flow)
}

#[test]
fn the_first_sample_changes_nothing() {
    assert_eq!(after(&[300]), 1000.0);
    assert_eq!(after(&[40]), 1000.0);
}

#[test]
fn below_t_low_the_rate_grows_by_a_step_whatever_the_gradient() {
    assert!((after(&[30, 45]) - 1010.0).abs() < 0.01);
}

#[test]
fn above_t_high_it_shrinks_by_the_excess() {
    // 1 - 0.8 (1 - 500/1000).
    assert!((after(&[1000, 1000]) - 600.0).abs() < 0.1);
}

#[test]
fn between_them_a_positive_gradient_shrinks_it() {
    // (0.875 * 4 us) / 20 us = 0.175.
    assert!((after(&[100, 104]) - 1000.0 * (1.0 - 0.8 * 0.175)).abs() < 0.1);
}

#[test]
fn a_gradient_that_falls_five_times_makes_it_grow_by_five_steps() {
    let rtts: Vec<u64> = (0..7).map(|n| 200 - 5 * n).collect();
    assert!((after(&rtts[..5]) - 1040.0).abs() < 0.01);
    assert!((after(&rtts) - 1140.0).abs() < 0.01);
    assert!(
        (after(&[200; 9]) - 1080.0).abs() < 0.01,
        "a flat one does not"
    );
}

#[test]
fn below_t_low_only_hai_low_makes_it_hyper_active() {
    let grown = |hai_low| {
        let cfg = TimelyCfg { hai_low, ..paper() };
        let mut flow = at(1000 * MBIT);
        for _ in 0..7 {
            sample(&cfg, &mut flow, 30);
        }
        mbit(&flow) - 1000.0
    };
    assert!((grown(0) - 60.0).abs() < 0.01);
    assert!((grown(1) - 140.0).abs() < 0.01);
}

#[test]
fn several_completions_in_a_minimum_rtt_share_an_update() {
    let mut flow = at(10_000 * MBIT); // 25 kB in 20 us
    sample(&paper(), &mut flow, 40);
    timely_begin(&paper(), &mut flow, 8000 * MBIT); // 20 kB
    timely_sample(&paper(), &mut flow, 5_000, u64::from(40 * US), 0);
    let grown = flow.rate() - 8000 * MBIT;
    assert!((312_400..=312_500).contains(&grown), "{grown}: a quarter");
}

#[test]
fn acknowledgements_of_a_segment_make_one_sample_of_the_least() {
    let mut flow = at(1000 * MBIT);
    for rtt_us in [30, 31, 32, 33, 40, 80, 90, 100] {
        let rtt_ns = rtt_us * u64::from(US);
        timely_acked(&paper(), &mut flow, SEGMENT as u32 / 4, rtt_ns, 0);
    }
    assert_eq!(flow.rate(), 1010 * MBIT, "30 us, 40 us");
}

#[test]
fn a_sender_that_does_not_use_its_rate_keeps_it() {
    let mut flow = at(1000 * MBIT);
    for _ in 0..10 {
        timely_sample(&paper(), &mut flow, SEGMENT, u64::from(30 * US), 1);
    }
    assert_eq!(flow.rate(), 1000 * MBIT);
}

/// Bytes, round-trip time, whether the application had too little data, whether a loss follows.
type Sample = (u64, u64, bool, bool);

fn take(cfg: &TimelyCfg, flow: &mut Timely, (bytes, rtt_ns, is_limited, is_lost): Sample) {
    timely_sample(cfg, flow, bytes, rtt_ns, is_limited.into());
    timely_acked(cfg, flow, bytes as u32, rtt_ns, is_limited.into());
    if is_lost {
        timely_loss(cfg, flow);
    }
}

proptest! {
    #[test]
    fn the_rate_stays_within_its_bounds(
        samples in prop::collection::vec((0u64..100_000_000, 0u64..2_000_000_000, any::<bool>(), any::<bool>()), 1..200),
        t_low_us in 0u32..1000, above_us in 1u32..1000, beta_q16 in 0u32..=65_536, alpha_q16 in 0u32..=65_536,
    ) {
        let cfg = TimelyCfg {
            t_low_ns: t_low_us * US,
            t_high_ns: (t_low_us + above_us) * US,
            beta_q16,
            alpha_q16,
            ..paper()
        };
        let mut flow = Timely::default();
        timely_begin(&cfg, &mut flow, 1);
        for sample in samples {
            take(&cfg, &mut flow, sample);
            prop_assert!((10 * MBIT..=10_000 * MBIT).contains(&flow.rate()), "{}", flow.rate());
        }
    }

    /// A division by zero would end the test.
    #[test]
    fn a_configuration_of_zeros_is_answered(samples in prop::collection::vec(any::<Sample>(), 1..50)) {
        let (cfg, mut flow) = (TimelyCfg::default(), at(1000 * MBIT));
        for sample in samples {
            take(&cfg, &mut flow, sample);
        }
    }
}
