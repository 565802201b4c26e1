//! The host's own clock, CLOCK_MONOTONIC, as tests may make it: every reading and every stamp of this
//! crate comes through here, so that a fleet on one kernel has clocks that are wrong in a known way.

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

/// How this host's clock is wrong.
pub(crate) struct OwnClock {
    oscillator: Oscillator,
    noise: f64,
    random: ChaCha8Rng,
}

impl OwnClock {
    /// That of the host at `own`, whose stamps have a noise of their own.
    pub fn new(synthetic: &Synthetic, own: SocketAddr) -> OwnClock {
        let mut hasher = DefaultHasher::new();
        own.hash(&mut hasher);
        OwnClock {
            oscillator: synthetic.oscillator,
            noise: synthetic.noise,
            random: ChaCha8Rng::seed_from_u64(hasher.finish()),
        }
    }

    /// What it reads at CLOCK_MONOTONIC `mono_ns`.
    pub fn read(&self, mono_ns: i64) -> Time<Mono> {
        Time::from_ticks(self.oscillator.read(mono_ns))
    }

    /// Its stamp of a packet that left then.
    pub fn sent(&mut self, mono_ns: i64) -> i64 {
        let late = Stamps::Software.sent_noise_ns(&mut self.random);
        self.stamp(mono_ns, late)
    }

    /// Its stamp of a packet that arrived then.
    pub fn received(&mut self, mono_ns: i64) -> i64 {
        let late = Stamps::Software.received_noise_ns(&mut self.random);
        self.stamp(mono_ns, late)
    }

    fn stamp(&self, mono_ns: i64, late_ns: f64) -> i64 {
        self.read(mono_ns).ticks() + (self.noise * late_ns).round() as i64
    }
}
