//! Results into one self-contained HTML page: text, tables, and plots that Plotly draws in the
//! browser. Pure: results in, text out; who reads and writes files is elsewhere. All text of results
//! is escaped; the page asks for nothing from outside and its policy forbids it to.

#![warn(missing_docs)]

mod comparison;
mod delays;
mod number;
mod page;
mod runs;
mod section;

pub use delays::Way;
pub use page::page;
pub use runs::Samples;
pub use section::{BadPlot, Section, Table};
