// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Mean and percentiles of a set of values.

use serde::{Deserialize, Serialize};

/// A distribution in `summary.json`; the metric's name has the unit. Percentiles are nearest-rank: p99 is
/// the smallest value that at least 99 % of the values do not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values; none for a continuous signal, whose values are weighted by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// The summary of `values`; none without values.
    pub fn of(mut values: Vec<f64>) -> Option<Summary> {
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len();
        let max = *values.last()?;
        let rank = |per_cent: usize| values[(n * per_cent).div_ceil(100).max(1) - 1];
        Some(Summary {
            n: Some(n as u64),
            mean: values.iter().sum::<f64>() / n as f64,
            p50: rank(50),
            p90: rank(90),
            p95: rank(95),
            p99: rank(99),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(Summary::of(vec![]), None);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let s = Summary::of((1..=200).rev().map(f64::from).collect()).unwrap();
        assert_eq!(
            (s.n, s.mean, s.p50, s.p99, s.max),
            (Some(200), 100.5, 100.0, 198.0, 200.0)
        );
    }

    #[test]
    fn one_value_is_all_percentiles() {
        let s = Summary::of(vec![7.0]).unwrap();
        assert_eq!(
            (s.mean, s.p50, s.p90, s.p95, s.p99, s.max),
            (7.0, 7.0, 7.0, 7.0, 7.0, 7.0)
        );
    }
}
