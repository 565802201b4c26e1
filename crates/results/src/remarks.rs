// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a specialist would notice in results, in words: traps of the traffic, of the buffer, of the threshold and of the
//! statistics. A remark names the cases that it is about.

use crate::case::{cases, Case, Lines};
use crate::run_result::{RunResult, SummaryFile};
use onramp_units::{Bytes, Rate, Span};
use serde_json::Value;
use std::str::FromStr;

/// Fewer requests behind a 99th percentile are too few: the slowest one is the percentile.
const FEW: f64 = 30.0;
/// A load that differs by more than this part from the one that was asked for.
const FAR: f64 = 0.1;
/// Payload of a packet, of which a connection's first window has `host.initial_window`.
const PACKET_BYTES: u64 = 1448;
/// Cases that a remark names.
const MOST_NAMED: usize = 8;
/// Metrics of requests.
const REQUESTS: [&str; 2] = ["incast", "request"];

type Rule = fn(&Case<'_>) -> Option<String>;

const RULES: [Rule; 7] = [
    load_differs,
    burst_overflows,
    threshold_is_out_of_reach,
    few_requests,
    timeouts_rule,
    drops_are_elsewhere,
    held,
];

/// The remarks about `summary`, each in one line.
pub fn remarks(summary: &SummaryFile) -> Vec<String> {
    of_runs(&summary.runs)
}

pub(crate) fn of_runs(runs: &[RunResult]) -> Vec<String> {
    let cases = cases(runs, Lines::Cases);
    let mut remarks: Vec<(String, Vec<&str>)> = Vec::new();
    for rule in RULES {
        for case in &cases {
            let Some(words) = rule(case) else { continue };
            match remarks.iter_mut().find(|(known, _)| *known == words) {
                Some((_, of)) => of.push(&case.name),
                None => remarks.push((words, vec![&case.name])),
            }
        }
    }
    let line = |(words, of): (String, Vec<&str>)| match of.len() {
        all if all == cases.len() => words,
        many if many > MOST_NAMED => format!(
            "{}, ... ({many} cases): {words}",
            of[..MOST_NAMED].join(", ")
        ),
        _ => format!("{}: {words}", of.join(", ")),
    };
    remarks.into_iter().map(line).collect()
}

/// The values of a metric in the runs of a case that have it.
fn values(case: &Case<'_>, metric: &str) -> Vec<f64> {
    let number = |run: &&RunResult| run.number(metric);
    case.runs.iter().filter_map(number).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The setting at `path` of the case's first run.
fn setting<'a>(case: &Case<'a>, path: &str) -> Option<&'a Value> {
    let mut at = &case.runs[0].resolved;
    for key in path.split('.') {
        at = at.get(key)?;
    }
    Some(at)
}

fn quantity<T: FromStr>(value: Option<&Value>) -> Option<T> {
    value?.as_str()?.parse().ok()
}

fn entries<'a>(case: &Case<'a>) -> impl Iterator<Item = (usize, &'a Value)> {
    let entries = setting(case, "traffic").and_then(Value::as_array);
    entries.into_iter().flatten().enumerate()
}

fn percent(part: f64) -> String {
    match part < 0.01 {
        true => format!("{:.2} %", part * 100.0),
        false => format!("{:.0} %", part * 100.0),
    }
}

/// With a digit more, so that a load of 2.3 % is not one of 2 %.
fn load(part: f64) -> String {
    match (0.01..0.0995).contains(&part) {
        true => format!("{:.1} %", part * 100.0),
        false => percent(part),
    }
}

/// Traffic with a load offers another one.
fn load_differs(case: &Case<'_>) -> Option<String> {
    let differs = |(entry, keys): (usize, &Value)| {
        let asked = keys.get("load")?.as_f64()?;
        let offered = values(case, &format!("traffic.{entry}.offered"));
        let is_far = |offered: &&f64| (**offered / asked - 1.0).abs() > FAR;
        offered.iter().find(is_far)?;
        let (least, most) = (
            offered.iter().copied().fold(f64::INFINITY, f64::min),
            offered.iter().copied().fold(0.0, f64::max),
        );
        let by_seed = match offered.len() {
            1 => String::new(),
            _ => format!(" ({} to {} by seed)", load(least), load(most)),
        };
        let kind = keys
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or("traffic");
        let is_set = |key: &str, value: &str| keys.get(key).and_then(Value::as_str) == Some(value);
        if is_set("sizes", "stratified") || is_set("arrivals", "periodic") {
            return Some(format!(
                "traffic.{entry} ({kind}) offers {} of its receivers' links in place of {}: the run is too short for one flow more or \
                 less. Lengthen it",
                load(mean(&offered)?),
                load(asked)
            ));
        }
        let mend = match kind {
            "poisson" => "With sizes = \"stratified\" each seed offers what is asked; else compare",
            _ => "With arrivals = \"periodic\" each seed offers what is asked; else compare",
        };
        Some(format!(
            "traffic.{entry} ({kind}) offers {}{by_seed} of its receivers' links in place of {}: a short run draws few flows. \
             {mend} cases of the same seed, or lengthen the run",
            load(mean(&offered)?),
            load(asked)
        ))
    };
    entries(case).find_map(differs)
}

/// The first windows of an incast do not fit into the buffer.
fn burst_overflows(case: &Case<'_>) -> Option<String> {
    let is = |path: &str, word: &str| setting(case, path).and_then(Value::as_str) == Some(word);
    if !is("host.kind", "kernel") || !is("network.sharing", "per_port") {
        return None;
    }
    let buffer: Bytes = quantity(setting(case, "network.buffer"))?;
    let window = setting(case, "host.initial_window")?.as_u64()? * PACKET_BYTES;
    let overflows = |(entry, keys): (usize, &Value)| {
        let fanout = keys.get("fanout")?.as_u64()?;
        let size: Bytes = quantity(keys.get("size"))?;
        let apart: Option<Span> = quantity(keys.get("stagger"));
        let burst = Bytes::new(fanout * size.get().min(window));
        (burst > buffer && apart.is_none_or(|apart| apart == Span::ZERO)).then(|| {
            format!(
                "the first round trip of traffic.{entry} is {fanout} answers with {burst} together, and a port holds {buffer}: no law \
                 saves its packets, because no delay has been measured yet"
            )
        })
    };
    entries(case).find_map(overflows)
}

/// T lies above the delay of a full buffer.
fn threshold_is_out_of_reach(case: &Case<'_>) -> Option<String> {
    let law = setting(case, "onramp.law")?.as_str()?;
    let sharing = setting(case, "network.sharing")?.as_str()?;
    if law == "off" || sharing != "per_port" {
        return None;
    }
    let threshold: Span = quantity(setting(case, "onramp.threshold"))?;
    let buffer: Bytes = quantity(setting(case, "network.buffer"))?;
    let rate: Rate = quantity(setting(case, "network.link.rate"))?;
    let idle_ns = values(case, "owd_us.p50")
        .into_iter()
        .fold(f64::INFINITY, f64::min)
        * 1e3;
    let full = rate.time_to_send(buffer);
    (threshold > full && idle_ns < threshold.as_ns() as f64).then(|| {
        format!(
            "T = {threshold} lies above the delay of a full buffer ({buffer} at {rate}: {full}), so On-Ramp hardly holds: lower T, or \
             see whether buffers are larger"
        )
    })
}

/// A percentile of few requests.
fn few_requests(case: &Case<'_>) -> Option<String> {
    let few = |kind: &&str| {
        let counts = values(case, &format!("{kind}.rct_us.n"));
        let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
        (least < FEW).then(|| {
            format!(
                "a run has {least:.0} measured requests ({kind}), fewer than {FEW:.0}: its 99th percentile is the slowest of them. \
                 Lengthen the run"
            )
        })
    };
    REQUESTS.iter().find_map(few)
}

/// Requests wait for retransmission timeouts.
fn timeouts_rule(case: &Case<'_>) -> Option<String> {
    let timeout: Span = quantity(setting(case, "host.min_rto"))?;
    let timeout_us = timeout.as_ns() as f64 / 1e3;
    let waits = |kind: &&str| {
        let reaches = |part: &str| {
            let us = mean(&values(case, &format!("{kind}.rct_us.{part}")))?;
            (us >= timeout_us).then_some(())
        };
        match (reaches("p50"), reaches("p99")) {
            (Some(()), _) => Some(format!(
                "half of the requests ({kind}) wait for a retransmission timeout of {timeout}: their times show lost packets, not queues"
            )),
            (None, Some(())) => Some(format!(
                "the slowest 1 % of the requests ({kind}) wait for a retransmission timeout of {timeout}. They determine the mean; \
                 the median shows the queues"
            )),
            (None, None) => None,
        }
    };
    REQUESTS.iter().find_map(waits)
}

/// The port in the table is not the one that drops.
fn drops_are_elsewhere(case: &Case<'_>) -> Option<String> {
    let all = mean(&values(case, "drops"))?;
    let here = mean(&values(case, "port.drops"))?;
    let port = case.runs[0].metrics.get("port.name")?.as_str()?;
    (all >= 10.0 && here < all / 2.0).then(|| {
        format!(
            "{:.0} % of the dropped packets are at other ports than {port}, which the table shows: measure.ports = [\"busiest\"] \
             finds the fullest",
            100.0 * (1.0 - here / all)
        )
    })
}

/// What On-Ramp did.
fn held(case: &Case<'_>) -> Option<String> {
    let part = mean(&values(case, "held_flows"))?;
    match mean(&values(case, "held_us")) {
        Some(us) => Some(format!(
            "On-Ramp held {} of the flows, for {us:.0} us in the mean",
            percent(part)
        )),
        None => Some("On-Ramp held no flow".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::run;
    use serde_json::json;

    fn summary(runs: Vec<RunResult>) -> SummaryFile {
        SummaryFile {
            schema: crate::SCHEMA,
            scenario: "t".to_owned(),
            version: String::new(),
            seed: 1,
            world: "sim".to_owned(),
            partial: false,
            planned_runs: runs.len(),
            runs,
        }
    }

    /// A run of 40 answers of 32 kB to a port with 300 kB, under a law with T = 50 us, of which nothing is to be said.
    fn usual(number: usize, params: &[(&str, &str)]) -> RunResult {
        let mut run = run(number, params);
        run.resolved = json!({
            "host": { "kind": "kernel", "initial_window": 10, "min_rto": "200 ms" },
            "network": { "sharing": "per_port", "buffer": "600 kB", "link": { "rate": "10 Gbit/s" } },
            "onramp": { "law": "final", "threshold": "50 us" },
            "traffic": [{ "kind": "incast", "fanout": 40, "size": "32 kB", "load": 0.2, "stagger": "0 s" }],
        });
        let metrics = json!({
            "incast.rct_us": { "n": 100, "p50": 100.0, "p99": 200.0 },
            "traffic.0.offered": 0.21, "owd_us": { "p50": 20.0 }, "drops": 100, "port.drops": 90, "port.name": "switch0-host0",
        });
        run.metrics = serde_json::from_value(metrics).expect("they are metrics");
        run
    }

    /// The remarks about a run that differs from the usual one in a setting or a metric.
    fn with(path: &str, value: Value) -> Vec<String> {
        let mut run = usual(0, &[]);
        match path.split_once('/') {
            Some(("metric", name)) => drop(run.metrics.insert(name.to_owned(), value)),
            _ => *run.resolved.pointer_mut(path).expect("it is there") = value,
        }
        remarks(&summary(vec![run]))
    }

    #[test]
    fn nothing_is_said_of_a_usual_run() {
        assert_eq!(remarks(&summary(vec![usual(0, &[])])), Vec::<String>::new());
    }

    #[test]
    fn each_trap_has_its_words() {
        let distribution = |n: u32, p50: f64, p99: f64| json!({ "n": n, "p50": p50, "p99": p99 });
        for (path, value, words) in [
            (
                "/network/buffer",
                json!("500 kB"),
                "40 answers with 579.2 kB together, and a port holds 500 kB",
            ),
            (
                "/onramp/threshold",
                json!("500 us"),
                "T = 500 us lies above the delay of a full buffer (600 kB at 10 Gbit/s: 480 us)",
            ),
            (
                "metric/traffic.0.offered",
                json!(0.1),
                "traffic.0 (incast) offers 10 % of its receivers' links in place of 20 %",
            ),
            (
                "metric/incast.rct_us",
                distribution(12, 1.0, 2.0),
                "12 measured requests (incast), fewer than 30",
            ),
            (
                "metric/incast.rct_us",
                distribution(99, 210e3, 300e3),
                "half of the requests (incast) wait",
            ),
            (
                "metric/incast.rct_us",
                distribution(99, 21.0, 300e3),
                "the slowest 1 % of the requests (incast) wait for a retransmission timeout",
            ),
            (
                "metric/port.drops",
                json!(10),
                "90 % of the dropped packets are at other ports than switch0-host0",
            ),
            ("metric/held_flows", json!(0.0), "On-Ramp held no flow"),
        ] {
            let said = with(path, value);
            assert_eq!(said.len(), 1, "{path}: {said:?}");
            assert!(said[0].contains(words), "{path}: {said:?}");
        }
    }

    #[test]
    fn what_is_even_already_is_not_recommended() {
        let mut run = usual(0, &[]);
        *run.resolved.pointer_mut("/traffic/0").expect("it is there") = json!({
            "kind": "poisson", "load": 0.02, "sizes": "stratified",
        });
        run.metrics
            .insert("traffic.0.offered".to_owned(), json!(0.0));
        let said = remarks(&summary(vec![run]));
        assert!(
            said[0].ends_with("too short for one flow more or less. Lengthen it"),
            "{said:?}"
        );
    }

    #[test]
    fn a_remark_names_its_cases_unless_it_is_about_all() {
        let mut runs: Vec<RunResult> = (0..3)
            .map(|number| usual(number, &[("case", ["a", "b", "c"][number])]))
            .collect();
        for run in &mut runs[..2] {
            run.metrics
                .insert("incast.rct_us".to_owned(), json!({ "n": 5 }));
        }
        for run in &mut runs {
            run.metrics.insert("held_flows".to_owned(), json!(0.5));
            run.metrics.insert("held_us".to_owned(), json!(7.0));
        }
        let said = remarks(&summary(runs));
        assert!(
            said[0].starts_with("a, b: a run has 5 measured requests"),
            "{said:?}"
        );
        assert_eq!(
            said[1],
            "On-Ramp held 50 % of the flows, for 7 us in the mean"
        );
    }

    #[test]
    fn loads_of_several_seeds_have_their_range() {
        let run = |number: usize, seed: &str, offered: f64| {
            let mut run = usual(number, &[("seed", seed)]);
            run.metrics
                .insert("traffic.0.offered".to_owned(), json!(offered));
            run
        };
        let said = remarks(&summary(vec![run(0, "1", 0.006), run(1, "2", 0.2)]));
        assert!(
            said[0].contains("offers 10 % (0.60 % to 20 % by seed)"),
            "{said:?}"
        );
    }
}
