// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The hosts' clocks, which give the receiver's time stamp on the sender's clock.
//!
//! A host's clock differs from true time by a constant offset and a constant drift, both Gaussian over the
//! hosts, and by a drift that changes with its temperature. A time stamp also has Gaussian noise. Only time
//! stamps have errors: timers run at the true rate. If clocks are synchronised (huygens/), a stamp is in
//! fleet time, as each host estimates it.

use crate::engine::random::{Purpose, Streams};
use onramp_sync::correction::Correction;
use onramp_sync::synthetic::{gaussian, oscillators, Oscillator, Spread};
use onramp_units::{Mono, Sim, Span, Time};

/// Errors of clocks. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClockErrors {
    /// Offsets and drifts of the hosts' clocks.
    pub hosts: Spread,
    /// Standard deviation of a single stamp.
    pub noise: Span,
}

/// The clocks of all hosts.
pub(crate) struct Clocks {
    /// By node.
    clocks: Vec<Oscillator>,
    /// Whether clocks are synchronised, and the corrections by node.
    synchronised: bool,
    corrections: Vec<Option<Correction>>,
    noise_ns: f64,
    noise: Streams,
}

impl Clocks {
    pub fn new(errors: &ClockErrors, synchronised: bool, seed: u64, nodes: usize) -> Clocks {
        Clocks {
            clocks: oscillators(&errors.hosts, seed, nodes),
            synchronised,
            corrections: vec![None; nodes],
            noise_ns: errors.noise.as_ps() as f64 / 1e3,
            noise: Streams::new(seed, Purpose::Noise, nodes),
        }
    }

    /// The reading of the clock of `host`.
    pub fn reads(&self, host: u32, now: Time<Sim>) -> Time<Mono> {
        let true_ns = now.ticks() / 1000;
        Time::from_ticks(self.clocks[host as usize].read(true_ns))
    }

    /// Sets the estimate of fleet time of `host` from now on.
    pub fn correct(&mut self, host: u32, correction: Option<Correction>) {
        self.corrections[host as usize] = correction;
    }

    pub fn correction(&self, host: u32) -> Option<Correction> {
        self.corrections[host as usize]
    }

    /// The receiver's time stamp of the instant `now`, converted to the clock of `sender`. `None`: one of the
    /// two has no fleet time.
    pub fn stamp(&mut self, now: Time<Sim>, receiver: u32, sender: u32) -> Option<Time<Mono>> {
        let mut error_ns = match self.synchronised {
            true => (self.fleet_ns(receiver, now)? - self.fleet_ns(sender, now)?) as f64,
            false => {
                let true_ns = now.ticks() / 1000;
                let ahead_ns = |host: u32| self.clocks[host as usize].ahead_ns(true_ns);
                ahead_ns(receiver) - ahead_ns(sender)
            }
        };
        if self.noise_ns > 0.0 {
            error_ns += self.noise_ns * gaussian(self.noise.of(receiver));
        }
        Some(Time::from_ticks(
            now.ticks() / 1000 + error_ns.round() as i64,
        ))
    }

    /// Fleet time as `host` knows it, less its own clock, which timers use; zero if it does not know it.
    pub fn fleet_ahead(&self, now: Time<Sim>, host: u32) -> Span {
        let ahead_ns = match self.synchronised {
            true => self
                .fleet_ns(host, now)
                .map_or(0, |fleet_ns| fleet_ns - mono(now).ticks()),
            false => self.clocks[host as usize]
                .ahead_ns(mono(now).ticks())
                .round() as i64,
        };
        Span::from_ns(ahead_ns)
    }

    fn fleet_ns(&self, host: u32, now: Time<Sim>) -> Option<i64> {
        let correction = self.corrections[host as usize].as_ref()?;
        Some(correction.fleet(self.reads(host, now)).ticks())
    }
}

/// `now` on a host's own clock.
pub(crate) fn mono(now: Time<Sim>) -> Time<Mono> {
    Time::from_ticks(now.ticks() / 1000)
}

/// The instant `at` of a host's own clock.
pub(crate) fn sim(at: Time<Mono>) -> Time<Sim> {
    Time::from_ticks(at.ticks() * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time<Sim> = Time::from_ticks(5_000_000_000);

    fn clocks(errors: ClockErrors, nodes: usize) -> Clocks {
        Clocks::new(&errors, false, 1, nodes)
    }

    #[test]
    fn exact_clocks_stamp_the_true_time() {
        let mut clocks = clocks(ClockErrors::default(), 3);
        assert_eq!(clocks.stamp(NOW, 2, 0), Some(Time::from_ticks(5_000_000)));
        assert_eq!(mono(NOW), Time::from_ticks(5_000_000));
    }

    #[test]
    fn drift_grows_with_time_and_noise_differs_each_time() {
        let errors = ClockErrors {
            hosts: Spread {
                drift: 1e-4,
                ..Spread::default()
            },
            ..ClockErrors::default()
        };
        let mut drifting = clocks(errors, 2);
        let mut error = |ps| {
            let stamp = drifting.stamp(Time::from_ticks(ps), 0, 1).unwrap();
            stamp.ticks() - ps / 1000
        };
        let (early, late) = (error(1_000_000_000), error(10_000_000_000));
        assert!((late - 10 * early).abs() <= 10, "{early} {late}");
        let noisy = ClockErrors {
            noise: Span::from_us(1),
            ..ClockErrors::default()
        };
        let mut clocks = clocks(noisy, 2);
        assert_ne!(clocks.stamp(NOW, 0, 1), clocks.stamp(NOW, 0, 1));
    }

    #[test]
    fn a_host_that_does_not_know_fleet_time_stamps_nothing() {
        let mut clocks = Clocks::new(&ClockErrors::default(), true, 1, 2);
        assert_eq!(clocks.stamp(NOW, 0, 1), None);
        let correction = |offset_ns| Correction {
            reference: Time::ZERO,
            offset_ns,
            drift: 0.0,
            bend: 0.0,
            error: Default::default(),
        };
        clocks.correct(0, Some(correction(30)));
        assert_eq!(clocks.stamp(NOW, 0, 1), None);
        clocks.correct(1, Some(correction(10)));
        assert_eq!(clocks.stamp(NOW, 0, 1), Some(Time::from_ticks(5_000_020)));
    }
}
