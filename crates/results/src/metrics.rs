//! The table of metrics: names, units, meanings, and who measures them. [`crate::Measures`] computes them,
//! docs/results.md is made of it.

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
    /// The kind of hosts that it is measured of.
    pub hosts: &'static str,
    /// What it is.
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
pub const METRICS: [Metric; 45] = [
    metric(("incast.rct_us", "us", "distribution", BOTH, ALL, "Request completion time of an incast: from the request (rack: the aggregator's first write; simulator: the start of the first answer) to the last byte of the last answer at the aggregator")),
    metric(("incast.rct_acked_us", "us", "distribution", SIM, NIC, "The same to the last acknowledgement at the last sender, as the paper's simulator measures it")),
    metric(("incast.unfinished", "1", "number", BOTH, ALL, "Requests of an incast without end 2 s after the traffic")),
    metric(("request.rct_us", "us", "distribution", SIM, ALL, "Completion time of a request of kind request: from its first byte to the last byte of its answer")),
    metric(("request.rct_acked_us", "us", "distribution", SIM, NIC, "The same to the last acknowledgement at the sender")),
    metric(("request.unfinished", "1", "number", SIM, ALL, "Requests of kind request without end 2 s after the traffic")),
    metric(("all_to_all.step_us", "us", "distribution", SIM, ALL, "Duration of a step: from the start of its first flow to its last byte at a receiver")),
    metric(("all_to_all.step_acked_us", "us", "distribution", SIM, NIC, "The same to the last acknowledgement at a sender")),
    metric(("all_to_all.unfinished", "1", "number", SIM, ALL, "Steps without end 2 s after the traffic")),
    metric(("background.fct_us.CLASS", "us", "distribution", BOTH, ALL, "Flow completion time of Poisson and replayed flows of the class: from when the flow is due to its last byte at the receiver")),
    metric(("background.fct_acked_us.CLASS", "us", "distribution", SIM, NIC, "The same to the last acknowledgement at the sender")),
    metric(("background.unfinished", "1", "number", BOTH, ALL, "Poisson and replayed flows without end 2 s after the traffic")),
    metric(("slowdown", "1", "distribution", SIM, ALL, "Of Poisson and replayed flows, time to the last acknowledgement divided by the same in an empty network (column `slowdown` of flows.parquet)")),
    metric(("traffic.N.rct_us", "us", "distribution", BOTH, ALL, "`incast.rct_us` of traffic entry N, if several entries are incasts")),
    metric(("traffic.N.rct_acked_us", "us", "distribution", SIM, NIC, "`incast.rct_acked_us` of traffic entry N, if several entries are incasts")),
    metric(("traffic.N.fct_us.CLASS", "us", "distribution", BOTH, ALL, "`background.fct_us.CLASS` of traffic entry N, if several entries are Poisson or replayed flows")),
    metric(("traffic.N.fct_acked_us.CLASS", "us", "distribution", SIM, NIC, "`background.fct_acked_us.CLASS` of traffic entry N, if several entries are Poisson or replayed flows")),
    metric(("background.goodput_gbps", "Gbit/s", "number", BOTH, ALL, "Payload of Poisson, replayed and long flows that receivers had in order within the window, all receivers together (rack: `tcpi_bytes_received`)")),
    metric(("long.goodput_gbps", "Gbit/s", "list", BOTH, ALL, "The same of each long flow")),
    metric(("retransmissions", "1", "number", BOTH, ALL, "Segments sent again, from the warm-up's end to the very end (rack: `tcpi_total_retrans`)")),
    metric(("retransmitted_fraction", "1", "number", BOTH, ALL, "Bytes sent again divided by bytes sent (simulator: packets), in the same time (rack: `tcpi_bytes_retrans`)")),
    metric(("timeouts", "1", "number", BOTH, ALL, "Retransmission timeouts in the same time (rack: `tcpi_total_rto`). A tail loss probe of a lone segment waits 200 ms too and is no timeout")),
    metric(("drops", "1", "number", BOTH, ALL, "Packets dropped at all switch ports, from the warm-up's end to the very end (rack: `tc -s`)")),
    metric(("host.drops", "1", "number", BOTH, "kernel", "Packets dropped by the hosts' qdiscs in the whole run (simulator: by CoDel, with fq_codel only)")),
    metric(("port.name", "", "text", BOTH, ALL, "Name of the measured port")),
    metric(("port.drops", "1", "number", BOTH, ALL, "`drops` of the measured port")),
    metric(("port.idle_fraction", "1", "number", RACK, ALL, "Part of the window in which the line of the measured port had nothing to send")),
    metric(("utilisation", "1", "number", BOTH, ALL, "Bytes that the measured port took in the window divided by those that its line could send")),
    metric(("queue_us", "us", "distribution", BOTH, ALL, "Time until the line of the measured port is free, within the window (simulator: `n` samples at equal distances; rack: all instants, without `n`)")),
    metric(("owd_us", "us", "distribution", BOTH, ALL, "One-way delay to the measured host within the window (simulator: of all data packets; rack: of sampled segments, from leaving the sender's qdisc to arrival)")),
    metric(("clock.error_ns", "ns", "distribution", BOTH, ALL, "Magnitude of the error of synchronised clocks while traffic runs")),
    metric(("clock.within_2_sigma", "1", "number", BOTH, ALL, "Part of these errors within two of the standard deviations that hosts claim")),
    metric(("clock.windows", "", "list", SIM, ALL, "Each window of synchronisation: `end_ms`, `error_ns` (distribution), `within_2_sigma`, `edge_sigma_ns`, `lost_hosts`, `pairs`, `pure`")),
    metric(("marks", "1", "number", SIM, ALL, "Packets marked CE, from the warm-up's end to the very end")),
    metric(("pfc_pauses", "1", "number", SIM, ALL, "PFC pauses sent in the same time")),
    metric(("or_acks", "1", "number", SIM, ALL, "OR-ACKs sent in the same time")),
    metric(("or_ack_mbps", "Mbit/s", "number", SIM, ALL, "Rate of OR-ACKs of a host within the window, mean over hosts")),
    metric(("pairs.owd_correlation", "1", "number", SIM, ALL, "Spearman's rank correlation of the delay that a packet met and the last one-way delay that its sender knew (`--series pairs`)")),
    metric(("pairs.rtt_correlation", "1", "number", SIM, ALL, "The same with the last round-trip time that its sender knew")),
    metric(("connections", "1", "number", RACK, ALL, "Connections opened by the load generator")),
    metric(("load.late_max_us", "us", "number", RACK, ALL, "Longest time by which the load generator started a flow after it was due")),
    metric(("probe.drops", "1", "number", RACK, ALL, "Drops at the measured port within the window as its probe infers them, a check on `port.drops`")),
    metric(("probe.lost_events", "1", "number", RACK, ALL, "Events of the probes that were lost; if it is not 0, what the probes measure is wrong")),
    metric(("switch.unknown_frames", "1", "number", RACK, ALL, "Frames that the switch discarded because no host has their address, such as multicast")),
    metric(("onramp.COUNTER", "1, us", "number", RACK, ALL, "Counters of all daemons, added up (a maximum is the largest); times end in `_us`")),
];

/// The metric that `name`, as in `summary.json`, is of.
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
            let stem = metric.name.trim_end_matches(".CLASS");
            let has = suffix.is_none_or(|(_, suffix)| stem.ends_with(suffix));
            assert!(has, "{}", metric.name);
        }
    }
}
