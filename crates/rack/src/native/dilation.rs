// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Time dilation: multiplies every time and divides every rate by the same factor, so that queues, windows
//! and buffers in bytes are unchanged. Results are scaled back.
//!
//! docs/fidelity.md lists the kernel's constants that are scaled, and those that are not.

use onramp_units::{Rate, Span};
use std::num::NonZeroU64;

/// Whether the minimum RTO is dilated. If it is, a timeout costs 200 ms of the real network, as it should.
/// If not, a timeout costs 200 ms of the rack's time, which is 200 ms / d of the real network.
pub const DILATE_RTO: bool = true;

/// Linux's TCP_RTO_MIN.
const RTO_MIN: Span = Span::from_ms(200);

/// A factor, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dilation(NonZeroU64);

impl Dilation {
    /// A dilation by the factor `times`.
    pub fn new(times: NonZeroU64) -> Dilation {
        Dilation(times)
    }

    /// The factor.
    pub fn times(self) -> u64 {
        self.0.get()
    }

    /// A real time in the rack's time.
    pub fn slow(self, real: Span) -> Span {
        Span::from_ps(real.as_ps().saturating_mul(self.times() as i64))
    }

    /// A real rate in the rack's time.
    pub fn slow_rate(self, real: Rate) -> Rate {
        real.slowed(self.0)
    }

    /// Nanoseconds measured in the rack, in the real network: the nearest.
    pub fn real_ns(self, rack_ns: i64) -> i64 {
        let times = self.times() as i64;
        (rack_ns + times / 2).div_euclid(times)
    }

    /// The same without rounding, in microseconds.
    pub fn real_us(self, rack_ns: f64) -> f64 {
        rack_ns / self.times() as f64 / 1e3
    }

    /// `tcp_rto_min_us` of every host.
    pub fn rto_min_us(self) -> u64 {
        let rto = if DILATE_RTO {
            self.slow(RTO_MIN)
        } else {
            RTO_MIN
        };
        rto.as_ns() as u64 / 1000
    }

    /// `tcp_tso_rtt_log` of every host: the kernel grows segments by gso_max >> (min RTT in us >>
    /// this), 9 by default.
    pub fn tso_rtt_log(self) -> u32 {
        // Rounded up: between powers of two a segment is the full size rather than a smaller one.
        9 + self.times().next_power_of_two().ilog2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dilation(times: u64) -> Dilation {
        Dilation::new(NonZeroU64::new(times).unwrap())
    }

    #[test]
    fn times_grow_and_rates_shrink_by_the_same_factor() {
        let d = dilation(100);
        let rate: Rate = "10 Gbit/s".parse().unwrap();
        assert_eq!(d.slow(Span::from_us(50)), Span::from_ms(5));
        assert_eq!(d.slow_rate(rate).bits_per_s(), 100_000_000);
        assert_eq!(d.real_ns(5_000_049), 50_000);
        assert_eq!(d.real_ns(5_000_050), 50_001);
    }

    #[test]
    fn constants_are_the_kernels_own_at_dilation_1() {
        assert_eq!(dilation(1).rto_min_us(), 200_000);
        assert_eq!(dilation(1).tso_rtt_log(), 9);
    }

    #[test]
    fn constants_follow_the_dilation() {
        assert_eq!(dilation(100).rto_min_us(), 20_000_000);
        assert_eq!(dilation(100).tso_rtt_log(), 16);
    }
}
