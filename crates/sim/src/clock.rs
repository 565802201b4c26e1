//! The hosts' clocks: how wrong the receiver's time stamp is on the sender's clock.
//!
//! A host's clock differs from true time by a constant offset and a constant drift, each Gaussian
//! over the hosts, and by a drift that swings with its temperature; a time stamp is off by Gaussian
//! noise on top. Only stamps are wrong: what a host waits for passes at the true rate.
//! Where clocks are synchronised (huygens/), a stamp is in fleet time, as each end knows it.

use crate::random::{Purpose, Streams};
use onramp_sync::correction::Correction;
use onramp_units::{Mono, Sim, Span, Time};
use rand_chacha::rand_core::RngCore;
use rand_chacha::ChaCha8Rng;

/// Periods of temperature, s.
const PERIODS_S: (f64, f64) = (600.0, 3600.0);

/// How wrong clocks are. All zero: not at all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClockErrors {
    /// Standard deviation of a host's offset.
    pub offset: Span,
    /// Of a host's drift: 10^-6 is a microsecond a second.
    pub drift: f64,
    /// Of a single stamp.
    pub noise: Span,
    /// Amplitude of the drift's swing, of each host in its own period of 10 to 60 minutes.
    pub wander: f64,
}

/// One host's clock.
#[derive(Debug, Clone, Copy)]
struct Clock {
    offset_ns: f64,
    drift: f64,
    /// The swing: amplitude of the drift, angular frequency (1/s), phase.
    swing: (f64, f64, f64),
}

impl Clock {
    /// How far it is ahead of true time, ns.
    fn ahead_ns(&self, true_ns: i64) -> f64 {
        let steady_ns = self.offset_ns + self.drift * true_ns as f64;
        let (amplitude, frequency, phase) = self.swing;
        if amplitude == 0.0 {
            return steady_ns;
        }
        let since = frequency * true_ns as f64 / 1e9;
        let swung_s = amplitude / frequency * (libm::cos(phase) - libm::cos(phase + since));
        steady_ns + 1e9 * swung_s
    }
}

/// The clocks of all hosts.
pub(crate) struct Clocks {
    /// By node.
    clocks: Vec<Clock>,
    /// Whether anybody corrects them, and the corrections by node.
    synchronised: bool,
    corrections: Vec<Option<Correction>>,
    noise_ns: f64,
    noise: Streams,
}

impl Clocks {
    pub fn new(errors: &ClockErrors, synchronised: bool, seed: u64, nodes: usize) -> Clocks {
        let mut rng = Streams::new(seed, Purpose::Clocks, 1);
        let rng = rng.of(0);
        let (offset_ns, noise_ns) = (ns(errors.offset), ns(errors.noise));
        let mut clocks: Vec<Clock> = (0..nodes)
            .map(|_| Clock {
                offset_ns: offset_ns * gaussian(rng),
                drift: errors.drift * gaussian(rng),
                swing: (errors.wander, 1.0, 0.0),
            })
            .collect();
        for clock in &mut clocks {
            let period_s = PERIODS_S.0 + (PERIODS_S.1 - PERIODS_S.0) * uniform(rng);
            clock.swing.1 = std::f64::consts::TAU / period_s;
            clock.swing.2 = std::f64::consts::TAU * uniform(rng);
        }
        Clocks {
            clocks,
            synchronised,
            corrections: vec![None; nodes],
            noise_ns,
            noise: Streams::new(seed, Purpose::Noise, nodes),
        }
    }

    /// What the clock of `host` reads.
    pub fn reads(&self, host: u32, now: Time<Sim>) -> Time<Mono> {
        let true_ns = now.ticks() / 1000;
        let ahead_ns = self.clocks[host as usize].ahead_ns(true_ns);
        Time::from_ticks(true_ns + ahead_ns.round() as i64)
    }

    /// What `host` knows of fleet time, from now on.
    pub fn correct(&mut self, host: u32, correction: Option<Correction>) {
        self.corrections[host as usize] = correction;
    }

    pub fn correction(&self, host: u32) -> Option<Correction> {
        self.corrections[host as usize]
    }

    /// The instant `now` as `receiver` stamps it, converted to the clock of `sender`. `None`: one of
    /// the two does not know fleet time.
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

fn ns(span: Span) -> f64 {
    span.as_ps() as f64 / 1000.0
}

/// Between 0 and 1, neither included.
pub(crate) fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Standard normal: Box and Muller's method.
pub(crate) fn gaussian(rng: &mut ChaCha8Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(uniform(rng)));
    radius * libm::cos(std::f64::consts::TAU * uniform(rng))
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
    fn errors_have_their_standard_deviation() {
        let errors = ClockErrors {
            offset: Span::from_us(10),
            ..ClockErrors::default()
        };
        let mut clocks = clocks(errors, 2001);
        let mut error = |host| {
            let stamp = clocks.stamp(NOW, host, 2000).unwrap();
            (stamp - mono(NOW)).as_ns() as f64
        };
        let mean = (0..2000).map(&mut error).sum::<f64>() / 2000.0;
        let square = (0..2000)
            .map(|host| (error(host) - mean).powi(2))
            .sum::<f64>();
        let deviation = (square / 2000.0).sqrt();
        // Of 2000 samples: within 10 %, more than five standard errors.
        assert!((9_000.0..11_000.0).contains(&deviation), "{deviation}");
    }

    #[test]
    fn drift_grows_with_time_and_noise_differs_each_time() {
        let errors = ClockErrors {
            drift: 1e-4,
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
    fn wander_swings_the_drift_and_no_further() {
        let errors = ClockErrors {
            wander: 1e-6,
            ..ClockErrors::default()
        };
        let clocks = clocks(errors, 1);
        let ahead = |s: i64| clocks.clocks[0].ahead_ns(s * 1_000_000_000);
        let drifts: Vec<f64> = (0..3600).map(|s| ahead(s + 1) - ahead(s)).collect();
        let most = drifts.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
        assert!((990.0..=1000.1).contains(&most), "{most} ns a second");
        let bends = drifts.windows(2).map(|two| (two[1] - two[0]).abs());
        // 2 pi / 600 s of the amplitude, each second.
        assert!(bends.fold(0.0, f64::max) < 10.5);
    }

    #[test]
    fn a_host_that_does_not_know_fleet_time_stamps_nothing() {
        let mut clocks = Clocks::new(&ClockErrors::default(), true, 1, 2);
        assert_eq!(clocks.stamp(NOW, 0, 1), None);
        let correction = |offset_ns| Correction {
            reference: Time::ZERO,
            offset_ns,
            drift: 0.0,
            error: Default::default(),
        };
        clocks.correct(0, Some(correction(30)));
        assert_eq!(clocks.stamp(NOW, 0, 1), None);
        clocks.correct(1, Some(correction(10)));
        assert_eq!(clocks.stamp(NOW, 0, 1), Some(Time::from_ticks(5_000_020)));
    }
}
