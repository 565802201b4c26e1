// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A host's correction: fleet time as a function of its own monotonic clock, a line that bends with the
//! host's temperature, with its uncertainty.

use onramp_law::FleetLine;
use onramp_units::{Fleet, Mono, Span, Time};

/// Fleet time of one host, valid for a limited time. The data path's clock map has its tangent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correction {
    /// Reference point of the line, on the host's clock.
    pub reference: Time<Mono>,
    /// Fleet time minus the host's clock at the reference, ns.
    pub offset_ns: i64,
    /// Growth of that difference at the reference, ns a ns of the host's clock.
    pub drift: f64,
    /// Change of the drift in a second.
    pub bend: f64,
    /// Uncertainty at the reference.
    pub error: Error,
}

/// Uncertainty of an estimated clock: standard deviations, and their growth with age.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Error {
    /// Standard deviation of the offset, ns.
    pub sigma_ns: f64,
    /// Standard deviation of the drift.
    pub drift_sigma: f64,
    /// Possible change of the drift in a second.
    pub wander_per_s: f64,
}

impl Error {
    /// Standard deviation `age` after the estimate's time (or before it), ns.
    pub fn sigma_after(&self, age: Span) -> f64 {
        let age_s = age.as_s_f64().abs();
        let drifted_ns = self.drift_sigma * age_s * 1e9;
        let wandered_ns = 0.5 * self.wander_per_s * age_s * age_s * 1e9;
        libm::hypot(libm::hypot(self.sigma_ns, drifted_ns), wandered_ns)
    }
}

/// Beyond this distance from its reference a correction does not bend any more.
const LONGEST_BEND_S: f64 = 20.0;

/// Fleet time that differs by more than this was stepped: it is set at once, without slewing.
pub const STEP: Span = Span::from_ms(1);

impl Correction {
    /// Fleet time minus the host's clock at `now`, ns.
    pub fn offset_at(&self, now: Time<Mono>) -> i64 {
        let bent_ns = 0.5 * self.bend * self.bent_s(now).powi(2) * 1e9;
        let line_ns = self.line().offset_at(now);
        line_ns.saturating_add(bent_ns.round() as i64)
    }

    /// Growth of that difference at `now`.
    pub fn drift_at(&self, now: Time<Mono>) -> f64 {
        self.drift + self.bend * self.bent_s(now)
    }

    fn bent_s(&self, now: Time<Mono>) -> f64 {
        let since_s = (now - self.reference).as_s_f64();
        since_s.clamp(-LONGEST_BEND_S, LONGEST_BEND_S)
    }

    /// The tangent at the reference, as the data path computes it.
    fn line(&self) -> FleetLine {
        FleetLine::new(self.reference, self.offset_ns, self.drift)
    }

    /// Fleet time at `now`.
    pub fn fleet(&self, now: Time<Mono>) -> Time<Fleet> {
        Time::from_ticks(now.ticks().saturating_add(self.offset_at(now)))
    }

    /// Standard deviation of [`Correction::fleet`], ns.
    pub fn sigma_at(&self, now: Time<Mono>) -> f64 {
        self.error.sigma_after(now - self.reference)
    }

    /// The line to follow from `now` on when `self` is in force and `target` is the better estimate. It starts at
    /// `self` and meets `target` after `over`, so fleet time does not jump. If they differ by more than [`STEP`], a
    /// clock was stepped: the result is `target` itself.
    pub fn steer(&self, target: &Correction, now: Time<Mono>, over: Span) -> Correction {
        let (is, should) = (self.offset_at(now), target.offset_at(now));
        let gap_ns = should.saturating_sub(is);
        if gap_ns.unsigned_abs() > STEP.as_ns().unsigned_abs() {
            return *target;
        }
        let over_ns = over.as_ns().max(1) as f64;
        let between = now + Span::from_ns(over.as_ns() / 2);
        // What a target's drift is off by began to add up before now: it is as unsure then as the target is.
        let (sigma_ns, then_ns) = (target.sigma_at(now), target.sigma_at(now + over));
        let grows_ns = (then_ns.powi(2) - sigma_ns.powi(2)).max(0.0).sqrt();
        Correction {
            reference: now,
            offset_ns: is,
            drift: target.drift_at(between) + gap_ns as f64 / over_ns,
            bend: 0.0,
            error: Error {
                sigma_ns: libm::hypot(sigma_ns, gap_ns as f64),
                drift_sigma: grows_ns / over_ns,
                ..target.error
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(offset_ns: i64, drift: f64) -> Correction {
        Correction {
            reference: Time::from_ticks(1_000_000_000),
            offset_ns,
            drift,
            bend: 0.0,
            error: Error {
                sigma_ns: 300.0,
                drift_sigma: 1e-7,
                wander_per_s: 1e-8,
            },
        }
    }

    fn at(seconds: f64) -> Time<Mono> {
        Time::from_ticks((seconds * 1e9) as i64)
    }

    #[test]
    fn a_new_line_is_met_without_a_step() {
        let (old, new) = (line(500, 1e-5), line(900, -2e-5));
        let steered = old.steer(&new, at(3.0), Span::from_s(2));
        assert_eq!(steered.offset_at(at(3.0)), old.offset_at(at(3.0)));
        let off = steered.offset_at(at(5.0)) - new.offset_at(at(5.0));
        assert!(off.abs() <= 1, "{off} ns");
    }

    #[test]
    fn a_bent_line_is_met_where_it_will_be() {
        let (old, mut new) = (line(500, 1e-5), line(900, 1e-5));
        new.bend = 2e-8;
        assert_eq!(new.offset_at(at(5.0)), 900 + 40_000 + 160);
        assert_eq!(new.drift_at(at(5.0)), 1e-5 + 8e-8);
        let steered = old.steer(&new, at(3.0), Span::from_s(2));
        let off = steered.offset_at(at(5.0)) - new.offset_at(at(5.0));
        assert!(off.abs() <= 1, "{off} ns");
    }

    #[test]
    fn a_clock_that_stepped_is_followed_at_once() {
        let (old, new) = (line(500, 1e-5), line(5_000_000, 1e-5));
        let steered = old.steer(&new, at(3.0), Span::from_s(2));
        assert_eq!(steered, new);
    }

    #[test]
    fn the_older_the_less_sure() {
        let line = line(0, 0.0);
        assert_eq!(line.sigma_at(at(1.0)), 300.0);
        let after_4_s = (300.0f64.powi(2) + 400.0f64.powi(2) + 80.0f64.powi(2)).sqrt();
        assert!((line.sigma_at(at(5.0)) - after_4_s).abs() < 1e-6);
    }

    #[test]
    fn the_ends_of_time_harm_nobody() {
        let line = line(i64::MAX, 1e-3);
        line.fleet(Time::from_ticks(i64::MAX));
        line.steer(&line, Time::from_ticks(i64::MIN), Span::ZERO);
    }
}
