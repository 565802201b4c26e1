// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The paper's numbers beside ours, and the verdict on each.

use crate::error::Result;
use crate::spec::{Choice, RowSpec};
use crate::verdict;
use crate::world::{measured, of_cost, World};
use onramp_results::figure::{By, Measured, Row};
use onramp_results::Estimate;

/// What `row` came to in each world.
///
/// # Errors
/// Results that cannot be read.
pub fn row(spec: &RowSpec, worlds: &[World]) -> Result<Row> {
    let mut all = Vec::new();
    let can =
        |world: &&World| spec.measure.cost.is_none() && (!spec.is_cpu() || world.name == "rack");
    for world in worlds.iter().filter(can) {
        all.push(judged(spec, &world.name, estimate(spec, world)?));
    }
    if let Some(path) = &spec.measure.cost {
        let value = of_cost(path).map(|value| Estimate {
            value: value * spec.measure.times.unwrap_or(1.0),
            interval: None,
        });
        all.push(judged(spec, "bench", value));
    }
    Ok(declared(spec, all))
}

/// A recorded `row` with what `spec` says now of the paper, and the verdicts that follow.
pub fn judged_again(spec: &RowSpec, row: &Row) -> Row {
    let again = |measured: &Measured| {
        let interval = measured.interval;
        let estimate = measured.value.map(|value| Estimate { value, interval });
        judged(spec, &measured.world, estimate)
    };
    declared(spec, row.measured.iter().map(again).collect())
}

fn declared(spec: &RowSpec, measured: Vec<Measured>) -> Row {
    Row {
        name: spec.name.clone(),
        unit: unit(spec),
        by: spec.runs.by,
        gives: spec.given(),
        paper: spec.paper.number,
        source: spec.paper.source.clone(),
        measured,
        note: spec.note.trim().to_owned(),
    }
}

fn judged(spec: &RowSpec, world: &str, estimate: Option<Estimate>) -> Measured {
    Measured {
        world: world.to_owned(),
        value: estimate.map(|e| e.value),
        interval: estimate.and_then(|e| e.interval),
        verdict: verdict::of(spec, estimate),
    }
}

fn unit(spec: &RowSpec) -> String {
    let given = spec.unit.clone();
    given.unwrap_or_else(|| match spec.runs.by {
        By::Change => "%".to_owned(),
        By::Ratio | By::Value => "x".to_owned(),
    })
}

/// Over the seeds that there are on both sides.
fn estimate(spec: &RowSpec, world: &World) -> Result<Option<Estimate>> {
    let of = values(spec, world, &spec.runs.of)?;
    let Some(over) = &spec.runs.over else {
        let values: Vec<f64> = of.into_iter().map(|(_, value)| value).collect();
        return Ok(Estimate::of(&values));
    };
    let over = values(spec, world, over)?;
    let partner = |(seed, a): &(String, f64)| {
        let (_, b) = over.iter().find(|(other, _)| other == seed)?;
        Some((*a, *b))
    };
    let pairs: Vec<(f64, f64)> = of.iter().filter_map(partner).collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    let ratio = Estimate::of_ratios(&pairs);
    Ok(ratio.map(|ratio| match spec.runs.by {
        By::Change => ratio.map(|ratio| (ratio - 1.0) * 100.0),
        By::Ratio | By::Value => ratio,
    }))
}

/// By seed.
fn values(spec: &RowSpec, world: &World, choice: &Choice) -> Result<Vec<(String, f64)>> {
    let mut values = Vec::new();
    for run in world.chosen(choice) {
        if let Some(value) = measured(world, run, spec)? {
            values.push((run.seed().to_owned(), value));
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_results::figure::Verdict;
    use onramp_results::RunResult;
    use serde_json::{json, Value};
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    /// Its CPU time is 2 s if it is the rack.
    fn world(name: &str, drops: i64) -> World {
        let cpu_s = (name == "rack").then_some(("cpu_s".to_owned(), 2.0));
        let run = RunResult {
            run: 0,
            params: Choice::new(),
            resolved: Value::Null,
            partial: false,
            metrics: BTreeMap::from([("drops".to_owned(), json!(drops))]),
            cost: cpu_s.into_iter().collect(),
        };
        World {
            name: name.to_owned(),
            directory: PathBuf::new(),
            runs: vec![run],
        }
    }

    #[test]
    fn each_world_that_can_measure_a_row_is_judged_alone() {
        let worlds = [world("sim", 30), world("rack", 90)];
        let judged = |text: &str| {
            let spec = toml::from_str(&format!(
                "name = \"n\"\nsource = \"s\"\nunit = \"\"\n{text}"
            ));
            let row = row(&spec.unwrap(), &worlds).unwrap().measured.into_iter();
            row.map(|m| (m.world, m.value, m.verdict))
                .collect::<Vec<_>>()
        };
        let (sim, rack) = ("sim".to_owned(), "rack".to_owned());
        assert_eq!(
            judged("metric = \"drops\"\npaper = 30"),
            [
                (sim, Some(30.0), Verdict::PointEstimate),
                (rack.clone(), Some(90.0), Verdict::NotReproduced)
            ]
        );
        assert_eq!(
            judged("metric = \"cost.cpu_s\""),
            [(rack, Some(2.0), Verdict::Beyond)]
        );
        let per = judged("metric = \"drops\"\nper = \"cost.cpu_s\"");
        assert_eq!((per[0].1, per[1].1), (None, Some(45.0)));
        assert_eq!(judged("cost = \"0.sender_percent\"")[0].0, "bench");
    }
}
