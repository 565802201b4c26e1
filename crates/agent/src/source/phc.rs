// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `clock.source = "phc"`: fleet time is a PTP hardware clock, which another program (ptp4l), the NIC or the hypervisor keeps
//! right within a bound that the operator states. Readings make it a line over CLOCK_MONOTONIC.
//!
//! Does not: set the clock. What ends or begins a doubt: `trust`.
use std::collections::VecDeque;

use anyhow::Result;
use onramp_clock::{stamps::now_mono_ns, status::FleetClock};
use onramp_sync::synthetic::Oscillator;
use onramp_units::Span;
use tracing::info;

use super::ptp::{PhcDevice, Ptp, Reading};
use super::trust::{Doubt, Trust};

/// Drift is that of readings of this time.
const WINDOW_NS: i64 = 2_000_000_000;
/// Readings that are closer together say nothing about drift.
const LEAST_SPAN_NS: i64 = 100_000_000;
/// The kernel slews a clock by no more; what changes faster was set.
const MOST_SLEW: f64 = 500e-6;

/// A PTP hardware clock as a source.
pub struct Phc {
    pub(super) trust: Trust,
    ptp: Ptp,
    line: Line,
    /// An error that tests add.
    oscillator: Oscillator,
}

impl Phc {
    /// # Errors
    /// There is no clock at this place, or it cannot be read.
    pub fn open(place: PhcDevice, lease: Span, bound: Span, oscillator: Oscillator) -> Result<Phc> {
        let (ptp, path, first) = Ptp::open(place)?;
        info!(
            "clock: {} is read within {}, which is part of clock.bound, {bound}",
            path.display(),
            Span::from_ns(first.error_ns)
        );
        Ok(Phc {
            trust: Trust::new("the PTP hardware clock", lease, bound, now_mono_ns()),
            ptp,
            line: Line::default(),
            oscillator,
        })
    }

    /// The clock now; none while it is doubted, and until its drift is known.
    pub fn clock(&mut self) -> Option<FleetClock> {
        let read = self.ptp.read();
        let now = now_mono_ns();
        let doubt = self.line.take(read, &self.trust, now);
        if !self.trust.judge(doubt, now) {
            return None;
        }
        let (last, drift) = (self.line.last()?, self.line.drift()?);
        let at = last.mono_ns;
        Some(FleetClock {
            reference_mono_ns: at,
            offset_ns: last.ahead_ns() + self.oscillator.read(at) - at,
            drift: drift + self.oscillator.drift_at(at),
            sigma_ns: self.trust.bound_ns(),
            heard_mono_ns: at,
            valid_until_mono_ns: at + self.trust.lease_ns(),
        })
    }
}

/// The latest readings, oldest first.
#[derive(Debug, Default)]
struct Line {
    readings: VecDeque<Reading>,
}

impl Line {
    fn last(&self) -> Option<Reading> {
        self.readings.back().copied()
    }

    /// Growth of the difference to CLOCK_MONOTONIC, ns per ns.
    fn drift(&self) -> Option<f64> {
        let (first, last) = (self.readings.front()?, self.readings.back()?);
        let span_ns = last.mono_ns - first.mono_ns;
        let grown_ns = last.ahead_ns() - first.ahead_ns();
        (span_ns >= LEAST_SPAN_NS).then(|| grown_ns as f64 / span_ns as f64)
    }

    /// Takes a reading; what it says against the clock.
    fn take(&mut self, read: Result<Reading>, trust: &Trust, now: i64) -> Option<Doubt> {
        let reading = match read {
            Ok(reading) => reading,
            Err(error) => {
                self.readings.clear();
                return Some(Doubt::Unreadable(format!("{error:#}")));
            }
        };
        if reading.error_ns > trust.bound_ns() {
            // The host was busy. What was read before serves until its lease ends.
            let serves = |last: Reading| now < last.mono_ns + trust.lease_ns();
            let error_ns = reading.error_ns;
            return (!self.last().is_some_and(serves)).then_some(Doubt::Slow { error_ns });
        }
        let has_stepped = self.last().is_some_and(|last| {
            let elapsed_ns = (reading.mono_ns - last.mono_ns) as f64;
            let drifted_ns = (self.drift().unwrap_or(0.0) * elapsed_ns) as i64;
            let slewed_ns = (MOST_SLEW * elapsed_ns) as i64;
            let unsure_ns = 2 * trust.bound_ns() + last.error_ns + reading.error_ns;
            (reading.ahead_ns() - last.ahead_ns() - drifted_ns).abs() > slewed_ns + unsure_ns
        });
        if has_stepped {
            self.readings.clear();
        }
        self.readings.push_back(reading);
        let oldest = reading.mono_ns - WINDOW_NS;
        while self.readings.len() > 2 && self.readings[0].mono_ns < oldest {
            self.readings.pop_front();
        }
        has_stepped.then_some(Doubt::Stepped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const S: i64 = 1000 * MS;
    const BOUND_NS: i64 = 5_000;

    fn trust() -> Trust {
        Trust::new("the clock", Span::from_s(5), Span::from_ns(BOUND_NS), 0)
    }

    /// A reading of a clock that is an hour ahead and drifts by 20 ppm.
    fn reading(mono_ns: i64) -> Reading {
        Reading {
            mono_ns,
            phc_ns: mono_ns + 3600 * S + mono_ns / 50_000,
            error_ns: 100,
        }
    }

    /// Readings each 250 ms until this time, none of them doubted.
    fn read_until(line: &mut Line, mono_ns: i64) {
        for at in (S..=mono_ns).step_by(250 * MS as usize) {
            assert_eq!(line.take(Ok(reading(at)), &trust(), at), None, "{at}");
        }
    }

    #[test]
    fn drift_is_that_of_the_latest_readings() {
        let mut line = Line::default();
        read_until(&mut line, S);
        assert_eq!(line.drift(), None, "one reading has none");
        read_until(&mut line, 9 * S);
        assert!((line.drift().unwrap() - 20e-6).abs() < 1e-9);
        assert_eq!(line.readings.len(), 9, "of 2 s");
        let faster = |at: i64| Reading {
            phc_ns: reading(at).phc_ns + (at - 9 * S) / 20_000,
            ..reading(at)
        };
        for at in (9 * S + 250 * MS..=12 * S).step_by(250 * MS as usize) {
            assert_eq!(line.take(Ok(faster(at)), &trust(), at), None);
        }
        assert!((line.drift().unwrap() - 70e-6).abs() < 1e-9);
    }

    #[test]
    fn a_step_begins_the_line_anew() {
        for step_ns in [S, -S, 200_000, -200_000] {
            let mut line = Line::default();
            read_until(&mut line, 3 * S);
            let at = 3 * S + 250 * MS;
            let stepped = Reading {
                phc_ns: reading(at).phc_ns + step_ns,
                ..reading(at)
            };
            assert_eq!(
                line.take(Ok(stepped), &trust(), at),
                Some(Doubt::Stepped),
                "{step_ns}"
            );
            assert_eq!(line.drift(), None);
            assert_eq!(line.last(), Some(stepped));
        }
    }

    #[test]
    fn a_clock_that_stands_still_was_stepped() {
        let mut line = Line::default();
        read_until(&mut line, 3 * S);
        let still = Reading {
            mono_ns: 3 * S + 250 * MS,
            ..reading(3 * S)
        };
        let doubt = line.take(Ok(still), &trust(), still.mono_ns);
        assert_eq!(doubt, Some(Doubt::Stepped));
    }

    #[test]
    fn slow_readings_are_doubted_when_the_last_exact_one_is_a_lease_old() {
        let mut line = Line::default();
        let slow = |at| Reading {
            error_ns: BOUND_NS + 1,
            ..reading(at)
        };
        let doubted = Some(Doubt::Slow {
            error_ns: BOUND_NS + 1,
        });
        assert_eq!(line.take(Ok(slow(S)), &trust(), S), doubted, "the first");
        read_until(&mut line, 2 * S);
        assert_eq!(line.take(Ok(slow(3 * S)), &trust(), 3 * S), None);
        assert_eq!(line.last(), Some(reading(2 * S)));
        assert_eq!(line.take(Ok(slow(7 * S)), &trust(), 7 * S), doubted);
    }

    #[test]
    fn a_clock_that_cannot_be_read_is_doubted_and_begins_anew() {
        let mut line = Line::default();
        read_until(&mut line, 3 * S);
        let gone = Err(anyhow::anyhow!("/dev/ptp0 cannot be read"));
        let doubt = line.take(gone, &trust(), 4 * S);
        let why = "/dev/ptp0 cannot be read".to_owned();
        assert_eq!(doubt, Some(Doubt::Unreadable(why)));
        assert_eq!(line.last(), None);
    }
}
