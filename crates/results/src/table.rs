// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The comparison table of a scenario's runs, for a terminal.

use crate::run_result::{RunResult, SummaryFile};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A column of the comparison: its heading in two lines, and a cell for each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The heading that it shares with its neighbours: `RCT us`.
    pub group: &'static str,
    /// `mean`.
    pub name: &'static str,
    /// A cell for each run; none if the run does not have the metric.
    pub cells: Vec<Option<String>>,
}

/// The value of a run that a column shows.
#[derive(Clone, Copy)]
enum Cell {
    /// A field of a distribution.
    Field(&'static str, &'static str),
    Of(fn(&RunResult) -> Option<String>),
}

impl Cell {
    fn text(self, run: &RunResult) -> Option<String> {
        match self {
            Cell::Field(metric, field) => number(run, metric, field),
            Cell::Of(text) => text(run),
        }
    }
}

/// The headings of a column, and what it shows.
type Shown = (&'static str, &'static str, Cell);

const COLUMNS: [Shown; 19] = [
    ("RCT us", "mean", Cell::Field("incast.rct_us", "mean")),
    ("RCT us", "p50", Cell::Field("incast.rct_us", "p50")),
    ("RCT us", "p99", Cell::Field("incast.rct_us", "p99")),
    ("request us", "mean", Cell::Field("request.rct_us", "mean")),
    ("request us", "p50", Cell::Field("request.rct_us", "p50")),
    ("request us", "p99", Cell::Field("request.rct_us", "p99")),
    ("step us", "mean", Cell::Field("all_to_all.step_us", "mean")),
    ("step us", "p50", Cell::Field("all_to_all.step_us", "p50")),
    ("step us", "p99", Cell::Field("all_to_all.step_us", "p99")),
    (
        "FCT mean us",
        "small",
        Cell::Field("background.fct_us.small", "mean"),
    ),
    (
        "FCT mean us",
        "medium",
        Cell::Field("background.fct_us.medium", "mean"),
    ),
    (
        "FCT mean us",
        "large",
        Cell::Field("background.fct_us.large", "mean"),
    ),
    ("", "drops", Cell::Of(|run| count(run, "drops"))),
    ("time-", "outs", Cell::Of(|run| count(run, "timeouts"))),
    (
        "goodput",
        "Gbit/s",
        Cell::Of(|run| value(run, "background.goodput_gbps").map(|v| format!("{v:.2}"))),
    ),
    (
        "port",
        "used %",
        Cell::Of(|run| value(run, "utilisation").map(|v| format!("{:.1}", v * 100.0))),
    ),
    ("queue us", "p99", Cell::Field("queue_us", "p99")),
    ("OWD us", "p99", Cell::Field("owd_us", "p99")),
    ("un-", "finished", Cell::Of(unfinished)),
];

/// The columns after the case's name that at least one run fills.
pub fn table_columns(runs: &[RunResult]) -> Vec<TableColumn> {
    let column = |(group, name, cell): Shown| TableColumn {
        group,
        name,
        cells: runs.iter().map(|run| cell.text(run)).collect(),
    };
    let mut columns: Vec<TableColumn> = COLUMNS.map(column).into();
    columns.retain(|column| column.cells.iter().any(Option::is_some));
    columns
}

/// The table, with a line for each finished run. Columns that no run fills are omitted.
///
/// ```text
///              RCT us
/// case          mean    p50     p99  drops
/// fq            1296   1010   36879    182
/// final          163    151     558      0
/// ```
pub fn table(summary: &SummaryFile) -> String {
    let mut columns = vec![names(&summary.runs)];
    let mut last_group = "";
    for TableColumn { group, name, cells } in table_columns(&summary.runs) {
        let heading = if group == last_group { "" } else { group };
        last_group = group;
        let cells = cells
            .into_iter()
            .map(|cell| cell.unwrap_or_else(|| "-".into()));
        columns.push(
            [heading.to_owned(), name.to_owned()]
                .into_iter()
                .chain(cells)
                .collect(),
        );
    }
    let mut text = render(&columns);
    if summary.partial {
        let _ = writeln!(
            text,
            "partial: {} of {} runs",
            summary.whole_runs(),
            summary.planned_runs
        );
    }
    text.extend(requests(&summary.runs));
    text.extend(ports(&summary.runs));
    text
}

fn names(runs: &[RunResult]) -> Vec<String> {
    let heading = ["".to_owned(), "case".to_owned()];
    let name = |run| case_name(run, runs);
    heading.into_iter().chain(runs.iter().map(name)).collect()
}

/// The case, and the parameters in which this one of its `runs` differs from the others.
pub fn case_name(run: &RunResult, runs: &[RunResult]) -> String {
    let case = run.params.get("case");
    let same = |other: &&RunResult| other.params.get("case") == case;
    let implied = |key: &String| {
        let all = |other: &RunResult| other.params.get(key) == run.params.get(key);
        case.is_some() && runs.iter().filter(same).all(all)
    };
    let rest = run.params.iter().filter(|(key, _)| !implied(key));
    let rest =
        rest.map(|(key, value)| format!("{}={value}", key.rsplit('.').next().unwrap_or(key)));
    case.cloned()
        .into_iter()
        .chain(rest)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Aligns the first column left and the others right.
fn render(columns: &[Vec<String>]) -> String {
    let width = |column: &Vec<String>| {
        column
            .iter()
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = columns.iter().map(width).collect();
    let mut text = String::new();
    for row in 0..columns[0].len() {
        let mut line = format!("{:<1$}", columns[0][row], widths[0]);
        for (column, width) in columns.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {:>width$}", column[row]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn value(run: &RunResult, metric: &str) -> Option<f64> {
    run.metrics.get(metric)?.as_f64()
}

fn count(run: &RunResult, metric: &str) -> Option<String> {
    value(run, metric).map(|v| format!("{v:.0}"))
}

/// A field of a distribution, with about three digits.
fn number(run: &RunResult, metric: &str, field: &str) -> Option<String> {
    let v = run.metrics.get(metric)?.get(field)?.as_f64()?;
    Some(if v < 100.0 {
        format!("{v:.1}")
    } else {
        format!("{v:.0}")
    })
}

fn unfinished(run: &RunResult) -> Option<String> {
    let parts = [
        "incast.unfinished",
        "request.unfinished",
        "all_to_all.unfinished",
        "background.unfinished",
    ];
    let counts: Vec<u64> = parts
        .iter()
        .filter_map(|p| run.metrics.get(*p).and_then(Value::as_u64))
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum::<u64>().to_string())
}

/// The numbers of requests and of steps behind the percentiles of a run.
fn requests(runs: &[RunResult]) -> Vec<String> {
    let kinds = [
        ("incast.rct_us", "request"),
        ("request.rct_us", "request of kind request"),
        ("all_to_all.step_us", "step"),
    ];
    let line = |(metric, word)| count_by_case(runs, metric, word);
    kinds.into_iter().filter_map(line).collect()
}

fn count_by_case(runs: &[RunResult], metric: &str, word: &str) -> Option<String> {
    let counts = runs
        .iter()
        .filter_map(|run| run.metrics.get(metric)?.get("n")?.as_u64());
    let (least, most) = (counts.clone().min()?, counts.max()?);
    let words = match word.split_once(' ') {
        _ if most == 1 => word.to_owned(),
        Some((first, rest)) => format!("{first}s {rest}"),
        None => format!("{word}s"),
    };
    Some(match least == most {
        true => format!("{least} {words} a case\n"),
        false => format!("{least} to {most} {words} a case\n"),
    })
}

/// Which port the columns of the port and of OWD measure.
fn ports(runs: &[RunResult]) -> Option<String> {
    let name = |run: &RunResult| Some(run.metrics.get("port.name")?.as_str()?.to_owned());
    let names: BTreeSet<String> = runs.iter().filter_map(name).collect();
    let names: Vec<String> = names.into_iter().collect();
    let is_named = |metric: &String| metric.starts_with("ports.");
    let host = match runs.iter().any(|run| run.metrics.keys().any(is_named)) {
        true => "the measured host",
        false => "its host",
    };
    (!names.is_empty()).then(|| format!("port and queue: {}; OWD: to {host}\n", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn run(case: &str, cc: &str, mean: f64, drops: u64) -> RunResult {
        let rct = json!({"n": 500, "mean": mean, "p50": mean, "p90": 1, "p95": 1, "p99": 10.0 * mean, "max": 1});
        RunResult {
            run: 0,
            params: BTreeMap::from([
                ("case".to_owned(), case.to_owned()),
                ("host.qdisc".to_owned(), "edge".to_owned()),
                ("host.cc".to_owned(), cc.to_owned()),
            ]),
            resolved: json!({}),
            partial: false,
            metrics: BTreeMap::from([
                ("incast.rct_us".to_owned(), rct),
                ("drops".to_owned(), json!(drops)),
            ]),
            cost: BTreeMap::new(),
        }
    }

    fn summary(partial: bool) -> SummaryFile {
        SummaryFile {
            schema: 1,
            scenario: "t".into(),
            version: "0".into(),
            seed: 7,
            world: "rack".into(),
            partial,
            planned_runs: 4,
            runs: vec![
                run("fq", "cubic", 1296.4, 182),
                run("final", "cubic", 16.34, 0),
                run("final", "bbr", 21.0, 7),
            ],
        }
    }

    #[test]
    fn a_line_for_each_run_and_only_columns_with_values() {
        assert_eq!(
            table(&summary(false)),
            "                RCT us\n\
             case              mean   p50    p99  drops\n\
             fq                1296  1296  12964    182\n\
             final cc=cubic    16.3  16.3    163      0\n\
             final cc=bbr      21.0  21.0    210      7\n\
             500 requests a case\n"
        );
    }

    #[test]
    fn the_foot_has_the_range_of_requests_and_the_measured_port() {
        let mut summary = summary(false);
        for run in &mut summary.runs {
            let port = json!("switch0-host0");
            run.metrics.insert("port.name".into(), port);
        }
        let few = json!({"n": 208, "mean": 1.0, "p50": 1.0, "p99": 1.0});
        summary.runs[1].metrics.insert("incast.rct_us".into(), few);
        let text = table(&summary);
        assert!(text.ends_with(
            "208 to 500 requests a case\nport and queue: switch0-host0; OWD: to its host\n"
        ));
        for run in &mut summary.runs {
            let one = json!({"n": 1, "mean": 1.0, "p50": 1.0, "p99": 1.0});
            run.metrics.insert("incast.rct_us".into(), one);
        }
        assert!(table(&summary).contains("\n1 request a case\n"));
    }

    #[test]
    fn a_partial_summary_says_so() {
        assert!(table(&summary(true)).contains("partial: 3 of 4 runs"));
    }
}
