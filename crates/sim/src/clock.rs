//! The hosts' clocks: how wrong the receiver's time stamp is on the sender's clock.
//!
//! A host's clock differs from true time by a constant offset and a constant drift, each Gaussian
//! over the hosts; a time stamp is off by Gaussian noise on top. Only stamps are wrong: what a host
//! waits for passes at the true rate.

use crate::random::{Purpose, Streams};
use onramp_units::{Mono, Sim, Span, Time};
use rand_chacha::rand_core::RngCore;
use rand_chacha::ChaCha8Rng;

/// How wrong clocks are: standard deviations. All zero: not at all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClockErrors {
    /// Of a host's offset.
    pub offset: Span,
    /// Of a host's drift: 10^-6 is a microsecond a second.
    pub drift: f64,
    /// Of a single stamp.
    pub noise: Span,
}

/// One host's clock.
#[derive(Debug, Clone, Copy)]
struct Clock {
    offset_ns: f64,
    drift: f64,
}

/// The clocks of all hosts.
pub(crate) struct Clocks {
    /// By node.
    clocks: Vec<Clock>,
    noise_ns: f64,
    noise: Streams,
}

impl Clocks {
    pub fn new(errors: &ClockErrors, seed: u64, nodes: usize) -> Clocks {
        let mut rng = Streams::new(seed, Purpose::Clocks, 1);
        let rng = rng.of(0);
        let (offset_ns, noise_ns) = (ns(errors.offset), ns(errors.noise));
        let clocks = (0..nodes).map(|_| Clock {
            offset_ns: offset_ns * gaussian(rng),
            drift: errors.drift * gaussian(rng),
        });
        Clocks {
            clocks: clocks.collect(),
            noise_ns,
            noise: Streams::new(seed, Purpose::Noise, nodes),
        }
    }

    /// The instant `now` as `receiver` stamps it, converted to the clock of `sender`.
    pub fn stamp(&mut self, now: Time<Sim>, receiver: u32, sender: u32) -> Time<Mono> {
        let true_ns = now.ticks() / 1000;
        let (theirs, ours) = (self.clocks[receiver as usize], self.clocks[sender as usize]);
        let drifted = (theirs.drift - ours.drift) * true_ns as f64;
        let mut error_ns = theirs.offset_ns - ours.offset_ns + drifted;
        if self.noise_ns > 0.0 {
            error_ns += self.noise_ns * gaussian(self.noise.of(receiver));
        }
        Time::from_ticks(true_ns + error_ns.round() as i64)
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

/// Standard normal: Box and Muller's method.
fn gaussian(rng: &mut ChaCha8Rng) -> f64 {
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let radius = libm::sqrt(-2.0 * libm::log(uniform()));
    radius * libm::cos(std::f64::consts::TAU * uniform())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time<Sim> = Time::from_ticks(5_000_000_000);

    #[test]
    fn exact_clocks_stamp_the_true_time() {
        let mut clocks = Clocks::new(&ClockErrors::default(), 1, 3);
        assert_eq!(clocks.stamp(NOW, 2, 0), Time::from_ticks(5_000_000));
        assert_eq!(mono(NOW), Time::from_ticks(5_000_000));
    }

    #[test]
    fn errors_have_their_standard_deviation() {
        let errors = ClockErrors {
            offset: Span::from_us(10),
            ..ClockErrors::default()
        };
        let mut clocks = Clocks::new(&errors, 1, 2001);
        let mut error = |host| (clocks.stamp(NOW, host, 2000) - mono(NOW)).as_ns() as f64;
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
        let mut clocks = Clocks::new(&errors, 1, 2);
        let mut error = |ps| clocks.stamp(Time::from_ticks(ps), 0, 1).ticks() - ps / 1000;
        let (early, late) = (error(1_000_000_000), error(10_000_000_000));
        assert!((late - 10 * early).abs() <= 10, "{early} {late}");
        let noisy = ClockErrors {
            noise: Span::from_us(1),
            ..ClockErrors::default()
        };
        let mut clocks = Clocks::new(&noisy, 1, 2);
        assert_ne!(clocks.stamp(NOW, 0, 1), clocks.stamp(NOW, 0, 1));
    }
}
