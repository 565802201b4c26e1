// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Transmission times: exact, or rounded as in ns-3, for comparison.

use onramp_units::{Bytes, Rate, Span};

/// Rounding of wire times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// To the picosecond, up.
    #[default]
    Exact,
    /// To the nanosecond, down, as ns-3 before 3.22 converts seconds in floating point to time.
    /// It also selects other behaviour of that simulator: see [`crate::Config::rounding`].
    Ns3,
}

impl Rounding {
    /// Time that `bytes` take at `rate`.
    pub fn wire_time(self, bytes: u32, rate: Rate) -> Span {
        match self {
            Rounding::Exact => rate.time_to_send(Bytes::new(u64::from(bytes))),
            Rounding::Ns3 => ns3_time(f64::from(bytes) * 8.0 / rate.bits_per_s() as f64),
        }
    }
}

/// ns-3's `Seconds(double)`: 64 binary places, times 10^9, rounded down. So 80 ns, which no double
/// represents exactly, become 79 ns.
pub(crate) fn ns3_time(seconds: f64) -> Span {
    let fixed = (seconds * 2f64.powi(64)) as u128;
    Span::from_ns(((fixed * 1_000_000_000) >> 64) as i64)
}

/// Wire times of every packet size at one rate.
pub(crate) struct WireTimes(Vec<Span>);

impl WireTimes {
    pub fn new(rounding: Rounding, rate: Rate, largest: u32) -> WireTimes {
        WireTimes((0..=largest).map(|n| rounding.wire_time(n, rate)).collect())
    }

    pub fn of(&self, bytes: u16) -> Span {
        self.0[usize::from(bytes)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ns3_truncates_to_nanoseconds() {
        let rate = "100 Gbit/s".parse().unwrap();
        let ns = |bytes| Rounding::Ns3.wire_time(bytes, rate).as_ns();
        assert_eq!((ns(1048), ns(1090), ns(60)), (83, 87, 4));
        assert_eq!(ns(1000), 79, "0.00000008 is less than 80 ns in binary");
        assert_eq!(Rounding::Exact.wire_time(1048, rate), Span::from_ps(83_840));
    }
}
