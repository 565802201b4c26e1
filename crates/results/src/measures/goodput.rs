// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Goodput of the flows that are not part of requests.

use super::{entries, metric, Measure, MeasureKind, Metrics, ALL, BOTH, KERNEL, SIM};
use crate::counters::{Counters, WorldCounters};
use onramp_scenario::{Measured, Run};

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "goodput",
    metrics: &[
        metric(("background.goodput_gbps", "Gbit/s", "number", BOTH, ALL, "Rate of the payload of Poisson, replayed and long flows that all receivers together received in order within the window (rack: `tcpi_bytes_received`)")),
        metric(("long.goodput_gbps", "Gbit/s", "list", BOTH, ALL, "`background.goodput_gbps` of each long flow")),
        metric(("long.retransmitted_fraction", "1", "list", SIM, KERNEL, "Packets of each long flow that were sent again within the window, divided by those that it sent")),
    ],
    of: |run| Box::new(Goodput(run)),
};

struct Goodput<'a>(&'a Run);

impl Measure for Goodput<'_> {
    fn finish(self: Box<Self>, counters: &Counters, metrics: &mut Metrics) {
        let Goodput(run) = *self;
        let window_s = run.window().as_s_f64();
        let gbps = |bytes: u64| bytes as f64 * 8.0 / window_s / 1e9;
        let received = &counters.received;
        if !entries(run, |traffic| traffic.measured() == Measured::Goodput).is_empty() {
            let each: Vec<f64> = received.long_bytes.iter().copied().map(gbps).collect();
            metrics.put("long.goodput_gbps", each);
        }
        if !entries(run, |traffic| !traffic.measured().is_together()).is_empty() {
            metrics.put("background.goodput_gbps", gbps(received.background_bytes));
        }
        if let WorldCounters::Sim(sim) = &counters.world {
            let resent = Some(&sim.long_resent).filter(|resent| !resent.is_empty());
            metrics.put_some("long.retransmitted_fraction", resent);
        }
    }
}
