// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp rack run` as a user meets it: real daemons that synchronise clocks which are wrong in a known way,
//! on real kernels in a virtual machine.

use std::path::Path;
use std::process::Command;

use onramp_results::{read_json, SummaryFile};

const SCENARIO: &str = r#"title = "Two to one, clocks by Huygens"
duration = "30 ms"
warmup = "10 ms"
time_dilation = 100
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[clock]
offset = "0.4 ms"
drift = "1/100000"
sync = "huygens"
probe_interval = "200 us"
window = "20 ms"
[[traffic]]
kind = "long"
flows = 2
[onramp]
threshold = "50 us"
"#;

/// Runs a scenario into `out`.
fn run(file: &Path, out: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_onramp"))
        .args(["rack", "run"])
        .args([file, Path::new("--out"), out, Path::new("--cache")])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache"))
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
}

#[test]
fn wrong_clocks_are_synchronised_under_load_and_on_ramp_holds_by_them() {
    let desk = tempfile::tempdir().unwrap();
    let (file, out) = (desk.path().join("two.toml"), desk.path().join("out"));
    std::fs::write(&file, SCENARIO).unwrap();
    run(&file, &out);
    let summary: SummaryFile = read_json(&out.join("summary.json")).unwrap();
    let metrics = &summary.runs[0].metrics;
    let number = |name: &str, part: &str| metrics[name][part].as_f64().unwrap();
    // As the rack's time goes: 100 us here are 1 us of the scenario.
    let worst_ns = number("clock.error_ns", "p99");
    assert!(worst_ns < 1_500.0, "{worst_ns} ns apart");
    let count = |name: &str| metrics[name].as_u64().unwrap();
    assert!(count("onramp.holds") > 0, "{metrics:?}");
    assert_eq!(count("onramp.oracks_no_lease"), 0);
}

/// A port of 10 Gbit/s and one of 2.5 Gbit/s. The threshold is 52 us of either.
const RATES: &str = r#"title = "Ports of two rates"
duration = "14 ms"
warmup = "4 ms"
time_dilation = 100
[network]
topology = { kind = "star", hosts = 4 }
link = { rate = "10 Gbit/s", delay = "1 us" }
buffer = "500 kB"
ecn = { threshold = "65 kB", at = "10 Gbit/s" }
[host]
cc = "dctcp"
[[hosts]]
range = "3"
network.link.rate = "2.5 Gbit/s"
[[traffic]]
kind = "long"
flows = 2
from = "0-1"
to = 2
[onramp]
law = "off"
[[case]]
name = "fast"
[[case]]
name = "slow"
"traffic.0.to" = 3
"#;

#[test]
fn a_port_marks_above_the_threshold_of_its_own_rate() {
    let desk = tempfile::tempdir().unwrap();
    let (file, out) = (desk.path().join("rates.toml"), desk.path().join("out"));
    std::fs::write(&file, RATES).unwrap();
    run(&file, &out);
    let summary: SummaryFile = read_json(&out.join("summary.json")).unwrap();
    let [fast, slow] = [0, 1].map(|run| {
        let queue = &summary.runs[run].metrics["queue_us"];
        queue["p50"].as_f64().unwrap()
    });
    println!("median queue: {fast} us at 10 Gbit/s, {slow} us at 2.5 Gbit/s");
    // With the threshold of 10 Gbit/s at each port, the slow one would have a queue of 208 us.
    assert!((20.0..80.0).contains(&fast), "{fast} us");
    assert!((20.0..104.0).contains(&slow), "{slow} us");
}

/// Without the emulator's plugin (crates/rack/plugin/halt.c), one run in ten of this scenario was another one.
#[test]
#[ignore = "takes five minutes and both processors"]
fn every_run_is_the_same_to_the_byte() {
    const RUNS: usize = 24;
    let desk = tempfile::tempdir().unwrap();
    let incast = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/incast.toml");
    let incast = std::fs::read_to_string(incast).unwrap();
    let (common, _cases) = incast.split_once("[[case]]").unwrap();
    let file = desk.path().join("incast.toml");
    std::fs::write(&file, common.replace("360 ms", "20 ms")).unwrap();
    let flows = |n: usize| {
        let out = desk.path().join(n.to_string());
        run(&file, &out);
        std::fs::read(out.join("flows.parquet")).unwrap()
    };
    let some = |from: usize| (from..RUNS).step_by(2).map(flows).collect::<Vec<_>>();
    let (mut all, others) = std::thread::scope(|scope| {
        let others = scope.spawn(|| some(1));
        (some(0), others.join().unwrap())
    });
    all.extend(others);
    let same = all.iter().filter(|bytes| **bytes == all[0]).count();
    assert_eq!(same, RUNS);
}
