// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Makes one self-contained HTML page from results: text, tables, and plots that Plotly draws in the
//! browser. It reads and writes no files. All text of results is escaped. The page loads nothing from
//! outside, and its content security policy forbids it.

#![warn(missing_docs)]

mod comparison;
mod delays;
mod number;
mod page;
mod parameters;
mod runs;
mod section;

pub use delays::OneWayDelay;
pub use page::page;
pub use runs::Samples;
pub use section::{BadPlot, Section, Table};
