// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads rows of a run's Parquet parts.

use crate::columns::{self, Column};
use crate::error::{Error, Result};
use crate::files::part;
use std::path::Path;

/// The columns of a flow that are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow<'a> {
    /// As in [`crate::FlowRow`].
    pub kind: &'a str,
    /// None: endless.
    pub size_bytes: Option<i64>,
    /// None: it did not finish.
    pub fct_ns: Option<i64>,
    /// Whether it started after the warm-up.
    pub measured: bool,
}

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<'a> {
    /// When.
    pub time_ns: i64,
    /// As in [`crate::SeriesRow`].
    pub name: &'a str,
    /// The port, host or flow.
    pub place: &'a str,
    /// The value.
    pub value: f64,
}

/// Calls `see` for each flow of run `index`.
///
/// # Errors
/// A file that cannot be read, or has another format.
pub fn each_flow(directory: &Path, index: usize, mut see: impl FnMut(Flow<'_>)) -> Result<()> {
    let path = part(directory, "flows", index, "parquet");
    let names = ["kind", "size_bytes", "fct_ns", "measured"];
    for group in columns::read(path.clone(), &names) {
        let group = group?;
        let [Column::Bytes(kinds), sizes, fcts, Column::Bool(measured)] = group.as_slice() else {
            return Err(Error::foreign(&path));
        };
        for (row, measured) in measured.iter().enumerate() {
            see(Flow {
                kind: kinds[row].as_utf8().map_err(|_| Error::foreign(&path))?,
                size_bytes: integer(sizes, row),
                fct_ns: integer(fcts, row),
                measured: *measured,
            });
        }
    }
    Ok(())
}

/// Calls `see` for each point of run `index`.
///
/// # Errors
/// As of [`each_flow`].
pub fn each_point(directory: &Path, index: usize, mut see: impl FnMut(Point<'_>)) -> Result<()> {
    let path = part(directory, "series", index, "parquet");
    let columns = ["time_ns", "name", "place", "value"];
    for group in columns::read(path.clone(), &columns) {
        let group = group?;
        let [Column::Int(times), Column::Bytes(names), Column::Bytes(places), Column::Double(values)] =
            group.as_slice()
        else {
            return Err(Error::foreign(&path));
        };
        for (row, &time_ns) in times.iter().enumerate() {
            see(Point {
                time_ns,
                name: names[row].as_utf8().map_err(|_| Error::foreign(&path))?,
                place: places[row].as_utf8().map_err(|_| Error::foreign(&path))?,
                value: values[row],
            });
        }
    }
    Ok(())
}

fn integer(column: &Column, row: usize) -> Option<i64> {
    match column {
        Column::Int(values) => Some(values[row]),
        Column::OptInt(values) => values[row],
        _ => None,
    }
}
