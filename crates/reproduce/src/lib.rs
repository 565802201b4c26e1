//! Figures of papers, declared in `figures/*.toml`: which scenario runs, which numbers are compared
//! with the paper's, what is drawn.
//!
//! Does: read and check figures, make [`Figure`]s out of what a world measured, and tables out of
//! those. Does not: run scenarios, or write files.
#![warn(missing_docs)]

mod error;
mod evidence;
#[cfg(test)]
mod fixture;
mod library;
mod page;
mod plan;
mod plots;
mod rows;
mod spec;
mod statistics;
mod table;
mod world;

pub use error::{Error, Result};
pub use evidence::{annotate, made_by, models, probe, record, Models};
pub use library::{natural, Library};
pub use page::markdown;
pub use plan::{Digests, Planned};
pub use spec::{ScaleName, Spec};
pub use statistics::Estimate;
pub use table::terminal;
pub use world::World;

/// Digest of the sources that a simulated run's outcome depends on: another one may say other numbers.
pub const SIMULATOR: &str = env!("ONRAMP_SIMULATOR");
/// The same of a run on the rack.
pub const RACK: &str = env!("ONRAMP_RACK");
