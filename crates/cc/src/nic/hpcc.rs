//! HPCC: rate and window from in-band telemetry (Li et al., SIGCOMM 2019, alg. 1).
//! Differs from the paper: as the authors' simulator, it adapts the rate and derives the window
//! from it, and its additive step is a rate; `max_stage` is 0 there, 5 in the paper.

use super::{
    divided, per_25g, scaled, sum, window_at, Ack, CongestionControl, Feedback, Limits, PathFacts,
};
use crate::int::{IntHop, MAX_INT_HOPS};
use onramp_scenario::Tuning;
use onramp_units::Rate;

pub const FEEDBACK: Feedback = Feedback::Int;
pub const MOVES_NEXT_PACKET: bool = true;

/// Parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// eta: utilisation that it aims at.
    pub target_utilisation: f64,
    /// maxStage: additive steps before a multiplicative one.
    pub max_stage: u32,
    /// W_AI as a rate.
    pub additive: Rate,
    /// The rate is never below this.
    pub min_rate: Rate,
}

impl Params {
    /// The authors' simulator's, in proportion to the line rate: 40 Mbit/s at 100 Gbit/s.
    pub fn reference(line: Rate) -> Params {
        Params {
            target_utilisation: 0.95,
            max_stage: 0,
            additive: per_25g(10_000_000, line),
            min_rate: scaled(line, 0.01),
        }
    }

    /// Whether the window changes with time alone, without acknowledgements.
    pub fn window_follows_time(&self) -> bool {
        false
    }

    pub fn tune(&mut self, given: &Tuning) {
        given.fraction("eta", &mut self.target_utilisation);
        given.count("max_stage", &mut self.max_stage);
        given.rate("rate_ai", &mut self.additive);
        given.rate("min_rate", &mut self.min_rate);
    }
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
    #[inline]
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
