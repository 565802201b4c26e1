// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Decides whether a guest is stuck, by the guest's own time, so that the speed of the host does not matter.
//!
//! The guest reports its uptime every few seconds of guest time (init.sh), and its command prints lines. A
//! guest is stuck if its command has printed nothing for too long in guest time, or if the guest does not
//! report its uptime although the emulator has worked, or slept, for long.

use std::fmt;
use std::time::Duration;

/// Processor time of the emulator without a report of the guest's uptime. The guest reports every 5 s, or
/// 5e9 instructions, which take an idle processor of 2024 about 20 s.
const MOST_WORK: Duration = Duration::from_secs(600);
/// Wall-clock time after which an emulator that does not work at all is given up.
const MOST_SLEEP: Duration = Duration::from_secs(600);
/// Fraction of the time in which an emulator works, even at low priority on a loaded host.
const LEAST_LOAD: f64 = 0.001;

/// Times of the emulator's process so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Emulator {
    /// Since its start.
    pub wall: Duration,
    /// Processor time of all its threads.
    pub processor: Duration,
}

/// Why a guest is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stuck {
    /// The command printed nothing for this much of the guest's time.
    Silent(Duration),
    /// The guest did not report its uptime while the emulator worked for this time.
    Deaf(Duration),
    /// The emulator did not work for this time.
    Asleep(Duration),
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stuck::Silent(time) => write!(
                f,
                "its command printed nothing for {} s of the guest's time",
                time.as_secs()
            ),
            Stuck::Deaf(time) => write!(
                f,
                "its clock stood still for {} s of processor time",
                time.as_secs()
            ),
            Stuck::Asleep(time) => write!(
                f,
                "the emulator did not use a processor for {} s",
                time.as_secs()
            ),
        }
    }
}

/// The last reports of a guest.
#[derive(Debug)]
pub struct Watchdog {
    patience: Duration,
    uptime: Duration,
    /// Uptime when the last line was printed.
    line_at: Duration,
    /// Time of the last uptime report.
    told_at: Emulator,
}

impl Watchdog {
    /// Gives a guest up whose command prints nothing for `patience` of the guest's time.
    pub fn new(patience: Duration) -> Watchdog {
        Watchdog {
            patience,
            uptime: Duration::ZERO,
            line_at: Duration::ZERO,
            told_at: Emulator::default(),
        }
    }

    /// The command printed a line.
    pub fn line(&mut self) {
        self.line_at = self.uptime;
    }

    /// The guest reported its uptime.
    pub fn uptime(&mut self, uptime: Duration, now: Emulator) {
        self.uptime = uptime;
        self.told_at = now;
    }

    /// Whether the guest is stuck.
    pub fn stuck(&self, now: Emulator) -> Option<Stuck> {
        let silent = self.uptime.saturating_sub(self.line_at);
        let worked = now.processor.saturating_sub(self.told_at.processor);
        let passed = now.wall.saturating_sub(self.told_at.wall);
        if silent > self.patience {
            Some(Stuck::Silent(silent))
        } else if worked > MOST_WORK {
            Some(Stuck::Deaf(worked))
        } else if passed > MOST_SLEEP && worked < passed.mul_f64(LEAST_LOAD) {
            Some(Stuck::Asleep(passed))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn emulator(wall_s: u64, processor_s: u64) -> Emulator {
        Emulator {
            wall: s(wall_s),
            processor: s(processor_s),
        }
    }

    /// Five seconds of the guest's time take 400 s of ours.
    #[test]
    fn a_slow_guest_that_prints_now_and_then_is_never_given_up() {
        let mut watchdog = Watchdog::new(s(60));
        for step in 1..1000 {
            let now = emulator(400 * step, 100 * step);
            assert_eq!(watchdog.stuck(now), None);
            watchdog.uptime(s(5 * step), now);
            if step % 10 == 0 {
                watchdog.line();
            }
        }
    }

    #[test]
    fn a_command_that_prints_nothing_is_given_up_by_the_guests_time() {
        let mut watchdog = Watchdog::new(s(60));
        watchdog.uptime(s(5), emulator(1, 1));
        watchdog.line();
        watchdog.uptime(s(65), emulator(2, 2));
        assert_eq!(watchdog.stuck(emulator(2, 2)), None);
        watchdog.uptime(s(70), emulator(3, 3));
        assert_eq!(watchdog.stuck(emulator(3, 3)), Some(Stuck::Silent(s(65))));
    }

    #[test]
    fn a_kernel_that_hangs_is_given_up_by_the_work_of_the_emulator() {
        let mut watchdog = Watchdog::new(s(60));
        watchdog.uptime(s(5), emulator(10, 10));
        assert_eq!(watchdog.stuck(emulator(9000, 600)), None);
        let stuck = watchdog.stuck(emulator(9000, 611));
        assert_eq!(stuck, Some(Stuck::Deaf(s(601))));
    }

    #[test]
    fn an_emulator_that_sleeps_is_given_up_and_one_on_a_crowded_host_is_not() {
        let watchdog = Watchdog::new(s(60));
        assert_eq!(watchdog.stuck(emulator(5000, 10)), None);
        let stuck = watchdog.stuck(emulator(601, 0));
        assert_eq!(stuck, Some(Stuck::Asleep(s(601))));
    }
}
