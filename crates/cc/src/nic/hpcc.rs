// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! HPCC: rate and window from in-band telemetry (Li et al., SIGCOMM 2019, alg. 1).
//! Differs from the paper: as the authors' simulator, it adapts the rate and derives the window
//! from it, and its additive step is a rate; `max_stage` is 0 there, 5 in the paper.

use super::{divided, per_25g, red, scaled, sum, window_at, Preset};
use super::{Ack, Algorithm, CongestionControl, Feedback, Limits, Needs, PathFacts};
use crate::int::{IntHop, MAX_INT_HOPS};
use crate::parameter::{parameters, PART, STEP, TIMES};
use crate::FAIR;
use onramp_units::Rate;

parameters! { "hpcc", |line| {
    "eta" target_utilisation: f64 = 0.95, PART, "Target utilisation.";
    "max_stage" max_stage: u32 = 0, TIMES, "Number of additive steps before a multiplicative one: 5 in the paper, 0 in its authors' simulator.";
    "rate_ai" additive: Rate = per_25g(10_000_000, line), STEP, "W_AI as a rate: step of additive increase.";
    "min_rate" min_rate: Rate = scaled(line, 0.01), STEP, "Lower bound of the rate.";
} }

/// Under its paper's name.
pub(super) const PRESETS: &[Preset] = &[Preset {
    name: "hpcc",
    about: "HPCC (SIGCOMM 2019)",
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    algorithm: &|line| Algorithm::Hpcc(Params::reference(line)),
    ecn: red,
    hold_acks: true,
}];

impl Needs for Params {
    const FEEDBACK: Feedback = Feedback::Int;
    const MOVES_NEXT_PACKET: bool = true;
}

/// State of a flow.
#[derive(Debug, Clone)]
pub struct Hpcc {
    params: Params,
    path: PathFacts,
    rate: Rate,
    /// W_c: what all updates within a round trip start from.
    reference: Rate,
    /// U: averaged utilisation of the busiest hop.
    utilisation: f64,
    stage: u32,
    /// lastUpdateSeq.
    last_update: u64,
    hops: [IntHop; MAX_INT_HOPS],
}

impl Hpcc {
    pub fn new(params: &Params, path: &PathFacts) -> Hpcc {
        Hpcc {
            params: *params,
            path: *path,
            rate: path.line_rate,
            reference: path.line_rate,
            utilisation: 1.0,
            stage: 0,
            last_update: 0,
            hops: [IntHop::default(); MAX_INT_HOPS],
        }
    }

    /// MeasureInflight of alg. 1: averages U over the base RTT T.
    fn measure(&mut self, ack: &Ack<'_>) {
        let (mut busiest, mut busiest_ns) = (0.0, 0);
        for (last, &hop) in self.hops.iter_mut().zip(ack.hops) {
            let ns = ack.int.ns_between(*last, hop);
            if ns == 0 {
                // As far as the telemetry's clock shows, no time has passed: there is no rate.
                continue;
            }
            let line = ack.int.rate(hop).bits_per_s() as f64;
            let sent = (ack.int.bytes_between(*last, hop) * 8) as f64 / (ns as f64 * 1e-9);
            let queue = ack.int.queue_bytes(hop).min(ack.int.queue_bytes(*last)) as f64;
            // u_j = txRate / B + min(qlen, L.qlen) / (B T), with B T as the window at B.
            let host_line = self.path.line_rate.bits_per_s() as f64;
            let u = sent / line + queue * host_line / line / self.path.bdp_bytes as f64;
            if u > busiest {
                (busiest, busiest_ns) = (u, ns);
            }
            *last = hop;
        }
        let base = self.path.base_rtt.as_ns() as u64;
        let ns = busiest_ns.min(base);
        self.utilisation =
            (self.utilisation * (base - ns) as f64 + busiest * ns as f64) / base as f64;
    }

    /// ComputeWind of alg. 1: the new rate and stage.
    fn step(&self) -> (Rate, u32) {
        let over = self.utilisation / self.params.target_utilisation;
        let (rate, stage) = if over >= 1.0 || self.stage >= self.params.max_stage {
            let cut = divided(self.reference, over);
            (sum(cut, self.params.additive), 0)
        } else {
            (sum(self.reference, self.params.additive), self.stage + 1)
        };
        (
            rate.max(self.params.min_rate).min(self.path.line_rate),
            stage,
        )
    }
}

impl CongestionControl for Hpcc {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.last_update == 0 {
            // Nothing to compare the first telemetry with.
            self.hops[..ack.hops.len()].copy_from_slice(ack.hops);
            self.last_update = ack.next;
            return;
        }
        self.measure(ack);
        let (rate, stage) = self.step();
        self.rate = rate;
        if ack.acked > self.last_update {
            (self.reference, self.stage) = (rate, stage);
            self.last_update = self.last_update.max(ack.next);
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
