//! What a world writes: `run-K.json` and Parquet parts for each run, `summary.json` and whole
//! Parquet files for a scenario. All values are the real network's: nothing is dilated.
//!
//! [`METRICS`] lists the metrics, [`Measures`] computes them from rows and [`Counters`]: the same for both
//! worlds. What started before the warm-up's end is left out; the window is from there to the end of
//! the traffic. The measured port is that of the first aggregator, else of the first receiver.
//!
//! # Series
//! A row is a value of a place over time. Ports are named by their ends: `switch0-host3` is the port of
//! switch 0 to host 3, `host3` the port of host 3's NIC, which `owd_us` goes by too. In the rack the
//! measured port has `queue_us` and `rate_gbps`, its host `owd_us`; the simulator has these and what it was asked for.
//!
//! | name | place | meaning |
//! |---|---|---|
//! | `queue_us` | port | time until its line is free, the largest of the interval |
//! | `owd_us` | host | one-way delay to it, the largest of the interval |
//! | `queue_bytes` | port | bytes that wait, the largest of the interval |
//! | `rate_gbps` | port | what it sent, mean of the interval |
//! | `pfc_paused_fraction` | port | part of the interval in which PFC held its data |
//! | `rate_limit_gbps` | flow | its pace at the interval's end, if it has one |
//! | `window_bytes` | flow | what it may have unacknowledged then, if that is limited |
//! | `pair_owd_us`, `pair_last_owd_us`, `pair_last_rtt_us` | flow | delay that a sampled packet met; one-way delay of the last acknowledged packet (by the hosts' clocks) and last round-trip time, as its sender knew them when it sent it: three rows a pair, for whoever asked for `pairs` |
//! | `held_fraction` | flow | part of the interval in which On-Ramp held its head |
//!
//! # Cost
//! `wall_s` on the machine that ran it; `rack_s` from warm-up to the very end, in the rack's slower
//! time (the simulator: `events` and `packet_hops` of the whole run instead, and no times, so that the
//! same scenario gives the same bytes); `frames` that left all ports within the window; if asked for, `cpu_s` of the window and
//! `cpu_ns_per_frame`: guest instructions, in the virtual machine.

#![warn(missing_docs)]

mod class;
mod columns;
mod correlation;
mod counters;
mod error;
pub mod figure;
mod measures;
mod merge;
mod metrics;
mod read;
mod rows;
mod summary;
mod table;
mod tables;

pub use class::Class;
pub use counters::{
    ClockCounters, ClockWindow, Counters, PairSample, PortCounters, RackCounters, Received, Resent,
    SimCounters, WorldCounters,
};
pub use error::{Error, Result};
pub use measures::Measures;
pub use merge::{merge, missing_runs};
pub use metrics::{metric_of, Metric, METRICS};
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
    /// What tells this run from the others.
    pub params: BTreeMap<String, String>,
    /// Every setting of the run, as a scenario would give it.
    pub resolved: Value,
    /// It was ended early: its rows are there, up to then, and it has no metrics.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Measures by name: see the top of this file.
    pub metrics: BTreeMap<String, Value>,
    /// What the measuring cost.
    pub cost: BTreeMap<String, f64>,
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
    /// Whether runs are missing or partial, because somebody ended it early.
    pub partial: bool,
    /// Runs the scenario has.
    pub planned_runs: usize,
    /// Those that there are, in the scenario's order.
    pub runs: Vec<RunResult>,
}

impl SummaryFile {
    /// Runs that nobody ended early.
    pub fn whole_runs(&self) -> usize {
        self.runs.iter().filter(|run| !run.partial).count()
    }
}

/// Path of a file of run `index`.
pub fn part(directory: &Path, stem: &str, index: usize, extension: &str) -> PathBuf {
    directory.join(format!("{stem}-{index}.{extension}"))
}

/// Writes `value` as JSON for people and machines: the whole file, or none.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).expect("plain data has a JSON form");
    text.push(b'\n');
    write_whole(path, &text)
}

/// Writes `content`: the whole file, or none; what was there before stays until then.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    whole(path, |part| {
        std::fs::write(part, content).map_err(|error| Error::File {
            path: path.to_owned(),
            error,
        })
    })
}

/// Lets `write` make a file beside `path` that takes its place when it is whole.
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
        // It may not be there at all; the error to tell is the other.
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
