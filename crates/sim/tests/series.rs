// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Series agree with the results of their run.

use onramp_results::{RunResult, SeriesRow, Tables};
use onramp_scenario::Scenario;
use onramp_sim::run::{self, BuildError, Watch};

/// Five long flows to host 0, three of which are late.
const LONG: &str = r#"title = "t"
duration = "1 ms"
warmup = "100 us"
[network]
topology = { kind = "star", hosts = 6 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "timely"
[[traffic]]
kind = "long"
flows = 2
[[traffic]]
kind = "long"
flows = 3
start = "400 us"
[onramp]
law = "off"
threshold = "30 us"
"#;

type Outcome = Result<(RunResult, Tables), BuildError>;

fn simulate_text(text: &str, set: &[(&str, &str)], series: &[&str]) -> Outcome {
    let scenario = Scenario::parse_with(text, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let watch = Watch {
        captures: vec![],
        series: series.iter().map(|place| place.to_string()).collect(),
    };
    let report = run::run(&scenario.runs()[0], 0, watch, &mut |_| true);
    report.map(run::Report::into_tables)
}

fn simulate(set: &[(&str, &str)], series: &[&str]) -> (RunResult, Tables) {
    let result = simulate_text(LONG, set, series);
    result.unwrap_or_else(|e| panic!("{e}"))
}

fn values(tables: &Tables, place: &str, name: &str) -> Vec<f64> {
    let is_it = |row: &&SeriesRow| &*row.place == place && row.name == name;
    tables
        .series
        .iter()
        .filter(is_it)
        .map(|row| row.value)
        .collect()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[test]
fn the_measured_ports_series_agree_with_its_metrics() {
    let (result, tables) = simulate(&[], &[]);
    let queue_us = values(&tables, "switch0-host0", "queue_us");
    let most_us = result.metrics["queue_us"]["max"].as_f64().unwrap();
    assert_eq!(queue_us.len(), 1800);
    assert!((largest(&queue_us) - most_us).abs() < 0.001, "{most_us}");
    let rates = values(&tables, "switch0-host0", "rate_gbps");
    let utilisation = rates.iter().sum::<f64>() / rates.len() as f64 / 100.0;
    let metric = result.metrics["utilisation"].as_f64().unwrap();
    assert!(
        (utilisation - metric).abs() < 1e-6,
        "{utilisation} {metric}"
    );
}

/// At 100 Gbit/s a microsecond of queue is 12.5 kB, and the packet under way up to 84 ns.
#[test]
fn bytes_of_a_queue_are_its_time_at_line_rate() {
    let (_, tables) = simulate(&[], &[]);
    let us = values(&tables, "switch0-host0", "queue_us");
    let bytes = values(&tables, "switch0-host0", "queue_bytes");
    for (us, bytes) in us.iter().zip(bytes) {
        let rest_us = us - bytes / 12_500.0;
        assert!((-1e-6..0.085).contains(&rest_us), "{us} us, {bytes} B");
    }
}

#[test]
fn delays_are_at_least_the_idle_ways_and_at_most_the_queues_more() {
    let (_, tables) = simulate(&[], &[]);
    let delays = values(&tables, "host0", "owd_us");
    let queue_us = largest(&values(&tables, "switch0-host0", "queue_us"));
    // Two lines of 1 us and 1056 B on each.
    let idle_us = 2.0 + 2.0 * 0.08448;
    assert!(delays.iter().all(|&us| us >= idle_us - 1e-6));
    assert!(largest(&delays) <= idle_us + queue_us + 0.2);
    assert!(largest(&delays) > queue_us);
}

#[test]
fn paused_nics_are_paused_for_part_of_the_time() {
    let set = [("network.buffer", "400 kB"), ("host.cc", "dcqcn")];
    let (result, tables) = simulate(&set, &["host1"]);
    assert!(result.metrics["pfc_pauses"].as_u64().unwrap() > 0);
    let fractions = values(&tables, "host1", "pfc_paused_fraction");
    assert!(fractions.iter().all(|f| (0.0..=1.0 + 1e-9).contains(f)));
    assert!(largest(&fractions) > 0.5);
}

#[test]
fn a_flow_is_there_while_it_lives_with_its_limits() {
    let (_, tables) = simulate(&[("host.cc", "hpcc")], &["flow0", "flow4"]);
    let rates = values(&tables, "flow0", "rate_limit_gbps");
    assert!(rates.iter().all(|gbps| (0.1..=100.0).contains(gbps)));
    let windows = values(&tables, "flow4", "window_bytes");
    assert!(windows.iter().all(|&bytes| bytes > 0.0 && bytes < 60_000.0));
    // Of the run's 900 us the last 600.
    assert!((1199..=1201).contains(&windows.len()), "{}", windows.len());
    assert!(values(&tables, "flow1", "rate_limit_gbps").is_empty());
    assert!(values(&tables, "flow0", "held_fraction").is_empty());
}

/// A flow is over at most an interval, which is 2 us, after its last hold was seen.
#[test]
fn held_fractions_add_up_to_the_held_time() {
    let head = &LONG[..LONG.find("[[traffic]]").unwrap()];
    let answers = "[[traffic]]\nkind = \"incast\"\nfanout = 5\nsize = \"2 MB\"\n\
                   requests = 1\ninterval = \"10 us\"\n[onramp]\nlaw = \"final\"\nthreshold = \"15 us\"\n";
    for (kind, cc) in [("nic", "timely"), ("kernel", "cubic")] {
        let set = [
            ("host.kind", kind),
            ("host.cc", cc),
            ("duration", "4 ms"),
            ("warmup", "0 s"),
        ];
        let (_, tables) = simulate_text(&[head, answers].concat(), &set, &["flows"])
            .unwrap_or_else(|e| panic!("{e}"));
        let held_ns = |flow: usize| tables.flows[flow].simulated.unwrap().held_ns as f64;
        assert!((0..5).map(held_ns).sum::<f64>() > 0.0, "{kind}");
        for flow in 0..5 {
            let fractions = values(&tables, &format!("flow{flow}"), "held_fraction");
            let seen_ns = fractions.iter().sum::<f64>() * 2000.0;
            let rest_ns = held_ns(flow) - seen_ns;
            assert!(
                (-1.0..=2000.0).contains(&rest_ns),
                "{kind} {seen_ns} {rest_ns}"
            );
        }
    }
}

#[test]
fn a_kernel_hosts_flow_has_a_window() {
    let set = [("host.kind", "kernel"), ("host.cc", "cubic")];
    let (_, tables) = simulate(&set, &["flow0"]);
    let windows = values(&tables, "flow0", "window_bytes");
    assert!(windows
        .iter()
        .all(|bytes| bytes % 1448.0 == 0.0 && *bytes > 0.0));
}

#[test]
fn watching_changes_no_result() {
    let (result, _) = simulate(&[], &[]);
    let (watched, tables) = simulate(&[], &["ports", "flows"]);
    assert_eq!(result, watched);
    // Six hosts: twelve ports with four or five series, five flows with one (TIMELY has no window).
    assert!(tables.series.len() <= 1800 * (12 * 4 + 6 + 5));
}

#[test]
fn places_that_do_not_exist_are_refused() {
    let error = |place| simulate_text(LONG, &[], &[place]).unwrap_err().to_string();
    assert_eq!(
        error("flow5"),
        "there is no flow5; flows are flow0 to flow4"
    );
    assert!(error("switch1-host0").contains("there are host0 to host5"));
}

/// Two flows of DCTCP to host 0; the idle round-trip time is 40 us.
const MARKED: &str = r#"title = "t"
duration = "30 ms"
warmup = "10 ms"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "10 Gbit/s", delay = "10 us" }
buffer = "1 MB"
[network.ecn]
threshold = "30 kB"
[host]
cc = "dctcp"
gso = "16 kB"
[[traffic]]
kind = "long"
flows = 2
[onramp]
law = "off"
"#;

#[test]
fn rounds_have_marks_and_the_least_round_trip_time() {
    let simulated = |set, series: &[&str]| {
        let result = simulate_text(MARKED, set, series);
        result.unwrap_or_else(|e| panic!("{e}"))
    };
    let (result, tables) = simulated(&[], &["rounds"]);
    let rtts = values(&tables, "flow0", "round_rtt_us");
    let fractions = values(&tables, "flow0", "round_marked_fraction");
    assert_eq!(rtts.len(), fractions.len());
    // A round takes between the idle round-trip time and that with a queue of 100 us; the window is 20 ms.
    assert!((140..500).contains(&rtts.len()), "{} rounds", rtts.len());
    assert!(rtts.iter().all(|rtt| *rtt >= 40.0), "{rtts:?}");
    let some = |fraction: &&f64| **fraction > 0.0 && **fraction < 1.0;
    assert!(fractions.iter().filter(some).count() > 0);
    let marked = result.metrics["rounds.marked_fraction"]["mean"].as_f64();
    assert!(
        marked.is_some_and(|mean| (0.01..0.9).contains(&mean)),
        "{marked:?}"
    );
    assert!(result.metrics.contains_key("rounds.mark_correlation"));
    // Watching changes nothing, and without marks there is nothing to correlate.
    let (unwatched, _) = simulated(&[], &[]);
    assert_eq!(unwatched.cost, result.cost);
    assert!(!unwatched.metrics.contains_key("rounds.rtt_us"));
    let (unmarked, _) = simulated(&[("network.ecn.threshold", "1 MB")], &["rounds"]);
    assert_eq!(unmarked.metrics["rounds.marked_fraction"]["max"], 0.0);
    assert!(!unmarked.metrics.contains_key("rounds.mark_correlation"));
}
