//! A clock that is wrong in a known way, for tests on one machine: applied to every stamp and every
//! reading of CLOCK_MONOTONIC that this crate makes. Zero, it is CLOCK_MONOTONIC.

use std::str::FromStr;

use onramp_units::Span;

/// How a clock is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Synthetic {
    /// Ahead at CLOCK_MONOTONIC 0.
    pub offset: Span,
    /// Too fast by this, ns a ns.
    pub drift: f64,
    /// Amplitude of what the drift varies by.
    pub wander: f64,
    /// Time of a wave of that.
    pub period: Span,
}

impl Synthetic {
    /// What the clock reads at CLOCK_MONOTONIC `mono_ns`.
    pub fn read(&self, mono_ns: i64) -> i64 {
        let mono = mono_ns as f64;
        let waved = match self.period.as_ns() {
            0 => 0.0,
            period => {
                let turn = std::f64::consts::TAU / period as f64;
                self.wander / turn * (1.0 - (turn * mono).cos())
            }
        };
        mono_ns + self.offset.as_ns() + (self.drift * mono + waved).round() as i64
    }

    /// How fast it runs then, less 1.
    pub fn drift_at(&self, mono_ns: i64) -> f64 {
        match self.period.as_ns() {
            0 => self.drift,
            period => {
                let turn = std::f64::consts::TAU / period as f64;
                self.drift + self.wander * (turn * mono_ns as f64).sin()
            }
        }
    }
}

impl FromStr for Synthetic {
    type Err = String;

    /// `offset=1ms,drift=2e-5,wander=1e-6,period=60s`, each of them optional.
    fn from_str(text: &str) -> Result<Synthetic, String> {
        let mut clock = Synthetic::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or(format!("{part}: no value"))?;
            let span = || value.parse::<Span>().map_err(|e| e.to_string());
            let number = || value.parse::<f64>().map_err(|e| format!("{value}: {e}"));
            match name {
                "offset" => clock.offset = span()?,
                "drift" => clock.drift = number()?,
                "wander" => clock.wander = number()?,
                "period" => clock.period = span()?,
                _ => return Err(format!("{name}: not offset, drift, wander or period")),
            }
        }
        Ok(clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_as_wrong_as_was_said() {
        let clock: Synthetic = "offset=1ms,drift=2e-5,wander=1e-6,period=60s"
            .parse()
            .unwrap();
        assert_eq!(clock.read(0), 1_000_000);
        // After a whole wave only offset and drift are left.
        assert_eq!(
            clock.read(60_000_000_000),
            60_000_000_000 + 1_000_000 + 1_200_000
        );
        let at = 15_000_000_000;
        let slope = (clock.read(at + 1_000_000) - clock.read(at)) as f64 / 1e6 - 1.0;
        assert!((slope - clock.drift_at(at)).abs() < 2e-6, "{slope}");
        assert_eq!(Synthetic::default().read(123), 123);
        assert!("offset=1".parse::<Synthetic>().is_err());
    }
}
