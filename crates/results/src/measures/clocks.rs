// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of synchronised clocks.

use super::{metric, Measure, MeasureKind, Metrics, ALL, BOTH, SIM};
use crate::counters::Counters;
use crate::summary::Summary;

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "clocks",
    metrics: &[
        metric(("clock.error_ns", "ns", "distribution", BOTH, ALL, "Absolute error of synchronised clocks while traffic runs")),
        metric(("clock.within_2_sigma", "1", "number", BOTH, ALL, "Fraction of these errors within two of the standard deviations that the hosts estimate")),
        metric(("clock.most_sigmas", "1", "number", BOTH, ALL, "The largest of these errors, in the standard deviations that its host estimates")),
        metric(("clock.windows", "", "list", SIM, ALL, "Each window of synchronisation: `end_ms`, `error_ns` (distribution), `within_2_sigma`, `most_sigmas`, `edge_sigma_ns`, `lost_hosts`, `pairs`, `pure`")),
    ],
    of: |_| Box::new(Clocks),
};

struct Clocks;

impl Measure for Clocks {
    fn finish(self: Box<Self>, counters: &Counters, metrics: &mut Metrics) {
        let clocks = &counters.clocks;
        let magnitudes = clocks.errors_ns.iter().map(|error| error.abs());
        if let Some(magnitudes) = Summary::of(magnitudes.collect()) {
            metrics.put("clock.error_ns", magnitudes);
            metrics.put("clock.within_2_sigma", clocks.within_2_sigma);
            metrics.put("clock.most_sigmas", clocks.most_sigmas);
        }
        if !clocks.windows.is_empty() {
            metrics.put("clock.windows", &clocks.windows);
        }
    }
}
