// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! FAST*: FAST TCP's control of the window (Wei et al., 2006), used on a rate in TIMELY's engines (SIGCOMM 2015, section
//! 6.1). The paper names only alpha. We take gamma = 1/2 as FAST, an update each round-trip time, and the least
//! round-trip time of the flow as that of its idle path.

use super::{red, scaled, Burst, Preset};
use super::{Ack, Algorithm, Completion, CongestionControl, Feedback, Limits, Needs, PathFacts};
use crate::parameter::{parameters, PART, STEP};
use crate::FAIR;
use onramp_units::{Rate, Sim, Span, Time};

parameters! { "fast_star", |line| {
    "alpha" alpha: Rate = scaled(line, 0.05), STEP, "Rate that a flow tries to keep in the queues of its path.";
    "gamma" gamma: f64 = 0.5, PART, "Weight of a new rate.";
    "first_rate" first_rate: Rate = line, STEP, "The rate with which a flow begins.";
    "segment_bytes" segment_bytes: u32 = 16_000, super::timely_paper::SEGMENT, "Payload that has one round-trip time and leaves as one burst.";
} }

/// One.
pub(super) const PRESETS: &[Preset] = &[Preset {
    name: "fast_star",
    about: "FAST TCP's law on a rate, as TIMELY's paper compares it",
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    algorithm: &|line| Algorithm::FastStar(Params::reference(line)),
    ecn: red,
    hold_acks: false,
}];

impl Needs for Params {
    const FEEDBACK: Feedback = Feedback::TimeStamp;
}

/// State of a flow.
#[derive(Debug, Clone)]
pub struct FastStar {
    params: Params,
    line: Rate,
    rate: Rate,
    least_rtt: Option<Span>,
    next_update: Time<Sim>,
}

impl FastStar {
    pub fn new(params: &Params, path: &PathFacts) -> FastStar {
        FastStar {
            params: *params,
            line: path.line_rate,
            rate: params.first_rate.min(path.line_rate),
            least_rtt: None,
            next_update: Time::ZERO,
        }
    }

    /// min(2 R, (1 - gamma) R + gamma (R least / rtt + alpha)).
    fn update(&mut self, rtt: Span, least: Span) {
        let rate = self.rate.bits_per_s() as f64;
        let target =
            rate * least.as_s_f64() / rtt.as_s_f64() + self.params.alpha.bits_per_s() as f64;
        let gamma = self.params.gamma;
        let new = ((1.0 - gamma) * rate + gamma * target).min(2.0 * rate);
        let bits = Rate::from_bits_per_s((new as u64).max(1));
        self.rate = bits.expect("at least one").min(self.line);
    }
}

impl CongestionControl for FastStar {
    fn on_ack(&mut self, _ack: &Ack<'_>) {}

    fn on_completion(&mut self, completion: &Completion) {
        let Completion { now, rtt, .. } = *completion;
        if rtt <= Span::ZERO {
            return;
        }
        let least = self.least_rtt.map_or(rtt, |least| least.min(rtt));
        self.least_rtt = Some(least);
        if now >= self.next_update {
            self.next_update = now + rtt;
            self.update(rtt, least);
        }
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            rate: self.rate,
            window_bytes: u64::MAX,
        }
    }

    #[inline]
    fn burst(&self) -> Option<Burst> {
        Some(Burst {
            bytes: self.params.segment_bytes,
            rate: self.line,
        })
    }
}
