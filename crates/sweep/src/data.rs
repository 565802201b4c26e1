// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A directory of results: `runs/points-K.json` for each part that was made, then the data set `data/part-K.parquet`, with
//! a row for each run, and `sweep.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onramp_results::{part as file_of_run, read_versioned, write_json, RunColumns, RunRow};
use serde::{Deserialize, Serialize};

use crate::error::SweepError;
use crate::part::{Part, Row, SWEEP_SCHEMA};
use crate::points::Sweep;

/// Rows of a file of the data set.
const ROWS_OF_A_FILE: usize = 50_000;
/// Most failures that `sweep.json` lists; the data set has all.
const MOST_LISTED: usize = 100;

/// `sweep.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`SWEEP_SCHEMA`].
    pub schema: u32,
    /// Of the sweep.
    pub title: String,
    /// The version of onramp.
    pub version: String,
    /// Points of the sweep.
    pub points: usize,
    /// Points in the data set.
    pub made: usize,
    /// Whether points are missing, because the command was interrupted.
    pub partial: bool,
    /// Rows of the data set.
    pub runs: usize,
    /// Rows without metrics.
    pub failed: usize,
    /// The first of them.
    pub failures: Vec<Failure>,
}

/// A run, or a point, that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Number of the point.
    pub point: usize,
    /// What differs from other points, and the seed.
    pub params: BTreeMap<String, String>,
    /// What is wrong.
    pub error: String,
}

/// Path of the file of a part.
pub fn part_file(directory: &Path, part: usize) -> PathBuf {
    file_of_run(directory, "points", part, "json")
}

/// The parts that are not in `directory`.
pub fn missing_parts(sweep: &Sweep, directory: &Path) -> Vec<usize> {
    let is_missing = |part: &usize| !part_file(directory, *part).exists();
    (0..sweep.parts()).filter(is_missing).collect()
}

/// Makes the data set of the parts that `directory` has, and writes `sweep.json`.
///
/// # Errors
/// Files that cannot be read, are of another version, or cannot be written.
pub fn finish(sweep: &Sweep, directory: &Path) -> Result<Outcome, SweepError> {
    let parts = (0..sweep.parts()).map(|part| part_file(directory, part));
    let made: Vec<PathBuf> = parts.filter(|path| path.exists()).collect();
    let mut outcome = Outcome {
        schema: SWEEP_SCHEMA,
        title: sweep.title().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        points: sweep.points(),
        made: 0,
        partial: made.len() < sweep.parts(),
        runs: 0,
        failed: 0,
        failures: Vec::new(),
    };
    let mut columns = RunColumns::default();
    for path in &made {
        let part = read(path)?;
        outcome.made += sweep.points_of(part.part).len();
        outcome.runs += part.rows.len();
        for row in part.rows {
            columns.add(&row.params, &row.metrics, &row.cost);
            outcome.note(row);
        }
    }
    write(directory, &made, &columns, outcome.runs)?;
    write_json(&directory.join("sweep.json"), &outcome)?;
    Ok(outcome)
}

impl Outcome {
    fn note(&mut self, row: Row) {
        let Some(error) = row.error else {
            return;
        };
        self.failed += 1;
        if self.failures.len() < MOST_LISTED {
            self.failures.push(Failure {
                point: row.point,
                params: row.params,
                error,
            });
        }
    }
}

fn read(path: &Path) -> Result<Part, SweepError> {
    Ok(read_versioned(path, SWEEP_SCHEMA, "make the sweep")?)
}

/// Writes the files of the data set, and removes others of it: an earlier one may have had more.
fn write(
    directory: &Path,
    made: &[PathBuf],
    columns: &RunColumns,
    rows: usize,
) -> Result<(), SweepError> {
    let data = directory.join("data");
    let at = |error| onramp_results::Error::File {
        path: data.clone(),
        error,
    };
    if data.exists() {
        std::fs::remove_dir_all(&data).map_err(at)?;
    }
    std::fs::create_dir_all(&data).map_err(at)?;
    let mut parts = made.iter();
    let mut rest: Vec<Row> = Vec::new();
    for file in 0..rows.div_ceil(ROWS_OF_A_FILE).max(1) {
        while rest.len() < ROWS_OF_A_FILE {
            match parts.next() {
                Some(path) => rest.extend(read(path)?.rows),
                None => break,
            }
        }
        let of_file = rest.drain(..rest.len().min(ROWS_OF_A_FILE));
        let of_file: Vec<Row> = of_file.collect();
        let path = data.join(format!("part-{file:05}.parquet"));
        columns.write(&path, &of_file.iter().map(row).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn row(row: &Row) -> RunRow<'_> {
    RunRow {
        point: row.point,
        run: row.run,
        params: &row.params,
        metrics: &row.metrics,
        cost: &row.cost,
        error: row.error.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Making;
    use crate::points::tests;

    const SWEEP: &str = r#"seeds = [1, 2]
[grid]
"host.cc" = ["cubic", "wrong", "bbr"]
"network.link.delay" = ["1 us", "2 us"]
"#;

    fn make(sweep: &Sweep, directory: &Path, parts: &[usize], threads: usize) {
        let making = Making {
            sweep,
            read: &tests::read,
            threads,
        };
        for part in parts {
            let made = making.part(*part, &mut |_| true).unwrap();
            write_json(&part_file(directory, *part), &made).unwrap();
        }
    }

    fn bytes(directory: &Path) -> [Vec<u8>; 2] {
        ["data/part-00000.parquet", "sweep.json"]
            .map(|name| std::fs::read(directory.join(name)).unwrap())
    }

    #[test]
    fn parts_in_any_order_become_the_same_data_and_wrong_points_are_listed() {
        let sweep = tests::sweep(SWEEP).unwrap();
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        make(&sweep, one.path(), &[0, 1, 2, 3, 4, 5], 1);
        make(&sweep, other.path(), &[5, 2, 0], 2);
        assert_eq!(missing_parts(&sweep, other.path()), [1, 3, 4]);
        let outcome = finish(&sweep, other.path()).unwrap();
        assert_eq!(
            (outcome.partial, outcome.points, outcome.made),
            (true, 6, 3)
        );
        make(&sweep, other.path(), &[4, 1, 3], 1);
        let outcome = finish(&sweep, other.path()).unwrap();
        assert_eq!(outcome, finish(&sweep, one.path()).unwrap());
        assert!(bytes(one.path()) == bytes(other.path()));

        // Four points with two seeds, and two points without a run.
        assert_eq!(
            (outcome.partial, outcome.runs, outcome.failed),
            (false, 10, 2)
        );
        let failure = &outcome.failures[0];
        assert_eq!(
            (failure.point, failure.params["host.cc"].as_str()),
            (2, "wrong")
        );
        assert!(
            failure.error.starts_with("host.cc is \"wrong\", expected"),
            "{}",
            failure.error
        );
        assert_eq!(finish(&sweep, one.path()).unwrap(), outcome);
    }

    #[test]
    fn who_is_told_to_stop_makes_no_part() {
        let sweep = tests::sweep(SWEEP).unwrap();
        let making = Making {
            sweep: &sweep,
            read: &tests::read,
            threads: 1,
        };
        assert_eq!(making.part(0, &mut |_| false), None);
    }

    #[test]
    fn a_part_of_another_version_is_named() {
        let sweep = tests::sweep("").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = part_file(directory.path(), 0);
        write_json(&path, &serde_json::json!({ "schema": 2 })).unwrap();
        let error = finish(&sweep, directory.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("its schema is 2, expected 1; make the sweep again"),
            "{error}"
        );
    }
}
