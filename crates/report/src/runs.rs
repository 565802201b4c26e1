// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A section of a scenario's results in one world: `summary.json` and its tables.

use onramp_results::figure::{Axis, Plot, PlotKind, Series};
use onramp_results::{case_name, table_columns, Points, RequestTimes, SeriesOfRun, SummaryFile};
use serde_json::Value;

use crate::number::three;
use crate::section::{Section, Table};

/// Largest number of points of a drawn series: the page stays small, and a screen has no more columns.
const POINTS: usize = 1500;

/// The tables of a result directory.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Completion times of requests.
    pub requests: RequestTimes,
    /// Queueing delay at the measured port, in us.
    pub queue: SeriesOfRun,
    /// One-way delay to its host, in us.
    pub owd: SeriesOfRun,
}

impl Section {
    /// A section of a scenario's results. `name` is the directory's name, `directory` its path.
    pub fn of_runs(
        summary: SummaryFile,
        samples: &Samples,
        name: &str,
        directory: &str,
    ) -> Section {
        let case = |run| case_name(run, &summary.runs);
        let names: Vec<String> = summary.runs.iter().map(case).collect();
        let case = |run: usize| {
            let position = summary.runs.iter().position(|r| r.run == run);
            position.map_or_else(|| format!("run {run}"), |at| names[at].clone())
        };
        let world = match summary.world.as_str() {
            "sim" => "the simulator",
            "rack" => "real Linux TCP, in the virtual rack",
            other => other,
        };
        let mut plots = cdfs(&samples.requests, &case);
        plots.extend(over_time("Queue of", "queue (us)", &samples.queue, &case));
        plots.extend(over_time(
            "One-way delay to",
            "OWD (us)",
            &samples.owd,
            &case,
        ));
        let partial = format!(
            "The command was interrupted: {} of {} runs are complete.",
            summary.whole_runs(),
            summary.planned_runs
        );
        let resolved = summary.runs.iter().map(|run| run.resolved.clone());
        Section {
            name: name.to_owned(),
            title: summary.scenario.clone(),
            partial: summary.partial.then_some(partial),
            facts: vec![
                ("Ran on", world.to_owned()),
                ("Seed", summary.seed.to_string()),
                ("onramp", summary.version.clone()),
                ("Directory", directory.to_owned()),
            ],
            tables: vec![comparison(&summary, &names), all_metrics(&summary, &names)],
            plots,
            resolved: names.iter().cloned().zip(resolved).collect(),
            ..Section::default()
        }
    }
}

/// The table that the terminal shows.
fn comparison(summary: &SummaryFile, names: &[String]) -> Table {
    let shown = table_columns(&summary.runs);
    let heading = |c: &onramp_results::TableColumn| match c.group.strip_suffix('-') {
        // The terminal's headings break words: "time-", "outs".
        Some(begin) => (String::new(), format!("{begin}{}", c.name)),
        None => (c.group.to_owned(), c.name.to_owned()),
    };
    let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "-".into());
    let row = |(index, name): (usize, &String)| {
        let cells = shown.iter().map(|column| cell(&column.cells[index]));
        [name.clone()].into_iter().chain(cells).collect()
    };
    Table {
        title: "Cases".into(),
        folded: false,
        columns: [(String::new(), "case".to_owned())]
            .into_iter()
            .chain(shown.iter().map(heading))
            .collect(),
        rows: names.iter().enumerate().map(row).collect(),
    }
}

/// Every metric of every run: a row for each number, a column for each run.
fn all_metrics(summary: &SummaryFile, names: &[String]) -> Table {
    let mut metrics: Vec<String> = Vec::new();
    let flat: Vec<Vec<(String, String)>> = summary
        .runs
        .iter()
        .map(|run| {
            let mut numbers = Vec::new();
            for (name, value) in &run.metrics {
                flatten(name, value, &mut numbers);
            }
            numbers
        })
        .collect();
    for (name, _) in flat.iter().flatten() {
        if !metrics.contains(name) {
            metrics.push(name.clone());
        }
    }
    metrics.sort();
    let cell = |run: &Vec<(String, String)>, metric: &String| {
        let found = run.iter().find(|(name, _)| name == metric);
        found.map_or("-".to_owned(), |(_, value)| value.clone())
    };
    let row = |metric: &String| {
        let cells = flat.iter().map(|run| cell(run, metric));
        [metric.clone()].into_iter().chain(cells).collect()
    };
    let columns = ["metric".to_owned()]
        .into_iter()
        .chain(names.iter().cloned());
    Table {
        title: "All metrics".into(),
        folded: true,
        columns: columns.map(|name| (String::new(), name)).collect(),
        rows: metrics.iter().map(row).collect(),
    }
}

fn flatten(name: &str, value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                flatten(&format!("{name}.{field}"), value, out);
            }
        }
        Value::Array(values) => {
            let all: Vec<String> = values.iter().map(plain).collect();
            out.push((name.to_owned(), all.join(", ")));
        }
        _ => out.push((name.to_owned(), plain(value))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        _ => value.as_f64().map_or_else(|| value.to_string(), three),
    }
}

/// A cumulative distribution for each traffic entry with requests.
fn cdfs(requests: &RequestTimes, case: &dyn Fn(usize) -> String) -> Vec<Plot> {
    let mut traffics: Vec<usize> = requests.keys().map(|&(_, traffic)| traffic).collect();
    traffics.sort_unstable();
    traffics.dedup();
    let which = |traffic: usize| match traffics.len() {
        1 => "Completion times of requests".to_owned(),
        _ => format!(
            "Completion times of requests, traffic entry {}",
            traffic + 1
        ),
    };
    let plot = |&traffic: &usize| Plot {
        title: which(traffic),
        kind: PlotKind::Step,
        x: axis("RCT (us)", true),
        y: axis("fraction of requests", false),
        series: requests
            .iter()
            .filter(|((_, t), _)| *t == traffic)
            .map(|((run, _), times)| cdf(format!("{} (n = {})", case(*run), times.len()), times))
            .collect(),
    };
    traffics.iter().map(plot).collect()
}

/// A cumulative distribution of ascending `times`: all points if there are at most a hundred, otherwise
/// larger and larger steps, except among the slowest.
fn cdf(name: String, times: &[f64]) -> Series {
    let n = times.len();
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let mut rank = 0;
    while rank < n {
        x.push(times[rank]);
        y.push(Some((rank + 1) as f64 / n as f64));
        rank += ((n - rank) / 100).max(1);
    }
    Series {
        name,
        x,
        y,
        ..Series::default()
    }
}

fn over_time(
    title: &str,
    y_label: &str,
    series: &SeriesOfRun,
    case: &dyn Fn(usize) -> String,
) -> Option<Plot> {
    let (place, _) = series.values().next()?;
    let span_ns = series.values().map(|(_, points)| span_ns(points)).max()?;
    let largest = match span_ns {
        0 => String::new(),
        _ => format!(" (largest of each {} us)", three(span_ns as f64 / 1e3)),
    };
    let drawn = |(&run, (_, points)): (&usize, &(String, Points))| {
        let (x, y) = peaks(points, span_ns)
            .map(|(ns, value)| (ns as f64 / 1e6, Some(value)))
            .unzip();
        Series {
            name: case(run),
            x,
            y,
            ..Series::default()
        }
    };
    Some(Plot {
        title: format!("{title} {place} over time{largest}"),
        kind: PlotKind::Line,
        x: axis("time (ms)", false),
        y: axis(y_label, false),
        series: series.iter().map(drawn).collect(),
    })
}

/// Length of the intervals whose largest values are drawn, so that few enough points remain; 0: all
/// points are drawn.
fn span_ns(points: &[(i64, f64)]) -> i64 {
    match points {
        [(begin, _), .., (end, _)] if points.len() > POINTS => (end - begin) / POINTS as i64 + 1,
        _ => 0,
    }
}

/// The largest value of each interval, at its time.
fn peaks(points: &[(i64, f64)], span_ns: i64) -> impl Iterator<Item = (i64, f64)> + '_ {
    let begin = points.first().map_or(0, |&(ns, _)| ns);
    let span_of = move |ns: i64| (ns - begin) / span_ns.max(1);
    let spans = points.chunk_by(move |a, b| span_of(a.0) == span_of(b.0));
    spans.filter_map(|span| span.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)))
}

fn axis(label: &str, log: bool) -> Axis {
    Axis {
        label: label.to_owned(),
        log,
        categories: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_results::RunResult;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn summary(partial: bool) -> SummaryFile {
        let run = |run: usize, case: &str| RunResult {
            run,
            params: BTreeMap::from([("case".to_owned(), case.to_owned())]),
            resolved: json!({"title": "t"}),
            partial: false,
            metrics: BTreeMap::from([
                ("drops".to_owned(), json!(7)),
                ("incast.rct_us".to_owned(), json!({"n": 3, "mean": 1234.5})),
            ]),
            cost: BTreeMap::new(),
        };
        SummaryFile {
            schema: onramp_results::SCHEMA,
            scenario: "an incast".into(),
            version: "0".into(),
            seed: 5,
            world: "sim".into(),
            partial,
            planned_runs: 3,
            runs: vec![run(0, "off"), run(2, "final")],
        }
    }

    #[test]
    fn cases_have_their_metrics_and_distributions() {
        let samples = Samples {
            requests: BTreeMap::from([((2, 0), vec![1.0, 2.0])]),
            queue: BTreeMap::from([(0, ("switch0-host0".into(), vec![(1_000_000, 3.0)]))]),
            owd: BTreeMap::new(),
        };
        let section = Section::of_runs(summary(true), &samples, "incast", "results/incast");
        let partial = section.partial.unwrap();
        assert!(partial.contains("2 of 3 runs are complete"), "{partial}");
        assert_eq!(section.tables[0].rows[1], ["final", "1234", "7"]);
        let mean = ["incast.rct_us.mean", "1\u{202f}230", "1\u{202f}230"];
        assert!(section.tables[1].rows.iter().any(|row| *row == mean));
        let titles: Vec<&str> = section
            .plots
            .iter()
            .map(|plot| plot.title.as_str())
            .collect();
        assert_eq!(
            titles,
            [
                "Completion times of requests",
                "Queue of switch0-host0 over time"
            ]
        );
        assert_eq!(section.plots[0].series[0].name, "final (n = 2)");
        assert_eq!(section.plots[0].series[0].y, [Some(0.5), Some(1.0)]);
        assert_eq!(section.resolved.len(), 2);
    }

    #[test]
    fn long_series_keep_their_peaks() {
        let points: Vec<(i64, f64)> = (0..100_000).map(|i| (i * 10, (i % 977) as f64)).collect();
        let span_ns = span_ns(&points);
        let kept: Vec<(i64, f64)> = peaks(&points, span_ns).collect();
        assert!(kept.len() <= POINTS, "{}", kept.len());
        assert_eq!(kept.iter().map(|p| p.1).fold(0.0, f64::max), 976.0);
        assert_eq!(super::span_ns(&points[..POINTS]), 0);
        assert_eq!(peaks(&points[..7], 0).count(), 7);
    }

    #[test]
    fn a_long_distribution_keeps_its_tail() {
        let times: Vec<f64> = (1..=100_000).map(f64::from).collect();
        let series = cdf("a".into(), &times);
        assert!(series.x.len() < 1_500, "{}", series.x.len());
        assert_eq!(series.x[series.x.len() - 100..], times[99_900..]);
        assert_eq!(series.y.last(), Some(&Some(1.0)));
    }
}
