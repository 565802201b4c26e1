// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! OR-ACKs, and counters of the daemons.

use super::{metric, Measure, MeasureKind, Metrics, ALL, RACK, SIM};
use crate::counters::{Counters, WorldCounters};
use onramp_scenario::Run;

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "onramp",
    metrics: &[
        metric(("or_acks", "1", "number", SIM, ALL, "OR-ACKs sent, from the end of the warm-up to the end of the run")),
        metric(("or_ack_mbps", "Mbit/s", "number", SIM, ALL, "Rate of the OR-ACKs of a host within the window, mean over hosts")),
        metric(("onramp.COUNTER", "1, us", "number", RACK, ALL, "Sum of a counter over all daemons, or the largest value of a maximum. Names of times end in `_us`")),
    ],
    of: |run| Box::new(OnRamp(run)),
};

struct OnRamp<'a>(&'a Run);

impl Measure for OnRamp<'_> {
    fn finish(self: Box<Self>, counters: &Counters, metrics: &mut Metrics) {
        let OnRamp(run) = *self;
        match &counters.world {
            WorldCounters::Sim(sim) => {
                metrics.put("or_acks", sim.or_acks);
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
