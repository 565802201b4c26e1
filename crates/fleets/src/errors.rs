// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of fleet time beside what the hosts say of them.

use crate::world::Sample;

/// Errors of many hosts at many instants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Errors {
    /// Difference from the fleet's time and sigma of each, ns.
    samples: Vec<(f64, f64)>,
    /// Samples that were possible: hosts that run, at instants.
    possible: usize,
}

impl Errors {
    /// Adds an instant at which `possible` hosts ran. The fleet's time is the mean of those that have one, each with the weight
    /// that its sigma gives it.
    pub fn add(&mut self, samples: &[Sample], possible: usize) {
        self.possible += possible;
        let Some(fleet_ns) = mean_ns(samples) else {
            return;
        };
        let error = |sample: &Sample| {
            let sigma_ns = sample.sigma_ns.max(1) as f64;
            ((sample.fleet_ns - fleet_ns) as f64, sigma_ns)
        };
        self.samples.extend(samples.iter().map(error));
    }

    /// Adds those of another run.
    pub fn extend(&mut self, other: &Errors) {
        self.samples.extend_from_slice(&other.samples);
        self.possible += other.possible;
    }

    /// Number of samples.
    pub fn count(&self) -> usize {
        self.samples.len()
    }

    /// Part of the possible samples in which a host had fleet time.
    pub fn availability(&self) -> f64 {
        self.count() as f64 / self.possible.max(1) as f64
    }

    /// Part of the errors that are larger than so many sigmas.
    pub fn beyond(&self, sigmas: f64) -> f64 {
        let is_beyond = |(error, sigma): &&(f64, f64)| error.abs() > sigmas * sigma;
        self.samples.iter().filter(is_beyond).count() as f64 / self.count().max(1) as f64
    }

    /// The largest error in sigmas.
    pub fn worst(&self) -> f64 {
        let in_sigmas = self
            .samples
            .iter()
            .map(|(error, sigma)| error.abs() / sigma);
        in_sigmas.fold(0.0, f64::max)
    }

    /// A quantile of the absolute errors, ns.
    pub fn error_ns(&self, part: f64) -> f64 {
        quantile(self.samples.iter().map(|(error, _)| error.abs()), part)
    }

    /// A quantile of the sigmas, ns.
    pub fn sigma_ns(&self, part: f64) -> f64 {
        quantile(self.samples.iter().map(|(_, sigma)| *sigma), part)
    }
}

fn mean_ns(samples: &[Sample]) -> Option<i64> {
    let first_ns = samples.first()?.fleet_ns;
    let weight = |sample: &Sample| (sample.sigma_ns.max(1) as f64).powi(-2);
    let ahead = |sample: &Sample| weight(sample) * (sample.fleet_ns - first_ns) as f64;
    let all: f64 = samples.iter().map(weight).sum();
    let mean = samples.iter().map(ahead).sum::<f64>() / all;
    Some(first_ns + mean.round() as i64)
}

fn quantile(values: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    if values.is_empty() {
        return 0.0;
    }
    let at = (part * (values.len() - 1) as f64).round() as usize;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(host: usize, fleet_ns: i64, sigma_ns: i64) -> Sample {
        Sample {
            host,
            fleet_ns,
            sigma_ns,
        }
    }

    #[test]
    fn errors_are_counted_in_each_hosts_sigmas() {
        let mut errors = Errors::default();
        let hosts = [
            sample(0, 95, 10),
            sample(1, 85, 10),
            sample(2, 95, 10),
            sample(3, 700, 1_000_000),
        ];
        errors.add(&hosts, 5);
        assert_eq!((errors.count(), errors.availability()), (4, 0.8));
        assert!((errors.worst() - 0.7).abs() < 0.1, "{errors:?}");
        assert_eq!((errors.beyond(0.5), errors.beyond(3.0)), (0.25, 0.0));
        assert_eq!((errors.error_ns(1.0), errors.sigma_ns(0.0)), (608.0, 10.0));
        errors.add(&[], 5);
        assert_eq!(errors.availability(), 0.4);
    }
}
