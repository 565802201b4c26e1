// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Columns that identify the run of a row: its number, its case, and the parameters in which it differs
//! from the other runs. All rows of a run have the same values.
//!
//! A parameter has a column with the value as the scenario has it, as text; a plain number is a number there. A quantity
//! has a second column, a number in the unit that ends the column's name; it is null in runs where the parameter is a word
//! (`off`).

use crate::case::case_name;
use crate::columns::{Cell, Column};
use crate::run_result::RunResult;
use onramp_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;

/// Name of the first of these columns: the number of the run.
pub(crate) const RUN: &str = "run";

/// Name of the second: the name of the run in the table.
pub(crate) const LABEL: &str = "label";

/// The value of a column in a run's rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Label {
    Int(i64),
    Double(f64),
    Text(String),
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Double,
    Text,
}

/// The columns of several runs. Every run has every column, with null if the run has no value.
pub(crate) struct Labels {
    kinds: BTreeMap<String, Kind>,
    /// [`LABEL`] of each run, by its number.
    names: BTreeMap<usize, String>,
}

impl Labels {
    /// Those of `runs`.
    pub fn of(runs: &[RunResult]) -> Labels {
        let mut kinds = BTreeMap::new();
        for (name, label) in runs.iter().flat_map(labels) {
            let kind = label.kind();
            let known = kinds.entry(name).or_insert(kind);
            *known = known.with(kind);
        }
        let name = |run: &RunResult| (run.run, case_name(run, runs));
        let names = runs.iter().map(name).collect();
        Labels { kinds, names }
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<String> {
        let first = [RUN, LABEL].map(str::to_owned);
        first
            .into_iter()
            .chain(self.kinds.keys().cloned())
            .collect()
    }

    /// Their declarations in a Parquet schema.
    pub fn declarations(&self) -> Vec<String> {
        let declaration = |(name, kind): (&String, &Kind)| match kind {
            Kind::Int => format!("optional int64 {name}"),
            Kind::Double => format!("optional double {name}"),
            Kind::Text => format!("optional binary {name} (UTF8)"),
        };
        let run = format!("required int64 {RUN}");
        let label = format!("optional binary {LABEL} (UTF8)");
        [run, label]
            .into_iter()
            .chain(self.kinds.iter().map(declaration))
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
        let name = self
            .names
            .get(&run.run)
            .map(|name| Cell::from(name.as_str()));
        let name = Column::OptBytes(vec![name; rows]);
        [number, name]
            .into_iter()
            .chain(self.kinds.iter().map(column))
            .collect()
    }
}

fn labels(run: &RunResult) -> BTreeMap<String, Label> {
    let columns = |(key, value): (&String, &String)| columns_of(key, value);
    run.params.iter().flat_map(columns).collect()
}

/// The columns of parameter `key`, and `value` in their forms.
pub(crate) fn columns_of(key: &str, value: &str) -> Vec<(String, Label)> {
    if key == "case" {
        return vec![(key.to_owned(), Label::Text(value.to_owned()))];
    }
    let name = format!("param_{}", key.replace('.', "_"));
    match typed(value) {
        ("", label) => vec![(name, label)],
        (unit, label) => vec![
            (format!("{name}{unit}"), label),
            (name, Label::Text(value.to_owned())),
        ],
    }
}

/// A parameter that is a number, and its unit: `ns`, `bits_per_s`, `bytes`, or empty for a plain number. None for a word.
pub fn quantity(value: &str) -> Option<(f64, &'static str)> {
    let (unit, label) = typed(value);
    Some((label.double()?, unit.trim_start_matches('_')))
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
    pub fn kind(&self) -> Kind {
        match self {
            Label::Int(_) => Kind::Int,
            Label::Double(_) => Kind::Double,
            Label::Text(_) => Kind::Text,
        }
    }

    pub fn int(&self) -> Option<i64> {
        match self {
            Label::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub fn double(&self) -> Option<f64> {
        match self {
            Label::Int(number) => Some(*number as f64),
            Label::Double(number) => Some(*number),
            Label::Text(_) => None,
        }
    }

    pub fn text(&self) -> String {
        match self {
            Label::Int(number) => number.to_string(),
            Label::Double(number) => number.to_string(),
            Label::Text(text) => text.clone(),
        }
    }
}

impl Kind {
    /// The type that fits both.
    pub fn with(self, other: Kind) -> Kind {
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
    use crate::fixture::run;

    #[test]
    fn quantities_are_also_numbers_in_the_unit_of_their_column() {
        let of = |value: &str| columns_of("a.b", value);
        let both = |unit: &str, label: Label, text: &str| {
            let text = ("param_a_b".to_owned(), Label::Text(text.into()));
            vec![(format!("param_a_b{unit}"), label), text]
        };
        let one = |label: Label| vec![("param_a_b".to_owned(), label)];
        assert_eq!(of("1.5 us"), both("_ns", Label::Double(1500.0), "1.5 us"));
        assert_eq!(
            of("10 Gbit/s"),
            both("_bits_per_s", Label::Int(10_000_000_000), "10 Gbit/s")
        );
        assert_eq!(of("32 kB"), both("_bytes", Label::Int(32_000), "32 kB"));
        assert_eq!(of("7"), one(Label::Int(7)));
        assert_eq!(of("0.5"), one(Label::Double(0.5)));
        assert_eq!(of("cubic"), one(Label::Text("cubic".into())));
        let case = ("case".to_owned(), Label::Text("7".into()));
        assert_eq!(columns_of("case", "7"), [case]);
    }

    #[test]
    fn runs_share_columns_that_have_room_for_all() {
        let off = run(0, &[("t", "off"), ("n", "1"), ("m", "auto")]);
        let on = run(1, &[("t", "50 us"), ("n", "0.5"), ("m", "3")]);
        let labels = Labels::of(&[off.clone(), on.clone()]);
        assert_eq!(
            labels.declarations(),
            [
                "required int64 run",
                "optional binary label (UTF8)",
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
                text("m=auto n=1 t=off"),
                text("auto"),
                Column::OptDouble(vec![Some(1.0)]),
                text("off"),
                Column::OptDouble(vec![None]),
            ]
        );
        let on = labels.columns(&on, 1);
        assert_eq!((&on[2], &on[4]), (&text("3"), &text("50 us")));
        assert_eq!(on[5], Column::OptDouble(vec![Some(50_000.0)]));
    }
}
