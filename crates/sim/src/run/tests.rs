// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about whole runs.

use super::*;
use crate::domain::Hosts;
use onramp_results::{FlowRow, RunResult, Tables};
use onramp_scenario::Scenario;
use onramp_units::{Bytes, Span};

const INCAST: &str = r#"title = "t"
duration = "2 ms"
warmup = "200 us"
[network]
topology = { kind = "star", hosts = 9 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "dctcp"
[[traffic]]
kind = "incast"
fanout = 8
size = "20 kB"
load = "20 %"
[[traffic]]
kind = "poisson"
workload = "websearch"
load = "40 %"
[[traffic]]
kind = "long"
flows = 2
to = 3
stop = "1500 us"
"#;

fn simulate(set: &[(&str, &str)]) -> (RunResult, Tables) {
    let scenario = Scenario::parse_with(INCAST, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let result = run(&scenario.runs()[0], 0, Watch::default(), &mut |_| true);
    result.unwrap_or_else(|e| panic!("{e}")).into_tables()
}

#[test]
fn a_scenario_that_says_nothing_has_the_laws_defaults() {
    let set = [("onramp.law", "final")];
    let scenario = Scenario::parse_with(INCAST, "t", &set).unwrap_or_else(|e| panic!("{e}"));
    let others = scenario.runs()[0].others();
    let default = onramp_law::Config::new(onramp_law::Law::Final, others.onramp.t());
    assert_eq!(build::law(others, Bytes::new(1448)), Some(default.into()));
}

#[test]
fn the_same_seed_gives_the_same_results_and_another_does_not() {
    let first = simulate(&[]);
    assert_eq!(first, simulate(&[]));
    assert_ne!(first.1.flows, simulate(&[("seed", "2")]).1.flows);
}

#[test]
fn every_flow_with_a_size_ends_and_nothing_is_lost() {
    let (result, tables) = simulate(&[]);
    for flow in &tables.flows {
        assert_eq!(flow.fct_ns.is_some(), flow.size_bytes.is_some(), "{flow:?}");
    }
    assert_eq!(result.metrics["drops"], 0);
    assert_eq!(result.metrics["incast.unfinished"], 0);
    assert!(result.metrics["slowdown"]["p50"].as_f64().unwrap() >= 1.0);
    let used = result.metrics["utilisation"].as_f64().unwrap();
    assert!(used > 0.2 && used <= 1.0, "{used}");
}

#[test]
fn a_lossy_switch_drops_and_go_back_n_delivers_all_the_same() {
    let lossy = [
        ("network.sharing", "per_port"),
        ("network.buffer", "30 kB"),
        ("host.cc", "timely"),
    ];
    let (result, tables) = simulate(&lossy);
    assert!(result.metrics["drops"].as_u64().unwrap() > 0);
    assert!(result.metrics["retransmissions"].as_u64().unwrap() > 0);
    for flow in tables.flows.iter().filter(|flow| flow.size_bytes.is_some()) {
        assert!(flow.fct_ns.is_some(), "{flow:?}");
    }
}

#[test]
fn long_flows_share_their_receiver() {
    let (result, _) = simulate(&[("traffic.1.load", "0.1 %")]);
    let each = result.metrics["long.goodput_gbps"].as_array().unwrap();
    let each: Vec<f64> = each.iter().map(|v| v.as_f64().unwrap()).collect();
    // 1.3 of the window's 1.8 ms, at 100 Gbit/s with 1000 of 1048 B payload: 68.9; what is under
    // way when they stop, at most two windows of 52 kB, arrives too.
    let total: f64 = each.iter().sum();
    assert!((60.0..69.4).contains(&total), "{each:?}");
    assert!(
        each[0] / each[1] > 0.8 && each[1] / each[0] > 0.8,
        "{each:?}"
    );
}

#[test]
fn a_port_to_a_host_without_traffic_is_idle() {
    let (result, _) = simulate(&[
        ("traffic.0.load", "0.01 %"),
        ("traffic.1.to", "7"),
        ("traffic.1.from", "8"),
        ("traffic.2.from", "7"),
    ]);
    assert_eq!(result.metrics["queue_us"]["max"], 0.0);
    assert_eq!(result.metrics["utilisation"], 0.0);
}

#[test]
fn a_cancelled_run_keeps_the_rows_of_what_had_started() {
    let scenario = Scenario::parse(INCAST, "t").unwrap();
    let mut calls = 0;
    let report = run(&scenario.runs()[0], 0, Watch::default(), &mut |_| {
        calls += 1;
        calls < 500
    });
    let (result, tables) = report.unwrap_or_else(|e| panic!("{e}")).into_tables();
    assert_eq!(calls, 500);
    assert!(result.partial && result.metrics.is_empty());
    let (_, whole) = simulate(&[]);
    let started = &whole.flows[..tables.flows.len()];
    let starts = |flows: &[FlowRow]| flows.iter().map(|flow| flow.start_ns).collect::<Vec<_>>();
    assert_eq!(starts(&tables.flows), starts(started));
    assert!((1..whole.flows.len()).contains(&tables.flows.len()));
    assert!(tables.flows.iter().any(|flow| flow.fct_ns.is_some()));
}

#[test]
fn every_congestion_control_of_a_scenario_is_there() {
    for kind in ["kernel", "nic"] {
        for cc in onramp_cc::names() {
            let set = [
                ("host.kind", kind),
                ("host.cc", cc),
                ("network.ecn.threshold", "65 kB"),
            ];
            // What is wrong for this kind of host is refused before.
            if let Ok(scenario) = Scenario::parse_with(INCAST, "t", &set) {
                assert!(build(&scenario.runs()[0], &[]).is_ok(), "{kind} {cc}");
            }
        }
    }
}

/// Four hosts at 25 Gbit/s, three of which fill the port of one, and an idle host.
const RATES: &str = r#"title = "t"
duration = "2 ms"
[network]
topology.kind = "inline"
ecn = { threshold = "20 kB", at = "25 Gbit/s" }
[network.graph]
switches = ["tor"]
hosts = [
    { at = "tor", rate = "25 Gbit/s", delay = "1 us", count = 4 },
    { at = "tor", rate = "IDLE", delay = "1 us" },
]
[host]
kind = "nic"
cc = "dctcp"
[[traffic]]
kind = "long"
to = 0
from = "1-3"
flows = 3
"#;

#[test]
fn an_idle_hosts_rate_changes_no_marks_of_other_ports() {
    let marks = |idle: &str| {
        let scenario = Scenario::parse(&RATES.replace("IDLE", idle), "t");
        let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
        let report = run(&scenario.runs()[0], 0, Watch::default(), &mut |_| true);
        let (result, _) = report.unwrap_or_else(|e| panic!("{e}")).into_tables();
        result.metrics["marks"].clone()
    };
    assert_ne!(marks("25 Gbit/s"), 0);
    assert_eq!(marks("100 Gbit/s"), marks("25 Gbit/s"));
    assert_eq!(marks("400 Gbit/s"), marks("25 Gbit/s"));
}

/// 16 answers to each request over web search, under TIMELY, which alone is slow to react.
const HELD: &str = r#"title = "t"
duration = "5 ms"
warmup = "500 us"
[network]
topology = { kind = "star", hosts = 17 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "timely"
[[traffic]]
kind = "poisson"
workload = "websearch"
load = "50 %"
[[traffic]]
kind = "incast"
fanout = 16
size = "20 kB"
interval = "200 us"
[onramp]
threshold = "16 us"
"#;

fn hold(set: &[(&str, &str)]) -> (RunResult, Tables) {
    hold_in(HELD, set)
}

/// Like HELD, but these hosts have no law.
fn without_law(hosts: &str) -> String {
    format!("{HELD}[[hosts]]\nrange = \"{hosts}\"\nonramp.law = \"off\"\n")
}

fn hold_in(text: &str, set: &[(&str, &str)]) -> (RunResult, Tables) {
    let scenario = Scenario::parse_with(text, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let result = run(&scenario.runs()[0], 0, Watch::default(), &mut |_| true);
    result.unwrap_or_else(|e| panic!("{e}")).into_tables()
}

fn mean(result: &RunResult, metric: &str) -> f64 {
    result.metrics[metric]["mean"].as_f64().unwrap()
}

fn held_ns(tables: &Tables) -> i64 {
    let held = |flow: &onramp_results::FlowRow| flow.simulated.map_or(0, |s| s.held_ns);
    tables.flows.iter().map(held).sum()
}

#[test]
fn every_law_makes_requests_faster_than_none() {
    let (off, tables) = hold(&[("onramp.law", "off")]);
    assert_eq!((held_ns(&tables), &off.metrics["or_acks"]), (0, &0.into()));
    for law in ["strawman", "final", "gate"] {
        let (on, tables) = hold(&[("onramp.law", law)]);
        assert!(held_ns(&tables) > 0);
        let (with, without) = (mean(&on, "incast.rct_us"), mean(&off, "incast.rct_us"));
        assert!(with < 0.85 * without, "{law}: {with} us, off {without} us");
    }
}

#[test]
fn every_data_packet_is_or_acked() {
    let scenario = Scenario::parse_with(HELD, "t", &[("onramp.law", "final")]).unwrap();
    let run = &scenario.runs()[0];
    let mut simulation = build(run, &onramp_scenario::plan(run)).unwrap();
    simulation.run_until(Time::ZERO + Span::from_s(1));
    let counters = simulation.counters();
    assert_eq!(counters.or_acks, counters.data_packets);
    assert_eq!(simulation.packets_in_flight(), 0);
}

#[test]
fn acknowledgements_can_say_what_or_acks_do() {
    let (off, _) = hold(&[("onramp.law", "off")]);
    let piggyback = [("onramp.law", "final"), ("onramp.piggyback", "true")];
    let (on, tables) = hold(&piggyback);
    assert_eq!(on.metrics["or_acks"], 0);
    assert!(held_ns(&tables) > 0);
    let (with, without) = (mean(&on, "incast.rct_us"), mean(&off, "incast.rct_us"));
    assert!(with < 0.85 * without, "{with} us, off {without} us");
    // They take no packets of their own.
    let (own, _) = hold(&[("onramp.law", "final")]);
    let fct = |result| mean(result, "background.fct_us.large");
    assert!(fct(&on) < fct(&own));
}

#[test]
fn a_flow_alone_is_not_held() {
    let (_, tables) = hold(&[
        ("onramp.law", "final"),
        ("traffic.0.load", "0.1 %"),
        ("traffic.1.fanout", "1"),
    ]);
    assert_eq!(held_ns(&tables), 0);
}

#[test]
fn wrong_clocks_cost_the_background() {
    let fct = |offset| {
        let (result, _) = hold(&[("onramp.law", "final"), ("clock.offset", offset)]);
        mean(&result, "background.fct_us.medium")
    };
    let (exact, wrong) = (fct("0 us"), fct("20 us"));
    assert!(
        wrong > 2.0 * exact,
        "{wrong} us, with exact clocks {exact} us"
    );
}

#[test]
fn hosts_without_the_law_are_not_held() {
    let (some, tables) = hold_in(&without_law("0,9-16"), &[("onramp.law", "final")]);
    let held = |flow: &&onramp_results::FlowRow| flow.simulated.is_some_and(|s| s.held_ns > 0);
    let sources: Vec<i64> = tables.flows.iter().filter(held).map(|f| f.src).collect();
    assert!(!sources.is_empty() && sources.iter().all(|src| (1..=8).contains(src)));
    let (all, _) = hold(&[("onramp.law", "final")]);
    let or_acks = |result: &RunResult| result.metrics["or_acks"].as_u64().unwrap();
    assert!(or_acks(&some) > 0 && or_acks(&some) < or_acks(&all));
}

#[test]
fn kernel_hosts_without_the_law_send_segments_of_their_own() {
    let kernel = [
        ("host.kind", "kernel"),
        ("host.cc", "cubic"),
        ("network.buffer", "1 MB"),
        ("onramp.law", "final"),
        ("onramp.threshold", "50 us"),
    ];
    let held = |text: &str| {
        let (_, tables) = hold_in(text, &kernel);
        let of = |lowest: i64, highest: i64| -> i64 {
            let rows = tables.flows.iter();
            let rows = rows.filter(|f| (lowest..=highest).contains(&f.src));
            rows.map(|f| f.simulated.map_or(0, |s| s.held_ns)).sum()
        };
        (of(1, 8), of(9, 16))
    };
    let (of_some, of_others) = held(&without_law("0,9-16"));
    assert!(of_some > 0 && of_others == 0);
    assert!(held(HELD).1 > 0);
}

/// Not even what the law held when its first copy was acknowledged, else the next flows had less room there.
#[test]
fn nothing_waits_below_tcp_when_all_is_acknowledged() {
    let set = [
        ("duration", "200 ms"),
        ("network.link.rate", "10 Gbit/s"),
        ("network.buffer", "300 kB"),
        ("host.kind", "kernel"),
        ("host.cc", "cubic"),
        ("host.min_rto", "1 ms"),
        ("traffic.0.to", "all"),
        ("traffic.0.load", "10 %"),
        ("traffic.1.to", "all"),
        ("traffic.1.size", "1 MB"),
        ("traffic.1.interval", "20 ms"),
        ("onramp.law", "final"),
        ("onramp.threshold", "60 us"),
        ("onramp.reuse", "10 ms"),
    ];
    let scenario = Scenario::parse_with(HELD, "t", &set).unwrap_or_else(|e| panic!("{e}"));
    let run = &scenario.runs()[0];
    let mut simulation = build(run, &onramp_scenario::plan(run)).unwrap();
    simulation.run_until(Time::ZERO + Span::from_s(9));
    let mut connections = 0;
    for domain in simulation.each() {
        let Hosts::Kernel(kernels) = &domain.hosts else {
            panic!("hosts are kernels")
        };
        for (flow, connection) in kernels.outgoing.iter() {
            assert!(connection.is_over(), "flow {flow}");
            assert_eq!(connection.queued_packets(), 0, "flow {flow}");
            assert_eq!(connection.held_since, None, "flow {flow}");
            connections += 1;
        }
    }
    assert!(connections > 50);
}

#[test]
fn entries_of_one_kind_are_measured_apart() {
    let text = format!("{HELD}[[traffic]]\nkind = \"incast\"\nto = 1\nfanout = 4\nsize = \"2 kB\"\ninterval = \"200 us\"\n");
    let scenario =
        Scenario::parse(&text.replace("[onramp]\nthreshold = \"16 us\"\n", ""), "t").unwrap();
    let report = run(&scenario.runs()[0], 0, Watch::default(), &mut |_| true).unwrap();
    let result = report.result();
    let n = |metric: &str| result.metrics[metric]["n"].as_u64().unwrap();
    let entries = n("traffic.1.rct_us") + n("traffic.2.rct_us");
    assert_eq!(n("incast.rct_us"), entries);
    assert!(mean(result, "traffic.1.rct_us") > mean(result, "traffic.2.rct_us"));
    assert!(!result.metrics.contains_key("traffic.0.fct_us.small"));
}

#[test]
fn the_last_delay_tells_the_next_unless_clocks_are_wrong() {
    let correlations = |offset: &str| {
        let set = [
            ("host.kind", "kernel"),
            ("host.cc", "cubic"),
            ("network.buffer", "1 MB"),
            ("traffic.0.to", "all"),
            ("onramp.law", "final"),
            ("onramp.threshold", "100 ms"),
            ("clock.offset", offset),
        ];
        let scenario = Scenario::parse_with(HELD, "t", &set).unwrap_or_else(|e| panic!("{e}"));
        let watch = Watch {
            series: vec!["pairs".to_owned()],
            ..Watch::default()
        };
        let report = run(&scenario.runs()[0], 0, watch, &mut |_| true).unwrap();
        let (result, tables) = report.into_tables();
        let rows = |name: &str| tables.series.iter().filter(|row| row.name == name).count();
        assert!(rows("pair_owd_us") > 10);
        assert_eq!(rows("pair_owd_us"), rows("pair_last_rtt_us"));
        ["pairs.owd_correlation", "pairs.rtt_correlation"]
            .map(|name| result.metrics[name].as_f64().unwrap())
    };
    let ([exact, rtt], [wrong, same_rtt]) = (correlations("0 s"), correlations("1 ms"));
    assert_eq!(rtt, same_rtt);
    assert!(
        exact > 0.3 && exact > wrong + 0.2,
        "exact {exact}, wrong {wrong}, RTT {rtt}"
    );
}

#[test]
fn bursts_of_segments_have_the_pacing_rate_on_average() {
    // Above t_high always, so the rate stays at its lower bound.
    let slow = [
        ("network.sharing", "lossless"),
        ("host.cc", "timely_paper"),
        ("cc.timely_paper.t_low", "1 ns"),
        ("cc.timely_paper.t_high", "1 ns"),
        ("cc.timely_paper.min_rate", "10 Gbit/s"),
        ("cc.timely_paper.first_rate", "10 Gbit/s"),
        ("traffic.1.load", "0.1 %"),
    ];
    for segment in ["1000", "16000", "64000"] {
        let mut set = slow.to_vec();
        set.push(("cc.timely_paper.segment_bytes", segment));
        let (result, _) = simulate(&set);
        let each = result.metrics["long.goodput_gbps"].as_array().unwrap();
        for goodput in each {
            // 1.3 of the window's 1.8 ms, 1000 of 1056 B are payload.
            let expected = 10.0 * 1000.0 / 1056.0 * 1.3 / 1.8;
            let goodput = goodput.as_f64().unwrap();
            assert!(
                (goodput - expected).abs() < 0.3,
                "{segment} B: {goodput} of {expected}"
            );
        }
    }
}

/// Two hosts send to each other by segments.
const SEGMENTS: &str = r#"title = "t"
duration = "5 ms"
warmup = "1 ms"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "10 Gbit/s", delay = "5 us" }
[host]
kind = "nic"
cc = "timely_paper"
[cc.timely_paper]
first_rate = "1 Gbit/s"
[[traffic]]
kind = "long"
from = 0
to = 1
[[traffic]]
kind = "long"
from = 2
to = 0
[[traffic]]
kind = "long"
from = 1
to = 0
"#;

/// The distribution of round-trip times, and their rows of flow 0.
fn rtts(set: &[(&str, &str)]) -> (serde_json::Value, usize) {
    let scenario = Scenario::parse_with(SEGMENTS, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let watch = Watch {
        series: vec!["rtts".to_owned()],
        ..Watch::default()
    };
    let report = run(&scenario.runs()[0], 0, watch, &mut |_| true).unwrap();
    let (result, tables) = report.into_tables();
    let of_flow = |row: &&onramp_results::SeriesRow| row.name == "rtt_us" && &*row.place == "flow0";
    let rows = tables.series.iter().filter(of_flow).count();
    (result.metrics["rtt_us"].clone(), rows)
}

#[test]
fn a_flow_alone_has_the_round_trip_time_of_the_idle_path() {
    let alone = [("traffic.1.flows", "0"), ("traffic.2.flows", "0")];
    let (rtt, rows) = rtts(&alone);
    // Four propagation delays, a packet of 1,056 B at the switch, an acknowledgement of 60 B twice.
    let idle_us = 20.0 + 1056.0 * 8.0 / 1e4 + 2.0 * 60.0 * 8.0 / 1e4;
    for statistic in ["p50", "max"] {
        let us = rtt[statistic].as_f64().unwrap();
        assert!(
            (us - idle_us).abs() < 0.03,
            "{statistic}: {us} of {idle_us}"
        );
    }
    assert!(rows > 20, "{rows}");
    // Below t_low, so that the rate does not depend on the noise.
    let noise = [
        ("host.rtt_noise", "40 us"),
        ("cc.timely_paper.t_low", "100 us"),
    ];
    let noisy = [&alone[..], &noise].concat();
    let mean = rtts(&noisy).0["mean"].as_f64().unwrap();
    assert!((10.0..30.0).contains(&(mean - idle_us)), "{mean}");
}

#[test]
fn acknowledgements_with_priority_do_not_wait_behind_data() {
    let p99 = |priority| {
        let fast = [
            ("cc.timely_paper.first_rate", "8 Gbit/s"),
            ("cc.timely_paper.min_rate", "4 Gbit/s"),
            ("host.ack_priority", priority),
        ];
        rtts(&fast).0["p50"].as_f64().unwrap()
    };
    let (behind, before) = (p99("false"), p99("true"));
    assert!(before < behind, "{before} {behind}");
}

#[test]
fn a_static_limit_bounds_what_is_outstanding_and_breaks_no_burst() {
    let idle_us = 4.0 * 500.0 + 1056.0 * 8.0 / 1e4 + 2.0 * 60.0 * 8.0 / 1e4;
    for (segments, outstanding) in [("1", 1.0), ("3", 3.0)] {
        let set = [
            ("traffic.1.flows", "0"),
            ("traffic.2.flows", "0"),
            ("network.link.delay", "500 us"),
            ("duration", "100 ms"),
            ("warmup", "20 ms"),
            ("cc.timely_paper.first_rate", "10 Gbit/s"),
            ("cc.timely_paper.min_rate", "10 Gbit/s"),
            ("cc.timely_paper.outstanding", segments),
        ];
        let scenario = Scenario::parse_with(SEGMENTS, "t", &set).unwrap_or_else(|e| panic!("{e}"));
        let watch = Watch {
            series: vec!["rtts".to_owned()],
            ..Watch::default()
        };
        let report = run(&scenario.runs()[0], 0, watch, &mut |_| true).unwrap();
        let metrics = report.into_tables().0.metrics;
        // So many segments of 16 kB begin in a round-trip time.
        let expected = outstanding * 16_000.0 * 8.0 / (idle_us * 1e3);
        let goodput = metrics["long.goodput_gbps"][0].as_f64().unwrap();
        assert!(
            (goodput / expected - 1.0).abs() < 0.05,
            "{segments}: {goodput} of {expected}"
        );
        // Bursts that wait for room within would have longer ones.
        let rtt = metrics["rtt_us"]["max"].as_f64().unwrap();
        assert!((rtt - idle_us).abs() < 1.0, "{rtt} of {idle_us}");
    }
}
