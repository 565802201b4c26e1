//! The host's own clock, from which this crate takes every reading and every stamp. It is CLOCK_MONOTONIC
//! without the changes of its rate by `--discipline`, so that the estimates do not depend on them. Tests
//! add a known error, so that a fleet on one kernel has different clocks.

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

/// What the own clock reads over CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scale {
    oscillator: Oscillator,
    /// When the rate was last changed, and what the unchanged clock read then.
    since_mono_ns: i64,
    unchanged_ns: i64,
    /// By how much CLOCK_MONOTONIC has run faster since.
    rate: f64,
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

    /// From `mono_ns` on CLOCK_MONOTONIC runs faster by `rate` than it would by itself.
    pub fn run(&mut self, rate: f64, mono_ns: i64) {
        self.unchanged_ns = self.unchanged(mono_ns);
        self.since_mono_ns = mono_ns;
        self.rate = rate;
    }

    fn unchanged(&self, mono_ns: i64) -> i64 {
        let since_ns = mono_ns - self.since_mono_ns;
        let too_much_ns = since_ns as f64 * self.rate / (1.0 + self.rate);
        self.unchanged_ns + since_ns - too_much_ns.round() as i64
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
