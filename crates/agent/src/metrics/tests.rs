// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use onramp_law::{abi::COUNTERS, HISTOGRAM_BUCKETS};
use onramp_status::{BelowError, RootQdisc};

use super::sample::{clock, datapath};
use super::*;

fn docs(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap_or_default()
}

fn both() -> Snapshot {
    Snapshot {
        datapath: Some(datapath()),
        clock: Some(clock()),
    }
}

/// The value of the line that begins with `series`.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

#[test]
fn the_documentation_lists_these_metrics() {
    assert!(
        docs("metrics.md") == markdown(),
        "run: onramp clock reference > docs/metrics.md"
    );
}

#[test]
fn every_metric_is_served_with_its_type() {
    let text = text(&both());
    for metric in all() {
        let line = format!("# TYPE {} {}\n", metric.name, metric.kind.name());
        assert_eq!(text.matches(&line).count(), 1, "{line} in {text}");
        let is_counter = metric.kind == Kind::Counter;
        assert_eq!(is_counter, metric.name.ends_with("_total"), "{line}");
    }
}

#[test]
fn every_counter_of_the_data_path_is_in_one_metric() {
    let mut used: Vec<&str> = vec!["holds", "held_ns"]; // count and sum of the histogram
    for metric in datapath::METRICS {
        match &metric.of {
            Of::Counter(counter, _) => used.push(counter),
            Of::Counters(_, list) => used.extend(list.iter().map(|(_, counter)| counter)),
            Of::Clock(_) | Of::Datapath(_) => {}
        }
    }
    used.sort_unstable();
    let mut counters: Vec<&str> = COUNTERS.iter().map(|(name, _)| *name).collect();
    counters.sort_unstable();
    assert_eq!(used, counters);
}

#[test]
fn values_are_in_base_units_and_labels_escaped() {
    let text = text(&both());
    let is = |series: &str| value(&text, series);
    assert_eq!(is("onramp_fleet_time_error_seconds"), Some(300.0 * 1e-9));
    assert_eq!(is("onramp_clock_synchronised"), Some(1.0));
    assert_eq!(
        is("onramp_clock_events_total{event=\"windows\"}"),
        Some(7.0)
    );
    let device = "{device=\"eth\\\"0\"";
    assert_eq!(is(&format!("onramp_device_holds{device}}}")), Some(1.0));
    let at = |name: &str| {
        let index = COUNTERS.iter().position(|(counter, _)| *counter == name);
        (index.unwrap() as f64 + 1.0) * 1_000.0
    };
    let used = format!("onramp_oracks_received_total{device},outcome=\"used\"}}");
    assert_eq!(is(&used), Some(at("oracks_used")));
    let waited = is(&format!("onramp_nic_wait_seconds_total{device}}}")).unwrap();
    assert!((waited - at("nic_wait_ns") * 1e-9).abs() < 1e-15);
}

#[test]
fn a_histogram_counts_up_to_each_bound() {
    let text = text(&both());
    let bucket = |le: &str| {
        let series = format!("onramp_pause_seconds_bucket{{device=\"eth\\\"0\",le=\"{le}\"}}");
        value(&text, &series)
    };
    assert_eq!(bucket("0.000001024"), Some(0.0));
    assert_eq!(bucket("0.000004096"), Some(0.0 + 1.0 + 2.0));
    let all = (HISTOGRAM_BUCKETS * (HISTOGRAM_BUCKETS - 1) / 2) as f64;
    assert_eq!(bucket("+Inf"), Some(all));
    let count = value(&text, "onramp_pause_seconds_count{device=\"eth\\\"0\"}");
    assert_eq!(count, Some(all));
}

#[test]
fn the_peers_that_were_paused_longest_are_served_and_all_counted() {
    let text = text(&both());
    let served = |name: &str| text.matches(&format!("\n{name}{{peer=")).count();
    assert_eq!(served("onramp_peer_paused_seconds_total"), MOST_PEERS);
    assert!(text.contains("onramp_peer_delay_seconds{peer=\"10.0.1.44\"}")); // number 300
    assert!(!text.contains("onramp_peer_delay_seconds{peer=\"10.0.0.44\"}")); // number 44
    assert_eq!(value(&text, "onramp_peers"), Some(300.0));
}

#[test]
fn a_leader_serves_the_edges_of_its_own() {
    let text = text(&both());
    assert!(
        text.contains("onramp_clock_delay_seconds{from=\"10.0.0.1:5198\",to=\"10.0.0.2:5198\"}")
    );
    assert!(!text.contains("10.0.0.3"));
}

#[test]
fn a_daemon_without_lease_or_qdisc_does_not_hold() {
    let mut expired = datapath();
    expired.clock.lease_left_ns = -1;
    let mut replaced = datapath();
    replaced.devices[0].root_qdisc = RootQdisc::Foreign("fq".to_owned());
    for status in [expired, replaced] {
        let text = text(&Snapshot {
            datapath: Some(status),
            clock: None,
        });
        assert_eq!(
            value(&text, "onramp_device_holds{device=\"eth\\\"0\"}"),
            Some(0.0)
        );
    }
}

#[test]
fn a_doubted_clock_is_served_and_its_doubts_counted() {
    let doubted = |doubt: Option<&str>| {
        let mut status = datapath();
        (status.clock.doubts, status.clock.doubt) = (3, doubt.map(str::to_owned));
        let snapshot = Snapshot {
            datapath: Some(status),
            clock: None,
        };
        let text = text(&snapshot);
        assert_eq!(value(&text, "onramp_fleet_time_doubts_total"), Some(3.0));
        value(&text, "onramp_fleet_time_doubted")
    };
    assert_eq!(doubted(Some("it was stepped")), Some(1.0));
    assert_eq!(doubted(None), Some(0.0));
}

#[test]
fn thresholds_below_the_error_are_counted() {
    let mut status = datapath();
    status.health.thresholds_below_error = vec![BelowError::default(); 2];
    status.health.times_below_error = 5;
    let text = text(&Snapshot {
        datapath: Some(status),
        clock: None,
    });
    assert_eq!(value(&text, "onramp_thresholds_below_error"), Some(2.0));
    assert_eq!(
        value(&text, "onramp_thresholds_below_error_total"),
        Some(5.0)
    );
}

/// Each counter in the table of docs/architecture.md exists, so that the test of counters above covers it.
#[test]
fn every_fail_open_of_the_architecture_is_a_counter_or_a_health() {
    let page = docs("architecture.md");
    let section = page.split("## What fails open").nth(1).unwrap();
    let table = section.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let named: Vec<&str> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(named.len() > 15, "{named:?}");
    let others = ["root_qdisc", "devices"];
    for name in named {
        let is_counter = COUNTERS.iter().any(|(counter, _)| *counter == name);
        let is_known = is_counter || name.starts_with("health.") || others.contains(&name);
        assert!(is_known, "{name} has no metric");
    }
}
