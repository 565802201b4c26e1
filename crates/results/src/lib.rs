// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Results: `run-K.json` and Parquet parts for each run, `summary.json` and merged Parquet files for a
//! scenario. All values describe the real network: none is dilated.
//!
//! docs/results.md is the reference for users. It is generated from the [`metrics`], the tables of columns
//! (schema.rs) and the names of series (explain.rs). [`Measures`] computes the metrics from rows and
//! [`Counters`], with the same formulas for both worlds.

#![warn(missing_docs)]

mod class;
mod columns;
mod correlation;
mod counters;
mod error;
mod explain;
pub mod figure;
mod labels;
mod measures;
mod merge;
mod read;
mod rows;
mod schema;
mod summary;
mod table;
mod tables;

pub use class::Class;
pub use counters::{
    ClockCounters, ClockWindow, Counters, PairSample, PortCounters, RackCounters, Received, Resent,
    RoundSample, SimCounters, WorldCounters,
};
pub use error::{Error, Result};
pub use explain::explain_markdown;
pub use measures::{
    metric_of, metrics, register_measure, Measure, MeasureKind, Measures, Metric, Metrics,
};
pub use merge::{merge, missing_runs};
pub use read::{measured_series, request_times, Points, RequestTimes, SeriesOfRun};
pub use rows::{each_flow, each_point, Flow, Point};
pub use summary::Summary;
pub use table::{case_name, table, table_columns, TableColumn};
pub use tables::{write_tables, FlowRow, RequestRow, SeriesRow, Simulated, Tables};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    /// Measures by name: see [`metrics`].
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
    /// Of onramp.
    pub version: String,
    /// Of the scenario.
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

/// Path of a file of run `index`.
pub fn part(directory: &Path, stem: &str, index: usize, extension: &str) -> PathBuf {
    directory.join(format!("{stem}-{index}.{extension}"))
}

/// Writes `value` as indented JSON, atomically.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).expect("plain data has a JSON form");
    text.push(b'\n');
    write_whole(path, &text)
}

/// Writes `content` atomically: `path` has either the old or the new content.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    whole(path, |part| {
        std::fs::write(part, content).map_err(|error| Error::File {
            path: path.to_owned(),
            error,
        })
    })
}

/// Lets `write` make a file beside `path`, then renames it to `path`.
fn whole(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let written = write(&part).and_then(|()| {
        std::fs::rename(&part, path).map_err(|error| Error::File {
            path: path.to_owned(),
            error,
        })
    });
    if written.is_err() {
        // The file may not exist; the error to report is the first one.
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// Reads JSON that [`write_json`] wrote.
pub fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = std::fs::read(path).map_err(|error| Error::File {
        path: path.to_owned(),
        error,
    })?;
    serde_json::from_slice(&text).map_err(|error| Error::Format {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}
