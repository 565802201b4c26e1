// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The pause laws against the paper's equations, written out here a second time: the integral of
//! pause by counting, beta and tNextPkt in floating point.

use super::{any_config, at, events, extreme, sane_config, Sender};
use onramp_law::abi::onr_cfg;
use onramp_law::{Config, Flow, Law, Verdict};
use onramp_units::Span;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A flow's pause as the paper defines it: tNextPkt over time.
#[derive(Default)]
struct Paper {
    /// (when it was set, to what), in order of time.
    pauses: Vec<(i64, i64)>,
    beta: f64,
    /// tx_B and O_B.
    previous: Option<(i64, i64)>,
}

impl Paper {
    /// A(t), nanosecond by nanosecond.
    fn counted(&self, t: i64) -> i64 {
        let next_at = |t| {
            self.pauses
                .iter()
                .rev()
                .find(|(set, _)| *set <= t)
                .map_or(0, |p| p.1)
        };
        (0..t).filter(|&t| t < next_at(t)).count() as i64
    }

    /// A(t), by the pieces between assignments.
    fn clock(&self, t: i64) -> i64 {
        let ends = self.pauses.iter().skip(1).map(|p| p.0).chain([i64::MAX]);
        self.pauses
            .iter()
            .zip(ends)
            .map(|(&(set, next), end)| (t.min(next).min(end) - set).max(0))
            .sum()
    }

    /// Eqs. 3 and 4, and the cap: the pause to set, which is none if it is not above 0.
    fn orack(&mut self, cfg: &onr_cfg, now: i64, sent: i64, owd: i64) -> f64 {
        if let Some((sent_b, owd_b)) = self.previous {
            let between = self.clock(sent) - self.clock(sent_b);
            if between > 0 {
                let effect = ((owd_b - owd) as f64 / between as f64).clamp(0.0, 1.0);
                let g = f64::from(cfg.gain_q16) / 65_536.0;
                self.beta = (1.0 - g) * self.beta + g * effect;
            }
        }
        self.previous = Some((sent, owd));
        let p_last = (self.clock(now) - self.clock(sent)) as f64;
        let pause = (owd - cfg.threshold_ns) as f64 - self.beta * p_last;
        pause.min(cfg.max_pause_ns as f64)
    }
}

proptest! {
    #[test]
    fn beta_stays_between_0_and_1(config in any_config(), events in events(extreme())) {
        let mut s = Sender::default();
        for event in events {
            s.play(&config, &event);
            prop_assert!(s.flow.beta_q16() <= 65_536);
        }
    }

    /// No pause is longer than the cap, and none reaches back.
    #[test]
    fn a_pause_is_at_most_the_cap(config in any_config(), events in events(extreme())) {
        let mut s = Sender::default();
        for event in events {
            let until = s.flow.abi().pause_until_mono_ns;
            s.play(&config, &event);
            let after = s.flow.abi().pause_until_mono_ns;
            if after != until {
                prop_assert!(after > s.now && after - s.now <= config.abi().max_pause_ns);
            }
        }
    }

    #[test]
    fn the_pause_clock_is_the_integral_of_pause(
        pauses in prop::collection::vec((0i64..60, 0i64..80), 0..12), asked in 0i64..100,
    ) {
        let config = Config::new(Law::Strawman, Span::ZERO);
        let (mut flow, mut paper, mut now) = (Flow::default(), Paper::default(), 0);
        for (wait, pause) in pauses {
            now += wait;
            // Sent now and received `pause` later, on clocks that disagree: O - T = pause.
            let record = flow.sent(&config, at(now), 0, 1);
            let verdict = flow.orack(&config, &record, 0, at(now), at(now + pause));
            if verdict == Verdict::Used && pause > 0 {
                paper.pauses.push((now, now + pause));
            }
        }
        let t = now + asked;
        prop_assert_eq!(flow.paused(at(t)), Span::from_ns(paper.counted(t)));
        prop_assert_eq!(paper.clock(t), paper.counted(t));
    }

    /// tNextPkt is that of eqs. 3 and 4 but for rounding: one in 2^-16 of beta, times P_last, and a
    /// nanosecond.
    #[test]
    fn the_final_law_is_the_papers(
        config in sane_config(),
        steps in prop::collection::vec((0i64..40_000, 1usize..6, -1_000i64..300_000), 1..40),
    ) {
        let cfg = onr_cfg { law: Law::Final as u32, line_ns_per_byte_q16: 0, ..*config.abi() };
        let config = Config::from(cfg);
        let (mut flow, mut paper) = (Flow::default(), Paper::default());
        let (mut now, mut in_flight) = (1_000, VecDeque::new());
        for (wait, keep, owd) in steps {
            now += 1 + wait;
            in_flight.push_back((flow.sent(&config, at(now), 0, 1), now));
            if in_flight.len() < keep {
                continue;
            }
            let (record, sent) = in_flight.pop_front().expect("one was just sent");
            now = now.max(sent + owd);
            let expected = paper.orack(&cfg, now, sent, owd);
            let verdict = flow.orack(&config, &record, 0, at(now), at(sent + owd));
            prop_assert_eq!(verdict, Verdict::Used);

            let state = flow.abi();
            let tolerance = 1.0 + 2.0 * (now - sent) as f64 / 65_536.0;
            if state.pause_from_mono_ns == now {
                let pause = (state.pause_until_mono_ns - now) as f64;
                prop_assert!((pause - expected).abs() <= tolerance, "{pause}, paper {expected}");
                paper.pauses.push((now, state.pause_until_mono_ns));
            } else {
                prop_assert!(expected <= tolerance, "no pause, paper {expected}");
            }
            paper.beta = f64::from(flow.beta_q16()) / 65_536.0; // rounding must not add up
        }
    }
}
