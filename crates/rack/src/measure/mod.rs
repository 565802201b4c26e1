//! Pure arithmetic on what was measured: the queue of a port between arrivals, series.

pub mod queue;
pub mod series;

pub use queue::{Port, QueueDelay, QueueTracker};
pub use series::{Busy, Sample, Series};
