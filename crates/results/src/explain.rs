// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Generates docs/results.md from the tables of metrics, columns and series.

use crate::row::SERIES_NAMES;
use crate::run_result::SCHEMA;
use crate::schema::{ColumnOf, FLOWS, REQUESTS, SERIES};
use std::fmt::Write as _;

/// Cost of the measurement: name, unit, worlds, meaning.
#[rustfmt::skip]
const COST: [(&str, &str, &str, &str); 7] = [
    ("events", "1", "sim", "Events of the whole run"),
    ("packet_hops", "1", "sim", "Transmissions of a packet over one link in the whole run"),
    ("flows", "1", "both", "Flows of the plan"),
    ("rack_s", "s", "rack", "Time from the end of the warm-up to the end of the run, before it is scaled back"),
    ("frames", "1", "rack", "Frames that left all ports within the window"),
    ("cpu_s", "s", "rack", "CPU time of the window, with `--measure-cpu`. In the virtual machine 1 ns is one guest instruction"),
    ("cpu_ns_per_frame", "ns", "rack", "`cpu_s` divided by `frames`"),
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
        "Case and parameters in which the runs differ, as in the scenario",
    ),
    (
        "resolved",
        "Every setting of the run, in the form of a scenario",
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
        "<!-- Generated, which a test compares: cargo run -p onramp-results --example results-reference > docs/results.md -->\n\n\
         # Results\n\n\
         This page describes the files that `onramp sim run`, `onramp rack run` and `onramp reproduce` write, for those \
         who read them. This is schema {SCHEMA}.\n\n\
         | file | content |\n|---|---|\n\
         | `summary.json` | Metrics of all runs |\n\
         | `flows.parquet`, `requests.parquet`, `series.parquet` | Rows of all runs |\n\
         | `runs/run-K.json` | Metrics of run K |\n\
         | `runs/flows-K.parquet`, `runs/requests-K.parquet`, `runs/series-K.parquet` | Rows of run K |\n\n\
         All values describe the real network: values of the rack, which runs slower, are scaled back. Times count from \
         the start of the traffic. The **window** is the time from the end of the warm-up to the end of the traffic. \
         Traffic that starts before the end of the warm-up does not count in metrics. The **measured port** is the switch \
         port to the first aggregator, or to the first receiver if there is no aggregator (host 0 if all hosts receive). \
         The metric `port.name` names it.\n\n"
    );
    summary(&mut out);
    metrics(&mut out);
    files(&mut out);
    lines(
        &mut out,
        "## Series\n\nA run has at most 4,000 intervals. The measured port and its host always have series; in the \
         simulator `--series` adds others.\n\n\
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
        &format!(
            "\nAn element of `runs`, which is also the content of `runs/run-K.json`:\n\n{head}"
        ),
        RUN.map(member),
    );
}

fn metrics(out: &mut String) {
    out.push_str(
        "\n## Metrics\n\nA distribution is `{n, mean, p50, p90, p95, p99, max}`, or null if there are no values. \
         Percentiles are nearest-rank: values that occurred. Unit 1 is a count or a ratio. Small flows have up to 10 kB, \
         medium flows up to 1 MB, large flows more. A metric with `hosts` nic or kernel exists only in scenarios with that \
         `host.kind`.\n\n\
         | metric | unit | form | world | hosts | meaning |\n|---|---|---|---|---|---|\n",
    );
    for m in crate::metrics() {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} |",
            m.name, m.unit, m.form, m.worlds, m.hosts, m.meaning
        );
    }
}

fn files(out: &mut String) {
    out.push_str(
        "\n## Parquet files\n\nThe first columns of a row identify its run. A parameter `a.b` in \
         which the runs differ is a column `param_a_b`, with the value as the scenario has it; plain numbers are numbers there. \
         A quantity has a second column with a number in the unit that ends the column's name: `_ns` for times, \
         `_bits_per_s` for rates, `_bytes` for sizes. It is null in runs where the parameter is a word (`off`), so group by \
         the first.\n\n\
         | column | type | meaning |\n|---|---|---|\n\
         | `run` | int64 | Number of the run in the scenario, from 0 |\n\
         | `label` | text | Name of the run in the table: its case, and the parameters in which it differs from others |\n\
         | `case` | text | Name of the case, if the scenario has cases |\n\
         | `param_*` | text, int64 or double, or null | Value of a parameter |\n\
         | `param_*_ns`, `param_*_bits_per_s`, `param_*_bytes` | int64 or double, or null | The same as a number, if it is a quantity |\n",
    );
    file(
        out,
        "flows.parquet",
        "Each row is a flow that started",
        &FLOWS,
    );
    file(
        out,
        "requests.parquet",
        "Each row is a request, or a step of all_to_all",
        &REQUESTS,
    );
    file(
        out,
        "series.parquet",
        "Each row is the value of a port, host or flow in an interval",
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
    use crate::run_result::{RunResult, SummaryFile};
    use serde_json::{json, Value};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
        let page = std::fs::read_to_string(path).unwrap();
        let hint = "run: cargo run -p onramp-results --example results-reference > docs/results.md";
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
        let documented = |members: &[(&str, &str)]| -> BTreeSet<String> {
            members.iter().map(|(name, _)| (*name).to_owned()).collect()
        };
        assert_eq!(written(json!(summary)), documented(&SUMMARY));
        assert_eq!(written(json!(run)), documented(&RUN));
    }
}
