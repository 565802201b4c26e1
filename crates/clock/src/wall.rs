// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The leader's CLOCK_REALTIME as a line over fleet time. Verdicts carry it to the hosts that follow it.

use onramp_units::{Fleet, Time};

/// Fastest that the kernel lets CLOCK_REALTIME run, less a margin: its bound is 500 ppm.
pub(crate) const MOST_RATE: f64 = 499e-6;

/// The leader's CLOCK_REALTIME as a line over fleet time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wall {
    /// Reference point of the line.
    pub at: Time<Fleet>,
    /// CLOCK_REALTIME minus fleet time at the reference point, ns.
    pub ahead_ns: i64,
    /// Growth of that difference, ns per ns.
    pub drift: f64,
}

impl Wall {
    /// Whether a real clock can have these values.
    pub fn is_believable(&self) -> bool {
        self.drift.abs() <= 2.0 * MOST_RATE && self.ahead_ns.unsigned_abs() < 1 << 62
    }

    /// What it reads when fleet time is `fleet`, ns.
    pub fn read(&self, fleet: Time<Fleet>) -> i64 {
        let grown_ns = self.drift * (fleet.ticks().saturating_sub(self.at.ticks())) as f64;
        let ahead_ns = self.ahead_ns.saturating_add(grown_ns.round() as i64);
        fleet.ticks().saturating_add(ahead_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leaders_clock_is_a_line_that_survives_the_ends_of_time() {
        let wall = Wall {
            at: Time::from_ticks(1_000),
            ahead_ns: 50,
            drift: 0.01,
        };
        assert_eq!(wall.read(Time::from_ticks(2_000)), 2_060);
        let far = Wall {
            ahead_ns: i64::MAX,
            drift: 1e300,
            ..wall
        };
        assert_eq!(far.read(Time::from_ticks(i64::MAX)), i64::MAX);
    }
}
