//! A section of what one world measured of a scenario: `summary.json` and its tables.

use onramp_results::figure::{Axis, Plot, PlotKind, Series};
use onramp_results::{case_name, table_columns, RequestTimes, SeriesOfRun, SummaryFile};
use serde_json::Value;

use crate::number::three;
use crate::section::{Section, Table};

/// Points of a drawn series at most: a page must stay small, a screen has no more columns.
const POINTS: usize = 1500;

/// What the tables of a result directory hold.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// How long requests took.
    pub requests: RequestTimes,
    /// Of the measured port, in us.
    pub queue: SeriesOfRun,
    /// To its host, in us.
    pub owd: SeriesOfRun,
}

impl Section {
    /// Of a scenario that ran. `name` is the directory's, `directory` where it lies.
    pub fn of_runs(
        summary: SummaryFile,
        samples: &Samples,
        name: &str,
        directory: &str,
    ) -> Section {
        let names: Vec<String> = summary.runs.iter().map(case_name).collect();
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
            "Somebody ended it early: {} of {} runs are whole.",
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

/// What the terminal shows.
fn comparison(summary: &SummaryFile, names: &[String]) -> Table {
    let shown = table_columns(&summary.runs);
    let heading = |c: &onramp_results::TableColumn| match c.group.strip_suffix('-') {
        // The terminal breaks words: "time-", "outs".
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

/// Every metric of every run: a row a number, a column a run.
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

/// A cumulative distribution for each kind of requests.
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

/// Of ascending `times`: all of a hundred or fewer, then ever more of them in a step, none of the
/// slowest.
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
    let (place, points) = series.values().next()?;
    let spans = series
        .values()
        .map(|(_, points)| points.len().div_ceil(POINTS));
    let merged = spans.max().unwrap_or(1);
    let largest = if merged > 1 {
        let span_us = points
            .windows(2)
            .map(|w| w[1].0 - w[0].0)
            .min()
            .unwrap_or(0) as f64
            / 1e3;
        format!(" (largest of each {} us)", three(span_us * merged as f64))
    } else {
        String::new()
    };
    let drawn = |(&run, (_, points)): (&usize, &(String, Vec<(i64, f64)>))| {
        let peaks = points
            .chunks(merged)
            .filter_map(|chunk| chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)));
        let (x, y) = peaks.map(|(ns, v)| (ns as f64 / 1e6, Some(v))).unzip();
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

fn axis(label: &str, log: bool) -> Axis {
    Axis {
        label: label.to_owned(),
        log,
        categories: vec![],
    }
}
