// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a world measured: its runs, and single numbers of them.

use crate::error::Result;
use crate::spec::{Choice, FlowsMeasure, RowSpec, SeriesMeasure, Statistic};
use onramp_results::{each_flow, each_point, RunResult};
use serde_json::Value;
use std::path::PathBuf;

/// The bench's measurements of what On-Ramp costs.
const COST: &str = include_str!("../../../docs/cost-table.json");

/// The runs that are whole, and where their rows are.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// `sim`, `rack` or `bench`.
    pub name: String,
    /// Where the Parquet parts are.
    pub directory: PathBuf,
    /// In the scenario's order.
    pub runs: Vec<RunResult>,
}

impl World {
    /// Runs that `choice` means.
    pub fn chosen<'a>(&'a self, choice: &'a Choice) -> impl Iterator<Item = &'a RunResult> {
        self.runs.iter().filter(move |run| matches(run, choice))
    }
}

/// Whether `choice` means `run`.
pub fn matches(run: &RunResult, choice: &Choice) -> bool {
    choice
        .iter()
        .all(|(key, value)| run.params.get(key) == Some(value))
}

/// What `row` measures of `run`.
///
/// # Errors
/// Rows that cannot be read.
pub fn measured(world: &World, run: &RunResult, row: &RowSpec) -> Result<Option<f64>> {
    let value = if let Some(path) = &row.measure.metric {
        let per = row.measure.per.as_ref().map(|per| run.number(per));
        let per = per.unwrap_or(Some(1.0)).filter(|per| *per > 0.0);
        run.number(path).zip(per).map(|(value, per)| value / per)
    } else if let Some(series) = &row.measure.series {
        of_series(world, run.run, series)?
    } else if let Some(flows) = &row.measure.flows {
        of_flows(world, run.run, flows)?
    } else {
        None
    };
    Ok(value.map(|value| value * row.measure.times.unwrap_or(1.0)))
}

fn of_series(world: &World, run: usize, series: &SeriesMeasure) -> Result<Option<f64>> {
    let mut points = Vec::new();
    let (from, to) = (
        series.from_ms.unwrap_or(f64::MIN),
        series.to_ms.unwrap_or(f64::MAX),
    );
    each_point(&world.directory, run, |point| {
        let time_ms = point.time_ns as f64 / 1e6;
        let is_meant = point.name == series.name && point.place == series.place;
        if is_meant && (from..=to).contains(&time_ms) {
            points.push((time_ms, point.value));
        }
    })?;
    Ok(statistic(series, &points))
}

fn statistic(series: &SeriesMeasure, points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let values = || points.iter().map(|point| point.1);
    let first = points.first()?.0;
    let mean = values().sum::<f64>() / n;
    Some(match series.statistic {
        Statistic::Mean => mean,
        Statistic::Deviation => (values().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt(),
        Statistic::LastAboveMs => {
            let above = points.iter().rev().find(|point| point.1 > series.level);
            above.map_or(0.0, |point| point.0 - series.from_ms.unwrap_or(first))
        }
        Statistic::FractionBelow => values().filter(|v| *v < series.level).count() as f64 / n,
    })
}

fn of_flows(world: &World, run: usize, flows: &FlowsMeasure) -> Result<Option<f64>> {
    let (mut all, mut small) = (0.0, 0.0);
    each_flow(&world.directory, run, |flow| {
        let Some(size) = flow
            .size_bytes
            .filter(|_| flow.measured && flow.kind == flows.kind)
        else {
            return;
        };
        let weight = if flows.by_bytes { size as f64 } else { 1.0 };
        all += weight;
        if size <= flows.at_most_bytes {
            small += weight;
        }
    })?;
    Ok((all > 0.0).then_some(small / all))
}

/// A number of a link of docs/cost-table.json: the link's index, a dot, the number's name.
pub fn of_cost(path: &str) -> Option<f64> {
    let (link, name) = path.split_once('.')?;
    cost_table()?
        .pointer(&format!("/links/{link}/{name}"))?
        .as_f64()
}

/// Digest of the data path whose cost the bench measured.
pub fn cost_data_path() -> Option<String> {
    Some(cost_table()?.get("data_path")?.as_str()?.to_owned())
}

fn cost_table() -> Option<Value> {
    serde_json::from_str(COST).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn run() -> RunResult {
        RunResult {
            run: 0,
            params: BTreeMap::from([("case".to_owned(), "off".to_owned())]),
            resolved: Value::Null,
            partial: false,
            metrics: BTreeMap::from([
                ("drops".to_owned(), json!(4)),
                ("incast.rct_us".to_owned(), json!({"mean": 2.5, "p99": 9.0})),
                ("long.goodput_gbps".to_owned(), json!([3.0, 1.0])),
                ("none".to_owned(), Value::Null),
            ]),
            cost: BTreeMap::from([("cpu_s".to_owned(), 0.5)]),
        }
    }

    #[test]
    fn metrics_are_found_by_path() {
        let run = run();
        let found = |path| run.number(path);
        assert_eq!(found("drops"), Some(4.0));
        assert_eq!(
            (found("cost.cpu_s"), found("cost.drops")),
            (Some(0.5), None)
        );
        assert_eq!(found("incast.rct_us.p99"), Some(9.0));
        assert_eq!(found("long.goodput_gbps.1"), Some(1.0));
        assert_eq!(found("long.goodput_gbps.sum"), Some(4.0));
        assert_eq!(found("long.goodput_gbps.jain"), Some(0.8));
        for path in [
            "drop",
            "drops.mean",
            "incast.rct_us",
            "none.mean",
            "long.goodput_gbps.2",
        ] {
            assert_eq!(found(path), None, "{path}");
        }
    }

    #[test]
    fn statistics_of_points_are_those_of_the_span() {
        let points = [(200.0, 5.0), (201.0, 50.0), (202.0, 10.0)];
        let of = |statistic, level| {
            let series = SeriesMeasure {
                name: String::new(),
                place: String::new(),
                from_ms: Some(200.0),
                to_ms: None,
                statistic,
                level,
            };
            super::statistic(&series, &points).unwrap()
        };
        assert_eq!(of(Statistic::LastAboveMs, 30.0), 1.0);
        assert_eq!(of(Statistic::LastAboveMs, 60.0), 0.0);
        assert_eq!(of(Statistic::FractionBelow, 20.0), 2.0 / 3.0);
    }
}
