// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The host's own clock, from which this crate takes every reading and every stamp. It is CLOCK_MONOTONIC
//! without the changes of its rate by programs, so that the estimates do not depend on them: those of `--discipline` are
//! known, and those of others show beside CLOCK_MONOTONIC_RAW. Tests add a known error, so that a fleet on one kernel has
//! different clocks.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::SocketAddr,
};

use onramp_sync::{
    probe::Stamps,
    synthetic::{Oscillator, Synthetic},
};
use onramp_units::{Mono, Time};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

use crate::machine::Beside;

/// A program has changed the rate when a reading is off by more than this, ns: two clocks cannot be read beside each other
/// more exactly than within some 50 ns.
const CHANGED_NS: f64 = 150.0;
/// Readings that count, which are at least so far apart, ns: from two that are close together no rate follows.
const READINGS: u32 = 150;
const APART_NS: i64 = 15_000_000;

/// What the own clock reads over CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scale {
    oscillator: Oscillator,
    /// A time, and what the unchanged clock read then: whole ns, and a rest below one.
    since_mono_ns: i64,
    unchanged_ns: i64,
    rest_ns: f64,
    /// By how much CLOCK_MONOTONIC has run faster since.
    rate: f64,
    /// How much of that `--discipline` makes.
    published: f64,
    /// What the unchanged clock is ahead of CLOCK_MONOTONIC_RAW, from the first reading on.
    ahead_of_raw_ns: Option<i64>,
    /// Readings since a program changed the rate, and when the last one was.
    readings: u32,
    read_mono_ns: i64,
}

impl Scale {
    pub fn new(oscillator: Oscillator) -> Scale {
        Scale {
            oscillator,
            ..Scale::default()
        }
    }

    /// What it reads at CLOCK_MONOTONIC `mono_ns`.
    pub fn read(&self, mono_ns: i64) -> Time<Mono> {
        Time::from_ticks(self.oscillator.read(self.unchanged(mono_ns)))
    }

    /// By how much it is faster than CLOCK_MONOTONIC then.
    pub fn drift_at(&self, mono_ns: i64) -> f64 {
        let drift = self.oscillator.drift_at(self.unchanged(mono_ns));
        (drift - self.rate) / (1.0 + self.rate)
    }

    /// From `mono_ns` on CLOCK_MONOTONIC runs faster by `rate` than when we began, because we told the kernel so.
    pub fn run(&mut self, rate: f64, mono_ns: i64) {
        self.go_on(mono_ns, 0.0);
        self.rate += rate - self.published;
        self.published = rate;
    }

    /// Follows what programs do to the rate: least squares over the last readings, in steps (a g-h filter whose gains are
    /// those of a growing memory), which begin anew when a reading is off.
    pub fn follow(&mut self, beside: Beside) {
        let Beside { mono_ns, raw_ns } = beside;
        let unchanged_ns = self.unchanged(mono_ns);
        let Some(ahead_ns) = self.ahead_of_raw_ns else {
            self.ahead_of_raw_ns = Some(unchanged_ns - raw_ns);
            self.readings = 1;
            self.read_mono_ns = mono_ns;
            return;
        };
        let elapsed_ns = mono_ns - self.read_mono_ns;
        if elapsed_ns < APART_NS {
            return;
        }
        self.read_mono_ns = mono_ns;
        let off_ns = (raw_ns + ahead_ns - unchanged_ns) as f64 - self.rest_at(mono_ns);
        // Two readings make a rate.
        if off_ns.abs() > CHANGED_NS && self.readings > 1 {
            self.readings = 0;
        }
        self.readings = (self.readings + 1).min(READINGS);
        let n = f64::from(self.readings);
        let gain = 2.0 * (2.0 * n - 1.0) / (n * (n + 1.0));
        let rate_gain = if self.readings > 1 {
            6.0 / (n * (n + 1.0))
        } else {
            0.0
        };
        self.go_on(mono_ns, gain * off_ns);
        // The slope of the unchanged clock over CLOCK_MONOTONIC is 1 / (1 + rate).
        let slope = (1.0 + self.rate).recip() + rate_gain * off_ns / elapsed_ns as f64;
        self.rate = slope.recip() - 1.0;
    }

    /// The line begins at `mono_ns` from now on, so much later.
    fn go_on(&mut self, mono_ns: i64, by_ns: f64) {
        let rest_ns = self.rest_at(mono_ns) + by_ns;
        self.unchanged_ns = self.unchanged(mono_ns) + rest_ns.floor() as i64;
        self.rest_ns = rest_ns - rest_ns.floor();
        self.since_mono_ns = mono_ns;
    }

    /// What the unchanged clock reads then, in whole ns.
    fn unchanged(&self, mono_ns: i64) -> i64 {
        let since_ns = mono_ns - self.since_mono_ns;
        self.unchanged_ns + since_ns + self.gained_ns(since_ns).floor() as i64
    }

    /// What it reads beyond whole ns.
    fn rest_at(&self, mono_ns: i64) -> f64 {
        let gained_ns = self.gained_ns(mono_ns - self.since_mono_ns);
        gained_ns - gained_ns.floor()
    }

    /// What the unchanged clock has gained on CLOCK_MONOTONIC in this time.
    fn gained_ns(&self, since_ns: i64) -> f64 {
        self.rest_ns - since_ns as f64 * self.rate / (1.0 + self.rate)
    }
}

/// The clock and its stamps.
pub(crate) struct OwnClock {
    pub scale: Scale,
    noise: f64,
    random: ChaCha8Rng,
}

impl OwnClock {
    /// That of the host at `own`, whose stamps have a noise of their own.
    pub fn new(synthetic: &Synthetic, own: SocketAddr) -> OwnClock {
        let mut hasher = DefaultHasher::new();
        own.hash(&mut hasher);
        OwnClock {
            scale: Scale::new(synthetic.oscillator),
            noise: synthetic.noise,
            random: ChaCha8Rng::seed_from_u64(hasher.finish()),
        }
    }

    /// What it reads at CLOCK_MONOTONIC `mono_ns`.
    pub fn read(&self, mono_ns: i64) -> Time<Mono> {
        self.scale.read(mono_ns)
    }

    /// Its stamp of a packet that left then.
    pub fn sent(&mut self, mono_ns: i64) -> i64 {
        self.stamp(mono_ns, Stamps::sent_noise_ns)
    }

    /// Its stamp of a packet that arrived then.
    pub fn received(&mut self, mono_ns: i64) -> i64 {
        self.stamp(mono_ns, Stamps::received_noise_ns)
    }

    fn stamp(&mut self, mono_ns: i64, late_ns: fn(Stamps, &mut ChaCha8Rng) -> f64) -> i64 {
        let at = self.read(mono_ns).ticks();
        if self.noise == 0.0 {
            return at;
        }
        let late_ns = self.noise * late_ns(Stamps::Software, &mut self.random);
        at + late_ns.round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program changes the rate of CLOCK_MONOTONIC by 10 ppm, later by -0.1 ppm; clocks are read beside each other within 30 ns.
    #[test]
    fn what_programs_do_to_the_rate_does_not_show() {
        const TICK_NS: i64 = 20_000_000;
        let (mut scale, mut kernel_ns) = (Scale::default(), 1_000_000_000);
        let mut base_ns = None;
        for tick in 0..1_500 {
            let ppb = match tick {
                ..500 => 20_000,
                500..1_000 => 30_000,
                _ => 29_900,
            };
            let half_ns = TICK_NS / 2 + TICK_NS / 2 * ppb / 1_000_000_000;
            kernel_ns += 2 * half_ns;
            let true_ns = tick * TICK_NS;
            let noise_ns = (tick * 7_919) % 61 - 30;
            // What a stamp taken half a tick before the reading becomes.
            let before = scale.read(kernel_ns - half_ns).ticks() - (true_ns - TICK_NS / 2);
            scale.follow(Beside {
                mono_ns: kernel_ns,
                raw_ns: true_ns + noise_ns,
            });
            let now = scale.read(kernel_ns).ticks() - true_ns;
            match base_ns {
                None if tick == 400 => base_ns = Some(now),
                None => {}
                Some(base_ns) => {
                    let off_ns = [before - base_ns, now - base_ns];
                    assert!(off_ns.iter().all(|ns| ns.abs() < 250), "{tick}: {off_ns:?}");
                    let is_calm = tick % 500 > 300;
                    assert!(!is_calm || off_ns[1].abs() < 20, "{tick}: {off_ns:?}");
                }
            }
        }
    }

    #[test]
    fn it_runs_on_as_if_nobody_had_changed_the_rate() {
        // The kernel's clock runs 30 ppm faster from 1 s on and 400 ppm slower from 3 s on.
        let kernel = |true_ns: i64| match true_ns {
            ..1_000_000_000 => true_ns,
            1_000_000_000..3_000_000_000 => true_ns + (true_ns - 1_000_000_000) * 3 / 100_000,
            _ => true_ns + 60_000 - (true_ns - 3_000_000_000) * 4 / 10_000,
        };
        let mut scale = Scale::default();
        scale.run(3e-5, kernel(1_000_000_000));
        assert_eq!(scale.read(kernel(2_500_000_000)).ticks(), 2_500_000_000);
        scale.run(-4e-4, kernel(3_000_000_000));
        for true_ns in [3_000_000_000, 7_000_000_001, 100_000_000_000] {
            let off = scale.read(kernel(true_ns)).ticks() - true_ns;
            assert!(off.abs() <= 1, "{off} ns at {true_ns}");
        }
        let per_kernel_ns = 1.0 / (1.0 - 4e-4) - 1.0;
        assert!((scale.drift_at(kernel(5_000_000_000)) - per_kernel_ns).abs() < 1e-12);
    }
}
