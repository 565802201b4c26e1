// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Flows that are measured one by one.

use super::times::{is_nic, Times};
use super::{entries, metric, several, Measure, MeasureKind, Metrics, ALL, BOTH, NIC, SIM};
use crate::class::Class;
use crate::counters::Counters;
use crate::row::FlowRow;
use crate::summary::Summary;
use onramp_scenario::{Measured, Run};

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "flows",
    metrics: &[
        metric(("background.fct_us.CLASS", "us", "distribution", BOTH, ALL, "Flow completion time of Poisson and replayed flows of the class: from the flow's start time to its last byte at the receiver")),
        metric(("background.fct_acked_us.CLASS", "us", "distribution", SIM, NIC, "As `background.fct_us.CLASS`, up to the last acknowledgement at the sender")),
        metric(("background.fct_us.all", "us", "distribution", BOTH, ALL, "`background.fct_us` of all classes together")),
        metric(("background.fct_acked_us.all", "us", "distribution", SIM, NIC, "`background.fct_acked_us` of all classes together")),
        metric(("background.unfinished", "1", "number", BOTH, ALL, "Poisson and replayed flows that are unfinished 2 s after the end of the traffic")),
        metric(("slowdown", "1", "distribution", SIM, ALL, "Slowdown of Poisson and replayed flows: time to the last acknowledgement, divided by the same time in an empty network (column `slowdown` of flows.parquet)")),
        metric(("traffic.N.fct_us.CLASS", "us", "distribution", BOTH, ALL, "`background.fct_us.CLASS` of traffic entry N, if several entries are Poisson or replayed flows")),
        metric(("traffic.N.fct_acked_us.CLASS", "us", "distribution", SIM, NIC, "`background.fct_acked_us.CLASS` of traffic entry N, if several entries are Poisson or replayed flows")),
    ],
    of: |run| Box::new(Flows::new(run)),
};

struct Flows<'a> {
    run: &'a Run,
    /// Entries of `[[traffic]]` whose flows these are.
    entries: Vec<usize>,
    /// By entry of `[[traffic]]` and class.
    times: Vec<[Times; Class::ALL.len()]>,
    slowdowns: Vec<f64>,
}

impl Flows<'_> {
    fn new(run: &Run) -> Flows<'_> {
        Flows {
            run,
            entries: entries(run, |traffic| traffic.measured() == Measured::Flows),
            times: vec![Default::default(); run.traffic.len()],
            slowdowns: Vec::new(),
        }
    }
}

impl Measure for Flows<'_> {
    fn add_flow(&mut self, flow: &FlowRow) {
        let entry = flow.traffic as usize;
        if !flow.measured || !self.entries.contains(&entry) {
            return;
        }
        let class = Class::of(flow.size_bytes.unwrap_or(0));
        let simulated = flow.simulated;
        let acked_ns = simulated.and_then(|simulated| simulated.acked_ns);
        self.times[entry][class as usize].add(flow.fct_ns, acked_ns.filter(|_| is_nic(self.run)));
        let slowdown = simulated.and_then(|simulated| simulated.slowdown);
        self.slowdowns.extend(slowdown);
    }

    fn finish(self: Box<Self>, _counters: &Counters, metrics: &mut Metrics) {
        if self.entries.is_empty() {
            return;
        }
        for class in Class::ALL {
            let suffix = format!(".{}", class.name());
            let of_class = |&entry: &usize| &self.times[entry][class as usize];
            let all = Times::of(self.entries.iter().map(of_class));
            all.put(self.run, "background.fct", &suffix, metrics);
            for &entry in several(&self.entries) {
                let times = self.times[entry][class as usize].clone();
                times.put(self.run, &format!("traffic.{entry}.fct"), &suffix, metrics);
            }
        }
        let of_all = |&entry: &usize| self.times[entry].iter();
        let all = Times::of(self.entries.iter().flat_map(of_all));
        metrics.put("background.unfinished", all.unfinished);
        all.put(self.run, "background.fct", ".all", metrics);
        metrics.put_some("slowdown", Summary::of(self.slowdowns));
    }
}
