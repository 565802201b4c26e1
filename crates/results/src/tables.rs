// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The tables of a run: flows, requests, series. Times in ns of the real network, since the start
//! of the traffic.

use crate::columns::{self, Column};
use crate::error::Result;
use crate::files::part;
use crate::labels::Labels;
use crate::row::{FlowRow, RequestRow, SeriesRow, SERIES_NAMES};
use crate::run_result::RunResult;
use crate::schema::{tables, ColumnOf, FLOWS, REQUESTS, SERIES};
use std::path::Path;

/// All tables of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tables {
    /// `flows.parquet`.
    pub flows: Vec<FlowRow>,
    /// `requests.parquet`.
    pub requests: Vec<RequestRow>,
    /// `series.parquet`.
    pub series: Vec<SeriesRow>,
}

/// Rows of a row group: what is held of a table while it is written.
const ROWS_OF_A_GROUP: usize = 1 << 16;

impl Tables {
    /// Writes the three parts of the run that came to `result`.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn write(self, directory: &Path, result: &RunResult) -> Result<()> {
        let Tables {
            flows,
            requests,
            series,
        } = self;
        write_tables(directory, result, flows, requests, series)
    }
}

/// Writes the three parts of the run that came to `result`, a row group at a time: all rows need not be
/// held at once.
///
/// # Errors
/// Files that cannot be written.
pub fn write_tables(
    directory: &Path,
    result: &RunResult,
    flows: impl IntoIterator<Item = FlowRow>,
    requests: impl IntoIterator<Item = RequestRow>,
    series: impl IntoIterator<Item = SeriesRow>,
) -> Result<()> {
    let labels = Labels::of(std::slice::from_ref(result));
    let flows = groups(flows, |rows| columns_of(&FLOWS, &labels, result, rows));
    let requests = groups(requests, |rows| {
        columns_of(&REQUESTS, &labels, result, rows)
    });
    let series = series.into_iter().inspect(|row: &SeriesRow| {
        let is_known = SERIES_NAMES.iter().any(|(name, ..)| *name == row.name);
        debug_assert!(is_known, "SERIES_NAMES has no {}", row.name);
    });
    let series = groups(series, |rows| columns_of(&SERIES, &labels, result, rows));
    let groups: [&mut dyn Iterator<Item = Vec<Column>>; 3] =
        [&mut { flows }, &mut { requests }, &mut { series }];
    for (table, groups) in tables(result.has_groups()).into_iter().zip(groups) {
        let path = part(directory, table.stem, result.run, "parquet");
        let schema = table.schema(&labels.declarations());
        columns::write(&path, &schema, groups.map(Ok))?;
    }
    Ok(())
}

/// A table of several runs in memory, with the columns of its merged Parquet file.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Names of the columns.
    pub names: Vec<String>,
    /// Values of the columns in each row group. There is at least one group.
    pub groups: Vec<Vec<Column>>,
}

/// A table of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// Flows.
    Flows,
    /// Requests.
    Requests,
    /// Series.
    Series,
}

impl Frame {
    /// The rows of `runs` in one table.
    pub fn of(kind: TableKind, runs: &[(RunResult, Tables)]) -> Frame {
        match kind {
            TableKind::Flows => frame(&FLOWS, runs, |tables| &tables.flows),
            TableKind::Requests => frame(&REQUESTS, runs, |tables| &tables.requests),
            TableKind::Series => frame(&SERIES, runs, |tables| &tables.series),
        }
    }
}

fn frame<Row>(
    columns: &[ColumnOf<Row>],
    runs: &[(RunResult, Tables)],
    rows: impl Fn(&Tables) -> &[Row],
) -> Frame {
    let results: Vec<RunResult> = runs.iter().map(|(result, _)| result.clone()).collect();
    let labels = Labels::of(&results);
    let with_groups = results.iter().any(RunResult::has_groups);
    let own: Vec<&ColumnOf<Row>> = columns
        .iter()
        .filter(|column| column.is_in(with_groups))
        .collect();
    let group = |result: &RunResult, rows: &[Row]| -> Vec<Column> {
        let mut all = labels.columns(result, rows.len());
        all.extend(own.iter().map(|column| column.values(rows)));
        all
    };
    let mut groups = Vec::new();
    for (result, tables) in runs {
        let parts = rows(tables).chunks(ROWS_OF_A_GROUP);
        groups.extend(parts.map(|part| group(result, part)));
    }
    if groups.is_empty() {
        groups.push(match results.first() {
            Some(result) => group(result, &[]),
            None => own.iter().map(|column| column.values(&[])).collect(),
        });
    }
    let labelled = labels.names();
    let labelled = labelled.into_iter().filter(|_| !results.is_empty());
    let own = own.iter().map(|column| column.name.to_owned());
    Frame {
        names: labelled.chain(own).collect(),
        groups,
    }
}

fn columns_of<Row>(
    columns: &[ColumnOf<Row>],
    labels: &Labels,
    result: &RunResult,
    rows: &[Row],
) -> Vec<Column> {
    let mut all = labels.columns(result, rows.len());
    let columns = columns
        .iter()
        .filter(|column| column.is_in(result.has_groups()));
    all.extend(columns.map(|column| column.values(rows)));
    all
}

/// The columns of `rows`, a row group after the other; one without rows if there are none.
fn groups<Row>(
    rows: impl IntoIterator<Item = Row>,
    columns: impl Fn(&[Row]) -> Vec<Column>,
) -> impl Iterator<Item = Vec<Column>> {
    let mut rows = rows.into_iter();
    let mut is_first = true;
    std::iter::from_fn(move || {
        let group: Vec<Row> = rows.by_ref().take(ROWS_OF_A_GROUP).collect();
        let is_over = group.is_empty() && !is_first;
        is_first = false;
        (!is_over).then(|| columns(&group))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_the_rows_of_all_runs_and_its_columns_without_any() {
        let of = |number: usize, seed: &str, requests: i64| {
            let request = |request| RequestRow {
                traffic: 0,
                request,
                start_ns: 0,
                rct_ns: Some(request),
                acked_ns: None,
                missing: 0,
                measured: true,
            };
            let tables = Tables {
                requests: (0..requests).map(request).collect(),
                ..Tables::default()
            };
            (crate::fixture::run(number, &[("seed", seed)]), tables)
        };
        let frame = Frame::of(TableKind::Requests, &[of(0, "1", 2), of(1, "2", 1)]);
        assert_eq!(frame.names[..4], ["run", "label", "param_seed", "traffic"]);
        let runs = frame.groups.iter().map(|group| &group[0]);
        let expected = [Column::Int(vec![0, 0]), Column::Int(vec![1])];
        assert!(runs.eq(&expected));
        for frame in [
            Frame::of(TableKind::Flows, &[]),
            Frame::of(TableKind::Series, &[of(0, "1", 1)]),
        ] {
            assert_eq!(frame.groups.len(), 1);
            assert_eq!(frame.groups[0].len(), frame.names.len());
            assert!(frame.groups[0].iter().all(|column| column.len() == 0));
        }
    }

    #[test]
    fn rows_beyond_a_group_begin_the_next() {
        let counts = |rows: usize| -> Vec<usize> {
            let columns = |group: &[usize]| vec![Column::Int(vec![0; group.len()])];
            let count = |columns: Vec<Column>| match &columns[0] {
                Column::Int(values) => values.len(),
                other => panic!("not what was put in: {other:?}"),
            };
            groups(0..rows, columns).map(count).collect()
        };
        assert_eq!(counts(0), [0]);
        assert_eq!(counts(ROWS_OF_A_GROUP), [ROWS_OF_A_GROUP]);
        assert_eq!(counts(ROWS_OF_A_GROUP + 1), [ROWS_OF_A_GROUP, 1]);
    }
}
