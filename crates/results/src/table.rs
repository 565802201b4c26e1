// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The comparison table of a scenario's runs, for a terminal.

use crate::case::{cases, Case, Lines};
use crate::run_result::{RunResult, SummaryFile};
use crate::statistics::Estimate;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A column of the comparison: its heading in two lines, and a cell for each case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The heading that it shares with its neighbours: `RCT us`.
    pub group: &'static str,
    /// `mean`.
    pub name: &'static str,
    /// The metric that it shows: `incast.rct_us.mean`; none if it is a sum.
    pub metric: Option<&'static str>,
    /// A cell for each case; none if no run of it has the metric.
    pub cells: Vec<Option<String>>,
}

/// How a column writes its numbers.
#[derive(Clone, Copy)]
enum Form {
    /// With about three digits.
    Digits,
    /// Whole; the mean of several with a digit.
    Count,
    /// With two decimals.
    Hundredths,
    /// A fraction, in percent.
    Percent,
}

impl Form {
    fn text(self, value: f64, is_mean: bool) -> String {
        match self {
            Form::Digits if value.abs() < 100.0 => format!("{value:.1}"),
            Form::Count if is_mean && value.abs() < 100.0 => format!("{value:.1}"),
            Form::Digits | Form::Count => format!("{value:.0}"),
            Form::Hundredths => format!("{value:.2}"),
            Form::Percent => format!("{:.1}", value * 100.0),
        }
    }

    /// The mean of a case, with half of its 95 % interval if its runs differ.
    fn cell(self, values: &[f64]) -> Option<String> {
        let estimate = Estimate::of(values)?;
        let half = estimate.half().filter(|half| *half > 0.0);
        let mean = self.text(estimate.value, half.is_some());
        let half = half.map(|half| format!(" ±{}", self.text(half, true)));
        Some(mean + &half.unwrap_or_default())
    }
}

/// The headings of a column, its metric, and the form of its numbers.
type Shown = (&'static str, &'static str, &'static str, Form);

#[rustfmt::skip]
const COLUMNS: [Shown; 18] = [
    ("RCT us", "mean", "incast.rct_us.mean", Form::Digits),
    ("RCT us", "p50", "incast.rct_us.p50", Form::Digits),
    ("RCT us", "p99", "incast.rct_us.p99", Form::Digits),
    ("request us", "mean", "request.rct_us.mean", Form::Digits),
    ("request us", "p50", "request.rct_us.p50", Form::Digits),
    ("request us", "p99", "request.rct_us.p99", Form::Digits),
    ("step us", "mean", "all_to_all.step_us.mean", Form::Digits),
    ("step us", "p50", "all_to_all.step_us.p50", Form::Digits),
    ("step us", "p99", "all_to_all.step_us.p99", Form::Digits),
    ("FCT mean us", "small", "background.fct_us.small.mean", Form::Digits),
    ("FCT mean us", "medium", "background.fct_us.medium.mean", Form::Digits),
    ("FCT mean us", "large", "background.fct_us.large.mean", Form::Digits),
    ("", "drops", "drops", Form::Count),
    ("time-", "outs", "timeouts", Form::Count),
    ("goodput", "Gbit/s", "background.goodput_gbps", Form::Hundredths),
    ("port", "used %", "utilisation", Form::Percent),
    ("queue us", "p99", "queue_us.p99", Form::Digits),
    ("OWD us", "p99", "owd_us.p99", Form::Digits),
];

/// What did not end, by kind of traffic. The last column has their sum.
const UNFINISHED: [&str; 4] = [
    "incast.unfinished",
    "request.unfinished",
    "all_to_all.unfinished",
    "background.unfinished",
];

/// The columns after the case's name that at least one run fills.
pub fn table_columns(cases: &[Case<'_>]) -> Vec<TableColumn> {
    let shown = |&(group, name, metric, form): &Shown| TableColumn {
        group,
        name,
        metric: Some(metric),
        cells: cells(cases, form, |run| run.number(metric)),
    };
    let unfinished = TableColumn {
        group: "un-",
        name: "finished",
        metric: None,
        cells: cells(cases, Form::Count, unfinished),
    };
    let columns = COLUMNS.iter().map(shown).chain([unfinished]);
    let is_filled = |column: &TableColumn| column.cells.iter().any(Option::is_some);
    columns.filter(is_filled).collect()
}

fn cells(
    cases: &[Case<'_>],
    form: Form,
    number: impl Fn(&RunResult) -> Option<f64>,
) -> Vec<Option<String>> {
    let cell = |case: &Case<'_>| {
        let values = case.runs.iter().filter_map(|run| number(run));
        form.cell(&values.collect::<Vec<_>>())
    };
    cases.iter().map(cell).collect()
}

fn unfinished(run: &RunResult) -> Option<f64> {
    let counts: Vec<f64> = UNFINISHED.iter().filter_map(|m| run.number(m)).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// The table, with a line for each case: the mean over its seeds, and half of the mean's 95 % confidence interval. Or with a
/// line for each run. Columns that no run fills are omitted.
///
/// ```text
///             RCT us
/// case          mean       p50         p99      drops
/// fq        1296 ±85  1010 ±12  36879 ±920     182 ±9
/// final       163 ±4    151 ±1      558 ±7          0
/// ```
pub fn table(summary: &SummaryFile, lines: Lines) -> String {
    let cases = cases(&summary.runs, lines);
    let mut columns = vec![names(&cases)];
    let mut last_group = "";
    for TableColumn {
        group, name, cells, ..
    } in table_columns(&cases)
    {
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
    text.extend(seeds(&cases));
    text.extend(requests(&summary.runs, &cases));
    text.extend(ports(&summary.runs));
    text
}

fn names(cases: &[Case<'_>]) -> Vec<String> {
    let heading = ["".to_owned(), "case".to_owned()];
    let names = cases.iter().map(|case| case.name.clone());
    heading.into_iter().chain(names).collect()
}

/// Over how many seeds the means are.
fn seeds(cases: &[Case<'_>]) -> Option<String> {
    let counts = cases.iter().map(|case| case.runs.len());
    let (least, most) = (counts.clone().min()?, counts.max()?);
    let of = match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    };
    let text = format!("means over {of} seeds, ± half of their 95 % confidence interval; --each-seed prints each\n");
    (most > 1).then_some(text)
}

/// Aligns the first column left and the others right.
pub(crate) fn render(columns: &[Vec<String>]) -> String {
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

/// The numbers of requests and of steps behind the percentiles of a run.
fn requests(runs: &[RunResult], cases: &[Case<'_>]) -> Vec<String> {
    let each = match cases.iter().any(|case| case.runs.len() > 1) {
        true => "a run",
        false => "a case",
    };
    let kinds = [
        ("incast.rct_us.n", "request"),
        ("request.rct_us.n", "request of kind request"),
        ("all_to_all.step_us.n", "step"),
    ];
    let line = |(metric, word)| count_of_runs(runs, metric, word, each);
    kinds.into_iter().filter_map(line).collect()
}

fn count_of_runs(runs: &[RunResult], metric: &str, word: &str, each: &str) -> Option<String> {
    let counts = runs.iter().filter_map(|run| run.number(metric));
    let least = counts.clone().min_by(f64::total_cmp)?;
    let most = counts.max_by(f64::total_cmp)?;
    let words = match word.split_once(' ') {
        _ if most == 1.0 => word.to_owned(),
        Some((first, rest)) => format!("{first}s {rest}"),
        None => format!("{word}s"),
    };
    Some(match least == most {
        true => format!("{least} {words} {each}\n"),
        false => format!("{least} to {most} {words} {each}\n"),
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
            table(&summary(false), Lines::Cases),
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
        let text = table(&summary, Lines::Cases);
        assert!(text.ends_with(
            "208 to 500 requests a case\nport and queue: switch0-host0; OWD: to its host\n"
        ));
        for run in &mut summary.runs {
            let one = json!({"n": 1, "mean": 1.0, "p50": 1.0, "p99": 1.0});
            run.metrics.insert("incast.rct_us".into(), one);
        }
        assert!(table(&summary, Lines::Cases).contains("\n1 request a case\n"));
    }

    #[test]
    fn seeds_are_folded_into_means_with_intervals() {
        let mut summary = summary(false);
        for (seed, drops) in [(1, 180), (2, 182), (3, 187)] {
            let mut run = run("fq", "cubic", 1296.4, drops);
            run.params.insert("seed".into(), seed.to_string());
            summary.runs.push(run);
        }
        summary.runs.drain(..3);
        let text = table(&summary, Lines::Cases);
        assert!(text.contains("\nfq      1296  1296"), "{text}");
        assert!(text.contains("183 ±9.0\n"), "{text}");
        assert!(text.contains("\nmeans over 3 seeds"), "{text}");
        assert!(text.contains("\n500 requests a run\n"), "{text}");
        let text = table(&summary, Lines::Runs);
        assert!(text.contains("\nfq seed=3"), "{text}");
    }

    #[test]
    fn a_partial_summary_says_so() {
        assert!(table(&summary(true), Lines::Cases).contains("partial: 3 of 4 runs"));
    }
}
