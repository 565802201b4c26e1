// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A metric: the longest completion time of all flows.

use onramp_results::{Counters, FlowRow, Measure, MeasureKind, Metric, Metrics};

const SLOWEST_US: Metric = Metric::new(
    "slowest_us",
    "us",
    "Longest completion time of a flow that is measured",
);

pub static KIND: MeasureKind =
    MeasureKind::new("slowest", &[SLOWEST_US], |_run| Box::new(Slowest(None)));

/// In ns, of the flows so far.
struct Slowest(Option<i64>);

impl Measure for Slowest {
    fn add_flow(&mut self, flow: &FlowRow) {
        let fct_ns = flow.fct_ns.filter(|_| flow.measured);
        self.0 = self.0.max(fct_ns);
    }

    fn finish(self: Box<Self>, _counters: &Counters, metrics: &mut Metrics) {
        metrics.put_some("slowest_us", self.0.map(|ns| ns as f64 / 1e3));
    }
}
