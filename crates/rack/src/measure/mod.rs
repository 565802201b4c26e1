// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Pure arithmetic on what was measured: the queue of a port between arrivals, series.

pub mod queue;
pub mod series;

pub use queue::{Port, QueueDelay, QueueTracker};
pub use series::{Busy, Sample, Series};
