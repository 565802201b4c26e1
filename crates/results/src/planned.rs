// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a specialist would notice in a scenario before it runs: the [remarks](crate::remarks) that follow from its settings
//! and from its plan of traffic.

use std::collections::{BTreeMap, BTreeSet};

use onramp_scenario::{expected_flows, try_plan, Arrival, Run, Work};
use onramp_units::Time;
use serde_json::{json, Value};

use crate::measures::Offered;
use crate::remarks::of_runs;
use crate::run_result::RunResult;

/// A plan of more flows takes too long for a check.
const MOST_FLOWS: f64 = 1e6;

/// The remarks about runs, each in one line. A run of more than a million flows has only those that need no plan.
pub fn planned_remarks(runs: &[Run]) -> Vec<String> {
    let result = |(number, run): (usize, &Run)| RunResult {
        run: number,
        params: run.params.clone(),
        resolved: json!(run),
        partial: false,
        metrics: metrics(run),
        cost: BTreeMap::new(),
    };
    let results: Vec<RunResult> = runs.iter().enumerate().map(result).collect();
    of_runs(&results)
}

/// What is known of the metrics of `run`: its offered loads, its number of requests, and the delay of an idle path.
fn metrics(run: &Run) -> BTreeMap<String, Value> {
    let idle_us = run.network.base_delay().as_ns() as f64 / 1e3;
    let mut metrics = BTreeMap::from([("owd_us".to_owned(), json!({ "p50": idle_us }))]);
    if expected_flows(run) > MOST_FLOWS {
        return metrics;
    }
    let arrivals = try_plan(run).unwrap_or_default();
    let is_measured = |arrival: &&Arrival| arrival.at >= Time::ZERO + run.warmup;
    let mut offered = Offered::new(run);
    let mut requests: BTreeMap<&str, BTreeSet<(usize, u64)>> = BTreeMap::new();
    for arrival in arrivals.iter().filter(is_measured) {
        if let Work::Send(size) = arrival.work {
            offered.add(arrival.traffic, size.get());
        }
        if let Some(request) = arrival.request {
            let of_kind = requests.entry(arrival.kind.name).or_default();
            of_kind.insert((arrival.traffic, request));
        }
    }
    for (kind, of_kind) in requests {
        metrics.insert(format!("{kind}.rct_us"), json!({ "n": of_kind.len() }));
    }
    metrics.extend(offered.metrics().map(|(name, value)| (name, json!(value))));
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_scenario::Scenario;

    const TEXT: &str = r#"title = "t"
duration = "20 ms"
warmup = "2 ms"
[network]
topology = { kind = "star", hosts = 9 }
link = { rate = "10 Gbit/s", delay = "1 us" }
buffer = "100 kB"
[[traffic]]
kind = "poisson"
workload = "websearch"
load = "40 %"
[[traffic]]
kind = "incast"
fanout = 8
size = "32 kB"
interval = "1 ms"
[onramp]
law = "final"
threshold = "200 us"
"#;

    fn said(set: &[(&str, &str)]) -> String {
        let scenario = Scenario::parse_with(TEXT, "t", set).unwrap();
        planned_remarks(scenario.runs()).join("\n")
    }

    #[test]
    fn what_a_plan_shows_is_said_before_a_run() {
        let all = said(&[]);
        for words in [
            "traffic.0 (poisson) offers ",
            "8 answers with 115.84 kB together, and a port holds 100 kB",
            "T = 200 us lies above the delay of a full buffer (100 kB at 10 Gbit/s: 80 us)",
            "fewer than 30",
        ] {
            assert!(all.contains(words), "{words}: {all}");
        }
        assert!(
            !all.contains("retransmission") && !all.contains("held"),
            "{all}"
        );
        let none = said(&[
            ("duration", "60 ms"),
            ("traffic.0.sizes", "stratified"),
            ("network.buffer", "1 MB"),
            ("traffic.1.arrivals", "periodic"),
        ]);
        assert_eq!(none, "");
    }
}
