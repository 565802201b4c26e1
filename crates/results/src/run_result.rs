// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `summary.json` and its runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Version of the layout of `summary.json` and of the Parquet columns.
pub const SCHEMA: u32 = 4;

/// One entry of `runs` in `summary.json`, and the content of `run-K.json`.
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
    /// Whether hosts of the run are in groups.
    pub(crate) fn has_groups(&self) -> bool {
        self.resolved.get("hosts").is_some()
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
    /// Number of runs that were not interrupted.
    pub fn whole_runs(&self) -> usize {
        self.runs.iter().filter(|run| !run.partial).count()
    }
}
