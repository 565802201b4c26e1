// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Results: `runs/run-K.json` and Parquet parts for each run, `summary.json` and merged Parquet files for a
//! scenario. All values describe the real network: none is dilated.
//!
//! docs/results.md is the reference for users. It is generated from the [`metrics`], the tables of columns
//! (schema.rs) and the names of series (explain.rs). [`Measures`] computes the metrics from rows and
//! [`Counters`], with the same formulas for both worlds.
//!
//! Parquet files need the feature `parquet`, which is on by default. Without it they are refused.

#![warn(missing_docs)]

mod case;
mod class;
mod columns;
mod comparison;
mod correlation;
mod counters;
mod error;
mod explain;
pub mod figure;
mod files;
#[cfg(test)]
mod fixture;
mod labels;
mod measures;
mod merge;
mod planned;
mod read;
mod remarks;
mod row;
mod rows;
mod run_columns;
mod run_result;
mod schema;
mod statistics;
mod summary;
mod table;
mod tables;

pub use case::{case_name, cases, Case, Lines};
pub use class::Class;
pub use columns::{Cell, Column};
pub use comparison::{compare, comparison_table, Baseline, CompareError, Compared};
pub use counters::{
    ClockCounters, ClockWindow, Counters, PairSample, PortCounters, RackCounters, Received, Resent,
    RoundSample, SimCounters, WorldCounters,
};
pub use error::{Error, Result};
pub use explain::explain_markdown;
pub use files::{json_bytes, part, read_json, read_versioned, write_json, write_whole, RUNS};
pub use labels::quantity;
pub use measures::{
    metric_of, metrics, register_measure, unit_of, Measure, MeasureKind, Measures, Metric, Metrics,
};
pub use merge::{merge, missing_runs};
pub use planned::planned_remarks;
pub use read::{measured_series, request_times, Points, RequestTimes, SeriesOfRun};
pub use remarks::remarks;
pub use row::{FlowRow, RequestRow, SeriesRow, Simulated};
pub use rows::{each_flow, each_point, Flow, Point};
pub use run_columns::{RunColumns, RunRow};
pub use run_result::{RunResult, SummaryFile, SCHEMA, SEED};
pub use statistics::Estimate;
pub use summary::Summary;
pub use table::{table, table_columns, TableColumn};
pub use tables::{write_tables, Frame, TableKind, Tables};
