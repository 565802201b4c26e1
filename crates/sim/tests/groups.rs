// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Host groups: hosts of a group have its settings, and all others those of the scenario.

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_results::{FlowRow, RunResult, Tables};
use onramp_scenario::Scenario;
use outcome::simulate_all;

/// An incast over long flows, of 8 hosts.
const BASE: &str = r#"title = "t"
duration = "10 ms"
warmup = "1 ms"
[network]
topology = { kind = "star", hosts = 8 }
link = { rate = "10 Gbit/s", delay = "1 us" }
ecn = { threshold = "65 kB", at = "10 Gbit/s" }
buffer = "300 kB"
[[traffic]]
kind = "long"
flows = 3
from = "1-3"
[[traffic]]
kind = "incast"
fanout = 7
size = "20 kB"
interval = "500 us"
"#;

fn simulate(text: &str) -> Vec<(RunResult, Tables)> {
    let scenario = Scenario::parse(text, "t").unwrap_or_else(|e| panic!("{e}\n{text}"));
    simulate_all(&scenario)
}

/// Settings of all hosts, and the same ones as a group of every host, where all others have `others`.
fn of_all_and_of_a_group(kind: &str, others: &str, settings: &[String]) -> [String; 2] {
    let (head, rest) = BASE.split_once("[network]").expect("it has a network");
    let head = format!("{head}host.kind = \"{kind}\"\n");
    let of_all: String = settings.iter().map(|s| format!("{s}\n")).collect();
    [
        format!("{head}{of_all}[network]{rest}"),
        format!("{head}{others}[network]{rest}[[hosts]]\nrange = \"0-7\"\n{of_all}"),
    ]
}

#[test]
fn a_group_of_all_hosts_is_as_if_all_hosts_had_its_settings() {
    for (section, settings) in [
        ("host", vec!["cc = \"dctcp\"", "gso = \"16 kB\""]),
        ("host", vec!["cc = \"bbr\"", "qdisc = \"fq\""]),
        (
            "host",
            vec![
                "qdisc = \"fq_codel\"",
                "gro = false",
                "delayed_ack = \"1 ms\"",
            ],
        ),
        (
            "host",
            vec!["coalescing = \"20 us\"", "nic_queue = \"64 kB\""],
        ),
        ("host", vec!["connections = \"new\"", "initial_window = 3"]),
        (
            "onramp",
            vec!["law = \"gate\"", "threshold = \"40 us\"", "pacing = true"],
        ),
        (
            "onramp",
            vec!["law = \"final\"", "gso = \"8 kB\"", "reuse = \"1 ms\""],
        ),
        ("network.link", vec!["rate = \"5 Gbit/s\""]),
    ] {
        if section == "network.link" {
            let whole = BASE.replace("10 Gbit/s", "5 Gbit/s");
            let grouped =
                format!("{BASE}[[hosts]]\nrange = \"0-7\"\nnetwork.link.rate = \"5 Gbit/s\"\n");
            same(&whole, &grouped);
            continue;
        }
        let settings: Vec<_> = settings.iter().map(|s| format!("{section}.{s}")).collect();
        let [whole, grouped] = of_all_and_of_a_group("kernel", "", &settings);
        same(&whole, &grouped);
    }
}

#[test]
fn nics_too() {
    for settings in [
        &["host.cc = \"hpcc\""][..],
        &["host.cc = \"timely\"", "host.rtt_stamps = \"software\""],
    ] {
        let settings: Vec<_> = settings.iter().map(|s| s.to_string()).collect();
        let others = "host.cc = \"dcqcn\"\n";
        let [whole, grouped] = of_all_and_of_a_group("nic", others, &settings);
        same(&whole, &grouped);
    }
}

fn same(whole: &str, grouped: &str) {
    let (one, of_one) = simulate(whole).remove(0);
    let (other, mut of_other) = simulate(grouped).remove(0);
    assert_eq!(one.metrics, other.metrics, "{grouped}");
    assert!(of_other.flows.iter().all(|flow| flow.group == Some(0)));
    of_other.flows.iter_mut().for_each(|flow| flow.group = None);
    assert!(of_one == of_other, "{grouped}");
}

const THREE: &str = include_str!("../../../scenarios/groups.toml");

#[test]
fn three_congestion_controls_share_a_port() {
    let results = simulate(THREE);
    let shares = |n: usize| -> Vec<f64> {
        let goodputs = results[n].0.metrics["long.goodput_gbps"].as_array();
        let goodputs = goodputs.expect("three long flows").iter();
        goodputs.map(|goodput| goodput.as_f64().unwrap()).collect()
    };
    for n in 0..results.len() {
        let shares = shares(n);
        assert!(shares.iter().all(|share| *share > 0.0), "{shares:?}");
    }
    let groups = |flow: &FlowRow| match flow.src {
        0..=2 => None,
        3..=4 => Some(0),
        _ => Some(1),
    };
    let flows = results.iter().flat_map(|(_, tables)| &tables.flows);
    assert!(flows.clone().all(|flow| flow.group == groups(flow)));
    // Case by case: the senders that On-Ramp has held.
    let held = |n: usize| -> Vec<Option<i64>> {
        let flows = results[n].1.flows.iter();
        let held = flows.filter(|flow| flow.simulated.is_some_and(|s| s.held_ns > 0));
        let mut groups: Vec<_> = held.map(|flow| flow.group).collect();
        groups.sort();
        groups.dedup();
        groups
    };
    let cases: Vec<&str> = results
        .iter()
        .map(|(r, _)| r.params["case"].as_str())
        .collect();
    assert_eq!(cases, ["off", "cubic", "fq", "all"]);
    assert_eq!(
        [held(0), held(1), held(2)],
        [vec![], vec![None], vec![None]]
    );
    assert_eq!(held(3), [None, Some(0), Some(1)]);
    assert_eq!(results[1].0.resolved["hosts"][0]["onramp"]["law"], "off");
}

#[test]
fn hosts_without_on_ramps_queueing_discipline_send_no_or_acks() {
    let or_acks = |receiver: &str| {
        let text = format!("{BASE}[[hosts]]\nrange = \"0\"\nhost.qdisc = \"{receiver}\"\n[onramp]\nlaw = \"final\"\n");
        let text = text.replace(
            "host.qdisc = \"fq\"",
            "host.qdisc = \"fq\"\nonramp.law = \"off\"",
        );
        simulate(&text)[0].0.metrics["or_acks"].as_u64().unwrap()
    };
    assert!(or_acks("edge") > 0);
    assert_eq!(or_acks("fq"), 0);
}

#[test]
fn a_group_with_slower_links_has_less_goodput() {
    let text = format!("{BASE}[[hosts]]\nrange = \"1-3\"\nnetwork.link.rate = \"1 Gbit/s\"\n");
    let goodput = |text: &str| -> f64 {
        let goodputs = simulate(text)[0].0.metrics["long.goodput_gbps"].clone();
        let goodputs = goodputs.as_array().unwrap().iter();
        goodputs.map(|goodput| goodput.as_f64().unwrap()).sum()
    };
    let (shared, slow) = (goodput(BASE), goodput(&text));
    // Three links of 1 Gbit/s carry the long flows and their hosts' part of the incast.
    assert!((1.5..3.0).contains(&slow), "{slow} Gbit/s");
    assert!(shared > 2.0 * slow, "{shared} and {slow} Gbit/s");
}
