// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Sweeps: a scenario at many points of its keys, each point with the same seeds. A sweep is made in parts, in any order
//! and by any process; a part is one file, and the parts are one data set with a row for each run.
//!
//! Knows what a sweep's file says (`file`), the points that it means (`points`, `sample`), how a part is made (`part`) and
//! how parts become the data set (`data`). Does not know terminals, threads of others, or clusters.

#![warn(missing_docs)]

mod data;
mod error;
mod file;
mod part;
mod points;
mod sample;

pub use data::{finish, missing_parts, part_file, Failure, Outcome};
pub use error::SweepError;
pub use part::{Making, Part, SWEEP_SCHEMA};
pub use points::{Point, Sweep};
