// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Figures of papers, declared in `figures/*.toml`: the scenario, the numbers to compare with the paper's,
//! and the charts.
//!
//! Reads and checks figures, makes [`Figure`]s from the measurements of a world, and tables from figures.
//! Does not run scenarios or write files.
#![warn(missing_docs)]

mod error;
mod evidence;
#[cfg(test)]
mod fixture;
mod library;
mod page;
mod papers;
mod plan;
mod plots;
mod rows;
mod spec;
mod table;
mod verdict;
mod world;

pub use error::{Error, Result};
pub use evidence::{annotate, made_by, models, probe, record, Models};
pub use library::{natural, Library};
pub use page::markdown;
pub use papers::{counts, headlines, lost_headlines};
pub use plan::{Digests, Planned};
pub use spec::{ScaleName, Spec};
pub use table::terminal;
pub use world::World;

/// Digest of the sources that the result of a simulated run depends on. If it changes, results may change.
pub const SIMULATOR: &str = env!("ONRAMP_SIMULATOR");
/// Digest of the sources that the result of a run on the rack depends on.
pub const RACK: &str = env!("ONRAMP_RACK");
