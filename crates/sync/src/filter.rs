// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Estimates one host's clock from window to window: a Kalman filter of its offset, its drift, and its bend
//! (the rate at which the drift changes with temperature). The weight of a window depends on the uncertainty
//! of the estimate and on the agreement of the window's edges.
//!
//! A bend decays over time, as in Singer's model of a target's manoeuvres (IEEE Transactions on Aerospace and
//! Electronic Systems, 1970).

use crate::correction::Error;

/// Covariances of offset (ns), drift (ns a second) and bend (ns a second, each second).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Filter([[f64; 3]; 3]);

/// A clock at an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct State {
    pub offset_ns: f64,
    /// ns a ns.
    pub drift: f64,
    /// Change of the drift in a second.
    pub bend: f64,
}

/// A window's measurement of a clock, with its variances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub offset_ns: f64,
    pub drift: f64,
    /// ns^2.
    pub offset_variance: f64,
    pub drift_variance: f64,
}

/// A correction is used until this number of windows after the middle of its data.
const USED_UNTIL: f64 = 2.5;
/// Shortest time between two windows, s. Their middles may be closer, or in the wrong order, because each is where its lines are best
/// supported.
const SHORTEST_WINDOW_S: f64 = 1.0;
/// A measurement more standard deviations from the prediction means another clock: its time or its rate was
/// set.
const SURPRISE: f64 = 6.0;
/// ns a second in ns a ns.
const PER_S: f64 = 1e9;
/// Decay time of a bend, s: temperatures change over minutes. It is also the longest prediction.
pub(crate) const BEND_TIME_S: f64 = 200.0;
impl State {
    /// `seconds` later.
    pub fn later(self, seconds: f64) -> State {
        let [[_, t, swept], [_, _, turned], [_, _, left]] = step(seconds);
        State {
            offset_ns: self.offset_ns + PER_S * (self.drift * t + self.bend * swept),
            drift: self.drift + self.bend * turned,
            bend: self.bend * left,
        }
    }
}

/// Prediction matrix of offset, drift and bend after `seconds`; into the past at most [`BEND_TIME_S`].
fn step(seconds: f64) -> [[f64; 3]; 3] {
    let left = libm::exp(-seconds.max(-BEND_TIME_S) / BEND_TIME_S);
    let turned = BEND_TIME_S * (1.0 - left);
    let swept = BEND_TIME_S * (seconds - turned);
    [[1.0, seconds, swept], [0.0, 1.0, turned], [0.0, 0.0, left]]
}

impl Filter {
    /// The estimate after a first window. `bend`: possible change of a drift in a second.
    pub fn new(measured: &Measured, bend: f64) -> Filter {
        let mut known = [[0.0; 3]; 3];
        known[0][0] = measured.offset_variance;
        known[1][1] = measured.drift_variance * PER_S * PER_S;
        known[2][2] = (bend * PER_S).powi(2);
        Filter(known)
    }

    /// `seconds` later, less than [`BEND_TIME_S`]; `bend` as above. `walk`: random walk of the drift in a second, ns a second.
    pub fn later(self, seconds: f64, bend: f64, walk: f64) -> Filter {
        let step = step(seconds);
        let bent = 2.0 * (bend * PER_S).powi(2) / BEND_TIME_S;
        let walked = walk * walk;
        let t = |power: i32| seconds.powi(power);
        let offset = bent * t(5) / 20.0 + walked * t(3) / 3.0;
        let both = bent * t(4) / 8.0 + walked * t(2) / 2.0;
        let drift = bent * t(3) / 3.0 + walked * t(1);
        let (swept, turned) = (bent * t(3) / 6.0, bent * t(2) / 2.0);
        let noise = [
            [offset, both, swept],
            [both, drift, turned],
            [swept, turned, bent * t(1)],
        ];
        let product = |i: usize, j: usize| -> f64 {
            let row = |k: usize| (0..3).map(|l| self.0[k][l] * step[j][l]).sum::<f64>();
            (0..3).map(|k| step[i][k] * row(k)).sum()
        };
        let each = [0, 1, 2];
        Filter(each.map(|i| each.map(|j| product(i, j) + noise[i][j])))
    }

    /// By how much the square of the drift's prediction error exceeds what prediction and measurement explain, (ns a second)^2.
    pub fn unexplained(&self, predicted: State, measured: &Measured) -> f64 {
        let off = PER_S * (measured.drift - predicted.drift);
        off * off - self.0[1][1] - measured.drift_variance * PER_S * PER_S
    }

    /// The estimate with a window's measurement `measured`, whose prediction was `predicted`. None: it is another clock.
    pub fn with(self, predicted: State, measured: &Measured) -> Option<(Filter, State)> {
        let off = [
            measured.offset_ns - predicted.offset_ns,
            PER_S * (measured.drift - predicted.drift),
        ];
        let variances = [
            measured.offset_variance,
            measured.drift_variance * PER_S * PER_S,
        ];
        let is_predicted =
            |n: usize| off[n].abs() <= SURPRISE * (self.0[n][n] + variances[n]).sqrt();
        if !is_predicted(0) || !is_predicted(1) {
            return None;
        }
        // First the offset, then the drift.
        let (mut known, mut moved) = (self.0, [0.0; 3]);
        for n in 0..2 {
            let with = known[n];
            let sum = with[n] + variances[n];
            let left = off[n] - moved[n];
            for i in 0..3 {
                moved[i] += with[i] / sum * left;
                for j in 0..3 {
                    known[i][j] -= with[i] * with[j] / sum;
                }
            }
        }
        let state = State {
            offset_ns: predicted.offset_ns + moved[0],
            drift: predicted.drift + moved[1] / PER_S,
            bend: predicted.bend + moved[2] / PER_S,
        };
        Some((Filter(known), state))
    }

    /// The estimate as a correction, made from a window of `window_s`.
    pub fn error(&self, window_s: f64) -> Error {
        let [[offset, both, _], [_, drift, _], [_, _, bend]] = self.0;
        // Errors of offset and drift are correlated; when a correction is oldest this gives the same.
        let age_s = USED_UNTIL * window_s.max(SHORTEST_WINDOW_S);
        let drift = (drift + 2.0 * both / age_s).max(0.0);
        Error {
            sigma_ns: offset.max(0.0).sqrt(),
            drift_sigma: drift.sqrt() / PER_S,
            wander_per_s: bend.max(0.0).sqrt() / PER_S,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEND: f64 = 1e-8;

    fn measured(offset_ns: f64, drift: f64, sigma_ns: f64) -> Measured {
        Measured {
            offset_ns,
            drift,
            offset_variance: sigma_ns * sigma_ns,
            drift_variance: (sigma_ns / 1e9).powi(2),
        }
    }

    /// A clock with a drift of 10 ns/s that bends by `bend`, measured every 2 s for a minute, wrong by
    /// `sigma_ns` this way and that.
    fn after_a_minute(bend: f64, sigma_ns: f64) -> (Filter, State) {
        let first = measured(0.0, 1e-8, sigma_ns);
        let start = State {
            offset_ns: 0.0,
            drift: 1e-8,
            bend: 0.0,
        };
        let mut is = (Filter::new(&first, BEND), start);
        for window in 1..=30 {
            let at_s = 2.0 * f64::from(window);
            let wrong_ns = if window % 2 == 0 { sigma_ns } else { -sigma_ns };
            let offset_ns = 10.0 * at_s + 0.5e9 * bend * at_s * at_s + wrong_ns;
            let found = measured(offset_ns, 1e-8 + bend * at_s, sigma_ns);
            let later = is.0.later(2.0, BEND, 20.0);
            is = later.with(is.1.later(2.0), &found).expect("predicted");
        }
        is
    }

    #[test]
    fn windows_add_up_to_more_than_the_last_one() {
        let (filter, state) = after_a_minute(0.0, 100.0);
        assert!((state.offset_ns - 600.0).abs() < 50.0, "{state:?}");
        assert!((state.drift - 1e-8).abs() < 2e-8, "{state:?}");
        let error = filter.error(2.0);
        assert!((20.0..80.0).contains(&error.sigma_ns), "{error:?}");
    }

    #[test]
    fn a_bend_is_learnt() {
        let (filter, state) = after_a_minute(1e-8, 2.0);
        assert!((state.bend - 1e-8).abs() < 2e-9, "{state:?}");
        let sure = filter.error(2.0).wander_per_s;
        let unsure = after_a_minute(1e-8, 100_000.0).0.error(2.0).wander_per_s;
        assert!(sure < 0.5 * BEND && unsure > 0.9 * BEND, "{sure} {unsure}");
    }

    #[test]
    fn a_bend_that_nobody_watches_is_forgotten() {
        let (filter, state) = after_a_minute(5e-9, 2.0);
        assert!(state.later(3_000.0).bend < 1e-12);
        let later = (0..1_500).fold(filter, |filter, _| filter.later(2.0, BEND, 20.0));
        let again = later.error(2.0).wander_per_s;
        assert!((again / BEND - 1.0).abs() < 0.1, "{again}");
    }

    #[test]
    fn a_window_that_says_little_moves_little() {
        let (filter, state) = after_a_minute(0.0, 100.0);
        let unsure = measured(state.offset_ns + 2_000.0, state.drift, 4_000.0);
        let (after, moved) = filter.with(state, &unsure).expect("predicted");
        assert!((moved.offset_ns - state.offset_ns).abs() < 5.0);
        assert!(after.0[0][0] > 0.9 * filter.0[0][0]);
    }

    /// Nobody can use a sigma that is infinite.
    #[test]
    fn windows_whose_middles_are_together_have_a_sigma() {
        let (filter, _) = after_a_minute(0.0, 100.0);
        let usual = filter.error(2.0).drift_sigma;
        for window_s in [0.1, 0.0, -0.1] {
            let sigma = filter.error(window_s).drift_sigma;
            assert!((usual..2.0 * usual).contains(&sigma), "{sigma}");
        }
    }

    #[test]
    fn a_clock_that_was_set_is_another_one() {
        let (filter, state) = after_a_minute(0.0, 100.0);
        let set = measured(state.offset_ns + 5_000.0, state.drift, 100.0);
        assert_eq!(filter.with(state, &set), None);
        let faster = measured(state.offset_ns, 1e-5, 100.0);
        assert_eq!(filter.with(state, &faster), None);
    }
}
