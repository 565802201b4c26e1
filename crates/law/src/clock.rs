// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Fleet time as the data path computes it: [`FleetLine`].

use crate::raw;
use onramp_units::{Mono, Time};

/// Units of a drift.
const Q32: f64 = (1u64 << 32) as f64;

/// Fleet time as a line over a host's monotonic clock (law/clock.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetLine {
    /// The line's reference point.
    pub reference: Time<Mono>,
    /// Fleet time minus the host's clock at that point, ns.
    pub offset_ns: i64,
    drift_q32: i64,
}

impl FleetLine {
    /// `drift`: growth of the offset, ns per ns, limited to 2^-10 in both directions.
    pub fn new(reference: Time<Mono>, offset_ns: i64, drift: f64) -> FleetLine {
        let steepest = i64::from(raw::ONR_CLOCK_STEEPEST_Q32);
        FleetLine {
            reference,
            offset_ns,
            drift_q32: ((drift * Q32).round() as i64).clamp(-steepest, steepest),
        }
    }

    /// The drift in units of 2^-32.
    pub fn drift_q32(&self) -> i64 {
        self.drift_q32
    }

    /// Fleet time minus the host's clock at `now`, ns; saturates.
    pub fn offset_at(&self, now: Time<Mono>) -> i64 {
        let (now, reference) = (now.ticks(), self.reference.ticks());
        // SAFETY: a pure function of integers; `new` keeps the drift in its bounds.
        unsafe { raw::onr_clock_offset(now, self.offset_ns, self.drift_q32, reference) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_grows_by_its_drift_and_survives_anything() {
        let at = Time::from_ticks;
        let line = FleetLine::new(at(1_000_000_000), 500, 20e-6);
        assert_eq!(line.offset_at(at(1_000_000_000)), 500);
        assert!((line.offset_at(at(3_000_000_000)) - 40_500).abs() <= 1);
        for extreme in [i64::MIN, i64::MAX] {
            FleetLine::new(at(extreme), extreme, f64::INFINITY).offset_at(at(!extreme));
        }
        assert_eq!(FleetLine::new(at(0), 0, 1.0).drift_q32(), 1 << 22);
    }
}
