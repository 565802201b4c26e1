// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Kernel hosts: TCP fills what it may fill, repairs what is lost, and comes out as the rack does.

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_results::{FlowRow, RunResult, Tables};
use onramp_scenario::Scenario;
use outcome::{field, number};
use proptest::prelude::*;

const LONG: &str = r#"title = "t"
duration = "400 ms"
warmup = "100 ms"
[network]
topology = { kind = "star", hosts = 5 }
link = { rate = "1 Gbit/s", delay = "5 us" }
buffer = "150 kB"
[host]
qdisc = "fq_codel"
[[traffic]]
kind = "long"
flows = 1
"#;

fn simulate_all(text: &str, set: &[(&str, &str)]) -> Vec<(RunResult, Tables)> {
    let scenario = Scenario::parse_with(text, "t", set).unwrap_or_else(|e| panic!("{e}"));
    outcome::simulate_all(&scenario)
}

fn simulate(text: &str, set: &[(&str, &str)]) -> (RunResult, Tables) {
    simulate_all(text, set).remove(0)
}

#[test]
fn one_flow_fills_the_line_under_every_congestion_control() {
    for cc in ["cubic", "reno", "scalable"] {
        let (result, _) = simulate(LONG, &[("host.cc", cc)]);
        // 1448 of 1514 B are payload.
        let goodput = number(&result, "background.goodput_gbps") / (1448.0 / 1514.0);
        assert!(goodput > 0.97, "{cc}: {goodput} of the line");
        assert_eq!(number(&result, "timeouts"), 0.0, "{cc}");
    }
}

/// Its estimates are bandwidth and delay: the line is used, and next to nothing waits.
#[test]
fn bbr_finds_the_bandwidth_and_the_delay_of_a_path_within_5_per_cent() {
    let set = [
        ("host.cc", "bbr"),
        ("network.link.delay", "250 us"),
        ("network.buffer", "600 kB"),
    ];
    let (result, _) = simulate(LONG, &set);
    assert!(number(&result, "utilisation") > 0.95);
    // The round trip is 1 ms.
    assert!(field(&result, "queue_us", "mean") < 50.0);
    assert_eq!(number(&result, "drops"), 0.0);
}

#[test]
fn dctcp_keeps_the_queue_near_its_threshold_and_loses_nothing() {
    let set = [
        ("host.cc", "dctcp"),
        ("network.ecn.threshold", "30 kB"),
        ("host.gso", "16 kB"),
        ("traffic.0.flows", "2"),
    ];
    let (result, _) = simulate(LONG, &set);
    assert_eq!(number(&result, "drops"), 0.0);
    assert!(number(&result, "utilisation") > 0.98);
    // 30 kB are 240 us; a burst of each flow may come on top of it.
    assert!(field(&result, "queue_us", "p99") < 240.0 + 2.0 * 140.0);
}

#[test]
fn equal_flows_get_equal_shares() {
    for cc in ["cubic", "reno"] {
        let set = [
            ("host.cc", cc),
            ("traffic.0.flows", "4"),
            ("duration", "3 s"),
            ("warmup", "1 s"),
        ];
        let (result, _) = simulate(LONG, &set);
        let each = result.metrics["long.goodput_gbps"].as_array().unwrap();
        let each: Vec<f64> = each.iter().map(|v| v.as_f64().unwrap()).collect();
        let (sum, squares) = each.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        let jain = sum * sum / (each.len() as f64 * squares);
        assert!(jain > 0.95, "{cc}: {jain} {each:?}");
    }
}

#[test]
fn interrupt_coalescing_delays_a_lone_packet_both_ways() {
    let one = LONG.replace(
        "kind = \"long\"\nflows = 1",
        "kind = \"incast\"\nfanout = 1\nsize = \"1448 B\"\ninterval = \"10 ms\"",
    );
    let acked = |coalescing| {
        let (_, tables) = simulate(
            &one,
            &[
                ("host.coalescing", coalescing),
                ("duration", "200 ms"),
                // Which acknowledges its first packet at once.
                ("host.connections", "new"),
            ],
        );
        let times: Vec<i64> = tables
            .flows
            .iter()
            .filter_map(|f| f.simulated?.acked_ns)
            .collect();
        assert!(
            times.len() > 5 && times.iter().all(|&t| t == times[0]),
            "{times:?}"
        );
        times[0]
    };
    // Two links each way: 1514 and 66 B at 8 ns a byte, and 5 us each.
    assert_eq!(acked("0 s"), 20_000 + 2 * 8 * (1514 + 66));
    assert_eq!(acked("30 us"), acked("0 s") + 60_000);
}

/// The NIC takes 2 ms of data ahead of the wire. Nothing else is in the network, so every hold is in vain.
#[test]
fn the_own_nic_queue_brakes_a_lone_flow_unless_the_stamp_is_the_nics() {
    let goodput = |law, subtract| {
        let set = [
            ("host.qdisc", "edge"),
            ("onramp.law", law),
            ("host.nic_queue", "256 kB"),
            ("onramp.subtract_nic_queue", subtract),
        ];
        let (result, _) = simulate(LONG, &set);
        number(&result, "background.goodput_gbps")
    };
    let off = goodput("off", "true");
    for law in ["strawman", "final"] {
        assert!(goodput(law, "false") < 0.98 * off, "{law}");
        assert!(goodput(law, "true") > 0.999 * off, "{law}");
    }
}

#[test]
fn a_packet_waits_behind_what_its_nic_has() {
    // A packet of host 2 to host 3, while host 2 sends to host 1.
    let text = LONG.replace(
        "flows = 1\n",
        "from = 2\nto = 1\n[[traffic]]\nkind = \"incast\"\nfrom = 2\nto = 3\nfanout = 1\n\
         size = \"1448 B\"\ninterval = \"10 ms\"\n",
    );
    let fastest_us = |nic_queue| {
        let (_, tables) = simulate(&text, &[("host.nic_queue", nic_queue)]);
        let short = tables
            .flows
            .iter()
            .filter(|flow| flow.size_bytes == Some(1448));
        short.filter_map(|flow| flow.fct_ns).min().unwrap() / 1_000
    };
    let later_us = fastest_us("64 kB") - fastest_us("0 B");
    // 64 kB take 512 us at 1 Gbit/s.
    assert!((500..600).contains(&later_us), "{later_us} us");
}

/// The rack's dilation of 100 makes what is a millisecond in Linux worth that.
const OF_THE_RACK: (&str, &str) = ("host.small_queue", "10 us");

/// The rack's scenario of the paper's basic shape, against what the rack measured on Linux TCP
/// (docs/results/incast.md).
#[test]
fn incast_over_web_search_comes_out_as_in_the_rack() {
    let text = include_str!("../../../scenarios/incast.toml");
    let runs = simulate_all(text, &[OF_THE_RACK]);
    let case = |name: &str| {
        let named = |run: &&(RunResult, Tables)| run.0.params["case"] == name;
        &runs.iter().find(named).unwrap().0
    };
    let rct = |name: &str, of: &str| field(case(name), "incast.rct_us", of);
    // Without On-Ramp a request in a hundred waits for a timeout; with it none does.
    for name in ["fq", "fq_codel", "off"] {
        assert!((1_000.0..9_000.0).contains(&rct(name, "mean")), "{name}");
        assert!(rct(name, "max") > 195_000.0, "{name}");
        assert!(number(case(name), "timeouts") > 0.0, "{name}");
    }
    for (name, rack_mean) in [("strawman", 36.7), ("final", 38.9), ("gate", 40.9)] {
        let ratio = rct(name, "mean") / rack_mean;
        assert!(
            (0.75..1.25).contains(&ratio),
            "{name}: {ratio} of the rack's mean"
        );
        assert_eq!(number(case(name), "timeouts"), 0.0, "{name}");
    }
    let order = ["strawman", "final", "gate", "off"].map(|name| rct(name, "mean"));
    assert!(order.is_sorted(), "as in the rack: {order:?}");
    for name in ["fq", "off", "final", "gate"] {
        // A request's own way to the servers is not simulated.
        let ratio = rct(name, "p50") / 18.8;
        assert!(
            (0.85..1.1).contains(&ratio),
            "{name}: {ratio} of the rack's median"
        );
        assert!((number(case(name), "background.goodput_gbps") / 3.99 - 1.0).abs() < 0.01);
        assert!((number(case(name), "utilisation") / 0.439 - 1.0).abs() < 0.01);
    }
    assert!(rct("gate", "p99") < rct("final", "p99"));
}

/// The worlds lose the same packets (docs/results/two-flows.md, incast.md).
#[test]
fn with_the_racks_small_queues_the_worlds_agree() {
    let off = |text: &str| {
        let mut runs = simulate_all(text, &[OF_THE_RACK]);
        runs.retain(|run| run.0.params["case"] == "off");
        runs.remove(0).0
    };
    let two_flows = off(include_str!("../../../scenarios/two-flows.toml"));
    let drops = number(&two_flows, "drops");
    assert!((18.0..=31.0).contains(&drops), "{drops}, the rack's 23");
    let incast = off(include_str!("../../../scenarios/incast.toml"));
    // The rack's 23: their number has 20 % of standard error. The mean RCT counts requests with at least one, of 200 ms.
    let timeouts = number(&incast, "timeouts");
    assert!((15.0..=31.0).contains(&timeouts), "{timeouts}");
    let ratio = field(&incast, "incast.rct_us", "mean") / 3045.0;
    assert!(
        (0.6..=1.6).contains(&ratio),
        "{ratio} of the rack's mean RCT"
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Small buffers, any segment size, any law: every flow ends, whole, and the same each time.
    #[test]
    fn every_flow_ends(
        cc in prop::sample::select(vec!["cubic", "reno", "scalable", "bbr"]),
        law in prop::sample::select(vec!["off", "strawman", "final", "gate"]),
        buffer_kb in 6u32..100,
        gso_kb in 2u32..64,
        coalescing_us in 0u32..50,
        nic_kb in 0u32..300,
        gro: bool,
        seed in 0u32..1000,
    ) {
        let text = LONG.replace("qdisc = \"fq_codel\"", "qdisc = \"edge\"").replace(
            "kind = \"long\"\nflows = 1",
            "kind = \"poisson\"\nto = \"all\"\nworkload = \"fb_hadoop\"\nload = \"50 %\"",
        );
        let set = [
            ("host.cc", cc.to_owned()),
            ("onramp.law", law.to_owned()),
            ("network.buffer", format!("{buffer_kb} kB")),
            ("host.gso", format!("{gso_kb} kB")),
            ("host.gro", gro.to_string()),
            ("host.coalescing", format!("{coalescing_us} us")),
            ("host.nic_queue", format!("{nic_kb} kB")),
            ("seed", seed.to_string()),
            ("duration", "20 ms".to_owned()),
            ("warmup", "0 s".to_owned()),
        ];
        let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let (_, tables) = simulate(&text, &set);
        let ended = |flow: &&FlowRow| flow.fct_ns.is_some() && flow.simulated.unwrap().acked_ns.is_some();
        // What waits for several timeouts in a row may be late for the 2 s after the traffic.
        let late = tables.flows.iter().filter(|flow| !ended(flow) && flow.timeouts < 2).count();
        prop_assert_eq!(late, 0);
        prop_assert_eq!(simulate(&text, &set).1, tables);
    }
}
