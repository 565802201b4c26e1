// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A table with a row for each of many runs: what they are, and their metrics as numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::case::words;
use crate::columns::{self, Cell, Column};
use crate::error::Result;
use crate::labels::{columns_of, Kind, Label};
use crate::run_result::SEED;

/// The columns of such a table. A distribution has one for each of its members (`queue_us.p99`), a list of numbers has its
/// sum and Jain's index of fairness (`long.goodput_gbps.sum`, `.jain`), the cost of the measuring begins with `cost.`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunColumns {
    params: BTreeMap<String, Kind>,
    metrics: BTreeSet<String>,
}

/// A row of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow<'a> {
    /// Number of the point.
    pub point: usize,
    /// Position among the runs of the point.
    pub run: usize,
    /// Settings in which the run differs from others.
    pub params: &'a BTreeMap<String, String>,
    /// As in `summary.json`.
    pub metrics: &'a BTreeMap<String, Value>,
    /// As in `summary.json`.
    pub cost: &'a BTreeMap<String, f64>,
    /// Why it has no metrics.
    pub error: Option<&'a str>,
}

impl RunColumns {
    /// Gives a run's settings and metrics columns.
    pub fn add(
        &mut self,
        params: &BTreeMap<String, String>,
        metrics: &BTreeMap<String, Value>,
        cost: &BTreeMap<String, f64>,
    ) {
        for (name, label) in params
            .iter()
            .flat_map(|(key, value)| columns_of(key, value))
        {
            let kind = label.kind();
            let known = self.params.entry(name).or_insert(kind);
            *known = known.with(kind);
        }
        for (name, _) in numbers(metrics, cost) {
            if !self.metrics.contains(&name) {
                self.metrics.insert(name);
            }
        }
    }

    /// Writes the rows, whose settings and metrics have columns, as a Parquet file.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, path: &Path, rows: &[RunRow<'_>]) -> Result<()> {
        columns::write(path, &self.schema(), [Ok(self.columns(rows))])
    }

    fn schema(&self) -> String {
        let mut text = String::from("message run {\n");
        let mut field = |kind: &str, name: &str| text += &format!("{kind} {name};\n");
        field("required int64", "point");
        field("required int64", "run");
        field("optional binary", "label (UTF8)");
        for (name, kind) in &self.params {
            match kind {
                Kind::Int => field("optional int64", name),
                Kind::Double => field("optional double", name),
                Kind::Text => field("optional binary", &format!("{name} (UTF8)")),
            }
        }
        for name in &self.metrics {
            field("optional double", name);
        }
        field("optional binary", "error (UTF8)");
        text + "}"
    }

    fn columns(&self, rows: &[RunRow<'_>]) -> Vec<Column> {
        let text = |text: Option<&str>| text.map(Cell::from);
        let int = |of: fn(&RunRow<'_>) -> usize| {
            Column::Int(rows.iter().map(|row| of(row) as i64).collect())
        };
        let labels = rows.iter().map(|row| text(Some(&label(row.params))));
        let mut all = vec![
            int(|row| row.point),
            int(|row| row.run),
            Column::OptBytes(labels.collect()),
        ];
        let params: Vec<BTreeMap<String, Label>> = rows
            .iter()
            .map(|row| {
                row.params
                    .iter()
                    .flat_map(|(key, value)| columns_of(key, value))
            })
            .map(Iterator::collect)
            .collect();
        for (name, kind) in &self.params {
            let of = params.iter().map(|params| params.get(name));
            all.push(match kind {
                Kind::Int => Column::OptInt(of.map(|label| label.and_then(Label::int)).collect()),
                Kind::Double => {
                    Column::OptDouble(of.map(|label| label.and_then(Label::double)).collect())
                }
                Kind::Text => {
                    let texts =
                        of.map(|label| label.map(|label| Cell::from(label.text().as_str())));
                    Column::OptBytes(texts.collect())
                }
            });
        }
        let metrics: Vec<BTreeMap<String, f64>> = rows
            .iter()
            .map(|row| numbers(row.metrics, row.cost).collect())
            .collect();
        for name in &self.metrics {
            let of = metrics.iter().map(|metrics| metrics.get(name).copied());
            all.push(Column::OptDouble(of.collect()));
        }
        let errors = rows.iter().map(|row| text(row.error));
        all.push(Column::OptBytes(errors.collect()));
        all
    }
}

/// A name for the runs that differ in nothing but their seed.
fn label(params: &BTreeMap<String, String>) -> String {
    let is_word = |(key, _): &(&String, &String)| !["case", SEED].contains(&key.as_str());
    words(params.get("case"), params.iter().filter(is_word))
}

/// The numbers of a run, by column.
fn numbers<'a>(
    metrics: &'a BTreeMap<String, Value>,
    cost: &'a BTreeMap<String, f64>,
) -> impl Iterator<Item = (String, f64)> + 'a {
    let cost = cost
        .iter()
        .map(|(name, value)| (format!("cost.{name}"), *value));
    metrics
        .iter()
        .flat_map(|(name, value)| of_metric(name, value))
        .chain(cost)
}

fn of_metric(name: &str, value: &Value) -> Vec<(String, f64)> {
    let named = |member: &str, value: f64| (format!("{name}.{member}"), value);
    match value {
        Value::Object(members) => {
            let number = |(member, value): (&String, &Value)| Some(named(member, value.as_f64()?));
            members.iter().filter_map(number).collect()
        }
        Value::Array(_) => {
            let of = |member| Some(named(member, crate::run_result::member(value, member)?));
            ["sum", "jain"].into_iter().filter_map(of).collect()
        }
        _ => value
            .as_f64()
            .map(|value| (name.to_owned(), value))
            .into_iter()
            .collect(),
    }
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()));
        pairs.collect()
    }

    #[test]
    fn each_run_has_a_row_with_nulls_where_it_has_no_value() {
        let metrics = BTreeMap::from([
            ("drops".to_owned(), 4.into()),
            ("q".to_owned(), serde_json::json!({ "n": 2, "p50": 1.5 })),
            ("g".to_owned(), serde_json::json!([1.0, 3.0])),
        ]);
        let cost = BTreeMap::from([("packets".to_owned(), 9.0)]);
        let (on, off) = (
            texts(&[("a.t", "5 us")]),
            texts(&[("a.t", "off"), ("seed", "1")]),
        );
        let none = BTreeMap::new();
        let mut columns = RunColumns::default();
        columns.add(&on, &metrics, &cost);
        columns.add(&off, &BTreeMap::new(), &none);
        let row = |point, params, metrics, cost, error| RunRow {
            point,
            run: 0,
            params,
            metrics,
            cost,
            error,
        };
        let no_metrics = BTreeMap::new();
        let rows = [
            row(0, &on, &metrics, &cost, None),
            row(1, &off, &no_metrics, &none, Some("it is wrong")),
        ];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        columns.write(&path, &rows).unwrap();
        let names = [
            "point",
            "label",
            "param_a_t",
            "param_a_t_ns",
            "param_seed",
            "drops",
            "q.p50",
            "g.sum",
            "g.jain",
            "cost.packets",
            "error",
        ];
        let read: Vec<Vec<Column>> = columns::read(path, &names).map(Result::unwrap).collect();
        let text = |all: [Option<&str>; 2]| {
            Column::OptBytes(all.map(|text| text.map(Cell::from)).to_vec())
        };
        let number = |first: f64| Column::OptDouble(vec![Some(first), None]);
        let expected = [
            Column::Int(vec![0, 1]),
            text([Some("t=5 us"), Some("t=off")]),
            text([Some("5 us"), Some("off")]),
            number(5000.0),
            Column::OptInt(vec![None, Some(1)]),
            number(4.0),
            number(1.5),
            number(4.0),
            number(0.8),
            number(9.0),
            text([None, Some("it is wrong")]),
        ];
        assert_eq!(read, [expected]);
    }
}
