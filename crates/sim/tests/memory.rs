// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Memory of a long plan, in a process of its own: what the kernel says was its peak. (Linux only.)
#![cfg(target_os = "linux")]

use onramp_scenario::{expected_flows, Scenario};
use onramp_sim::run::{memory_needed, run, Watch};
use onramp_units::Bytes;

/// About 9.9 million flows of which the first few thousand start before it is ended.
const LONG: &str = r#"title = "t"
duration = "73 ms"
[network]
topology = { kind = "star", hosts = 16 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "dctcp"
[[traffic]]
kind = "poisson"
to = "all"
workload = "google_search_rpc"
load = "30 %"
"#;

fn peak() -> Bytes {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
    Bytes::new(kib.parse::<u64>().unwrap() << 10)
}

/// Issue 3: 100 MB and 200 B a flow.
#[test]
fn ten_million_queued_flows_take_less_than_200_bytes_each() {
    let scenario = Scenario::parse(LONG, "t").unwrap_or_else(|e| panic!("{e}"));
    let planned = &scenario.runs()[0];
    let mut calls = 0;
    let report = run(planned, 0, Watch::default(), &mut |_| {
        calls += 1;
        calls < 3
    });
    let report = report.unwrap_or_else(|e| panic!("{e}"));
    assert!(report.result().cost["flows"] > 9.8e6);
    assert!(report.flows().count() > 1_000);
    let bound = 100e6 + 200.0 * expected_flows(planned);
    assert!((peak().get() as f64) < bound, "{}, above {bound}", peak());
    assert!(memory_needed(planned, 1).unwrap() >= peak());
}
