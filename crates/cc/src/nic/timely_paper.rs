// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TIMELY as its paper has it: rates by completed segments (Mittal et al., SIGCOMM 2015). The arithmetic is
//! `law/cc/timely.h`, which the kernel's `timely` runs too.
//! A completion event has one round-trip time for the segment. The paper does not say which rate a flow begins with:
//! `first_rate`. It does not say whether hyper-active increase counts round-trip times below `t_low`: `hai_low`.

use super::{red, scaled, Burst, Preset};
use super::{Ack, Algorithm, Completion, CongestionControl, Feedback, Limits, Needs, PathFacts};
use crate::parameter::{parameters, Bounds, InLaw, PART, SHORT, STEP, TIMES};
use crate::FAIR;
use onramp_law::cc::{self, TimelyCfg};
use onramp_units::{Rate, Span};

/// Bytes of a segment, which has whole packets.
pub(super) const SEGMENT: Bounds = Bounds::Count(1_000, 1_000_000);

parameters! { "timely_paper" => TimelyCfg { max_rate: u64::MAX, cap_packets: u32::MAX }, |line| {
    "t_low" t_low: Span = Span::from_us(50), SHORT => t_low_ns, "Below this round-trip time the rate grows at any gradient. Must be at most `t_high`.";
    "t_high" t_high: Span = Span::from_us(500), SHORT => t_high_ns, "Above this round-trip time the rate shrinks at any gradient.";
    "min_rtt" min_rtt: Span = Span::from_us(20), SHORT => min_rtt_ns, "Round-trip time of the idle fabric, which scales the gradient.";
    "alpha" alpha: f64 = 0.875, PART => alpha_q16, "Weight of a new difference of round-trip times.";
    "beta" beta: f64 = 0.8, PART => beta_q16, "Fraction by which a gradient of 1 reduces the rate.";
    "delta" delta: Rate = scaled(line, 0.001), STEP => delta, "Step of additive increase.";
    "hai_falls" hai_falls: u32 = 5, TIMES => hai_falls, "Number of falling gradients in a row before the rate grows by `hai_steps`.";
    "hai_steps" hai_steps: u32 = 5, Bounds::Count(1, 1000) => hai_steps, "Steps of hyper-active increase.";
    "hai_low" hai_low: bool = false, Bounds::Flag => hai_low, "Whether hyper-active increase counts every increase in a row, also below `t_low`, as the HPCC authors' code. `false`: only falling gradients above `t_low`, as algorithm 1.";
    "min_rate" min_rate: Rate = scaled(line, 0.001), STEP => min_rate, "Lower bound of the rate. The upper bound is the line's.";
    "first_rate" first_rate: Rate = line, STEP, "The rate with which a flow begins.";
    "segment_bytes" segment_bytes: u32 = 16_000, SEGMENT => segment_bytes, "Payload that has one round-trip time and leaves as one burst.";
    "burst_rate" burst_rate: Rate = line, STEP, "Rate within a burst (the paper's NIC pacing).";
    "outstanding" outstanding: u32 = 0, Bounds::Count(0, 1_000_000), "Number of segments that may be outstanding when another one begins (the paper's static limit, whose value it does not give). 0: no limit.";
} }

/// Per segment.
pub(super) const PRESETS: &[Preset] = &[Preset {
    name: "timely_paper",
    about: "TIMELY by segments, as in its paper",
    parameters: PARAMETERS,
    ordered: &[("t_low", "t_high")],
    fairness: FAIR,
    algorithm: &|line| Algorithm::TimelyPaper(Params::reference(line)),
    ecn: red,
    hold_acks: false,
}];

impl Needs for Params {
    const FEEDBACK: Feedback = Feedback::TimeStamp;
}

/// State of a flow.
#[derive(Debug, Clone)]
pub struct TimelyPaper {
    cfg: TimelyCfg,
    flow: cc::Timely,
    burst: Burst,
    window_bytes: u64,
}

impl TimelyPaper {
    pub fn new(params: &Params, path: &PathFacts) -> TimelyPaper {
        let cfg = TimelyCfg {
            max_rate: path.line_rate.in_law(),
            ..params.law()
        };
        let mut flow = cc::Timely::default();
        cc::timely_begin(&cfg, &mut flow, params.first_rate.in_law());
        TimelyPaper {
            cfg,
            flow,
            burst: Burst {
                bytes: params.segment_bytes,
                rate: params.burst_rate,
            },
            window_bytes: match params.outstanding {
                0 => u64::MAX,
                segments => u64::from(segments) * u64::from(params.segment_bytes),
            },
        }
    }

    fn rate(&self) -> Rate {
        Rate::from_bits_per_s(self.flow.rate() * 8).expect("at least the bound")
    }
}

impl CongestionControl for TimelyPaper {
    fn on_ack(&mut self, _ack: &Ack<'_>) {}

    fn on_completion(&mut self, completion: &Completion) {
        let Completion {
            bytes,
            rtt,
            is_limited,
            ..
        } = *completion;
        cc::timely_sample(
            &self.cfg,
            &mut self.flow,
            bytes,
            rtt.in_law(),
            is_limited.into(),
        );
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            rate: self.rate(),
            window_bytes: self.window_bytes,
        }
    }

    #[inline]
    fn burst(&self) -> Option<Burst> {
        Some(self.burst)
    }
}
