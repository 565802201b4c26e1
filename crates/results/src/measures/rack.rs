// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The rack's own instruments.

use super::{metric, Measure, MeasureKind, Metrics, ALL, RACK};
use crate::counters::{Counters, WorldCounters};

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "rack",
    metrics: &[
        metric(("connections", "1", "number", RACK, ALL, "Connections opened by the load generator")),
        metric(("load.late_max_us", "us", "number", RACK, ALL, "Longest delay between the start time of a flow and the time at which the load generator started it")),
        metric(("probe.drops", "1", "number", RACK, ALL, "Drops at the measured port within the window, inferred by its probe: a check of `port.drops`")),
        metric(("probe.lost_events", "1", "number", RACK, ALL, "Lost events of the probes. If this is not 0, the measurements of the probes are wrong")),
        metric(("switch.unknown_frames", "1", "number", RACK, ALL, "Frames that the switch discarded because no host has their address, for example multicast")),
    ],
    of: |_| Box::new(Rack),
};

struct Rack;

impl Measure for Rack {
    fn finish(self: Box<Self>, counters: &Counters, metrics: &mut Metrics) {
        if let WorldCounters::Rack(rack) = &counters.world {
            metrics.put("connections", rack.connections);
            metrics.put("load.late_max_us", rack.late_us);
            metrics.put("probe.drops", rack.probed_drops);
            metrics.put("probe.lost_events", rack.lost_events);
            metrics.put("switch.unknown_frames", rack.unknown_frames);
        }
    }
}
