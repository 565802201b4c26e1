// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The buckets of law/histogram.h, in which the kernel counts how long flows were paused.

use crate::raw;

/// Number of buckets.
pub const HISTOGRAM_BUCKETS: usize = raw::ONR_HISTOGRAM_BUCKETS as usize;

/// The bucket of a duration.
pub fn histogram_bucket(ns: u64) -> usize {
    // SAFETY: the function takes and returns integers.
    unsafe { raw::onr_histogram_bucket(ns) as usize }
}

/// The longest duration in a bucket; none for the last one, which has no bound.
pub fn histogram_bound_ns(bucket: usize) -> Option<u64> {
    (bucket + 1 < HISTOGRAM_BUCKETS).then(|| 1 << (raw::ONR_HISTOGRAM_SHIFT as usize + bucket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket_and_the_next_duration_does_not() {
        for bucket in 0..HISTOGRAM_BUCKETS - 1 {
            let bound_ns = histogram_bound_ns(bucket).unwrap();
            assert_eq!(histogram_bucket(bound_ns), bucket);
            assert_eq!(histogram_bucket(bound_ns + 1), bucket + 1);
        }
        assert_eq!(histogram_bound_ns(HISTOGRAM_BUCKETS - 1), None);
        assert_eq!(histogram_bound_ns(0), Some(1_024));
        assert_eq!(histogram_bucket(0), 0);
        assert_eq!(histogram_bucket(u64::MAX), HISTOGRAM_BUCKETS - 1);
    }
}
