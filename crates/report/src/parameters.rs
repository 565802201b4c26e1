// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Charts of metrics over a parameter that runs of a scenario vary, with intervals over seeds.

use std::collections::BTreeMap;

use onramp_results::figure::{Axis, Plot, PlotKind, Series};
use onramp_results::{quantity, table_columns, Case, Estimate, RunResult};

/// Fewer values of a parameter are told better by the table.
const LEAST_VALUES: usize = 3;

/// For each parameter that is a number or a quantity, a chart of each metric of the table.
pub fn plots(cases: &[Case<'_>]) -> Vec<Plot> {
    let first = |case: &Case<'_>| case.runs[0].params.keys().cloned().collect::<Vec<_>>();
    let mut keys: Vec<String> = cases.iter().flat_map(first).collect();
    keys.sort_unstable();
    keys.dedup();
    let is_swept =
        |key: &String| key != "seed" && key != "case" && values(cases, key) >= LEAST_VALUES;
    let metrics: Vec<(String, &'static str)> = table_columns(cases)
        .into_iter()
        .filter_map(|column| {
            let label = format!("{} {}", column.group, column.name);
            Some((label.trim().replace("- ", ""), column.metric?))
        })
        .collect();
    let of_key = |key: String| {
        let plots = metrics.iter();
        let plots = plots.filter_map(|(label, metric)| plot(cases, &key, label, metric));
        plots.collect::<Vec<_>>()
    };
    keys.into_iter().filter(is_swept).flat_map(of_key).collect()
}

/// Number of values of the parameter that are numbers.
fn values(cases: &[Case<'_>], key: &str) -> usize {
    let value = |case: &Case<'_>| Some(place(case.runs[0], key)?.0.to_bits());
    let mut all: Vec<u64> = cases.iter().filter_map(value).collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

/// The parameter's number as charts have it, and its unit.
fn place(run: &RunResult, key: &str) -> Option<(f64, &'static str)> {
    let (number, unit) = quantity(run.params.get(key)?)?;
    Some(match unit {
        "ns" => (number / 1e3, "us"),
        "bits_per_s" => (number / 1e9, "Gbit/s"),
        "bytes" => (number / 1e3, "kB"),
        unit => (number, unit),
    })
}

fn plot(cases: &[Case<'_>], key: &str, label: &str, metric: &str) -> Option<Plot> {
    let mut lines: BTreeMap<String, Vec<(f64, Estimate)>> = BTreeMap::new();
    let mut unit = "";
    for case in cases {
        let values: Vec<f64> = case
            .runs
            .iter()
            .filter_map(|run| run.number(metric))
            .collect();
        let (Some((x, of)), Some(mean)) = (place(case.runs[0], key), Estimate::of(&values)) else {
            continue;
        };
        unit = of;
        lines
            .entry(others(case.runs[0], key))
            .or_default()
            .push((x, mean));
    }
    let series: Vec<Series> = lines
        .into_iter()
        .map(|(name, points)| line(name, points))
        .collect();
    let axis = |label: String| Axis {
        label,
        log: false,
        categories: Vec::new(),
    };
    let x = match unit {
        "" => key.to_owned(),
        unit => format!("{key} ({unit})"),
    };
    (!series.is_empty()).then(|| Plot {
        title: format!("{label} by {key}"),
        kind: PlotKind::Line,
        x: axis(x),
        y: axis(label.to_owned()),
        series,
    })
}

/// The other parameters of the run: what a line stands for.
fn others(run: &RunResult, key: &str) -> String {
    let others = run.params_but_seed().filter(|(other, _)| *other != key);
    let word = |(other, value): (&String, &String)| match other.as_str() {
        "case" => value.clone(),
        _ => format!("{}={value}", other.rsplit('.').next().unwrap_or(other)),
    };
    let words: Vec<String> = others.map(word).collect();
    match words.is_empty() {
        true => "all".to_owned(),
        false => words.join(" "),
    }
}

fn line(name: String, mut points: Vec<(f64, Estimate)>) -> Series {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let end = |of: usize| -> Vec<Option<f64>> {
        let ends = points.iter().map(|(_, mean)| Some(mean.interval?[of]));
        ends.collect()
    };
    let (low, high) = match points.iter().any(|(_, mean)| mean.interval.is_some()) {
        true => (end(0), end(1)),
        false => (Vec::new(), Vec::new()),
    };
    Series {
        name,
        x: points.iter().map(|(x, _)| *x).collect(),
        y: points.iter().map(|(_, mean)| Some(mean.value)).collect(),
        low,
        high,
        ..Series::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_results::{cases, Lines};
    use serde_json::json;

    fn run(run: usize, law: &str, threshold: &str, seed: &str, drops: f64) -> RunResult {
        let params = [
            ("onramp.law", law),
            ("onramp.threshold", threshold),
            ("seed", seed),
        ];
        RunResult {
            run,
            params: params
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            resolved: json!({}),
            partial: false,
            metrics: BTreeMap::from([("drops".to_owned(), json!(drops))]),
            cost: BTreeMap::new(),
        }
    }

    #[test]
    fn a_swept_quantity_is_an_axis_and_the_others_are_lines() {
        let mut runs = Vec::new();
        for law in ["final", "gate"] {
            for (threshold, drops) in [("50 us", 5.0), ("0.1 ms", 7.0), ("20 us", 3.0)] {
                for (seed, more) in [("1", 0.0), ("2", 2.0)] {
                    runs.push(run(runs.len(), law, threshold, seed, drops + more));
                }
            }
        }
        runs.push(run(runs.len(), "off", "off", "1", 9.0));
        let plots = plots(&cases(&runs, Lines::Cases));
        assert_eq!(plots.len(), 1);
        assert_eq!(plots[0].x.label, "onramp.threshold (us)");
        let [final_, gate] = &plots[0].series[..] else {
            panic!("{:?}", plots[0].series);
        };
        assert_eq!((&*final_.name, &*gate.name), ("law=final", "law=gate"));
        assert_eq!(final_.x, [20.0, 50.0, 100.0]);
        assert_eq!(final_.y, [Some(4.0), Some(6.0), Some(8.0)]);
        assert!(final_.low[0] < final_.y[0] && final_.high[0] > final_.y[0]);
    }

    #[test]
    fn two_values_have_no_chart() {
        let runs = [
            run(0, "final", "20 us", "1", 1.0),
            run(1, "final", "50 us", "1", 1.0),
        ];
        assert_eq!(plots(&cases(&runs, Lines::Cases)), []);
    }
}
