// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! OR-ACKs, and counters of the daemons.

use super::{metric, Measure, MeasureKind, Metrics, ALL, RACK, SIM};
use crate::counters::{Counters, WorldCounters};
use crate::row::FlowRow;
use onramp_scenario::Run;

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "onramp",
    metrics: &[
        metric(("or_acks", "1", "number", SIM, ALL, "OR-ACKs sent, from the end of the warm-up to the end of the run")),
        metric(("or_ack_mbps", "Mbit/s", "number", SIM, ALL, "Rate of the OR-ACKs of a host within the window, mean over hosts")),
        metric(("held_flows", "1", "number", SIM, ALL, "Fraction of the measured flows that On-Ramp held. Only in runs with OR-ACKs")),
        metric(("held_us", "us", "number", SIM, ALL, "Time for which On-Ramp held such a flow, mean over those that it held")),
        metric(("onramp.COUNTER", "1, us", "number", RACK, ALL, "Sum of a counter over all daemons, or the largest value of a maximum. Names of times end in `_us`")),
    ],
    of: |run| {
        Box::new(OnRamp {
            run,
            flows: 0,
            held: Vec::new(),
        })
    },
};

struct OnRamp<'a> {
    run: &'a Run,
    /// Measured flows.
    flows: u64,
    /// Times for which flows were held, in us.
    held: Vec<f64>,
}

impl OnRamp<'_> {
    fn put_held(&self, metrics: &mut Metrics) {
        let held = self.held.len() as f64;
        metrics.put_some(
            "held_flows",
            (self.flows > 0).then(|| held / self.flows as f64),
        );
        let mean_us = self.held.iter().sum::<f64>() / held;
        metrics.put_some("held_us", (held > 0.0).then_some(mean_us));
    }
}

impl Measure for OnRamp<'_> {
    fn add_flow(&mut self, flow: &FlowRow) {
        let Some(simulated) = flow.simulated.filter(|_| flow.measured) else {
            return;
        };
        self.flows += 1;
        if simulated.held_ns > 0 {
            self.held.push(simulated.held_ns as f64 / 1e3);
        }
    }

    fn finish(self: Box<Self>, counters: &Counters, metrics: &mut Metrics) {
        let run = self.run;
        match &counters.world {
            WorldCounters::Sim(sim) => {
                metrics.put("or_acks", sim.or_acks);
                if sim.or_acks > 0 {
                    self.put_held(metrics);
                }
                let bits_per_s = sim.or_ack_bytes as f64 * 8.0 / run.window().as_s_f64();
                let hosts = f64::from(run.network.topology.hosts());
                metrics.put("or_ack_mbps", bits_per_s / hosts / 1e6);
            }
            WorldCounters::Rack(rack) => {
                for (name, &value) in &rack.onramp {
                    match name.strip_suffix("_ns") {
                        Some(stem) => metrics.put(&format!("onramp.{stem}_us"), value / 1e3),
                        None => metrics.put(&format!("onramp.{name}"), value as u64),
                    }
                }
            }
        }
    }
}
