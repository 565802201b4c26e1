// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! DCTCP on a rate: cuts in proportion to the part of marked packets (Alizadeh et al., SIGCOMM
//! 2010), in the form that the HPCC authors' simulator gives it for NICs: it starts at line rate,
//! without slow start, and grows by a rate per window.

use super::{scaled, step, sum, window_at, Preset};
use super::{Ack, Algorithm, CongestionControl, Limits, Needs, PathFacts};
use crate::parameter::{parameters, PART, STEP};
use crate::FAIR;
use onramp_units::Rate;

parameters! { "dctcp", |line| {
    "g" gain: f64 = 0.0625, PART, "Weight in alpha of the latest window's fraction of marked packets.";
    "rate_ai" additive: Rate = Rate::from_bits_per_s(615_000_000).expect("above zero"), STEP, "Growth of a nic host's rate per window.";
    "min_rate" min_rate: Rate = scaled(line, 0.01), STEP, "Lower bound of a nic host's rate.";
} }

/// Under its paper's name. The growth is one packet a round trip: 1 kB per 13 us.
pub(super) const PRESETS: &[Preset] = &[Preset {
    name: "dctcp",
    about: "DCTCP (SIGCOMM 2010) on a rate, as the HPCC authors' simulator has it",
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    algorithm: &|line| Algorithm::Dctcp(Params::reference(line)),
    ecn: step,
    hold_acks: true,
}];

impl Needs for Params {}

/// State of a flow.
#[derive(Debug, Clone)]
pub struct Dctcp {
    params: Params,
    path: PathFacts,
    rate: Rate,
    alpha: f64,
    /// Packets of this window that were marked, and all.
    marked: u64,
    packets: u64,
    /// The window ends when this byte is acknowledged.
    window_end: u64,
    /// No further cut until this byte is acknowledged.
    reduced_until: Option<u64>,
}

impl Dctcp {
    pub fn new(params: &Params, path: &PathFacts) -> Dctcp {
        Dctcp {
            params: *params,
            path: *path,
            rate: path.line_rate,
            alpha: 1.0,
            marked: 0,
            packets: 0,
            window_end: 0,
            reduced_until: None,
        }
    }

    /// RFC 8257 §3.3: alpha = (1 - g) alpha + g F.
    fn end_window(&mut self, ack: &Ack<'_>) {
        let payload = self.path.payload_bytes;
        if self.window_end == 0 {
            self.packets = ack.next / payload + 1;
        } else {
            let marked = (self.marked as f64 / self.packets as f64).min(1.0);
            let g = self.params.gain;
            self.alpha = (1.0 - g) * self.alpha + g * marked;
            self.marked = 0;
            self.packets = ack.next.saturating_sub(ack.acked) / payload + 1;
        }
        self.window_end = ack.next;
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.marked += u64::from(ack.marked);
        let new_window = ack.acked > self.window_end;
        if new_window {
            self.end_window(ack);
        }
        if self.reduced_until.is_some_and(|end| ack.acked > end) {
            self.reduced_until = None;
        }
        if ack.marked && self.reduced_until.is_none() {
            self.rate = scaled(self.rate, 1.0 - self.alpha / 2.0).max(self.params.min_rate);
            self.reduced_until = Some(ack.next);
        }
        if new_window && self.reduced_until.is_none() {
            self.rate = sum(self.rate, self.params.additive).min(self.path.line_rate);
        }
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            rate: self.rate,
            window_bytes: window_at(self.rate, &self.path),
        }
    }
}
