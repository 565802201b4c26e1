// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `summary.json` and its runs.

use onramp_scenario::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Version of the layout of `summary.json` and of the Parquet columns.
pub const SCHEMA: u32 = 5;

/// The parameter in which the runs of a case differ.
pub const SEED: &str = "seed";

/// One entry of `runs` in `summary.json`, and the content of `runs/run-K.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Position of the run in its scenario.
    pub run: usize,
    /// The case and the parameters in which this run differs from others.
    pub params: BTreeMap<String, String>,
    /// Every setting of the run, in the form of a scenario.
    pub resolved: Value,
    /// The run was interrupted: it has the rows up to then, and no metrics.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Measures by name: see [`crate::metrics`].
    pub metrics: BTreeMap<String, Value>,
    /// Cost of the measurement.
    pub cost: BTreeMap<String, f64>,
}

impl RunResult {
    /// The case and the parameters, but for the seed: runs that agree in them are repetitions.
    pub fn params_but_seed(&self) -> impl Iterator<Item = (&String, &String)> {
        self.params.iter().filter(|(key, _)| *key != SEED)
    }

    /// The seed, if runs differ in it; else empty.
    pub fn seed(&self) -> &str {
        self.params.get(SEED).map_or("", String::as_str)
    }

    /// The metric at `path`: its name, then a member of a distribution, or of a list its place, `sum` or
    /// `jain` (Jain's index of fairness). What begins with `cost.` is what the measuring cost.
    pub fn number(&self, path: &str) -> Option<f64> {
        if let Some(name) = path.strip_prefix("cost.") {
            return self.cost.get(name).copied();
        }
        let below = |(name, value): (&String, &'_ Value)| {
            let rest = path.strip_prefix(name.as_str())?;
            match rest.strip_prefix('.') {
                Some(rest) => member(value, rest),
                None if rest.is_empty() => value.as_f64(),
                None => None,
            }
        };
        self.metrics.iter().find_map(below)
    }

    /// Whether hosts of the run are in groups.
    pub(crate) fn has_groups(&self) -> bool {
        self.resolved.get("hosts").is_some()
    }
}

pub(crate) fn member(value: &Value, name: &str) -> Option<f64> {
    let Some(list) = value.as_array() else {
        return value.get(name)?.as_f64();
    };
    let values: Vec<f64> = list.iter().filter_map(Value::as_f64).collect();
    let sum: f64 = values.iter().sum();
    match name {
        "sum" => Some(sum),
        "jain" => {
            let squares: f64 = values.iter().map(|v| v * v).sum();
            (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
        }
        place => values.get(place.parse::<usize>().ok()?).copied(),
    }
}

/// `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SummaryFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Title of the scenario.
    pub scenario: String,
    /// The version of onramp.
    pub version: String,
    /// The seed of the scenario.
    pub seed: u64,
    /// "rack" or "sim".
    pub world: String,
    /// Whether runs are missing or partial, because the command was interrupted.
    pub partial: bool,
    /// Number of runs of the scenario.
    pub planned_runs: usize,
    /// The runs in the directory, in the scenario's order.
    pub runs: Vec<RunResult>,
}

impl SummaryFile {
    /// That of the `runs` of `scenario` which were made. It is partial if one is missing or was interrupted.
    pub fn of(scenario: &Scenario, world: &str, runs: Vec<RunResult>) -> SummaryFile {
        let planned = scenario.runs().len();
        SummaryFile {
            schema: SCHEMA,
            scenario: scenario.title().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: scenario.runs().first().map_or(0, |run| run.seed),
            world: world.to_owned(),
            partial: runs.len() < planned || runs.iter().any(|run| run.partial),
            planned_runs: planned,
            runs,
        }
    }

    /// Number of runs that were not interrupted.
    pub fn whole_runs(&self) -> usize {
        self.runs.iter().filter(|run| !run.partial).count()
    }
}
