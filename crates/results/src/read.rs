// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads the tables that [`crate::merge`] wrote, for the report: completion times of requests, and the
//! measured port's series. Reads one row group at a time.

use crate::columns::{self, Cell, Column};
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Completion times in us, ascending, of the measured requests that finished, by run and by entry of
/// the scenario's traffic.
pub type RequestTimes = BTreeMap<(usize, usize), Vec<f64>>;

/// Points (ns, value) in the order of time.
pub type Points = Vec<(i64, f64)>;

/// A series by run: its port or host, and its points.
pub type SeriesOfRun = BTreeMap<usize, (String, Points)>;

/// The completion times of a result directory's requests.
///
/// # Errors
/// `requests.parquet` cannot be read, or has the format of another version.
pub fn request_times(directory: &Path) -> Result<RequestTimes> {
    let path = directory.join("requests.parquet");
    let mut times = RequestTimes::new();
    let names = ["run", "traffic", "rct_ns", "measured"];
    for group in columns::read(path.clone(), &names) {
        let group = group?;
        let [Column::Int(run), Column::Int(traffic), rct_ns, Column::Bool(measured)] = &group[..]
        else {
            return Err(Error::foreign(&path));
        };
        let Column::OptInt(rct_ns) = rct_ns else {
            continue; // The type of an empty group does not show whether it can have gaps.
        };
        for (index, rct_ns) in rct_ns.iter().enumerate() {
            if let (Some(rct_ns), true) = (rct_ns, measured[index]) {
                let key = (run[index] as usize, traffic[index] as usize);
                times.entry(key).or_default().push(*rct_ns as f64 / 1e3);
            }
        }
    }
    for times in times.values_mut() {
        times.sort_unstable_by(f64::total_cmp);
    }
    Ok(times)
}

/// The series `name` of the measured port or its host, which is the first one in the file.
///
/// # Errors
/// `series.parquet` cannot be read, or has the format of another version.
pub fn measured_series(directory: &Path, name: &str) -> Result<SeriesOfRun> {
    let path = directory.join("series.parquet");
    let name = Cell::from(name);
    let mut series: BTreeMap<usize, (Cell, Points)> = BTreeMap::new();
    let columns = ["run", "time_ns", "name", "place", "value"];
    for group in columns::read(path.clone(), &columns) {
        let group = group?;
        let [Column::Int(run), Column::Int(time_ns), Column::Bytes(names), Column::Bytes(places), Column::Double(values)] =
            &group[..]
        else {
            return Err(Error::foreign(&path));
        };
        for index in (0..run.len()).filter(|&index| names[index] == name) {
            let first = || (places[index].clone(), Vec::new());
            let (place, points) = series.entry(run[index] as usize).or_insert_with(first);
            if *place == places[index] {
                points.push((time_ns[index], values[index]));
            }
        }
    }
    let text = |place: &Cell| String::from_utf8_lossy(place.data()).into_owned();
    let sorted = |(run, (place, mut points)): (usize, (Cell, Points))| {
        points.sort_by_key(|&(time_ns, _)| time_ns);
        (run, (text(&place), points))
    };
    Ok(series.into_iter().map(sorted).collect())
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;
    use crate::row::{RequestRow, SeriesRow};
    use crate::run_result::RunResult;
    use crate::schema::tables;
    use crate::tables::write_tables;

    /// A directory with the tables of run 0, as [`crate::merge`] leaves them.
    fn directory(requests: &[RequestRow], series: &[SeriesRow]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let result = RunResult {
            run: 0,
            params: BTreeMap::new(),
            resolved: serde_json::Value::Null,
            partial: false,
            metrics: BTreeMap::new(),
            cost: BTreeMap::new(),
        };
        write_tables(at, &result, [], requests.to_vec(), series.to_vec()).unwrap();
        for stem in tables(false).map(|table| table.stem) {
            let part = crate::files::part(at, stem, 0, "parquet");
            std::fs::rename(part, at.join(format!("{stem}.parquet"))).unwrap();
        }
        directory
    }

    fn request(traffic: i64, rct_ns: Option<i64>, measured: bool) -> RequestRow {
        RequestRow {
            traffic,
            request: 0,
            start_ns: 0,
            rct_ns,
            acked_ns: None,
            missing: 0,
            measured,
        }
    }

    fn value(time_ns: i64, name: &'static str, place: &str, value: f64) -> SeriesRow {
        SeriesRow {
            time_ns,
            name,
            place: place.into(),
            value,
        }
    }

    #[test]
    fn only_measured_requests_that_finished_count() {
        let requests = [
            request(1, Some(9_000), true),
            request(1, Some(2_000), true),
            request(1, Some(1_000), false),
            request(1, None, true),
            request(2, Some(5_000), true),
        ];
        let directory = directory(&requests, &[]);
        let expected = RequestTimes::from([((0, 1), vec![2.0, 9.0]), ((0, 2), vec![5.0])]);
        assert_eq!(request_times(directory.path()).unwrap(), expected);
    }

    #[test]
    fn the_first_place_is_the_measured_one() {
        let series = [
            value(20, "queue_us", "switch0-host0", 2.0),
            value(10, "queue_us", "switch0-host0", 1.0),
            value(10, "queue_us", "host3", 8.0),
            value(10, "owd_us", "host0", 9.0),
        ];
        let directory = directory(&[], &series);
        let points = vec![(10, 1.0), (20, 2.0)];
        let expected = SeriesOfRun::from([(0, ("switch0-host0".to_owned(), points))]);
        assert_eq!(
            measured_series(directory.path(), "queue_us").unwrap(),
            expected
        );
        assert_eq!(
            measured_series(directory.path(), "none").unwrap(),
            SeriesOfRun::new()
        );
    }

    #[test]
    fn a_table_of_other_columns_is_refused() {
        let directory = directory(&[], &[]);
        let at = directory.path();
        std::fs::rename(at.join("series.parquet"), at.join("requests.parquet")).unwrap();
        let error = request_times(at).unwrap_err().to_string();
        assert!(error.contains("requests.parquet"), "{error}");
        assert!(error.contains("run the scenario again"), "{error}");
    }
}
