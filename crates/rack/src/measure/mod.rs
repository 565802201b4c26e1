//! Pure arithmetic on what was measured: summaries, the queue of a port between arrivals, series.

pub mod queue;
pub mod series;
pub mod summary;

pub use queue::{Port, QueueDelay, QueueTracker};
pub use series::{Sample, Series};
pub use summary::Summary;
