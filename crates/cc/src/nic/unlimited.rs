// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! No congestion control: every flow may send at line rate. On a lossless network that is PFC alone, a baseline of
//! TIMELY's paper.

use super::{red, Burst, Preset};
use super::{Ack, Algorithm, CongestionControl, Limits, Needs, PathFacts};
use crate::parameter::parameters;
use crate::FAIR;
use onramp_units::Rate;

parameters! { "none", |_line| {
    "segment_bytes" segment_bytes: u32 = 16_000, super::timely_paper::SEGMENT, "Payload that has one round-trip time.";
} }

/// One.
pub(super) const PRESETS: &[Preset] = &[Preset {
    name: "none",
    about: "None: line rate; on a lossless network PFC alone",
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    algorithm: &|line| Algorithm::Unlimited(Params::reference(line)),
    ecn: red,
    hold_acks: false,
}];

impl Needs for Params {}

/// State of a flow.
#[derive(Debug, Clone)]
pub struct Unlimited {
    line: Rate,
    segment_bytes: u32,
}

impl Unlimited {
    pub fn new(params: &Params, path: &PathFacts) -> Unlimited {
        Unlimited {
            line: path.line_rate,
            segment_bytes: params.segment_bytes,
        }
    }
}

impl CongestionControl for Unlimited {
    fn on_ack(&mut self, _ack: &Ack<'_>) {}

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            rate: self.line,
            window_bytes: u64::MAX,
        }
    }

    #[inline]
    fn burst(&self) -> Option<Burst> {
        Some(Burst {
            bytes: self.segment_bytes,
            rate: self.line,
        })
    }
}
