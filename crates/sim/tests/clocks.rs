// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Clocks synchronised by Huygens: probes are packets of the network under its load, the truth is
//! known. Every test prints what it measured.

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_results::RunResult;
use onramp_scenario::Scenario;
use outcome::{field, number, simulate_all};

/// Three racks at load. Windows and probes are fifty times as fast as the daemon's: a
/// port that a long flow fills for a whole window says nothing of its host's clock, and they are few.
const RACKS: &str = r#"title = "t"
duration = "300 ms"
warmup = "130 ms"
[network]
topology = { kind = "leaf_spine", hosts = 12, leaves = 3, spines = 2 }
link = { rate = "10 Gbit/s", delay = "1 us" }
fabric = { rate = "20 Gbit/s", delay = "1 us" }
[host]
qdisc = "fq"
[[traffic]]
kind = "poisson"
to = "all"
workload = "fb_hadoop"
load = "60 %"
[clock]
offset = "1 ms"
drift = "1/50000"
wander = "1/1000000"
sync = "huygens"
degree = 6
probe_interval = "400 us"
window = "40 ms"
"#;

fn simulate(set: &[(&str, &str)]) -> RunResult {
    let scenario = Scenario::parse_with(RACKS, "t", set).unwrap_or_else(|e| panic!("{e}"));
    simulate_all(&scenario).remove(0).0
}

fn print(what: &str, result: &RunResult) -> (f64, f64) {
    let [mean, p99] = ["mean", "p99"].map(|f| field(result, "clock.error_ns", f));
    let honest = 100.0 * number(result, "clock.within_2_sigma");
    println!("{what}: mean {mean:.1} ns, p99 {p99:.1}; {honest:.1} % within 2 sigma");
    (mean, p99)
}

#[test]
fn hardware_stamps_under_load() {
    let result = simulate(&[("clock.stamps", "hardware")]);
    let (mean, p99) = print("hardware stamps, 12 hosts, 60 %", &result);
    assert!(mean < 20.0 && p99 < 60.0);
}

#[test]
fn software_stamps_under_load() {
    let result = simulate(&[]);
    let (mean, p99) = print("software stamps, 12 hosts, 60 %", &result);
    assert!(mean < 500.0 && p99 < 3000.0);
}

/// Until the first correction nobody knows a delay: On-Ramp lets everything go.
#[test]
fn on_ramp_waits_for_the_first_correction() {
    let on_ramp = [
        ("host.qdisc", "edge"),
        ("onramp.law", "final"),
        ("onramp.threshold", "30 us"),
        ("warmup", "0 s"),
    ];
    let or_acks = |duration| {
        let result = simulate(
            &[
                &on_ramp[..],
                &[("duration", duration), ("clock.window", "20 ms")],
            ]
            .concat(),
        );
        number(&result, "or_acks")
    };
    // Flows of the first 10 ms may be under way until 20 ms; OR-ACKs come after that alone.
    let (before, after) = (or_acks("10 ms"), or_acks("40 ms"));
    println!("OR-ACKs of 10 ms of traffic: {before}, of 40 ms: {after}");
    assert!(after > 20.0 * before.max(100.0));
}

/// What On-Ramp gains with Huygens' clocks under load, of what it gains with perfect ones.
#[test]
fn on_ramp_gains_with_these_clocks_what_it_gains_with_perfect_ones() {
    let incast = RACKS.replace(
        "[clock]",
        r#"[[traffic]]
kind = "incast"
fanout = 11
size = "2 kB"
interval = "1 ms"
[clock]"#,
    );
    let mean_rct = |set: &[(&str, &str)]| {
        let scenario = Scenario::parse_with(&incast, "t", set).unwrap_or_else(|e| panic!("{e}"));
        field(
            &simulate_all(&scenario).remove(0).0,
            "incast.rct_us",
            "mean",
        )
    };
    let on_ramp = [
        ("host.qdisc", "edge"),
        ("onramp.law", "final"),
        ("onramp.threshold", "30 us"),
    ];
    let perfect = [
        ("clock.sync", "none"),
        ("clock.offset", "0 s"),
        ("clock.drift", "0"),
        ("clock.wander", "0"),
    ];
    let without = mean_rct(&perfect);
    let with_perfect = mean_rct(&[&on_ramp[..], &perfect].concat());
    let with_huygens = mean_rct(&on_ramp);
    let kept = (without - with_huygens) / (without - with_perfect);
    println!("mean RCT {without:.0} us; On-Ramp with perfect clocks {with_perfect:.0}, with Huygens' {with_huygens:.0}: {:.0} % of the gain", 100.0 * kept);
    assert!(kept > 0.9);
}
