// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Delays of many packets: the exact mean, and the distribution with an error of 0.1 %.

use hdrhistogram::Histogram;
use onramp_units::Span;

/// Significant decimal digits.
const DIGITS: u8 = 3;

/// Delays so far.
#[derive(Debug, Clone)]
pub(crate) struct Delays {
    /// In ns.
    histogram: Histogram<u64>,
    sum_ps: i128,
    longest: Span,
}

impl Delays {
    pub fn new() -> Delays {
        Delays {
            histogram: Histogram::new(DIGITS).expect("the number of digits is allowed"),
            sum_ps: 0,
            longest: Span::ZERO,
        }
    }

    pub fn note(&mut self, delay: Span) {
        self.histogram += delay.as_ns().max(0) as u64;
        self.sum_ps += i128::from(delay.as_ps());
        self.longest = self.longest.max(delay);
    }

    /// Adds those of `other`.
    pub fn add(&mut self, other: &Delays) {
        self.histogram += &other.histogram;
        self.sum_ps += other.sum_ps;
        self.longest = self.longest.max(other.longest);
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub fn mean_us(&self) -> f64 {
        self.sum_ps as f64 / self.count().max(1) as f64 / 1e6
    }

    /// The value below which the fraction `quantile` of the delays lies.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.histogram.value_at_quantile(quantile) as f64 / 1e3
    }

    pub fn longest_us(&self) -> f64 {
        self.longest.as_ps() as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_thousandth_and_the_mean_is_exact() {
        let mut delays = Delays::new();
        (1..=10_000).for_each(|us| delays.note(Span::from_us(us)));
        assert_eq!(delays.mean_us(), 5000.5);
        for (quantile, us) in [(0.5, 5000.0), (0.99, 9900.0)] {
            assert!((delays.quantile_us(quantile) / us - 1.0).abs() < 1.1e-3);
        }
        assert_eq!((delays.count(), delays.longest_us()), (10_000, 10_000.0));
    }
}
