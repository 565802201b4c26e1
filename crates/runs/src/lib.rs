// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Schedules runs: several at a time, with progress, an estimate of the remaining time, cancellation, and
//! output directories that two commands cannot share.
//!
//! Does not know scenarios, the simulator or the rack.

#![warn(missing_docs)]

mod cancel;
mod directory;
mod estimate;
mod schedule;
mod status;

pub use cancel::{cancelled_by_signals, Interrupted};
pub use directory::{digest, DirectoryError, Existing, OutputDirectory, Plan, RUNS};
pub use schedule::{run_all, Handle, Job, Make, Threads};
pub use status::{count, Line, Running, Status};
