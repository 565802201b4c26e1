// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A section of a scenario's results in one world: `summary.json` and its tables.

use onramp_results::figure::{Axis, Plot, PlotKind, Series};
use onramp_results::{
    cases, remarks, table_columns, Case, Estimate, Lines, RequestTimes, RunResult, SeriesOfRun,
    SummaryFile,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::number::three;
use crate::parameters;
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
        let cases = cases(&summary.runs, Lines::Cases);
        let seeds = seeds(&summary);
        let world = match summary.world.as_str() {
            "sim" => "the simulator",
            "rack" => "real Linux TCP, in the virtual rack",
            other => other,
        };
        let mut plots = parameters::plots(&cases);
        plots.extend(cdfs(&samples.requests, &cases));
        plots.extend(over_time("Queue of", "queue (us)", &samples.queue, &cases));
        plots.extend(over_time(
            "One-way delay to",
            "OWD (us)",
            &samples.owd,
            &cases,
        ));
        let partial = format!(
            "The command was interrupted: {} of {} runs are complete.",
            summary.whole_runs(),
            summary.planned_runs
        );
        let resolved = |case: &Case<'_>| (case.name.clone(), case.runs[0].resolved.clone());
        let notes = remarks(&summary).into_iter().map(|note| ("Note", note));
        Section {
            name: name.to_owned(),
            title: summary.scenario.clone(),
            partial: summary.partial.then_some(partial),
            facts: [
                ("Ran on", world.to_owned()),
                (
                    if seeds.len() > 1 { "Seeds" } else { "Seed" },
                    ranges(&seeds),
                ),
                ("onramp", summary.version.clone()),
                ("Directory", directory.to_owned()),
            ]
            .into_iter()
            .chain(notes)
            .collect(),
            tables: vec![comparison(&cases), all_metrics(&cases)],
            plots,
            resolved: cases.iter().map(resolved).collect(),
            ..Section::default()
        }
    }
}

/// The seeds of the runs, ascending.
fn seeds(summary: &SummaryFile) -> Vec<u64> {
    let seed = |run: &RunResult| run.seed().parse().unwrap_or(summary.seed);
    let mut all: Vec<u64> = summary.runs.iter().map(seed).collect();
    all.sort_unstable();
    all.dedup();
    match all.is_empty() {
        true => vec![summary.seed],
        false => all,
    }
}

/// Ascending numbers: `1 to 5, 9`.
fn ranges(numbers: &[u64]) -> String {
    let text = |run: &[u64]| match run {
        [first, .., last] if run.len() > 2 => format!("{first} to {last}"),
        _ => run
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(text);
    runs.collect::<Vec<_>>().join(", ")
}

/// The table that the terminal shows.
fn comparison(cases: &[Case<'_>]) -> Table {
    let shown = table_columns(cases);
    let heading = |c: &onramp_results::TableColumn| match c.group.strip_suffix('-') {
        // The terminal's headings break words: "time-", "outs".
        Some(begin) => (String::new(), format!("{begin}{}", c.name)),
        None => (c.group.to_owned(), c.name.to_owned()),
    };
    let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "-".into());
    let row = |(index, case): (usize, &Case<'_>)| {
        let cells = shown.iter().map(|column| cell(&column.cells[index]));
        [case.name.clone()].into_iter().chain(cells).collect()
    };
    let several = cases.iter().any(|case| case.runs.len() > 1);
    Table {
        title: match several {
            true => "Cases: means over seeds, ± half of their 95 % confidence interval".into(),
            false => "Cases".into(),
        },
        folded: false,
        columns: [(String::new(), "case".to_owned())]
            .into_iter()
            .chain(shown.iter().map(heading))
            .collect(),
        rows: cases.iter().enumerate().map(row).collect(),
    }
}

/// Every metric: a row for each number, a column for each case.
fn all_metrics(cases: &[Case<'_>]) -> Table {
    let flat: Vec<BTreeMap<String, Vec<Value>>> = cases.iter().map(flat).collect();
    let metrics: BTreeSet<&String> = flat.iter().flat_map(BTreeMap::keys).collect();
    let cell = |case: &BTreeMap<String, Vec<Value>>, metric: &String| {
        case.get(metric)
            .map_or("-".to_owned(), |values| folded(values))
    };
    let row = |metric: &String| {
        let cells = flat.iter().map(|case| cell(case, metric));
        [metric.clone()].into_iter().chain(cells).collect()
    };
    let columns = ["metric".to_owned()]
        .into_iter()
        .chain(cases.iter().map(|case| case.name.clone()));
    Table {
        title: "All metrics".into(),
        folded: true,
        columns: columns.map(|name| (String::new(), name)).collect(),
        rows: metrics.into_iter().map(row).collect(),
    }
}

/// The values of the runs of a case, by the path of the metric.
fn flat(case: &Case<'_>) -> BTreeMap<String, Vec<Value>> {
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for run in &case.runs {
        for (name, value) in &run.metrics {
            flatten(name, value, &mut all);
        }
    }
    all
}

/// The mean of numbers, with half of its interval; or what all values have in common.
fn folded(values: &[Value]) -> String {
    let numbers: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    let half = Estimate::of(&numbers).and_then(|mean| Some((mean.value, mean.half()?)));
    match half {
        Some((mean, half)) if half > 0.0 && numbers.len() == values.len() => {
            format!("{} ±{}", three(mean), three(half))
        }
        _ if values.windows(2).all(|pair| pair[0] == pair[1]) => plain(&values[0]),
        _ => "differs".to_owned(),
    }
}

fn flatten(name: &str, value: &Value, out: &mut BTreeMap<String, Vec<Value>>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                flatten(&format!("{name}.{field}"), value, out);
            }
        }
        _ => out.entry(name.to_owned()).or_default().push(value.clone()),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        _ => value.as_f64().map_or_else(|| value.to_string(), three),
    }
}

/// A cumulative distribution for each traffic entry with requests, of all runs of a case.
fn cdfs(requests: &RequestTimes, cases: &[Case<'_>]) -> Vec<Plot> {
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
    let drawn = |case: &Case<'_>, traffic: usize| {
        let of_run = |run: &&RunResult| requests.get(&(run.run, traffic));
        let mut times: Vec<f64> = case
            .runs
            .iter()
            .filter_map(of_run)
            .flatten()
            .copied()
            .collect();
        times.sort_unstable_by(f64::total_cmp);
        let name = format!("{} (n = {})", case.name, times.len());
        (!times.is_empty()).then(|| cdf(name, &times))
    };
    let plot = |&traffic: &usize| Plot {
        title: which(traffic),
        kind: PlotKind::Step,
        x: axis("RCT (us)", true),
        y: axis("fraction of requests", false),
        series: cases
            .iter()
            .filter_map(|case| drawn(case, traffic))
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

/// The series of the first run of each case.
fn over_time(title: &str, y_label: &str, series: &SeriesOfRun, cases: &[Case<'_>]) -> Option<Plot> {
    let (place, _) = series.values().next()?;
    let span_ns = series.values().map(|(_, points)| span_ns(points)).max()?;
    let largest = match span_ns {
        0 => String::new(),
        _ => format!(" (largest of each {} us)", three(span_ns as f64 / 1e3)),
    };
    let drawn = |case: &Case<'_>| {
        let first = case.runs[0];
        let (_, points) = series.get(&first.run)?;
        let (x, y) = peaks(points, span_ns)
            .map(|(ns, value)| (ns as f64 / 1e6, Some(value)))
            .unzip();
        let name = match case.runs.len() {
            1 => case.name.clone(),
            _ => format!("{} (seed {})", case.name, first.seed()),
        };
        Some(Series {
            name,
            x,
            y,
            ..Series::default()
        })
    };
    Some(Plot {
        title: format!("{title} {place} over time{largest}"),
        kind: PlotKind::Line,
        x: axis("time (ms)", false),
        y: axis(y_label, false),
        series: cases.iter().filter_map(drawn).collect(),
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
    use serde_json::json;

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
    fn seeds_of_a_case_are_one_column_one_distribution_and_one_series() {
        let mut summary = summary(false);
        for (index, run) in summary.runs.iter_mut().enumerate() {
            run.params = BTreeMap::from([("seed".to_owned(), (index + 1).to_string())]);
            run.metrics.insert("drops".to_owned(), json!(6 + 2 * index));
        }
        let samples = Samples {
            requests: BTreeMap::from([((0, 0), vec![2.0]), ((2, 0), vec![1.0])]),
            queue: BTreeMap::from([
                (0, ("switch0-host0".into(), vec![(0, 3.0)])),
                (2, ("switch0-host0".into(), vec![(0, 4.0)])),
            ]),
            owd: BTreeMap::new(),
        };
        let section = Section::of_runs(summary, &samples, "incast", "results/incast");
        assert!(section.facts.contains(&("Seeds", "1, 2".to_owned())));
        assert_eq!(section.tables[0].rows, [["all", "1234", "7.0 ±12.7"]]);
        let drops = ["drops", "7.00 ±12.7"];
        assert!(section.tables[1].rows.iter().any(|row| *row == drops));
        assert_eq!(section.plots[0].series[0].x, [1.0, 2.0]);
        assert_eq!(section.plots[1].series.len(), 1);
        assert_eq!(section.plots[1].series[0].name, "all (seed 1)");
        assert_eq!(section.resolved.len(), 1);
    }

    #[test]
    fn neighbouring_seeds_are_a_range() {
        assert_eq!(ranges(&[1, 2, 3, 5, 6, 9]), "1 to 3, 5, 6, 9");
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
