// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TIMELY's rate: [`Timely`].

use crate::raw;
use onramp_units::{Rate, Span};

/// Parameters ("TIMELY", section 4 and algorithm 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimelyConfig {
    /// Below this round-trip time the rate grows at any gradient.
    pub low: Span,
    /// Above this it shrinks at any gradient. Above zero.
    pub high: Span,
    /// Of the idle network, above zero and up to a second.
    pub min_rtt: Span,
    /// Delta, by which the rate grows.
    pub step: Rate,
    /// Least and greatest rate.
    pub bounds: (Rate, Rate),
    /// Part of the rate that a gradient of 1 takes, up to 1.
    pub beta: f64,
    /// Weight of a new difference of round-trip times, up to 1.
    pub ewma: f64,
    /// Falling gradients in a row, after which the rate grows by more steps, and their number.
    pub hyper: (u32, u32),
    /// Whether it counts every increase in a row, also below `low`.
    pub hyper_low: bool,
    /// Bytes that have one round-trip time.
    pub segment_bytes: u32,
}

/// One connection's rate (law/cc/timely.h).
#[derive(Debug, Clone, Copy)]
pub struct Timely {
    config: raw::onr_timely_cfg,
    state: raw::onr_timely,
}

fn ns(span: Span) -> u32 {
    (span.as_ps() / 1000).clamp(0, i64::from(raw::ONR_TIMELY_RTT_MOST)) as u32
}

fn bytes_per_s(rate: Rate) -> u64 {
    (rate.bits_per_s() / 8).clamp(1, 1 << 40)
}

impl Timely {
    /// A connection without a rate.
    pub fn new(config: &TimelyConfig) -> Timely {
        let q16 = |part: f64| (part.clamp(0.0, 1.0) * 65536.0).round() as u32;
        Timely {
            config: raw::onr_timely_cfg {
                step: bytes_per_s(config.step),
                min_rate: bytes_per_s(config.bounds.0),
                max_rate: bytes_per_s(config.bounds.1),
                low_ns: ns(config.low),
                high_ns: ns(config.high).max(1),
                min_rtt_ns: ns(config.min_rtt).max(1),
                beta_q16: q16(config.beta),
                ewma_q16: q16(config.ewma),
                hyper_after: config.hyper.0,
                hyper: config.hyper.1.max(1),
                segment_bytes: config.segment_bytes,
                hyper_low: config.hyper_low.into(),
            },
            state: raw::onr_timely {
                rate: 0,
                difference: 0,
                prev_rtt_ns: 0,
                falls: 0,
                acked: 0,
                least_ns: 0,
            },
        }
    }

    /// Bytes a second; none before the connection has a rate.
    pub fn bytes_per_s(&self) -> Option<u64> {
        (self.state.rate > 0).then_some(self.state.rate)
    }

    /// Sets the first rate, within the bounds.
    pub fn begin(&mut self, bytes_per_s: u64) {
        self.state.rate = bytes_per_s;
        // SAFETY: reads the configuration, writes the state.
        unsafe { raw::onr_timely_bound(&self.config, &mut self.state) }
    }

    /// So many bytes are complete after this round-trip time. `is_limited`: the sender did not use its rate.
    pub fn sample(&mut self, bytes: u64, rtt: Span, is_limited: bool) {
        let rtt_ns = u64::from(ns(rtt));
        // SAFETY: reads the configuration, writes the state.
        unsafe {
            raw::onr_timely_sample(
                &self.config,
                &mut self.state,
                bytes,
                rtt_ns,
                is_limited.into(),
            );
        }
    }

    /// So many bytes of a connection are acknowledged after this round-trip time: a sample for each segment.
    pub fn acked(&mut self, bytes: u32, rtt: Span, is_limited: bool) {
        let rtt_ns = u64::from(ns(rtt));
        // SAFETY: reads the configuration, writes the state.
        unsafe {
            raw::onr_timely_acked(
                &self.config,
                &mut self.state,
                bytes,
                rtt_ns,
                is_limited.into(),
            );
        }
    }

    /// Halves the rate after a loss.
    pub fn loss(&mut self) {
        // SAFETY: reads the configuration, writes the state.
        unsafe { raw::onr_timely_loss(&self.config, &mut self.state) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEGMENT: u64 = 16_000;

    fn rate(mbit_per_s: u64) -> Rate {
        Rate::from_bits_per_s(mbit_per_s * 1_000_000).expect("above zero")
    }

    /// The paper's parameters for 10 Gbit/s.
    fn paper() -> TimelyConfig {
        TimelyConfig {
            low: Span::from_us(50),
            high: Span::from_us(500),
            min_rtt: Span::from_us(20),
            step: rate(10),
            bounds: (rate(10), rate(10_000)),
            beta: 0.8,
            ewma: 0.875,
            hyper: (5, 5),
            hyper_low: false,
            segment_bytes: SEGMENT as u32,
        }
    }

    /// At 1 Gbit/s after a first sample, then these round-trip times. Mbit/s.
    fn after(rtts_us: &[i64]) -> f64 {
        let mut timely = Timely::new(&paper());
        timely.begin(125_000_000);
        for rtt in rtts_us {
            timely.sample(SEGMENT, Span::from_us(*rtt), false);
        }
        timely.bytes_per_s().unwrap() as f64 * 8.0 / 1e6
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
        let rtts: Vec<i64> = (0..7).map(|n| 200 - 5 * n).collect();
        assert!((after(&rtts[..5]) - 1040.0).abs() < 0.01);
        assert!((after(&rtts) - 1140.0).abs() < 0.01);
        assert!(
            (after(&[200; 9]) - 1080.0).abs() < 0.01,
            "a flat one does not"
        );
    }

    #[test]
    fn below_t_low_only_hyper_low_makes_it_hyper_active() {
        let grown = |hyper_low| {
            let config = TimelyConfig {
                hyper_low,
                ..paper()
            };
            let mut timely = Timely::new(&config);
            timely.begin(125_000_000);
            for _ in 0..7 {
                timely.sample(SEGMENT, Span::from_us(30), false);
            }
            timely.bytes_per_s().unwrap() as f64 * 8.0 / 1e6 - 1000.0
        };
        assert!((grown(false) - 60.0).abs() < 0.01);
        assert!((grown(true) - 140.0).abs() < 0.01);
    }

    #[test]
    fn several_completions_in_a_minimum_rtt_share_an_update() {
        let mut timely = Timely::new(&paper());
        timely.begin(1_250_000_000); // 25 kB in 20 us
        timely.sample(SEGMENT, Span::from_us(40), false);
        timely.begin(1_000_000_000); // 20 kB
        timely.sample(5_000, Span::from_us(40), false);
        let grown = timely.bytes_per_s().unwrap() - 1_000_000_000;
        assert!((312_400..=312_500).contains(&grown), "{grown}: a quarter");
    }

    #[test]
    fn acknowledgements_of_a_segment_make_one_sample_of_the_least() {
        let mut timely = Timely::new(&paper());
        timely.begin(125_000_000);
        for rtt_us in [30, 31, 32, 33, 40, 80, 90, 100] {
            timely.acked(SEGMENT as u32 / 4, Span::from_us(rtt_us), false);
        }
        assert_eq!(timely.bytes_per_s(), Some(126_250_000), "30 us, 40 us");
    }

    #[test]
    fn a_sender_that_does_not_use_its_rate_keeps_it() {
        let mut timely = Timely::new(&paper());
        timely.begin(125_000_000);
        for _ in 0..10 {
            timely.sample(SEGMENT, Span::from_us(30), true);
        }
        assert_eq!(timely.bytes_per_s(), Some(125_000_000));
    }

    proptest! {
        #[test]
        fn the_rate_stays_within_its_bounds(
            samples in prop::collection::vec((0u64..100_000_000, 0i64..2_000_000_000, any::<bool>(), any::<bool>()), 1..200),
            low_us in 0i64..1000, above_us in 0i64..1000, beta in 0.0f64..1.0, ewma in 0.0f64..1.0,
        ) {
            let config = TimelyConfig {
                low: Span::from_us(low_us),
                high: Span::from_us(low_us + above_us),
                beta,
                ewma,
                ..paper()
            };
            let mut timely = Timely::new(&config);
            timely.begin(1);
            for (bytes, rtt_ns, is_limited, is_lost) in samples {
                timely.sample(bytes, Span::from_ns(rtt_ns), is_limited);
                timely.acked(bytes as u32, Span::from_ns(rtt_ns), is_limited);
                if is_lost {
                    timely.loss();
                }
                let rate = timely.bytes_per_s().unwrap();
                prop_assert!((1_250_000..=1_250_000_000).contains(&rate), "{}", rate);
            }
        }
    }
}
