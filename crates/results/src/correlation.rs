// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Rank correlation of pairs of values.

/// Spearman's rank correlation; none for fewer than two pairs, or if all values of one side are equal.
pub(crate) fn rank_correlation<A: Ord + Copy, B: Ord + Copy>(pairs: &[(A, B)]) -> Option<f64> {
    let a = ranks(pairs.iter().map(|pair| pair.0).collect());
    let b = ranks(pairs.iter().map(|pair| pair.1).collect());
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        let terms = x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean));
        terms.sum()
    };
    let scale = (product(&a, &a) * product(&b, &b)).sqrt();
    (scale > 0.0).then(|| product(&a, &b) / scale)
}

/// Ranks from 0; equal values share the mean of their ranks.
fn ranks<T: Ord + Copy>(values: Vec<T>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&n| values[n]);
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for alike in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let mean = first as f64 + (alike.len() as f64 - 1.0) / 2.0;
        alike.iter().for_each(|&n| ranks[n] = mean);
        first += alike.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate_whatever_the_scale() {
        assert_eq!(rank_correlation(&[(1, 1), (2, 10), (3, 1000)]), Some(1.0));
        assert_eq!(rank_correlation(&[(1, 9), (2, 8), (3, 1)]), Some(-1.0));
        assert_eq!(rank_correlation(&[(1, 5), (2, 5)]), None);
        let tied = rank_correlation(&[(1, 1), (2, 2), (3, 3), (4, 2)]);
        assert_eq!(tied.map(|c| (c * 1e3).round()), Some(632.0));
    }
}
