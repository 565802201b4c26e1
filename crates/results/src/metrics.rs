// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The table of metrics: names, units, meanings, and the worlds that measure them. [`crate::Measures`]
//! computes them; docs/results.md is generated from this table.

/// A measure in `metrics` of `summary.json`.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name. `CLASS` stands for small, medium or large, `N` for the number of a traffic entry,
    /// `COUNTER` for a counter of the daemon.
    pub name: &'static str,
    /// Unit of the value, or of each value of a distribution or list.
    pub unit: &'static str,
    /// `distribution`, `number`, `list` or `text`.
    pub form: &'static str,
    /// The worlds that measure it.
    pub worlds: &'static str,
    /// The kind of hosts that have it.
    pub hosts: &'static str,
    /// Its definition.
    pub meaning: &'static str,
}

const BOTH: &str = "both";
const SIM: &str = "sim";
const RACK: &str = "rack";
const ALL: &str = "all";
const NIC: &str = "nic";

type Line = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const fn metric(line: Line) -> Metric {
    let (name, unit, form, worlds, hosts, meaning) = line;
    Metric {
        name,
        unit,
        form,
        worlds,
        hosts,
        meaning,
    }
}

/// All metrics, in the order of docs/results.md.
#[rustfmt::skip]
pub const METRICS: [Metric; 54] = [
    metric(("incast.rct_us", "us", "distribution", BOTH, ALL, "Request completion time of an incast: from the request (rack: the aggregator's first write; simulator: the start of the first answer) to the last byte of the last answer at the aggregator")),
    metric(("incast.rct_acked_us", "us", "distribution", SIM, NIC, "As `incast.rct_us`, up to the last acknowledgement at the last sender, as the paper's simulator measures it")),
    metric(("incast.unfinished", "1", "number", BOTH, ALL, "Requests of an incast that are unfinished 2 s after the end of the traffic")),
    metric(("request.rct_us", "us", "distribution", SIM, ALL, "Completion time of a request of kind request: from its first byte to the last byte of its answer")),
    metric(("request.rct_acked_us", "us", "distribution", SIM, NIC, "As `request.rct_us`, up to the last acknowledgement at the sender")),
    metric(("request.answered_per_s", "1/s", "number", SIM, ALL, "Requests of kind request whose answer arrived within the window, per second")),
    metric(("request.unfinished", "1", "number", SIM, ALL, "Requests of kind request that are unfinished 2 s after the end of the traffic")),
    metric(("all_to_all.step_us", "us", "distribution", SIM, ALL, "Duration of a step: from the start of its first flow to its last byte at a receiver")),
    metric(("all_to_all.step_acked_us", "us", "distribution", SIM, NIC, "As `all_to_all.step_us`, up to the last acknowledgement at a sender")),
    metric(("all_to_all.unfinished", "1", "number", SIM, ALL, "Steps that are unfinished 2 s after the end of the traffic")),
    metric(("background.fct_us.CLASS", "us", "distribution", BOTH, ALL, "Flow completion time of Poisson and replayed flows of the class: from the flow's start time to its last byte at the receiver")),
    metric(("background.fct_acked_us.CLASS", "us", "distribution", SIM, NIC, "As `background.fct_us.CLASS`, up to the last acknowledgement at the sender")),
    metric(("background.fct_us.all", "us", "distribution", BOTH, ALL, "`background.fct_us` of all classes together")),
    metric(("background.fct_acked_us.all", "us", "distribution", SIM, NIC, "`background.fct_acked_us` of all classes together")),
    metric(("background.unfinished", "1", "number", BOTH, ALL, "Poisson and replayed flows that are unfinished 2 s after the end of the traffic")),
    metric(("slowdown", "1", "distribution", SIM, ALL, "Slowdown of Poisson and replayed flows: time to the last acknowledgement, divided by the same time in an empty network (column `slowdown` of flows.parquet)")),
    metric(("traffic.N.rct_us", "us", "distribution", BOTH, ALL, "`incast.rct_us` or `request.rct_us` of traffic entry N, if several entries are of that kind")),
    metric(("traffic.N.rct_acked_us", "us", "distribution", SIM, NIC, "`incast.rct_acked_us` or `request.rct_acked_us` of traffic entry N, if several entries are of that kind")),
    metric(("traffic.N.fct_us.CLASS", "us", "distribution", BOTH, ALL, "`background.fct_us.CLASS` of traffic entry N, if several entries are Poisson or replayed flows")),
    metric(("traffic.N.fct_acked_us.CLASS", "us", "distribution", SIM, NIC, "`background.fct_acked_us.CLASS` of traffic entry N, if several entries are Poisson or replayed flows")),
    metric(("background.goodput_gbps", "Gbit/s", "number", BOTH, ALL, "Rate of the payload of Poisson, replayed and long flows that all receivers together received in order within the window (rack: `tcpi_bytes_received`)")),
    metric(("long.goodput_gbps", "Gbit/s", "list", BOTH, ALL, "`background.goodput_gbps` of each long flow")),
    metric(("long.retransmitted_fraction", "1", "list", SIM, "kernel", "Packets of each long flow that were sent again within the window, divided by those that it sent")),
    metric(("retransmissions", "1", "number", BOTH, ALL, "Retransmitted segments, from the end of the warm-up to the end of the run (rack: `tcpi_total_retrans`)")),
    metric(("retransmitted_fraction", "1", "number", BOTH, ALL, "Retransmitted bytes divided by sent bytes (simulator: packets), from the end of the warm-up to the end of the run (rack: `tcpi_bytes_retrans`)")),
    metric(("timeouts", "1", "number", BOTH, ALL, "Retransmission timeouts, from the end of the warm-up to the end of the run (rack: `tcpi_total_rto`). A tail loss probe of a single segment also waits 200 ms and does not count")),
    metric(("drops", "1", "number", BOTH, ALL, "Packets dropped at all switch ports, from the end of the warm-up to the end of the run (rack: `tc -s`)")),
    metric(("host.drops", "1", "number", BOTH, "kernel", "Packets dropped by the hosts' qdiscs in the whole run (simulator: only with qdisc fq_codel, by CoDel)")),
    metric(("port.name", "", "text", BOTH, ALL, "Name of the measured port")),
    metric(("port.drops", "1", "number", BOTH, ALL, "`drops` at the measured port only")),
    metric(("port.idle_fraction", "1", "number", RACK, ALL, "Fraction of the window in which the measured port had nothing to send")),
    metric(("utilisation", "1", "number", BOTH, ALL, "Bytes that the measured port accepted in the window, divided by the bytes that its line rate allows")),
    metric(("queue_us", "us", "distribution", BOTH, ALL, "Queueing delay at the measured port within the window: time until its line is free (simulator: `n` samples at equal intervals; rack: weighted by time, without `n`)")),
    metric(("owd_us", "us", "distribution", BOTH, ALL, "One-way delay to the measured host within the window (simulator: all data packets; rack: sampled segments, from the sender's qdisc to the arrival)")),
    metric(("rtt_us", "us", "distribution", SIM, ALL, "Round-trip times that the congestion controls got within the window (`--series rtts`). Nic hosts: of whole segments, where the congestion control sends segments. Kernel hosts: the last one of the connection at each acknowledgement")),
    metric(("clock.error_ns", "ns", "distribution", BOTH, ALL, "Absolute error of synchronised clocks while traffic runs")),
    metric(("clock.within_2_sigma", "1", "number", BOTH, ALL, "Fraction of these errors within two of the standard deviations that the hosts estimate")),
    metric(("clock.most_sigmas", "1", "number", BOTH, ALL, "The largest of these errors, in the standard deviations that its host estimates")),
    metric(("clock.windows", "", "list", SIM, ALL, "Each window of synchronisation: `end_ms`, `error_ns` (distribution), `within_2_sigma`, `most_sigmas`, `edge_sigma_ns`, `lost_hosts`, `pairs`, `pure`")),
    metric(("marks", "1", "number", SIM, ALL, "Packets marked CE, from the end of the warm-up to the end of the run")),
    metric(("pfc_pauses", "1", "number", SIM, ALL, "PFC pauses sent, from the end of the warm-up to the end of the run")),
    metric(("or_acks", "1", "number", SIM, ALL, "OR-ACKs sent, from the end of the warm-up to the end of the run")),
    metric(("or_ack_mbps", "Mbit/s", "number", SIM, ALL, "Rate of the OR-ACKs of a host within the window, mean over hosts")),
    metric(("pairs.owd_correlation", "1", "number", SIM, ALL, "Spearman's rank correlation between the one-way delay of a packet and the last one-way delay that its sender knew (`--series pairs`)")),
    metric(("pairs.rtt_correlation", "1", "number", SIM, ALL, "Spearman's rank correlation between the one-way delay of a packet and the last round-trip time that its sender knew (`--series pairs`)")),
    metric(("rounds.mark_correlation", "1", "number", SIM, "kernel", "Spearman's rank correlation between the fraction of marked packets of a round and the least round-trip time of the same round (`--series rounds`). A round ends when the packet is acknowledged that was to be sent next at its start; rounds of all connections within the window")),
    metric(("rounds.marked_fraction", "1", "distribution", SIM, "kernel", "Fraction of marked packets of these rounds")),
    metric(("rounds.rtt_us", "us", "distribution", SIM, "kernel", "Least round-trip time of these rounds")),
    metric(("connections", "1", "number", RACK, ALL, "Connections opened by the load generator")),
    metric(("load.late_max_us", "us", "number", RACK, ALL, "Longest delay between the start time of a flow and the time at which the load generator started it")),
    metric(("probe.drops", "1", "number", RACK, ALL, "Drops at the measured port within the window, inferred by its probe: a check of `port.drops`")),
    metric(("probe.lost_events", "1", "number", RACK, ALL, "Lost events of the probes. If this is not 0, the measurements of the probes are wrong")),
    metric(("switch.unknown_frames", "1", "number", RACK, ALL, "Frames that the switch discarded because no host has their address, for example multicast")),
    metric(("onramp.COUNTER", "1, us", "number", RACK, ALL, "Sum of a counter over all daemons, or the largest value of a maximum. Names of times end in `_us`")),
];

/// The metric of a `name` in `summary.json`.
pub fn metric_of(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| fits(metric.name, name))
}

fn fits(pattern: &str, name: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split('.'), name.split('.'));
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return true,
            (Some("COUNTER"), Some(_)) => {}
            (Some("CLASS"), Some("small" | "medium" | "large")) => {}
            (Some("N"), Some(number)) if number.parse::<usize>().is_ok() => {}
            (Some(pattern), Some(part)) if pattern == part => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_pattern() {
        let name = |name| metric_of(name).map(|metric| metric.name);
        assert_eq!(
            name("traffic.3.fct_us.small"),
            Some("traffic.N.fct_us.CLASS")
        );
        assert_eq!(name("onramp.held_us"), Some("onramp.COUNTER"));
        assert_eq!(name("drops"), Some("drops"));
        for other in [
            "traffic.x.rct_us",
            "background.fct_us",
            "drops.all",
            "onramp",
            "N",
        ] {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn a_unit_is_in_the_name_of_what_has_one() {
        let suffixes = [
            ("us", "_us"),
            ("ns", "_ns"),
            ("Gbit/s", "_gbps"),
            ("Mbit/s", "_mbps"),
        ];
        for metric in METRICS {
            let suffix = suffixes.iter().find(|(unit, _)| *unit == metric.unit);
            let stem = metric
                .name
                .trim_end_matches(".CLASS")
                .trim_end_matches(".all");
            let has = suffix.is_none_or(|(_, suffix)| stem.ends_with(suffix));
            assert!(has, "{}", metric.name);
        }
    }
}
