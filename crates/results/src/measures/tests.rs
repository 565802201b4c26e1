// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about measures.

use super::*;
use crate::counters::{
    ClockCounters, ClockWindow, PairSample, PortCounters, RackCounters, Received, Resent,
    RoundSample, SimCounters, WorldCounters,
};
use crate::row::Simulated;
use crate::summary::Summary;
use onramp_scenario::{HostKind, Scenario};
use onramp_units::{Rate, Span};
use std::collections::BTreeSet;

const HEAD: &str = r#"title = "t"
duration = "2 ms"
warmup = "1 ms"
[network]
topology = { kind = "star", hosts = 9 }
link = { rate = "10 Gbit/s", delay = "1 us" }
"#;
const NIC: &str = "[host]\nkind = \"nic\"\ncc = \"dctcp\"\n";
const INCAST: &str =
    "[[traffic]]\nkind = \"incast\"\nfanout = 2\nsize = \"2 kB\"\nload = \"1 %\"\n";
const POISSON: &str = "[[traffic]]\nkind = \"poisson\"\nworkload = \"websearch\"\nload = \"1 %\"\n";
const REST: &str = "[[traffic]]\nkind = \"long\"\nto = 0\nflows = 2\n\
    [[traffic]]\nkind = \"request\"\nto = 1\nsize = \"2 kB\"\nload = \"1 %\"\n\
    [[traffic]]\nkind = \"all_to_all\"\nsize = \"1 kB\"\n";

fn run(parts: &[&str]) -> Run {
    let text = format!("{HEAD}{}", parts.concat());
    let scenario = Scenario::parse(&text, "t").unwrap_or_else(|error| panic!("{error}"));
    scenario.runs()[0].clone()
}

fn summary() -> Option<Summary> {
    Summary::of(vec![1.0])
}

fn counters(world: WorldCounters) -> Counters {
    Counters {
        received: Received {
            background_bytes: 125_000,
            long_bytes: vec![125_000, 62_500],
        },
        resent: Resent {
            again: 1,
            sent: 4,
            ..Resent::default()
        },
        drops: 3,
        port: PortCounters {
            name: "switch0-host0".into(),
            rate: Rate::from_bits_per_s(10_000_000_000).unwrap(),
            sent_bytes: 625_000,
            drops: 2,
            queue_us: summary(),
            owd_us: summary(),
        },
        ports: vec![PortCounters {
            name: "switch0-switch1".into(),
            rate: Rate::from_bits_per_s(40_000_000_000).unwrap(),
            sent_bytes: 625_000,
            drops: 1,
            queue_us: summary(),
            owd_us: None,
        }],
        clocks: ClockCounters {
            errors_ns: vec![-5.0, 3.0],
            within_2_sigma: Some(1.0),
            most_sigmas: Some(0.5),
            windows: vec![ClockWindow {
                end_ms: 1.0,
                error_ns: summary(),
                within_2_sigma: Some(1.0),
                most_sigmas: Some(0.5),
                edge_sigma_ns: 1.0,
                lost_hosts: 0,
                pairs: 1,
                pure: 1,
            }],
        },
        world,
    }
}

fn sim() -> WorldCounters {
    let pair = |us| PairSample {
        owd: Span::from_us(us),
        last_owd: Span::from_us(2 * us),
        last_rtt: Span::from_us(-us),
    };
    let round = |marked, us| RoundSample {
        packets: 10,
        marked,
        least_rtt: Span::from_us(us),
    };
    WorldCounters::Sim(SimCounters {
        or_ack_bytes: 9 * 125,
        host_drops: Some(1),
        long_resent: vec![0.5],
        rtt_us: crate::Summary::of(vec![20.0]),
        pairs: vec![pair(1), pair(2)],
        rounds: vec![round(0, 30), round(5, 20), round(10, 10)],
        ..SimCounters::default()
    })
}

fn rack() -> WorldCounters {
    WorldCounters::Rack(RackCounters {
        onramp: BTreeMap::from([("held_ns".into(), 1500.0), ("holds".into(), 2.0)]),
        ..RackCounters::default()
    })
}

fn flow(traffic: i64, size_bytes: i64, fct_ns: Option<i64>, simulated: (i64, f64)) -> FlowRow {
    FlowRow {
        kind: "poisson",
        traffic,
        request: None,
        src: 1,
        group: None,
        dst: 0,
        size_bytes: Some(size_bytes),
        start_ns: 0,
        fct_ns,
        retransmissions: 0,
        timeouts: 0,
        measured: true,
        path: None,
        simulated: Some(Simulated {
            acked_ns: fct_ns.map(|_| simulated.0),
            ideal_fct_ns: Some(1000),
            slowdown: fct_ns.map(|_| simulated.1),
            held_ns: 2_000,
        }),
    }
}

fn request(traffic: i64, rct_ns: Option<i64>, acked_ns: Option<i64>) -> RequestRow {
    RequestRow {
        traffic,
        request: 0,
        start_ns: 0,
        rct_ns,
        acked_ns,
        missing: 0,
        measured: true,
    }
}

#[test]
fn what_was_held_and_offered_is_counted() {
    let run = run(&[POISSON]);
    let mut measures = Measures::new(&run);
    let held = flow(0, 2_000, Some(1000), (1000, 1.0));
    let mut free = held.clone();
    free.simulated.as_mut().unwrap().held_ns = 0;
    let mut early = held.clone();
    early.measured = false;
    [held, free, early]
        .iter()
        .for_each(|flow| measures.add_flow(flow));
    let mut world = sim();
    if let WorldCounters::Sim(sim) = &mut world {
        sim.or_acks = 7;
    }
    let metrics = measures.finish(&counters(world));
    assert_eq!(
        (&metrics["held_flows"], &metrics["held_us"]),
        (&json!(0.5), &json!(2.0))
    );
    let link = run.network.link_of(0).rate.bits_per_s() as f64 / 8.0;
    let offered = 4_000.0 / (link * run.window().as_s_f64());
    assert_eq!(metrics["traffic.0.offered"], json!(offered));
}

#[test]
fn a_world_writes_the_metrics_that_the_table_says_and_no_others() {
    let all = [INCAST, INCAST, POISSON, POISSON, REST].concat();
    let (nic, kernel) = (run(&[NIC, &all]), run(&[&all]));
    for (world, counters_of) in [("sim", sim as fn() -> WorldCounters), ("rack", rack)] {
        let mut written = BTreeSet::new();
        let runs = [&nic, &kernel].into_iter();
        for run in runs.filter(|run| world == "sim" || run.host.kind == HostKind::Kernel) {
            let mut measures = Measures::new(run);
            let simulated = flow(2, 1000, Some(1000), (1000, 1.0));
            let simulated = (world == "sim").then_some(simulated);
            simulated.iter().for_each(|flow| measures.add_flow(flow));
            let mut world = counters_of();
            if let WorldCounters::Sim(sim) = &mut world {
                sim.or_acks = 1;
            }
            let metrics = measures.finish(&counters(world));
            written.extend(metrics.keys().map(|name| metric_of(name).unwrap().name));
        }
        // What the rack refuses, and windows that only the simulator knows.
        let only_sim = |name: &&str| {
            let stem = name.split('.').next();
            matches!(stem, Some("request" | "all_to_all" | "ports")) || *name == "clock.windows"
        };
        written.retain(|name| world == "sim" || !only_sim(name));
        let is_here = |m: &&Metric| ["both", world].contains(&m.worlds);
        let documented = metrics().filter(|m| is_here(m) && !m.name.starts_with("KIND"));
        let documented: BTreeSet<&str> = documented.map(|metric| metric.name).collect();
        assert_eq!(written, documented, "{world}");
    }
}

#[test]
fn formulas_are_those_of_the_table() {
    let run = run(&[REST]);
    let sim = Measures::new(&run).finish(&counters(sim()));
    // The window is 1 ms.
    assert_eq!(sim["background.goodput_gbps"], 1.0);
    assert_eq!(sim["long.goodput_gbps"], json!([1.0, 0.5]));
    assert_eq!(sim["utilisation"], 0.5);
    assert_eq!(sim["retransmitted_fraction"], 0.25);
    assert_eq!(sim["or_ack_mbps"], 1.0);
    assert_eq!(sim["clock.error_ns"]["mean"], 4.0);
    assert_eq!(sim["pairs.owd_correlation"], 1.0);
    assert_eq!(sim["pairs.rtt_correlation"], -1.0);
    assert_eq!(sim["rounds.mark_correlation"], -1.0);
    assert_eq!(sim["rounds.marked_fraction"]["mean"], 0.5);
    assert_eq!(sim["rounds.rtt_us"]["max"], 30.0);
    let rack = Measures::new(&run).finish(&counters(rack()));
    assert_eq!(rack["onramp.held_us"], 1.5);
    assert_eq!(rack["onramp.holds"], 2);
}

#[test]
fn answers_count_that_arrive_within_the_window() {
    let run = run(&[REST]);
    let mut measures = Measures::new(&run);
    let (warmup, duration) = (run.warmup.as_ns(), run.duration.as_ns());
    for end_ns in [warmup - 1, warmup, duration - 1, duration] {
        measures.add_request(&request(1, Some(end_ns), None));
    }
    measures.add_request(&request(1, None, None));
    let metrics = measures.finish(&counters(sim()));
    assert_eq!(metrics["request.answered_per_s"], 2000.0);
}

#[test]
fn entries_of_one_kind_are_measured_together_and_each() {
    let run = run(&[NIC, INCAST, INCAST, POISSON]);
    let mut measures = Measures::new(&run);
    measures.add_request(&request(0, Some(2_000), Some(5_000)));
    measures.add_request(&request(1, Some(4_000), Some(9_000)));
    measures.add_request(&request(1, None, None));
    for fct_ns in [Some(3_000), None] {
        measures.add_flow(&flow(2, 10_000, fct_ns, (8_000, 0.5)));
    }
    let metrics = measures.finish(&counters(sim()));
    let mean = |name: &str| metrics[name]["mean"].as_f64();
    assert_eq!(mean("incast.rct_us"), Some(3.0));
    assert_eq!(mean("incast.rct_acked_us"), Some(7.0));
    assert_eq!(mean("traffic.0.rct_us"), Some(2.0));
    assert_eq!(mean("traffic.1.rct_acked_us"), Some(9.0));
    assert_eq!(metrics["incast.unfinished"], 1);
    assert_eq!(mean("background.fct_us.small"), Some(3.0));
    assert_eq!(mean("background.fct_acked_us.small"), Some(8.0));
    assert_eq!(metrics["background.fct_us.large"], Value::Null);
    assert_eq!(metrics["background.unfinished"], 1);
    assert_eq!(mean("slowdown"), Some(0.5));
    assert!(!metrics.contains_key("traffic.2.fct_us.small"));
}

#[test]
fn only_nic_hosts_are_measured_to_the_last_acknowledgement() {
    let run = run(&[INCAST]);
    let mut measures = Measures::new(&run);
    measures.add_request(&request(0, Some(2_000), Some(5_000)));
    let metrics = measures.finish(&counters(sim()));
    assert!(metrics.contains_key("incast.rct_us"));
    assert!(!metrics.contains_key("incast.rct_acked_us"));
}

#[test]
fn what_started_before_the_warm_ups_end_does_not_count() {
    let run = run(&[NIC, INCAST, POISSON]);
    let mut measures = Measures::new(&run);
    let early = RequestRow {
        measured: false,
        ..request(0, None, None)
    };
    measures.add_request(&early);
    measures.add_flow(&FlowRow {
        measured: false,
        ..flow(1, 10_000, None, (1, 1.0))
    });
    let metrics = measures.finish(&counters(sim()));
    assert_eq!(metrics["incast.unfinished"], 0);
    assert_eq!(metrics["background.unfinished"], 0);
}

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
fn a_path_has_the_unit_of_its_metric_or_says_what_there_is() {
    for (path, unit) in [
        ("incast.rct_us.p99", "us"),
        ("incast.rct_us.n", "1"),
        ("traffic.3.fct_us.small.mean", "us"),
        ("long.goodput_gbps.1", "Gbit/s"),
        ("long.goodput_gbps.jain", "1"),
        ("drops", "1"),
        ("cost.cpu_s", ""),
    ] {
        assert_eq!(unit_of(path), Ok(unit), "{path}");
    }
    for (path, reason) in [
        (
            "incast.rct_us.p9999",
            "incast.rct_us and one of n, mean, p50",
        ),
        ("incast.rct_us", "incast.rct_us and one of n, mean, p50"),
        (
            "long.goodput_gbps.least",
            "long.goodput_gbps and sum, jain or a place",
        ),
        ("drops.mean", "no number of a metric, expected drops alone"),
        ("port.name", "no number"),
        (
            "incast.rtc_us.p99",
            "no metric, expected one of incast.rct_us, incast.rct_acked_us",
        ),
        ("rct", "no metric, expected one of docs/results.md"),
    ] {
        let said = unit_of(path).unwrap_err();
        assert!(said.contains(reason), "{path}: {said}");
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
    for metric in metrics() {
        let suffix = suffixes.iter().find(|(unit, _)| *unit == metric.unit);
        let stem = metric
            .name
            .trim_end_matches(".CLASS")
            .trim_end_matches(".all");
        let has = suffix.is_none_or(|(_, suffix)| stem.ends_with(suffix));
        assert!(has, "{}", metric.name);
    }
}
