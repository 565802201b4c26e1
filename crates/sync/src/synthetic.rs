// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Clocks and time stamps with known errors, for the simulator, the rack and tests. Huygens does not know the
//! errors. Sizes: facts/huygens.md, section "Synthetic test".

use std::{f64::consts::TAU, fmt, str::FromStr};

use crate::probe::Stamps;
use onramp_units::Span;
use rand_chacha::{
    rand_core::{RngCore, SeedableRng},
    ChaCha8Rng,
};

/// Periods of temperature, s.
const PERIODS_S: (f64, f64) = (600.0, 3600.0);
/// The clocks' stream of random numbers: no other one of a seed has this number.
const STREAM: u64 = u64::MAX;

/// The error of a host's clock. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Oscillator {
    /// Ahead at true time 0.
    pub offset: Span,
    /// Too fast by this, ns a ns.
    pub drift: f64,
    /// Amplitude of the drift's oscillation with temperature.
    pub wander: f64,
    /// Period of the oscillation; 0: none.
    pub period: Span,
    /// Phase of the oscillation at true time 0, in periods.
    pub phase: f64,
}

impl Oscillator {
    /// Reading of the clock at true time `true_ns`, ns.
    pub fn read(&self, true_ns: i64) -> i64 {
        true_ns + self.ahead_ns(true_ns).round() as i64
    }

    /// Its error at that time, ns.
    pub fn ahead_ns(&self, true_ns: i64) -> f64 {
        let steady_ns = self.offset.as_ps() as f64 / 1e3 + self.drift * true_ns as f64;
        let Some(per_ns) = self.angular() else {
            return steady_ns;
        };
        let phase = TAU * self.phase;
        let swung = libm::cos(phase) - libm::cos(phase + per_ns * true_ns as f64);
        steady_ns + self.wander / per_ns * swung
    }

    /// Its rate at that time, minus 1.
    pub fn drift_at(&self, true_ns: i64) -> f64 {
        let swing = |per_ns: f64| libm::sin(TAU * self.phase + per_ns * true_ns as f64);
        self.drift + self.angular().map_or(0.0, |a| self.wander * swing(a))
    }

    /// Angular frequency of the oscillation, 1/ns.
    fn angular(&self) -> Option<f64> {
        let swings = self.wander != 0.0 && self.period > Span::ZERO;
        swings.then(|| TAU * 1e3 / self.period.as_ps() as f64)
    }
}

impl FromStr for Oscillator {
    type Err = String;

    /// `offset=1ms,drift=2e-5,wander=1e-6,period=60s,phase=0.25`, each of them optional.
    fn from_str(text: &str) -> Result<Oscillator, String> {
        let mut clock = Oscillator::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or(format!("{part}: no value"))?;
            let span = || value.parse::<Span>().map_err(|e| e.to_string());
            let number = || value.parse::<f64>().map_err(|e| format!("{value}: {e}"));
            match name {
                "offset" => clock.offset = span()?,
                "drift" => clock.drift = number()?,
                "wander" => clock.wander = number()?,
                "period" => clock.period = span()?,
                "phase" => clock.phase = number()?,
                _ => {
                    return Err(format!(
                        "{name}: not offset, drift, wander, period or phase"
                    ))
                }
            }
        }
        Ok(clock)
    }
}

impl fmt::Display for Oscillator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Oscillator {
            offset,
            drift,
            wander,
            period,
            phase,
        } = self;
        write!(
            f,
            "offset={offset},drift={drift},wander={wander},period={period},phase={phase}"
        )
    }
}

/// The error of one host's time, for a daemon under test. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Synthetic {
    /// Its clock.
    pub oscillator: Oscillator,
    /// Noise added to its stamps, in multiples of the noise of software stamps.
    pub noise: f64,
}

/// The errors of a fleet's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// Standard deviation of a host's offset.
    pub offset: Span,
    /// Standard deviation of a host's drift.
    pub drift: f64,
    /// Amplitude of each drift's oscillation, which has a period of 10 to 60 minutes.
    pub wander: f64,
}

/// The clocks of `hosts` hosts: the same ones for the same `seed`.
pub fn oscillators(spread: &Spread, seed: u64, hosts: usize) -> Vec<Oscillator> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    let draw = |_| {
        let offset_ps = spread.offset.as_ps() as f64 * gaussian(&mut rng);
        let period_s = PERIODS_S.0 + (PERIODS_S.1 - PERIODS_S.0) * uniform(&mut rng);
        Oscillator {
            offset: Span::from_ps(offset_ps.round() as i64),
            drift: spread.drift * gaussian(&mut rng),
            wander: spread.wander,
            period: Span::from_ns((period_s * 1e9) as i64),
            phase: uniform(&mut rng),
        }
    };
    (0..hosts).map(draw).collect()
}

/// Differences of some hosts' fleet times from their median, at one instant or at several.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FleetErrors {
    /// The difference of each host, ns.
    pub ns: Vec<f64>,
    /// The same in units of the host's sigma.
    pub in_sigmas: Vec<f64>,
}

impl FleetErrors {
    /// For hosts with these readings (ns) and sigmas (ns) at one instant.
    pub fn of(hosts: &[(i64, f64)]) -> FleetErrors {
        let mut times: Vec<i64> = hosts.iter().map(|(time, _)| *time).collect();
        times.sort_unstable();
        let Some(&median) = times.get(times.len() / 2) else {
            return FleetErrors::default();
        };
        let error = |(time, sigma): &(i64, f64)| {
            let error = (time - median) as f64;
            (error, error / sigma)
        };
        let (ns, in_sigmas) = hosts.iter().map(error).unzip();
        FleetErrors { ns, in_sigmas }
    }

    /// Adds those of another instant.
    pub fn extend(&mut self, other: FleetErrors) {
        self.ns.extend(other.ns);
        self.in_sigmas.extend(other.in_sigmas);
    }

    /// Fraction of the errors within two sigmas, if there are any.
    pub fn within_2_sigma(&self) -> Option<f64> {
        let within = self.in_sigmas.iter().filter(|error| error.abs() <= 2.0);
        let all = self.in_sigmas.len();
        (all > 0).then(|| within.count() as f64 / all as f64)
    }

    /// The error of most sigmas, in sigmas, if there are any.
    pub fn most_sigmas(&self) -> Option<f64> {
        let magnitudes = self.in_sigmas.iter().map(|error| error.abs());
        magnitudes.reduce(f64::max)
    }
}

impl Stamps {
    /// Error of the stamp of a packet that leaves, ns.
    pub fn sent_noise_ns(self, rng: &mut impl RngCore) -> f64 {
        match self {
            Stamps::Hardware => 5.0 * gaussian(rng),
            Stamps::Software => 200.0 * gaussian(rng),
        }
    }

    /// Error of the stamp of a packet that arrives, ns: a little late in a NIC, late by an interrupt in a kernel.
    pub fn received_noise_ns(self, rng: &mut impl RngCore) -> f64 {
        match self {
            Stamps::Hardware if uniform(rng) < 0.05 => -100.0 * libm::log(uniform(rng)),
            Stamps::Hardware => 5.0 * gaussian(rng),
            Stamps::Software if uniform(rng) < 0.01 => 50_000.0 * uniform(rng),
            // Lognormal, median 1 us.
            Stamps::Software => 200.0 * gaussian(rng) + 1_000.0 * libm::exp(gaussian(rng)),
        }
    }
}

/// Uniform between 0 and 1, both excluded.
pub fn uniform(rng: &mut impl RngCore) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Standard normal: Box and Muller's method.
pub fn gaussian(rng: &mut impl RngCore) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(uniform(rng)));
    radius * libm::cos(TAU * uniform(rng))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    #[test]
    fn a_clock_is_as_wrong_as_was_said() {
        let clock: Oscillator = "offset=1ms,drift=2e-5,wander=1e-6,period=60s"
            .parse()
            .unwrap();
        assert_eq!(clock.read(0), 1_000_000);
        // After a whole swing only offset and drift are left.
        assert_eq!(
            clock.read(60 * SECOND_NS),
            60 * SECOND_NS + 1_000_000 + 1_200_000
        );
        let at = 15 * SECOND_NS;
        let slope = (clock.read(at + 1_000_000) - clock.read(at)) as f64 / 1e6 - 1.0;
        assert!((slope - clock.drift_at(at)).abs() < 2e-6, "{slope}");
        assert_eq!(Oscillator::default().read(123), 123);
        assert!("offset=1".parse::<Oscillator>().is_err());
    }

    #[test]
    fn its_text_says_all_of_it() {
        let spread = Spread {
            offset: Span::from_ms(1),
            drift: 1e-5,
            wander: 1e-6,
        };
        for clock in oscillators(&spread, 3, 20) {
            assert_eq!(clock.to_string().parse(), Ok(clock));
        }
    }

    #[test]
    fn a_fleets_clocks_spread_as_said_and_follow_from_the_seed() {
        let spread = Spread {
            offset: Span::from_us(10),
            drift: 1e-5,
            wander: 0.0,
        };
        let clocks = oscillators(&spread, 1, 2000);
        let rms = |of: &dyn Fn(&Oscillator) -> f64| {
            (clocks.iter().map(|c| of(c).powi(2)).sum::<f64>() / 2000.0).sqrt()
        };
        // Of 2000 samples: within 10 %, more than five standard errors.
        let offset_ns = rms(&|clock| clock.ahead_ns(0));
        assert!((9_000.0..11_000.0).contains(&offset_ns), "{offset_ns}");
        let drift = rms(&|clock| clock.drift);
        assert!((0.9e-5..1.1e-5).contains(&drift), "{drift}");
        assert_eq!(clocks, oscillators(&spread, 1, 2000));
        assert_ne!(clocks, oscillators(&spread, 2, 2000));
    }

    #[test]
    fn wander_swings_the_drift_and_no_further() {
        let spread = Spread {
            wander: 1e-6,
            ..Spread::default()
        };
        let clock = oscillators(&spread, 1, 1)[0];
        let ahead = |s: i64| clock.ahead_ns(s * SECOND_NS);
        let drifts: Vec<f64> = (0..3600).map(|s| ahead(s + 1) - ahead(s)).collect();
        let most = drifts.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
        assert!((990.0..=1000.1).contains(&most), "{most} ns a second");
        let bends = drifts.windows(2).map(|two| (two[1] - two[0]).abs());
        // 2 pi / 600 s of the amplitude, each second.
        assert!(bends.fold(0.0, f64::max) < 10.5);
    }
}
