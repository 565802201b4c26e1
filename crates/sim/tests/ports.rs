// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Ports that a scenario names: `[measure] ports`.

use onramp_results::RunResult;
use onramp_scenario::Scenario;
use onramp_sim::run::{check_watch, run_in_parts, Parts, Watch};
use serde_json::Value;

/// Three hosts on each side of a link that is as fast as one of them. Two send over it, one to its neighbour.
const DUMBBELL: &str = r#"title = "t"
duration = "20 ms"
warmup = "5 ms"
[network]
topology = { kind = "dumbbell", hosts = 6 }
link = { rate = "1 Gbit/s", delay = "10 us" }
[[traffic]]
kind = "long"
from = 0
to = 3
flows = 1
[[traffic]]
kind = "long"
from = 1
to = 4
flows = 1
[[traffic]]
kind = "long"
from = 2
to = 5
flows = 1
"#;

fn simulate(ports: &str, threads: usize) -> RunResult {
    let set = [("measure.ports", ports)];
    let set = if ports.is_empty() { &[] } else { &set[..] };
    let scenario = Scenario::parse_with(DUMBBELL, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let parts = Parts::AtMost(threads);
    let report = run_in_parts(&scenario.runs()[0], 0, Watch::default(), parts, &mut |_| {
        true
    });
    report
        .unwrap_or_else(|error| panic!("{error}"))
        .result()
        .clone()
}

#[test]
fn the_first_named_port_is_the_measured_one() {
    let result = simulate("switch0-switch1, switch1-host3", 1);
    let of = |name: &str| result.metrics[name].as_f64().unwrap();
    assert_eq!(result.metrics["port.name"], "switch0-switch1");
    assert!(of("utilisation") > 0.8, "{}", of("utilisation"));
    // Three flows share it.
    let part = of("ports.switch1-host3.utilisation");
    assert!((0.05..0.9).contains(&part), "{part}");
    for metric in ["utilisation", "queue_us"] {
        let named = format!("ports.switch0-switch1.{metric}");
        assert_eq!(result.metrics[&named], result.metrics[metric]);
    }
    // Without names it is the receiver's, and its numbers are the same.
    let usual = simulate("", 1);
    assert_eq!(usual.metrics["port.name"], "switch1-host3");
    assert_eq!(
        usual.metrics["utilisation"],
        result.metrics["ports.switch1-host3.utilisation"]
    );
    assert_eq!(
        usual.metrics["queue_us"],
        result.metrics["ports.switch1-host3.queue_us"]
    );
    assert_eq!(usual.metrics["owd_us"], result.metrics["owd_us"]);
    assert!(!usual.metrics.keys().any(|name| name.starts_with("ports.")));
}

#[test]
fn what_is_written_of_a_list_is_read() {
    let set = [("measure.ports", "switch0-switch1,busiest")];
    let scenario = Scenario::parse_with(DUMBBELL, "t", &set).unwrap();
    let text = scenario.runs()[0].to_toml();
    assert!(
        text.contains("ports = [\"switch0-switch1\", \"busiest\"]"),
        "{text}"
    );
    let again = Scenario::parse(&text, "t").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(again.runs()[0], scenario.runs()[0]);
}

#[test]
fn the_busiest_port_is_found() {
    let result = simulate("busiest", 1);
    assert_eq!(result.metrics["port.name"], "switch0-switch1");
    assert_ne!(result.metrics["queue_us"], Value::Null);
    assert_eq!(simulate("busiest", 2).metrics, result.metrics);
}

#[test]
fn a_port_that_is_not_there_is_named_before_the_run() {
    let check = |ports: &str| {
        let set = [("measure.ports", ports)];
        let scenario = Scenario::parse_with(DUMBBELL, "t", &set).map_err(|e| e.to_string())?;
        check_watch(&scenario.runs()[0], &[], &[]).map_err(|e| e.to_string())
    };
    assert_eq!(check("switch0-switch1,busiest"), Ok(()));
    let unknown = check("switch0-switch2").unwrap_err();
    assert!(
        unknown.starts_with("no port is named \"switch0-switch2\"; there are"),
        "{unknown}"
    );
    let wrong = check("switch0 switch1").unwrap_err();
    assert!(
        wrong.contains("expected the name of a port, like \"switch0-host3\", or \"busiest\""),
        "{wrong}"
    );
}

/// Two leaves and two spines with names of their own, and two hosts at each leaf.
const NAMED: &str = r#"title = "t"
duration = "2 ms"
[network]
topology.kind = "inline"
[network.graph]
switches = ["leaf0", "leaf1", "spine0", "spine1"]
hosts = [
    { at = "leaf0", rate = "10 Gbit/s", delay = "1 us", count = 2 },
    { at = "leaf1", rate = "10 Gbit/s", delay = "1 us", count = 2 },
]
links = [
    { from = "leaf0", to = ["spine0", "spine1"], rate = "10 Gbit/s", delay = "1 us" },
    { from = "leaf1", to = ["spine0", "spine1"], rate = "10 Gbit/s", delay = "1 us" },
]
[[traffic]]
kind = "long"
from = "0-1"
to = 2
flows = 8
"#;

fn named(set: &[(&str, &str)]) -> Result<RunResult, String> {
    let scenario = Scenario::parse_with(NAMED, "t", set).map_err(|e| e.to_string())?;
    let run = &scenario.runs()[0];
    check_watch(run, &[], &[]).map_err(|e| e.to_string())?;
    let parts = Parts::AtMost(1);
    let report = run_in_parts(run, 0, Watch::default(), parts, &mut |_| true);
    Ok(report.map_err(|e| e.to_string())?.result().clone())
}

#[test]
fn a_failed_link_carries_nothing_and_the_others_carry_all() {
    let ports = ("measure.ports", "leaf0-spine0,leaf0-spine1");
    let used = |result: &RunResult, port: &str| {
        let name = format!("ports.{port}.utilisation");
        result.metrics[&name].as_f64().unwrap()
    };
    let whole = named(&[ports]).unwrap();
    assert!(used(&whole, "leaf0-spine0") > 0.1 && used(&whole, "leaf0-spine1") > 0.1);
    let failed = ("network.failed", "spine1-leaf0");
    let left = named(&[failed, ("measure.ports", "leaf0-spine0")]).unwrap();
    assert!(used(&left, "leaf0-spine0") > 0.9);
    let gone = named(&[failed, ports]).unwrap_err();
    assert!(
        gone.starts_with("no port is named \"leaf0-spine1\"; there are leaf0-host0"),
        "{gone}"
    );
}

#[test]
fn failed_links_that_are_not_there_or_cut_hosts_off_are_named() {
    let error = |failed: &str| named(&[("network.failed", failed)]).unwrap_err();
    let unknown = error("leaf0-spine7");
    assert!(
        unknown.starts_with(
            "network.failed: no port is named \"leaf0-spine7\"; there are leaf0-host0"
        ),
        "{unknown}"
    );
    assert_eq!(
        error("leaf0-spine0, leaf0-spine1"),
        "network.failed: no path connects host 2 with host 0: add a link"
    );
    assert_eq!(
        error("leaf1-host2"),
        "network.failed: host 2 has 0 links, expected 1"
    );
}
