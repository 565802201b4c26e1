//! docs/results.md, made of the tables of metrics, columns and series.

use crate::schema::{ColumnOf, FLOWS, REQUESTS, SERIES};
use crate::{METRICS, SCHEMA};
use std::fmt::Write as _;

/// Names of series: name, place, worlds, meaning.
#[rustfmt::skip]
pub(crate) const SERIES_NAMES: [(&str, &str, &str, &str); 11] = [
    ("queue_us", "port", "both", "Time until its line is free, the longest of the interval"),
    ("queue_bytes", "port", "sim", "Bytes that wait, the most of the interval"),
    ("rate_gbps", "port", "both", "What it sent, mean of the interval"),
    ("pfc_paused_fraction", "port", "sim", "Part of the interval in which PFC held its data"),
    ("owd_us", "host", "both", "One-way delay to it, the longest of the interval"),
    ("rate_limit_gbps", "flow", "sim", "Its pace at the end of the interval, if it has one"),
    ("window_bytes", "flow", "sim", "What it may have unacknowledged then, if that is limited"),
    ("held_fraction", "flow", "sim", "Part of the interval in which On-Ramp held its first packet"),
    ("pair_owd_us", "flow", "sim", "With `--series pairs`: delay that a sampled packet met"),
    ("pair_last_owd_us", "flow", "sim", "The last one-way delay that its sender knew when it sent the packet, by the hosts' clocks"),
    ("pair_last_rtt_us", "flow", "sim", "The last round-trip time that its sender knew then"),
];

/// What the measuring cost: name, unit, worlds, meaning.
#[rustfmt::skip]
const COST: [(&str, &str, &str, &str); 7] = [
    ("events", "1", "sim", "Events of the whole run"),
    ("packet_hops", "1", "sim", "Transmissions of a packet over one link in the whole run"),
    ("flows", "1", "both", "Flows of the plan"),
    ("rack_s", "s", "rack", "From the warm-up's end to the very end, in the rack's slower time"),
    ("frames", "1", "rack", "Frames that left all ports within the window"),
    ("cpu_s", "s", "rack", "CPU time of the window, if asked for; in the virtual machine a nanosecond is a guest instruction"),
    ("cpu_ns_per_frame", "ns", "rack", "The same for each frame"),
];

/// Members of `summary.json`, and of the elements of its `runs`.
const SUMMARY: [(&str, &str); 8] = [
    ("schema", "Version of this format"),
    ("scenario", "Title of the scenario"),
    ("version", "Version of onramp"),
    ("seed", "Seed of the first run"),
    ("world", "`sim` or `rack`"),
    ("partial", "Whether runs are missing or were interrupted"),
    ("planned_runs", "Number of runs that the scenario has"),
    ("runs", "The runs, in the scenario's order"),
];
const RUN: [(&str, &str); 6] = [
    ("run", "Number of the run in the scenario, from 0"),
    (
        "params",
        "Case and parameters in which the runs differ, as the scenario writes them",
    ),
    (
        "resolved",
        "Every setting of the run, as a scenario would give it",
    ),
    (
        "partial",
        "Present and true if the run was interrupted: it has rows and no metrics",
    ),
    ("metrics", "See [Metrics](#metrics)"),
    ("cost", "See [Cost](#cost)"),
];

/// The page.
pub fn explain_markdown() -> String {
    let mut out = format!(
        "<!-- Generated, which a test compares: cargo run -p onramp-results --example reference > docs/results.md -->\n\n\
         # Results\n\n\
         What `onramp sim run`, `onramp rack run` and `onramp reproduce` write, for whoever reads the files: \
         `summary.json` has the metrics of all runs, `flows.parquet`, `requests.parquet` and `series.parquet` have \
         the rows. `run-K.json`, `flows-K.parquet`, `requests-K.parquet` and `series-K.parquet` are the same of run K \
         alone. This is schema {SCHEMA}.\n\n\
         All values are of the real network: the rack's slower time is scaled back. Times are since the start of the \
         traffic. The **window** is from the end of the warm-up to the end of the traffic. What starts before the \
         warm-up's end does not count in metrics. The **measured port** is the switch port to the first aggregator, \
         else to the first receiver (host 0 if all hosts receive); the metric `port.name` names it.\n\n"
    );
    summary(&mut out);
    metrics(&mut out);
    files(&mut out);
    lines(
        &mut out,
        "## Series\n\nA run is cut into at most 4,000 intervals. The measured port and its host are \
         always there; the simulator adds what `--series` asks for.\n\n\
         | name | place | world | meaning |\n|---|---|---|---|\n",
        SERIES_NAMES.map(|(name, place, worlds, meaning)| format!("`{name}` | {place} | {worlds} | {meaning}")),
    );
    lines(
        &mut out,
        "\n## Cost\n\n| name | unit | world | meaning |\n|---|---|---|---|\n",
        COST.map(|(name, unit, worlds, meaning)| {
            format!("`{name}` | {unit} | {worlds} | {meaning}")
        }),
    );
    out
}

fn summary(out: &mut String) {
    let member = |(name, meaning): (&str, &str)| format!("`{name}` | {meaning}");
    let head = "| member | meaning |\n|---|---|\n";
    lines(
        out,
        &format!("## summary.json\n\n{head}"),
        SUMMARY.map(member),
    );
    lines(
        out,
        &format!("\nA run, also the content of `run-K.json`:\n\n{head}"),
        RUN.map(member),
    );
}

fn metrics(out: &mut String) {
    out.push_str(
        "\n## Metrics\n\nA distribution is `{n, mean, p50, p90, p95, p99, max}`; percentiles are values that occurred \
         (nearest rank). It is null if there are no values. Unit 1 is a count or a ratio. Small flows have up to 10 kB, \
         medium up to 1 MB, large more. Metrics with `hosts` nic or kernel are of scenarios with that `host.kind`.\n\n\
         | metric | unit | form | world | hosts | meaning |\n|---|---|---|---|---|---|\n",
    );
    for m in METRICS {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} |",
            m.name, m.unit, m.form, m.worlds, m.hosts, m.meaning
        );
    }
}

fn files(out: &mut String) {
    out.push_str(
        "\n## Parquet files\n\nEvery row begins with the columns that say which run it is of. A parameter `a.b` in \
         which the runs differ is a column `param_a_b`. Its numbers are numbers: times end in `_ns`, rates in \
         `_bits_per_s`, sizes in `_bytes`. A parameter that is a quantity in some runs and a word in others (`off`) has \
         two columns, of which one is null in each row.\n\n\
         | column | type | meaning |\n|---|---|---|\n\
         | `run` | int64 | Number of the run in the scenario, from 0 |\n\
         | `case` | text | Name of the case, if the scenario has cases |\n\
         | `param_*` | int64, double or text, or null | Value of a parameter |\n",
    );
    file(out, "flows.parquet", "A row is a flow that started", &FLOWS);
    file(
        out,
        "requests.parquet",
        "A row is a request, or a step of all_to_all",
        &REQUESTS,
    );
    file(
        out,
        "series.parquet",
        "A row is the value of a place in an interval",
        &SERIES,
    );
    out.push('\n');
}

fn file<Row>(out: &mut String, name: &str, row: &str, columns: &[ColumnOf<Row>]) {
    let line =
        |c: &ColumnOf<Row>| format!("`{}` | {} | {} | {}", c.name, c.kind(), c.worlds, c.meaning);
    let head = format!(
        "\n### {name}\n\n{row}. Columns of world sim are null in the rack.\n\n\
         | column | type | world | meaning |\n|---|---|---|---|\n"
    );
    lines(out, &head, columns.iter().map(line));
}

fn lines(out: &mut String, head: &str, lines: impl IntoIterator<Item = String>) {
    out.push_str(head);
    for line in lines {
        let _ = writeln!(out, "| {line} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunResult, SummaryFile};
    use serde_json::{json, Value};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
        let page = std::fs::read_to_string(path).unwrap();
        let hint = "run: cargo run -p onramp-results --example reference > docs/results.md";
        assert!(page == explain_markdown(), "{hint}");
    }

    #[test]
    fn members_are_those_that_are_written() {
        let run = RunResult {
            run: 0,
            params: BTreeMap::new(),
            resolved: Value::Null,
            partial: true,
            metrics: BTreeMap::new(),
            cost: BTreeMap::new(),
        };
        let summary = SummaryFile {
            schema: SCHEMA,
            scenario: "t".into(),
            version: "0".into(),
            seed: 1,
            world: "sim".into(),
            partial: true,
            planned_runs: 1,
            runs: vec![run.clone()],
        };
        let written = |value: Value| -> BTreeSet<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        let told = |members: &[(&str, &str)]| -> BTreeSet<String> {
            members.iter().map(|(name, _)| (*name).to_owned()).collect()
        };
        assert_eq!(written(json!(summary)), told(&SUMMARY));
        assert_eq!(written(json!(run)), told(&RUN));
    }
}
