// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! DCQCN: rate from congestion marks and timers (Zhu et al., SIGCOMM 2015), in the form that NIC
//! firmware gives it and the HPCC authors' simulator models.
//! Differs from the paper: no byte counter, every acknowledgement echoes its packet's mark (no
//! separate CNP), marks act at the next of the regular checks, and F is 1.

use super::{divided, per_25g, red, scaled, sum, window_if, Preset};
use super::{Ack, Algorithm, CongestionControl, Limits, Needs, PathFacts, Timers};
use crate::parameter::{parameters, PART, SHORT, STEP, TIMES};
use crate::FAIR;
use onramp_units::{Rate, Sim, Span, Time};

parameters! { "dcqcn", |line| {
    "g" gain: f64 = 1.0 / 256.0, PART, "Weight of a new sample in alpha.";
    "alpha_interval" alpha_interval: Span = Span::from_us(1), SHORT, "Time between two updates of alpha.";
    "decrease_interval" decrease_interval: Span = Span::from_us(4), SHORT, "T_d: shortest time between two decreases of the rate.";
    "increase_interval" increase_interval: Span = Span::from_us(300), SHORT, "T_i: time between two increases of the rate.";
    "fast_recovery" fast_recovery: u32 = 1, TIMES, "F: steps of fast recovery before additive increase; 5 in the paper.";
    "rate_ai" additive: Rate = per_25g(5_000_000, line), STEP, "R_AI: step of additive increase.";
    "rate_hai" hyper: Rate = per_25g(50_000_000, line), STEP, "R_HAI: step of hyper increase.";
    "min_rate" min_rate: Rate = scaled(line, 0.01), STEP, "Lower bound of the rate.";
} variant {
    /// "+w": cap what is in flight.
    window: bool = false;
} }

const DCQCN: Preset = Preset {
    name: "dcqcn",
    about: "DCQCN (SIGCOMM 2015) as NIC firmware has it",
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    algorithm: &|line| Algorithm::Dcqcn(Params::reference(line)),
    ecn: red,
    hold_acks: false,
};

/// The vendor's intervals and the paper's, each without and with a window.
pub(super) const PRESETS: &[Preset] = &[
    DCQCN,
    Preset {
        name: "dcqcn_w",
        about: "DCQCN with a window",
        algorithm: &|line| Algorithm::Dcqcn(Params::reference(line).windowed()),
        hold_acks: true,
        ..DCQCN
    },
    Preset {
        name: "dcqcn_paper",
        about: "DCQCN with its paper's intervals",
        algorithm: &|line| Algorithm::Dcqcn(Params::paper(line)),
        ..DCQCN
    },
    Preset {
        name: "dcqcn_paper_w",
        about: "DCQCN with its paper's intervals and a window",
        algorithm: &|line| Algorithm::Dcqcn(Params::paper(line).windowed()),
        hold_acks: true,
        ..DCQCN
    },
];

impl Needs for Params {
    #[inline]
    fn window_follows_time(&self) -> bool {
        self.window
    }
}

impl Params {
    /// The DCQCN paper's intervals.
    pub fn paper(line: Rate) -> Params {
        Params {
            alpha_interval: Span::from_us(50),
            decrease_interval: Span::from_us(50),
            increase_interval: Span::from_us(55),
            ..Params::reference(line)
        }
    }

    /// The papers' "+w".
    fn windowed(self) -> Params {
        Params {
            window: true,
            ..self
        }
    }
}

/// A time that does not come.
const NEVER: Time<Sim> = Time::from_ticks(i64::MAX);

/// State of a flow. Its timers need no events: whoever looks at it first lets time go by; but see [`Timers`].
#[derive(Debug, Clone)]
pub struct Dcqcn {
    params: Params,
    path: PathFacts,
    /// R_C.
    rate: Rate,
    /// R_T.
    target: Rate,
    alpha: f64,
    /// Increases since the last cut.
    stage: u32,
    /// Marks have come since the last update of alpha, since the last cut.
    marked: (bool, bool),
    alpha_at: Time<Sim>,
    decrease_at: Time<Sim>,
    increase_at: Time<Sim>,
    /// Whether the caller has events for the timers.
    has_events: bool,
}

impl Dcqcn {
    pub fn new(params: &Params, path: &PathFacts) -> Dcqcn {
        Dcqcn {
            params: *params,
            path: *path,
            rate: path.line_rate,
            target: path.line_rate,
            alpha: 1.0,
            stage: 0,
            marked: (false, false),
            alpha_at: NEVER,
            decrease_at: NEVER,
            increase_at: NEVER,
            has_events: false,
        }
    }

    /// Starts the timers; a cut comes after the update of alpha that is due with it.
    fn first_mark(&mut self, now: Time<Sim>) {
        self.alpha = 1.0;
        self.target = self.rate;
        self.marked.0 = false;
        self.alpha_at = now + self.params.alpha_interval;
        self.decrease_at = now + self.params.decrease_interval + Span::from_ns(1);
    }

    /// Does what is due: alpha's updates up to `alpha_end`, the rest up to `end`. Of what is due at
    /// once, what was set first comes first.
    fn pass(&mut self, alpha_end: Time<Sim>, end: Time<Sim>) {
        while !self.has_events {
            let rate_at = self.increase_at.min(self.decrease_at);
            if self.alpha_at <= rate_at && self.alpha_at <= alpha_end {
                self.update_alpha();
            } else if rate_at > end {
                return;
            } else if self.increase_at <= self.decrease_at {
                self.increase();
            } else {
                self.decrease();
            }
        }
    }

    fn update_alpha(&mut self) {
        let g = self.params.gain;
        let sample = if self.marked.0 { g } else { 0.0 };
        self.alpha = (1.0 - g) * self.alpha + sample;
        self.marked.0 = false;
        self.alpha_at += self.params.alpha_interval;
    }

    fn decrease(&mut self) {
        let now = self.decrease_at;
        self.decrease_at += self.params.decrease_interval;
        if !self.marked.1 {
            return;
        }
        if self.stage > 0 {
            self.target = self.rate;
        }
        self.rate = scaled(self.rate, 1.0 - self.alpha / 2.0).max(self.params.min_rate);
        self.stage = 0;
        self.marked.1 = false;
        self.increase_at = now + self.params.increase_interval;
    }

    fn increase(&mut self) {
        self.increase_at += self.params.increase_interval;
        let step = match self.stage.cmp(&self.params.fast_recovery) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => Some(self.params.additive),
            std::cmp::Ordering::Greater => Some(self.params.hyper),
        };
        if let Some(step) = step {
            self.target = sum(self.target, step).min(self.path.line_rate);
        }
        self.rate = sum(divided(self.rate, 2.0), divided(self.target, 2.0));
        self.stage += 1;
    }
}

impl CongestionControl for Dcqcn {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        // One that arrives when alpha is due counts for that update, not for the next: it was on
        // its last link when the update was set.
        self.pass(ack.now - Span::from_ps(1), ack.now);
        if !ack.marked {
            return;
        }
        self.marked = (true, true);
        if self.alpha_at == NEVER {
            self.first_mark(ack.now);
        }
    }

    fn advance(&mut self, now: Time<Sim>) {
        self.pass(now, now);
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            rate: self.rate,
            window_bytes: window_if(self.params.window, self.rate, &self.path),
        }
    }

    fn timers(&mut self) -> Option<&mut dyn Timers> {
        Some(self)
    }
}

impl Timers for Dcqcn {
    fn leave_to_events(&mut self) {
        self.has_events = true;
    }

    fn due(&self) -> [Time<Sim>; 3] {
        [self.alpha_at, self.decrease_at, self.increase_at]
    }

    fn expire(&mut self, timer: usize) {
        match timer {
            0 => self.update_alpha(),
            1 => self.decrease(),
            _ => self.increase(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::tests::{ack, path};

    #[test]
    fn a_mark_halves_the_rate_at_the_next_check_and_recovery_follows() {
        let line = path().line_rate;
        let mut cc = Dcqcn::new(&Params::reference(line), &path());
        let at = |us: i64| Time::ZERO + Span::from_us(us);
        cc.on_ack(&Ack {
            marked: true,
            ..ack(at(10))
        });
        cc.advance(at(14));
        assert_eq!(cc.rate, line, "T_d is over 1 ns later");
        cc.advance(at(15));
        // alpha has lost 1/256 four times.
        let alpha = (255.0f64 / 256.0).powi(4);
        assert_eq!(cc.rate, scaled(line, 1.0 - alpha / 2.0));
        let cut = cc.rate;
        cc.advance(at(14 + 301));
        assert_eq!(cc.rate, sum(divided(cut, 2.0), divided(line, 2.0)));
    }
}
