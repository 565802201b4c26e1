// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Columns that identify the run of a row: its number, its case, and the parameters in which it differs
//! from the other runs. All rows of a run have the same values.
//!
//! A quantity is a number in the unit that ends the column's name. A plain number is a number, and any other
//! value is text. A parameter that is a quantity in some runs and a word in others (`off`) has two columns.

use crate::columns::{Cell, Column};
use crate::run_result::RunResult;
use onramp_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;

/// Name of the first of these columns.
pub(crate) const RUN: &str = "run";

/// The value of a column in a run's rows.
#[derive(Debug, Clone, PartialEq)]
enum Label {
    Int(i64),
    Double(f64),
    Text(String),
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    Double,
    Text,
}

/// The columns of several runs. Every run has every column, with null if the run has no value.
pub(crate) struct Labels(BTreeMap<String, Kind>);

impl Labels {
    /// Those of `runs`.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Labels {
        let mut kinds = BTreeMap::new();
        for (name, label) in runs.into_iter().flat_map(labels) {
            let kind = label.kind();
            let known = kinds.entry(name).or_insert(kind);
            *known = known.with(kind);
        }
        Labels(kinds)
    }

    /// Their declarations in a Parquet schema.
    pub fn declarations(&self) -> Vec<String> {
        let declaration = |(name, kind): (&String, &Kind)| match kind {
            Kind::Int => format!("optional int64 {name}"),
            Kind::Double => format!("optional double {name}"),
            Kind::Text => format!("optional binary {name} (UTF8)"),
        };
        let run = format!("required int64 {RUN}");
        [run]
            .into_iter()
            .chain(self.0.iter().map(declaration))
            .collect()
    }

    /// The columns of a row group of `run`, before its own columns.
    pub fn before(&self, run: &RunResult, group: Vec<Column>) -> Vec<Column> {
        let rows = group.first().map_or(0, Column::len);
        let mut all = self.columns(run, rows);
        all.extend(group);
        all
    }

    /// Their values in `rows` rows of `run`.
    pub fn columns(&self, run: &RunResult, rows: usize) -> Vec<Column> {
        let labels = labels(run);
        let column = |(name, kind): (&String, &Kind)| {
            let label = labels.get(name);
            match kind {
                Kind::Int => Column::OptInt(vec![label.and_then(Label::int); rows]),
                Kind::Double => Column::OptDouble(vec![label.and_then(Label::double); rows]),
                Kind::Text => {
                    let text = label.map(|label| Cell::from(label.text().as_str()));
                    Column::OptBytes(vec![text; rows])
                }
            }
        };
        let number = Column::Int(vec![run.run as i64; rows]);
        [number]
            .into_iter()
            .chain(self.0.iter().map(column))
            .collect()
    }
}

fn labels(run: &RunResult) -> BTreeMap<String, Label> {
    run.params
        .iter()
        .map(|(key, value)| label(key, value))
        .collect()
}

/// The column of parameter `key`, and `value` in its form.
fn label(key: &str, value: &str) -> (String, Label) {
    if key == "case" {
        return (key.to_owned(), Label::Text(value.to_owned()));
    }
    let (unit, label) = typed(value);
    (format!("param_{}{unit}", key.replace('.', "_")), label)
}

fn typed(value: &str) -> (&'static str, Label) {
    if let Ok(span) = value.parse::<Span>() {
        return ("_ns", Label::Double(span.as_ps() as f64 / 1e3));
    }
    if let Ok(rate) = value.parse::<Rate>() {
        return ("_bits_per_s", Label::Int(rate.bits_per_s() as i64));
    }
    if let Ok(bytes) = value.parse::<Bytes>() {
        return ("_bytes", Label::Int(bytes.get() as i64));
    }
    if let Ok(number) = value.parse() {
        return ("", Label::Int(number));
    }
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => ("", Label::Double(number)),
        _ => ("", Label::Text(value.to_owned())),
    }
}

impl Label {
    fn kind(&self) -> Kind {
        match self {
            Label::Int(_) => Kind::Int,
            Label::Double(_) => Kind::Double,
            Label::Text(_) => Kind::Text,
        }
    }

    fn int(&self) -> Option<i64> {
        match self {
            Label::Int(number) => Some(*number),
            _ => None,
        }
    }

    fn double(&self) -> Option<f64> {
        match self {
            Label::Int(number) => Some(*number as f64),
            Label::Double(number) => Some(*number),
            Label::Text(_) => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Label::Int(number) => number.to_string(),
            Label::Double(number) => number.to_string(),
            Label::Text(text) => text.clone(),
        }
    }
}

impl Kind {
    /// The type that fits both.
    fn with(self, other: Kind) -> Kind {
        match (self, other) {
            (one, two) if one == two => one,
            (Kind::Text, _) | (_, Kind::Text) => Kind::Text,
            _ => Kind::Double,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn run(run: usize, params: &[(&str, &str)]) -> RunResult {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        RunResult {
            run,
            params: params.iter().map(owned).collect(),
            resolved: Value::Null,
            partial: false,
            metrics: BTreeMap::new(),
            cost: BTreeMap::new(),
        }
    }

    #[test]
    fn numbers_are_numbers_in_the_unit_of_their_column() {
        let of = |value: &str| label("a.b", value);
        assert_eq!(of("1.5 us"), ("param_a_b_ns".into(), Label::Double(1500.0)));
        assert_eq!(
            of("10 Gbit/s"),
            ("param_a_b_bits_per_s".into(), Label::Int(10_000_000_000))
        );
        assert_eq!(of("32 kB"), ("param_a_b_bytes".into(), Label::Int(32_000)));
        assert_eq!(of("7"), ("param_a_b".into(), Label::Int(7)));
        assert_eq!(of("0.5"), ("param_a_b".into(), Label::Double(0.5)));
        assert_eq!(
            of("cubic"),
            ("param_a_b".into(), Label::Text("cubic".into()))
        );
        assert_eq!(label("case", "7"), ("case".into(), Label::Text("7".into())));
    }

    #[test]
    fn runs_share_columns_that_have_room_for_all() {
        let off = run(0, &[("t", "off"), ("n", "1"), ("m", "auto")]);
        let on = run(1, &[("t", "50 us"), ("n", "0.5"), ("m", "3")]);
        let labels = Labels::of([&off, &on]);
        assert_eq!(
            labels.declarations(),
            [
                "required int64 run",
                "optional binary param_m (UTF8)",
                "optional double param_n",
                "optional binary param_t (UTF8)",
                "optional double param_t_ns",
            ]
        );
        let text = |text: &str| Column::OptBytes(vec![Some(text.into())]);
        assert_eq!(
            labels.columns(&off, 1),
            [
                Column::Int(vec![0]),
                text("auto"),
                Column::OptDouble(vec![Some(1.0)]),
                text("off"),
                Column::OptDouble(vec![None]),
            ]
        );
        let on = labels.columns(&on, 1);
        assert_eq!(on[1], text("3"));
        assert_eq!(on[3], Column::OptBytes(vec![None]));
        assert_eq!(on[4], Column::OptDouble(vec![Some(50_000.0)]));
    }
}
