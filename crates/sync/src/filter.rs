//! What is known of one host's clock, carried on from window to window: a Kalman filter of its offset
//! and its drift, which wanders. A window moves a clock by how well the clock is known, and by how much the
//! window's edges agree.

use crate::correction::Error;

/// Variances of an offset (ns) and a drift (ns a ns), and their covariance. Drifts are in ns a second here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Filter {
    offset: f64,
    both: f64,
    drift: f64,
}

/// A clock at an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct State {
    pub offset_ns: f64,
    /// ns a ns.
    pub drift: f64,
}

/// What a window says of a clock, and the variances of that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub state: State,
    /// ns^2.
    pub offset_variance: f64,
    pub drift_variance: f64,
}

/// A correction is followed until so many windows after the middle of what it was made from.
const USED_UNTIL: f64 = 2.5;
/// What is more standard deviations from what was foretold is another clock: it was set, or its rate was.
const SURPRISE: f64 = 6.0;
/// ns a second in ns a ns.
const PER_S: f64 = 1e9;

impl Filter {
    /// After a first window.
    pub fn new(measured: &Measured) -> Filter {
        Filter {
            offset: measured.offset_variance,
            both: 0.0,
            drift: measured.drift_variance * PER_S * PER_S,
        }
    }

    /// `seconds` later; `wander_per_s`: what the drift may have changed by in one, a random walk.
    pub fn later(self, seconds: f64, wander_per_s: f64) -> Filter {
        let (t, noise) = (seconds, (wander_per_s * PER_S).powi(2));
        let walked = noise * t.powi(3) / 3.0;
        Filter {
            offset: self.offset + 2.0 * t * self.both + t * t * self.drift + walked,
            both: self.both + t * self.drift + noise * t * t / 2.0,
            drift: self.drift + noise * t,
        }
    }

    /// What is known with a window that was `measured`, when `foretold` was expected of it.
    pub fn with(self, foretold: State, measured: &Measured) -> (Filter, State) {
        let drift_variance = measured.drift_variance * PER_S * PER_S;
        let off_ns = measured.state.offset_ns - foretold.offset_ns;
        let drifts = PER_S * (measured.state.drift - foretold.drift);
        let is_foretold = |off: f64, variance: f64| off.abs() <= SURPRISE * variance.sqrt();
        if !is_foretold(off_ns, self.offset + measured.offset_variance)
            || !is_foretold(drifts, self.drift + drift_variance)
        {
            return (Filter::new(measured), measured.state);
        }
        // First the offset, then the drift.
        let sum = self.offset + measured.offset_variance;
        let (gain, drift_gain) = (self.offset / sum, self.both / sum);
        let half = Filter {
            offset: self.offset * (1.0 - gain),
            both: self.both * (1.0 - gain),
            drift: self.drift - drift_gain * self.both,
        };
        let (offset_ns, drift) = (gain * off_ns, drift_gain * off_ns);
        let sum = half.drift + drift_variance;
        let (offset_gain, gain) = (half.both / sum, half.drift / sum);
        let filter = Filter {
            offset: half.offset - offset_gain * half.both,
            both: half.both * (1.0 - gain),
            drift: half.drift * (1.0 - gain),
        };
        let left = drifts - drift;
        let state = State {
            offset_ns: foretold.offset_ns + offset_ns + offset_gain * left,
            drift: foretold.drift + (drift + gain * left) / PER_S,
        };
        (filter, state)
    }

    /// As a correction tells it that a window of `window_s` was made of.
    pub fn error(&self, window_s: f64) -> Error {
        // Offset and drift are wrong together; when a correction is oldest this comes to the same.
        let age_s = (USED_UNTIL * window_s).max(f64::MIN_POSITIVE);
        let drift = (self.drift + 2.0 * self.both / age_s).max(0.0);
        Error {
            sigma_ns: self.offset.sqrt(),
            drift_sigma: drift.sqrt() / PER_S,
            wander_per_s: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(offset_ns: f64, sigma_ns: f64) -> Measured {
        Measured {
            state: State {
                offset_ns,
                drift: 0.0,
            },
            offset_variance: sigma_ns * sigma_ns,
            drift_variance: 1e-14,
        }
    }

    /// A clock with a drift of 10 ns/s, measured every 2 s for a minute, wrong by 100 ns this way and that.
    fn after_a_minute() -> (Filter, State) {
        let first = measured(0.0, 100.0);
        let mut is = (Filter::new(&first), first.state);
        for window in 1..=30 {
            let wrong_ns = if window % 2 == 0 { 100.0 } else { -100.0 };
            let foretold = State {
                offset_ns: is.1.offset_ns + is.1.drift * 2e9,
                drift: is.1.drift,
            };
            let at = measured(20.0 * window as f64 + wrong_ns, 100.0);
            is = is.0.later(2.0, 1e-9).with(foretold, &at);
        }
        is
    }

    #[test]
    fn windows_add_up_to_more_than_the_last_one() {
        let (filter, state) = after_a_minute();
        assert!((state.offset_ns - 600.0).abs() < 40.0, "{state:?}");
        assert!((state.drift - 1e-8).abs() < 5e-9, "{state:?}");
        let error = filter.error(2.0);
        assert!((20.0..60.0).contains(&error.sigma_ns), "{error:?}");
    }

    #[test]
    fn a_window_that_says_little_moves_little() {
        let (filter, state) = after_a_minute();
        let unsure = measured(state.offset_ns + 2_000.0, 2_000.0);
        let (after, moved) = filter.with(state, &unsure);
        assert!((moved.offset_ns - state.offset_ns).abs() < 5.0);
        assert!(after.offset > 0.9 * filter.offset);
    }

    #[test]
    fn a_clock_that_was_set_is_another_one() {
        let (filter, state) = after_a_minute();
        let set = measured(state.offset_ns + 5_000.0, 100.0);
        assert_eq!(filter.with(state, &set).1, set.state);
        let mut faster = measured(state.offset_ns, 100.0);
        faster.state.drift = 1e-5;
        assert_eq!(filter.with(state, &faster).1, faster.state);
    }
}
