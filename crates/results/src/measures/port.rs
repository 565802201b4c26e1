// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The measured port: the last one before the measured host, or the first that the scenario names; and all that it names.

use super::{metric, Measure, MeasureKind, Metrics, ALL, BOTH, RACK, SIM};
use crate::counters::{Counters, PortCounters, WorldCounters};
use onramp_scenario::Run;

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "port",
    metrics: &[
        metric(("port.name", "", "text", BOTH, ALL, "Name of the measured port")),
        metric(("port.drops", "1", "number", BOTH, ALL, "`drops` at the measured port only")),
        metric(("port.idle_fraction", "1", "number", RACK, ALL, "Fraction of the window in which the measured port had nothing to send")),
        metric(("utilisation", "1", "number", BOTH, ALL, "Bytes that the measured port accepted in the window, divided by the bytes that its line rate allows")),
        metric(("queue_us", "us", "distribution", BOTH, ALL, "Queueing delay at the measured port within the window: time until its line is free (simulator: `n` samples at equal intervals; rack: weighted by time, without `n`)")),
        metric(("owd_us", "us", "distribution", BOTH, ALL, "One-way delay to the measured host within the window (simulator: all data packets; rack: sampled segments, from the sender's qdisc to the arrival)")),
        metric(("ports.PORT.utilisation", "1", "number", SIM, ALL, "`utilisation` of a port of `measure.ports`")),
        metric(("ports.PORT.queue_us", "us", "distribution", SIM, ALL, "`queue_us` of a port of `measure.ports`")),
        metric(("ports.PORT.drops", "1", "number", SIM, ALL, "`port.drops` of a port of `measure.ports`")),
    ],
    of: |run| Box::new(Port(run)),
};

struct Port<'a>(&'a Run);

impl Measure for Port<'_> {
    fn finish(self: Box<Self>, counters: &Counters, metrics: &mut Metrics) {
        let port = &counters.port;
        metrics.put("port.name", &port.name);
        metrics.put("port.drops", port.drops);
        metrics.put("utilisation", self.utilisation(port));
        metrics.put("queue_us", port.queue_us);
        metrics.put_some("owd_us", port.owd_us);
        if let WorldCounters::Rack(rack) = &counters.world {
            metrics.put("port.idle_fraction", rack.idle_fraction);
        }
        for port in &counters.ports {
            let name = |metric: &str| format!("ports.{}.{metric}", port.name);
            metrics.put(&name("utilisation"), self.utilisation(port));
            metrics.put(&name("queue_us"), port.queue_us);
            metrics.put(&name("drops"), port.drops);
        }
    }
}

impl Port<'_> {
    fn utilisation(&self, port: &PortCounters) -> f64 {
        let could_bytes = port.rate.bytes_in(self.0.window()).get();
        port.sent_bytes as f64 / could_bytes as f64
    }
}
