// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What congestion controls hear, of series that a user asks for.

use super::times::us;
use super::{metric, Measure, MeasureKind, Metrics, ALL, KERNEL, SIM};
use crate::correlation::rank_correlation;
use crate::counters::{Counters, PairSample, RoundSample, WorldCounters};
use crate::summary::Summary;
use onramp_units::Span;

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "signals",
    metrics: &[
        metric(("rtt_us", "us", "distribution", SIM, ALL, "Round-trip times that the congestion controls got within the window (`--series rtts`). Nic hosts: of whole segments, where the congestion control sends segments. Kernel hosts: the last one of the connection at each acknowledgement")),
        metric(("pairs.owd_correlation", "1", "number", SIM, ALL, "Spearman's rank correlation between the one-way delay of a packet and the last one-way delay that its sender knew (`--series pairs`)")),
        metric(("pairs.rtt_correlation", "1", "number", SIM, ALL, "Spearman's rank correlation between the one-way delay of a packet and the last round-trip time that its sender knew (`--series pairs`)")),
        metric(("rounds.mark_correlation", "1", "number", SIM, KERNEL, "Spearman's rank correlation between the fraction of marked packets of a round and the least round-trip time of the same round (`--series rounds`). A round ends when the packet is acknowledged that was to be sent next at its start; rounds of all connections within the window")),
        metric(("rounds.marked_fraction", "1", "distribution", SIM, KERNEL, "Fraction of marked packets of these rounds")),
        metric(("rounds.rtt_us", "us", "distribution", SIM, KERNEL, "Least round-trip time of these rounds")),
    ],
    of: |_| Box::new(Signals),
};

struct Signals;

impl Measure for Signals {
    fn finish(self: Box<Self>, counters: &Counters, metrics: &mut Metrics) {
        let WorldCounters::Sim(sim) = &counters.world else {
            return;
        };
        metrics.put_some("rtt_us", sim.rtt_us);
        let correlation = |signal: fn(&PairSample) -> Span| {
            let pairs = sim.pairs.iter().map(|pair| (signal(pair), pair.owd));
            rank_correlation(&pairs.collect::<Vec<_>>())
        };
        metrics.put_some("pairs.owd_correlation", correlation(|pair| pair.last_owd));
        metrics.put_some("pairs.rtt_correlation", correlation(|pair| pair.last_rtt));
        if !sim.rounds.is_empty() {
            put_rounds(&sim.rounds, metrics);
        }
    }
}

fn put_rounds(rounds: &[RoundSample], metrics: &mut Metrics) {
    let rtts_us = rounds.iter().map(|round| us(round.least_rtt.as_ns()));
    metrics.put_some("rounds.rtt_us", Summary::of(rtts_us.collect()));
    let fraction = |round: &RoundSample| f64::from(round.marked) / f64::from(round.packets);
    let fractions = Summary::of(rounds.iter().map(fraction).collect());
    metrics.put_some("rounds.marked_fraction", fractions);
    // Fractions as whole numbers, which have an order.
    let q32 = |round: &RoundSample| (u64::from(round.marked) << 32) / u64::from(round.packets);
    let pairs = rounds.iter().map(|round| (q32(round), round.least_rtt));
    let correlation = rank_correlation(&pairs.collect::<Vec<_>>());
    metrics.put_some("rounds.mark_correlation", correlation);
}
