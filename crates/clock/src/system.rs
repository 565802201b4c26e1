// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The system clock, CLOCK_REALTIME: reads it, and steers it for `--discipline`.

use std::io;

use clock_steering::{unix::UnixClock, Clock, TimeOffset};
use nix::time::ClockId;
use onramp_sync::synthetic::Synthetic;

use crate::{
    config::Config,
    own::Scale,
    stamps::{now_mono_ns, Ahead},
    wall::MOST_RATE,
};

/// A clock that is further off is stepped: slewing would take a quarter of an hour.
const STEP_NS: i64 = 100_000_000;
/// Time in which an error is slewed away, s: long compared with the 2 s between verdicts, whose noise it
/// averages.
const OVER_S: f64 = 10.0;
/// Fastest slew: 0.1 ms a second.
const MOST_SLEW: f64 = 1e-4;

/// What to do about a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Act {
    /// Set it forward by so much, ns.
    Step(i64),
    /// Make it run faster by this than by itself.
    Run(f64),
}

/// What makes a clock follow that is `off_ns` ahead of what it should read, and should run faster by `needed`
/// than by itself.
pub(crate) fn follow(off_ns: i64, needed: f64) -> Act {
    if off_ns.unsigned_abs() > STEP_NS as u64 {
        return Act::Step(off_ns.saturating_neg());
    }
    let slew = (-off_ns as f64 / 1e9 / OVER_S).clamp(-MOST_SLEW, MOST_SLEW);
    Act::Run((needed + slew).clamp(-MOST_RATE, MOST_RATE))
}

/// A host's CLOCK_REALTIME, or one that is computed, for hosts that share a kernel.
pub(crate) enum SystemClock {
    Kernel {
        ahead: Ahead,
        /// None: we may not set it.
        rate: Option<Frequency>,
    },
    Computed(Computed),
}

/// How fast a kernel's clock was told to run, ppm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frequency {
    /// When we found it.
    found: f64,
    /// By us, since.
    set: f64,
}

/// The own clock, and what steering has made of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Computed {
    ahead_ns: i64,
    since_own_ns: i64,
    rate: f64,
}

impl SystemClock {
    /// The one that a host's daemon reads, and sets if it shall.
    ///
    /// # Errors
    /// It shall set it and may not.
    pub fn of(config: &Config) -> io::Result<SystemClock> {
        if config.synthetic != Synthetic::default() {
            let mut ahead = Ahead::of(ClockId::CLOCK_REALTIME);
            ahead.changed();
            return Ok(SystemClock::computed(ahead.ns()));
        }
        SystemClock::kernel(config.discipline).map_err(|error| {
            let text =
                format!("--discipline cannot set the system clock: {error}; run as root or with CAP_SYS_TIME");
            io::Error::new(error.kind(), text)
        })
    }

    /// One that nobody has set yet, so much ahead of the own clock.
    pub fn computed(ahead_ns: i64) -> SystemClock {
        SystemClock::Computed(Computed {
            ahead_ns,
            ..Computed::default()
        })
    }

    fn kernel(is_set: bool) -> io::Result<SystemClock> {
        let kernel = UnixClock::CLOCK_REALTIME;
        let rate = match is_set {
            true => {
                let found = kernel.get_frequency()?;
                kernel.set_frequency(found)?;
                Some(Frequency { found, set: found })
            }
            false => None,
        };
        let mut ahead = Ahead::of(ClockId::CLOCK_REALTIME);
        ahead.changed();
        Ok(SystemClock::Kernel { ahead, rate })
    }

    /// What it reads at CLOCK_MONOTONIC `mono_ns`, and how fast it is against that.
    pub fn read(&mut self, scale: &Scale, mono_ns: i64) -> (i64, f64) {
        match self {
            SystemClock::Kernel { ahead, .. } => {
                ahead.changed();
                (mono_ns + ahead.ns(), 1.0)
            }
            SystemClock::Computed(computed) => {
                let own_ns = scale.read(mono_ns).ticks();
                let fast = (1.0 + scale.drift_at(mono_ns)) * (1.0 + computed.rate);
                (own_ns + computed.ahead_at(own_ns), fast)
            }
        }
    }

    /// Whether another program has changed how fast it runs since we last did.
    pub fn is_contested(&self) -> bool {
        match self {
            SystemClock::Kernel { rate, .. } => {
                let is = UnixClock::CLOCK_REALTIME.get_frequency().ok();
                let is_ours = |ours: &Frequency| is.is_some_and(|is| (is - ours.set).abs() < 1e-4);
                !rate.as_ref().is_some_and(is_ours)
            }
            SystemClock::Computed(_) => false,
        }
    }

    /// Makes it run faster by `rate` than we found it, from now on, which for a computed one is `mono_ns`; by
    /// how much it does.
    ///
    /// # Errors
    /// The kernel does not want that.
    pub fn run(&mut self, rate: f64, scale: &mut Scale, mono_ns: i64) -> io::Result<f64> {
        match self {
            SystemClock::Kernel {
                rate: frequency, ..
            } => {
                let found = frequency.map_or(0.0, |frequency| frequency.found);
                UnixClock::CLOCK_REALTIME.set_frequency(found + rate * 1e6)?;
                // It counts in 2^-16 ppm.
                let set = UnixClock::CLOCK_REALTIME.get_frequency()?;
                *frequency = Some(Frequency { found, set });
                let rate = (set - found) / 1e6;
                // Linux does at once what it is told here (since 4.19; before, within a tick).
                scale.run(rate, now_mono_ns());
                Ok(rate)
            }
            SystemClock::Computed(computed) => {
                let own_ns = scale.read(mono_ns).ticks();
                *computed = Computed {
                    ahead_ns: computed.ahead_at(own_ns),
                    since_own_ns: own_ns,
                    rate,
                };
                Ok(rate)
            }
        }
    }

    /// Sets it forward by `by_ns`.
    ///
    /// # Errors
    /// As for [`SystemClock::run`].
    pub fn step(&mut self, by_ns: i64) -> io::Result<()> {
        match self {
            SystemClock::Kernel { .. } => {
                let offset = TimeOffset {
                    seconds: by_ns.div_euclid(1_000_000_000),
                    nanos: by_ns.rem_euclid(1_000_000_000) as u32,
                };
                UnixClock::CLOCK_REALTIME.step_clock(offset)?;
            }
            SystemClock::Computed(computed) => computed.ahead_ns += by_ns,
        }
        Ok(())
    }
}

impl Computed {
    fn ahead_at(&self, own_ns: i64) -> i64 {
        let run_ns = self.rate * (own_ns - self.since_own_ns) as f64;
        self.ahead_ns + run_ns.round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that is too fast by `drift`, `off_ns` ahead, and followed every 2 s with readings
    /// that are wrong by 300 ns this way and that: what it is off by after each.
    fn followed(mut off_ns: f64, drift: f64, seconds: usize) -> Vec<f64> {
        let mut rate = 0.0;
        let window = |n: usize| {
            let wrong_ns = if n.is_multiple_of(2) { 300.0 } else { -300.0 };
            match follow((off_ns + wrong_ns) as i64, -drift) {
                Act::Step(by_ns) => off_ns += by_ns as f64,
                Act::Run(new) => rate = new,
            }
            off_ns += (drift + rate) * 2e9;
            off_ns
        };
        (0..seconds / 2).map(window).collect()
    }

    #[test]
    fn a_clock_that_is_a_little_off_is_slewed_without_overshoot() {
        let off = followed(200_000.0, 0.0, 120);
        assert!(
            off.iter().all(|ns| *ns < 200_001.0 && *ns > -500.0),
            "{off:?}"
        );
        assert!(off[40..].iter().all(|ns| ns.abs() < 300.0), "{off:?}");
    }

    #[test]
    fn a_clock_that_is_fast_is_held_back() {
        let off = followed(0.0, 6e-5, 60);
        assert!(off.iter().all(|ns| ns.abs() < 300.0), "{off:?}");
    }

    #[test]
    fn a_clock_that_is_far_off_is_stepped_once() {
        assert_eq!(follow(1_700_000_000, 0.0), Act::Step(-1_700_000_000));
        assert_eq!(follow(i64::MIN, 0.0), Act::Step(i64::MAX));
        assert!(followed(1.7e9, 1e-6, 60)[20..]
            .iter()
            .all(|ns| ns.abs() < 5_000.0));
    }

    #[test]
    fn the_rate_stays_within_what_the_kernel_takes() {
        assert_eq!(follow(0, 1e-3), Act::Run(MOST_RATE));
        assert_eq!(follow(1_000, -1e-3), Act::Run(-MOST_RATE));
    }

    #[test]
    fn a_computed_clock_steps_and_runs() {
        let mut scale = Scale::default();
        let mut clock = SystemClock::Computed(Computed::default());
        assert_eq!(clock.read(&scale, 500), (500, 1.0));
        clock.step(-200).unwrap();
        clock.run(1e-3, &mut scale, 1_000).unwrap();
        assert_eq!(
            clock.read(&scale, 1_001_000),
            (1_001_000 - 200 + 1_000, 1.001)
        );
    }
}
