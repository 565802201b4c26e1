// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What is known of one host's clock from window to window.

use onramp_units::{Fleet as FleetTime, Mono, Time};

use super::{Wander, FIRST_SIGMA_NS, SETTLED};
use crate::{
    correction::{Correction, Error},
    filter::{Filter, Measured, State},
};

/// A drift that is known as well as this fixes the rate of fleet time: which rate it has matters little, that it keeps it does.
const RATE_SIGMA: f64 = 1e-5;
/// Weight of a window in what a clock's drift walks, and bounds of that, ns a second in a second. Oscillators have 1
/// (facts/huygens.md, "Synthetic test"), and software that steers a kernel's clock changes its rate by more.
const WALK_GAIN: f64 = 0.1;
const WALKS: (f64, f64) = (2.0, 2_000.0);
/// The same before anything is known.
pub const FIRST_WALK: f64 = 20.0;
/// Bound of the drift's growth by temperature, 1/s.
const STEEPEST_BEND: f64 = 1e-7;

/// One host after a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    pub base_ns: i64,
    pub offset_ns: f64,
    pub drift: f64,
    /// Estimated growth of the drift in a second.
    pub bend: f64,
    /// Uncertainty of the estimate; none before the first window.
    pub known: Option<Filter>,
    /// Mean square of the prediction errors, ns^2; none before the second window.
    pub surprise: Option<f64>,
    /// Mean square of what its drift walks in a second, as its surprises tell, (ns a second)^2.
    pub walk: f64,
    /// Number of windows since the host is known.
    pub windows: usize,
}

impl Clock {
    /// The part of the state that windows measure.
    pub fn state(&self) -> State {
        State {
            offset_ns: self.offset_ns,
            drift: self.drift,
            bend: self.bend,
        }
    }

    /// Whether fleet time keeps the rate that it has by this clock. Not by lines of a fleet that begins under load, whose drifts
    /// may be anything.
    pub fn keeps_rate(&self) -> bool {
        let drift_sigma = self.known.map(|known| known.error(0.0).drift_sigma);
        self.windows >= SETTLED || drift_sigma.is_some_and(|sigma| sigma < RATE_SIGMA)
    }

    /// It is another clock, of which this window is the first.
    pub fn begin_anew(&mut self, found: &Measured, wander: Wander) {
        *self = Clock {
            base_ns: self.base_ns,
            offset_ns: found.offset_ns,
            drift: found.drift,
            known: Some(Filter::new(found, wander.per_s)),
            ..Clock::at(self.base_ns)
        };
    }

    /// Standard deviation of what its drift walks in a second, ns a second.
    pub fn walk(&self) -> f64 {
        self.walk.max(0.0).sqrt().clamp(WALKS.0, WALKS.1)
    }

    /// What its drift has walked since the last window is what the surprise leaves when the uncertainties of prediction and
    /// measurement are taken off.
    pub fn learn_walk(
        &mut self,
        known: &Filter,
        predicted: State,
        found: &Measured,
        elapsed_s: f64,
    ) {
        if elapsed_s <= 0.0 {
            return;
        }
        let walked = known.unexplained(predicted, found) / elapsed_s + self.walk().powi(2);
        self.walk += WALK_GAIN * (walked - self.walk);
        self.walk = self.walk.clamp(-WALKS.1.powi(2), WALKS.1.powi(2));
    }

    /// The prediction for a lost host, while it is better than the estimate of a first window.
    pub fn remembered(self) -> Option<Clock> {
        let predicted = self.known?.error(0.0);
        (predicted.sigma_ns < FIRST_SIGMA_NS).then_some(self)
    }

    pub fn set(&mut self, state: State) {
        self.offset_ns = state.offset_ns;
        self.drift = state.drift;
        self.bend = state.bend.clamp(-STEEPEST_BEND, STEEPEST_BEND);
    }

    /// Its reading at fleet time `at`, and the base of that reading, ns.
    pub fn reads(&self, at: Time<FleetTime>) -> (i64, i64) {
        let small_ns = self.offset_ns.round() as i64;
        let reads = at.ticks().saturating_add(self.base_ns);
        (reads.saturating_add(small_ns), self.base_ns)
    }

    pub fn at(base_ns: i64) -> Clock {
        Clock {
            base_ns,
            offset_ns: 0.0,
            drift: 0.0,
            bend: 0.0,
            known: None,
            surprise: None,
            walk: FIRST_WALK.powi(2),
            windows: 0,
        }
    }

    pub fn correction(&self, at: Time<FleetTime>, error: Error) -> Correction {
        let ahead_ns = self.base_ns.saturating_add(self.offset_ns.round() as i64);
        Correction {
            reference: Time::<Mono>::from_ticks(at.ticks().saturating_add(ahead_ns)),
            offset_ns: ahead_ns.saturating_neg(),
            drift: -self.drift / (1.0 + self.drift),
            bend: -self.bend,
            error,
        }
    }
}
