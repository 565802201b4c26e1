// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What was lost and sent again, and what switches did before they lost.

use super::{metric, Measure, MeasureKind, Metrics, ALL, BOTH, KERNEL, SIM};
use crate::counters::{Counters, WorldCounters};

#[rustfmt::skip]
pub(super) static KIND: MeasureKind = MeasureKind {
    name: "losses",
    metrics: &[
        metric(("retransmissions", "1", "number", BOTH, ALL, "Retransmitted segments, from the end of the warm-up to the end of the run (rack: `tcpi_total_retrans`)")),
        metric(("retransmitted_fraction", "1", "number", BOTH, ALL, "Retransmitted bytes divided by sent bytes (simulator: packets), from the end of the warm-up to the end of the run (rack: `tcpi_bytes_retrans`)")),
        metric(("timeouts", "1", "number", BOTH, ALL, "Retransmission timeouts, from the end of the warm-up to the end of the run (rack: `tcpi_total_rto`). A tail loss probe of a single segment also waits 200 ms and does not count")),
        metric(("drops", "1", "number", BOTH, ALL, "Packets dropped at all switch ports, from the end of the warm-up to the end of the run (rack: `tc -s`)")),
        metric(("host.drops", "1", "number", BOTH, KERNEL, "Packets dropped by the hosts' qdiscs in the whole run (simulator: only with qdisc fq_codel, by CoDel)")),
        metric(("marks", "1", "number", SIM, ALL, "Packets marked CE, from the end of the warm-up to the end of the run")),
        metric(("pfc_pauses", "1", "number", SIM, ALL, "PFC pauses sent, from the end of the warm-up to the end of the run")),
    ],
    of: |_| Box::new(Losses),
};

struct Losses;

impl Measure for Losses {
    fn finish(self: Box<Self>, counters: &Counters, metrics: &mut Metrics) {
        let resent = &counters.resent;
        metrics.put("retransmissions", resent.retransmissions);
        metrics.put("timeouts", resent.timeouts);
        let fraction = resent.again as f64 / resent.sent.max(1) as f64;
        metrics.put("retransmitted_fraction", fraction);
        metrics.put("drops", counters.drops);
        match &counters.world {
            WorldCounters::Sim(sim) => {
                metrics.put("marks", sim.marks);
                metrics.put("pfc_pauses", sim.pfc_pauses);
                metrics.put_some("host.drops", sim.host_drops);
            }
            WorldCounters::Rack(rack) => metrics.put("host.drops", rack.host_drops),
        }
    }
}
