// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The number of threads changes no byte of what a run comes to: results, series, captures.

#[path = "harness/captures.rs"]
mod captures;

use captures::Captures;
use onramp_results::{RunResult, Tables};
use onramp_scenario::Scenario;
use onramp_sim::run::{run_in_parts, Parts, Watch};

/// Three racks, requests over web search, and two flows without end.
const FABRIC: &str = r#"title = "t"
duration = "300 us"
warmup = "50 us"
[network]
topology = { kind = "leaf_spine", hosts = 12, leaves = 3, spines = 2 }
link = { rate = "100 Gbit/s", delay = "1 us" }
fabric = { rate = "100 Gbit/s", delay = "500 ns" }
buffer = "400 kB"
[host]
kind = "nic"
cc = "dcqcn"
[[traffic]]
kind = "incast"
fanout = 8
size = "20 kB"
interval = "60 us"
[[traffic]]
kind = "poisson"
to = "all"
workload = "websearch"
load = "40 %"
[[traffic]]
kind = "long"
flows = 2
stop = "200 us"
[onramp]
law = "off"
threshold = "8 us"
[clock]
offset = "1 us"
drift = "0.002 %"
noise = "300 ns"
"#;

type Everything = (RunResult, Tables, Vec<Vec<u8>>);

fn simulate(set: &[(&str, &str)], parts: Parts) -> Everything {
    let scenario = Scenario::parse_with(FABRIC, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let captures = Captures::of(&["switch0-switch3", "host5"]);
    let watch = Watch {
        captures: captures.outputs(),
        series: vec!["ports".to_owned(), "flows".to_owned()],
    };
    let run = &scenario.runs()[0];
    let result = run_in_parts(run, 0, watch, parts, &mut |_| true);
    let (result, tables) = result.unwrap_or_else(|e| panic!("{e}")).into_tables();
    (result, tables, captures.bytes())
}

/// What the run does is checked by `happens`, so that the comparison means something.
fn any_number_of_threads(set: &[(&str, &str)], happens: &[&str]) {
    let one = simulate(set, Parts::AtMost(1));
    for metric in happens {
        let count = one.0.metrics[*metric].as_u64().unwrap();
        assert!(count > 0, "{set:?}: no {metric}");
    }
    assert!(one.2.iter().all(|capture| capture.len() > 1_000));
    for threads in [2, 3, 5] {
        let several = simulate(set, Parts::Forced(threads));
        assert!(several == one, "{set:?} with {threads} threads");
    }
}

#[test]
fn nics_in_a_lossless_network() {
    let lossless = ("network.sharing", "lossless");
    let marks = [
        lossless,
        ("network.ecn.threshold", "20 kB"),
        ("network.ecn.max", "80 kB"),
        ("network.ecn.max_fraction", "20 %"),
    ];
    any_number_of_threads(&marks, &["marks"]);
    any_number_of_threads(&[lossless, ("host.cc", "hpcc")], &[]);
    any_number_of_threads(&[lossless, ("host.cc", "timely_w")], &["pfc_pauses"]);
}

#[test]
fn nics_in_a_network_that_drops() {
    for sharing in ["per_port", "shared"] {
        let set = [
            ("network.sharing", sharing),
            ("network.buffer", "60 kB"),
            ("duration", "500 us"),
        ];
        any_number_of_threads(&set, &["drops", "retransmissions"]);
    }
}

#[test]
fn nics_that_read() {
    let reads = [
        ("host.cc", "timely_paper"),
        ("traffic.0.op", "read"),
        ("traffic.2.op", "read"),
    ];
    let lossless = [
        ("network.sharing", "lossless"),
        ("host.rtt_noise", "1 us"),
        ("traffic.0.fanout", "40"),
    ];
    any_number_of_threads(&[&reads[..], &lossless].concat(), &["pfc_pauses"]);
    let lossy = [
        ("network.sharing", "per_port"),
        ("network.loss", "2 %"),
        ("duration", "500 us"),
    ];
    any_number_of_threads(
        &[&reads[..], &lossy].concat(),
        &["drops", "retransmissions"],
    );
}

#[test]
fn nics_with_on_ramp_and_wrong_clocks() {
    for (law, cc) in [("final", "timely"), ("strawman", "hpcc"), ("gate", "dcqcn")] {
        let set = [
            ("network.sharing", "lossless"),
            ("onramp.law", law),
            ("host.cc", cc),
        ];
        any_number_of_threads(&set, &["or_acks"]);
    }
}

#[test]
fn synchronised_clocks() {
    let set = [
        ("network.sharing", "lossless"),
        ("onramp.law", "final"),
        ("clock.sync", "huygens"),
        ("clock.window", "1 ms"),
        ("clock.probe_interval", "100 us"),
        ("duration", "2.5 ms"),
    ];
    any_number_of_threads(&set, &["or_acks"]);
}

#[test]
fn kernel_hosts() {
    for (cc, law, gro) in [
        ("cubic", "off", "true"),
        ("bbr", "final", "false"),
        ("dctcp", "gate", "true"),
    ] {
        let set = [
            ("host.kind", "kernel"),
            ("host.cc", cc),
            ("onramp.law", law),
            ("host.gro", gro),
            ("host.coalescing", "5 us"),
            ("network.ecn.threshold", "30 kB"),
            ("network.sharing", "per_port"),
            ("network.buffer", "40 kB"),
            ("duration", "1 ms"),
        ];
        let ecn = cc == "dctcp";
        let set: Vec<_> = set
            .into_iter()
            .filter(|(key, _)| ecn || *key != "network.ecn.threshold")
            .collect();
        any_number_of_threads(&set, &["drops", "retransmissions"]);
    }
}
