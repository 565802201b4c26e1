// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TIMELY: rate from the gradient of the RTT (Mittal et al., SIGCOMM 2015, alg. 1).
//! Differs from the paper: as the HPCC authors' simulator, it updates once per window instead of
//! per segment, counts every increase towards hyper-active increase, and starts at line rate.

use super::{red, scaled, sum, window_if, Preset};
use super::{Ack, Algorithm, CongestionControl, Feedback, Limits, Needs, PathFacts};
use crate::parameter::{parameters, PART, SHORT, STEP, TIMES};
use crate::FAIR;
use onramp_units::{Rate, Span};

parameters! { "timely", |line| {
    "t_low" low: Span = Span::from_us(50), SHORT, "Below this round-trip time the rate grows at any gradient. Must be at most `t_high`.";
    "t_high" high: Span = Span::from_us(500), SHORT, "Above this round-trip time the rate shrinks at any gradient.";
    "min_rtt" min_rtt: Span = Span::from_us(20), SHORT, "Round-trip time of the idle fabric, which scales the gradient.";
    "alpha" ewma: f64 = 0.875, PART, "Weight of a new difference of round-trip times.";
    "beta" decrease: f64 = 0.8, PART, "Fraction by which a gradient of 1 reduces the rate.";
    "delta" additive: Rate = scaled(line, 0.001), STEP, "Step of additive increase.";
    "rate_hai" hyper: Rate = scaled(line, 0.005), STEP, "Step of the increase after `hai_after` increases in a row.";
    "hai_after" hyper_after: u32 = 5, TIMES, "Number of increases in a row before `rate_hai` applies.";
    "min_rate" min_rate: Rate = scaled(line, 0.01), STEP, "Lower bound of the rate.";
} variant {
    /// "+w": cap what is in flight.
    window: bool = false;
} }

const TIMELY: Preset = Preset {
    name: "timely",
    about: "TIMELY (SIGCOMM 2015)",
    parameters: PARAMETERS,
    ordered: &[("t_low", "t_high")],
    fairness: FAIR,
    algorithm: &|line| Algorithm::Timely(Params::reference(line)),
    ecn: red,
    hold_acks: false,
};

/// Without and with a window.
pub(super) const PRESETS: &[Preset] = &[
    TIMELY,
    Preset {
        name: "timely_w",
        about: "TIMELY with a window",
        algorithm: &|line| {
            Algorithm::Timely(Params {
                window: true,
                ..Params::reference(line)
            })
        },
        ..TIMELY
    },
];

impl Needs for Params {
    const FEEDBACK: Feedback = Feedback::TimeStamp;
}

/// State of a flow.
#[derive(Debug, Clone)]
pub struct Timely {
    params: Params,
    path: PathFacts,
    rate: Rate,
    last_rtt: Span,
    /// rtt_diff, in ns.
    difference_ns: f64,
    increases: u32,
    /// The update after this byte's acknowledgement is the next.
    last_update: u64,
}

impl Timely {
    pub fn new(params: &Params, path: &PathFacts) -> Timely {
        Timely {
            params: *params,
            path: *path,
            rate: path.line_rate,
            last_rtt: Span::ZERO,
            difference_ns: 0.0,
            increases: 0,
            last_update: 0,
        }
    }

    /// Alg. 1.
    fn update(&mut self, rtt: Span) {
        let p = &self.params;
        let new_difference_ns = ns(rtt - self.last_rtt);
        self.difference_ns = (1.0 - p.ewma) * self.difference_ns + p.ewma * new_difference_ns;
        let gradient = self.difference_ns / ns(p.min_rtt);
        if rtt < p.low {
            self.increase();
        } else if rtt > p.high {
            self.shrink(1.0 - p.decrease * (1.0 - ns(p.high) / ns(rtt)));
        } else if gradient <= 0.0 {
            self.increase();
        } else {
            self.shrink((1.0 - p.decrease * gradient).max(0.0));
        }
    }

    fn increase(&mut self) {
        let hyper = self.increases >= self.params.hyper_after;
        let step = if hyper {
            self.params.hyper
        } else {
            self.params.additive
        };
        self.rate = sum(self.rate, step).min(self.path.line_rate);
        self.increases += 1;
    }

    fn shrink(&mut self, factor: f64) {
        self.rate = scaled(self.rate, factor).max(self.params.min_rate);
        self.increases = 0;
    }
}

fn ns(span: Span) -> f64 {
    span.as_ps() as f64 / 1000.0
}

impl CongestionControl for Timely {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.acked <= self.last_update {
            return;
        }
        if self.last_update != 0 {
            self.update(ack.rtt);
        }
        if ack.next > self.last_update {
            self.last_update = ack.next;
            self.last_rtt = ack.rtt;
        }
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            rate: self.rate,
            window_bytes: window_if(self.params.window, self.rate, &self.path),
        }
    }
}
