// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Columns of numbers and texts, and their files.

#[cfg(not(feature = "parquet"))]
mod no_parquet;
#[cfg(feature = "parquet")]
mod parquet;

#[cfg(not(feature = "parquet"))]
pub use no_parquet::{read, write, Cell};
#[cfg(feature = "parquet")]
pub use parquet::{read, write, Cell};

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Yes or no.
    Bool(Vec<bool>),
    /// Integers.
    Int(Vec<i64>),
    /// Integers or nulls.
    OptInt(Vec<Option<i64>>),
    /// Floating point.
    Double(Vec<f64>),
    /// Floating-point numbers or nulls.
    OptDouble(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<&'static str>),
    /// Texts that were read.
    Bytes(Vec<Cell>),
    /// Texts or nulls.
    OptBytes(Vec<Option<Cell>>),
}

impl Column {
    /// Number of rows.
    #[allow(clippy::len_without_is_empty)] // nobody asks
    pub fn len(&self) -> usize {
        match self {
            Column::Bool(values) => values.len(),
            Column::Int(values) => values.len(),
            Column::OptInt(values) => values.len(),
            Column::Double(values) => values.len(),
            Column::OptDouble(values) => values.len(),
            Column::Text(values) => values.len(),
            Column::Bytes(values) => values.len(),
            Column::OptBytes(values) => values.len(),
        }
    }
}
