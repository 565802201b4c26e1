// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Means with confidence intervals over seeds.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence level of the intervals.
const CONFIDENCE: f64 = 0.95;

/// A mean and its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Mean over seeds.
    pub value: f64,
    /// None for a single value.
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// Mean of `values` with Student's t interval; none without values.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let half = (n > 1.0).then(|| t(n - 1.0) * (squares / (n - 1.0) / n).sqrt());
        Some(Estimate {
            value: mean,
            interval: half.map(|half| [mean - half, mean + half]),
        })
    }

    /// Geometric mean of the ratios of pairs, with the interval of their logarithms. If a value is zero,
    /// which has no logarithm: the ratio of the sums, with 1/2 added to each, and no interval.
    pub fn of_ratios(pairs: &[(f64, f64)]) -> Option<Estimate> {
        if pairs.iter().any(|(a, b)| *a <= 0.0 || *b <= 0.0) {
            let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() + 0.5;
            return Some(Estimate {
                value: sum(|pair| pair.0) / sum(|pair| pair.1),
                interval: None,
            });
        }
        let logarithms: Vec<f64> = pairs.iter().map(|(a, b)| libm::log(a / b)).collect();
        Some(Estimate::of(&logarithms)?.map(libm::exp))
    }

    /// Half the width of the interval.
    pub fn half(&self) -> Option<f64> {
        self.interval.map(|[low, high]| (high - low) / 2.0)
    }

    /// The mean and its interval on another scale; `to` must be increasing.
    pub fn map(self, to: impl Fn(f64) -> f64) -> Estimate {
        Estimate {
            value: to(self.value),
            interval: self.interval.map(|ends| ends.map(to)),
        }
    }
}

/// Quantile of Student's t with `freedom` degrees, for a two-sided interval.
fn t(freedom: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom).expect("at least one degree of freedom");
    distribution.inverse_cdf(0.5 + CONFIDENCE / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn t_is_that_of_the_tables() {
        for (freedom, quantile) in [(1.0, 12.706), (4.0, 2.776), (9.0, 2.262), (29.0, 2.045)] {
            assert!(close(t(freedom), quantile), "{freedom}: {}", t(freedom));
        }
    }

    #[test]
    fn the_interval_of_known_values_is_known() {
        // 2.776 * sqrt(2.5 / 5) = 1.963
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let [low, high] = estimate.interval.unwrap();
        assert!(close(estimate.value, 3.0) && close(low, 1.037) && close(high, 4.963));
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[7.0]).unwrap().interval, None);
    }

    #[test]
    fn ratios_are_averaged_by_their_logarithms() {
        let estimate = Estimate::of_ratios(&[(2.0, 1.0), (1.0, 2.0)]).unwrap();
        assert!(close(estimate.value, 1.0));
        let [low, high] = estimate.interval.unwrap();
        assert!(close(low * high, 1.0) && low < 0.5);
    }

    #[test]
    fn counts_of_none_have_a_ratio_without_interval() {
        let estimate = Estimate::of_ratios(&[(10.0, 0.0), (11.0, 1.0)]).unwrap();
        assert!(close(estimate.value, 21.5 / 1.5));
        assert_eq!(estimate.interval, None);
    }
}
