// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Round-trip times as senders measure them: errors of a NIC's stamps, and the record of all (`--series rtts`).

use super::delays::Delays;
use crate::engine::random::{Purpose, Streams};
use onramp_scenario::RttStamps;
use onramp_sync::probe::Stamps;
use onramp_sync::synthetic::uniform;
use onramp_units::{Sim, Span, Time};

/// Errors of the round-trip times of NIC hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RttErrors {
    /// Who stamps.
    pub stamps: RttStamps,
    /// A time between zero and this is added to each.
    pub noise: Span,
}

impl RttErrors {
    /// None.
    pub const NONE: RttErrors = RttErrors {
        stamps: RttStamps::Exact,
        noise: Span::ZERO,
    };
}

/// What measures the round-trip times of a domain's NIC hosts.
pub(crate) struct Stamper {
    random: Streams,
}

impl Stamper {
    pub fn new(seed: u64, nodes: usize) -> Stamper {
        Stamper {
            random: Streams::new(seed, Purpose::Rtts, nodes),
        }
    }

    /// `rtt` as `host` measures it with these errors.
    pub fn measured(&mut self, errors: &RttErrors, host: u32, rtt: Span) -> Span {
        if *errors == RttErrors::NONE {
            return rtt;
        }
        let random = self.random.of(host);
        let stamps_ns = match errors.stamps {
            RttStamps::Exact => 0.0,
            RttStamps::Hardware => {
                Stamps::Hardware.received_noise_ns(random) - Stamps::Hardware.sent_noise_ns(random)
            }
            RttStamps::Calibrated => {
                Stamps::Hardware.received_noise_ns(random) - Stamps::Software.sent_noise_ns(random)
            }
            RttStamps::Software => {
                Stamps::Software.received_noise_ns(random) - Stamps::Software.sent_noise_ns(random)
            }
        };
        let noise_ns = match errors.noise {
            Span::ZERO => 0.0,
            noise => noise.as_ps() as f64 / 1e3 * uniform(random),
        };
        rtt + Span::from_ps(((stamps_ns + noise_ns) * 1e3).round() as i64)
    }
}

/// A round-trip time of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RttSample {
    pub at: Time<Sim>,
    /// Flow of the plan.
    pub plan: u32,
    pub rtt: Span,
}

/// The round-trip times that a domain's congestion controls got within the window.
pub(crate) struct Rtts {
    /// End of the window.
    pub end: Time<Sim>,
    pub delays: Delays,
    /// The first flows of the plan, of which all are kept.
    pub kept: u32,
    pub samples: Vec<RttSample>,
}

impl Rtts {
    pub fn new(end: Time<Sim>, kept: u32) -> Rtts {
        Rtts {
            end,
            delays: Delays::new(),
            kept,
            samples: Vec::new(),
        }
    }

    pub fn note(&mut self, sample: RttSample) {
        if sample.at >= self.end {
            return;
        }
        self.delays.note(sample.rtt);
        if sample.plan < self.kept {
            self.samples.push(sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(errors: RttErrors) -> Vec<f64> {
        let mut stamper = Stamper::new(1, 2);
        let rtt = Span::from_us(100);
        let error = |_| (stamper.measured(&errors, 1, rtt) - rtt).as_ps() as f64 / 1e6;
        (0..20_000).map(error).collect()
    }

    #[test]
    fn without_errors_a_round_trip_time_is_exact() {
        assert!(measured(RttErrors::NONE).iter().all(|error| *error == 0.0));
    }

    #[test]
    fn noise_is_uniform_between_zero_and_its_bound() {
        let errors = measured(RttErrors {
            noise: Span::from_us(50),
            ..RttErrors::NONE
        });
        assert!(errors.iter().all(|error| (0.0..=50.0).contains(error)));
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        // Five standard deviations.
        assert!((mean - 25.0).abs() < 5.0 * 50.0 / (12.0 * 20_000f64).sqrt());
    }

    #[test]
    fn a_kernels_stamps_are_worse_than_calibrated_ones_and_those_worse_than_a_nics() {
        let spread = |stamps| {
            let mut errors = measured(RttErrors {
                stamps,
                ..RttErrors::NONE
            });
            errors.sort_by(f64::total_cmp);
            errors[errors.len() * 9 / 10] - errors[errors.len() / 10]
        };
        let [nic, calibrated, kernel] = [
            RttStamps::Hardware,
            RttStamps::Calibrated,
            RttStamps::Software,
        ]
        .map(spread);
        assert!(
            nic < calibrated && calibrated < kernel,
            "{nic} {calibrated} {kernel}"
        );
    }
}
