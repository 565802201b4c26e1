// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The columns of the Parquet files: names, types and meanings. The writers and readers of the files and
//! docs/results.md derive from these tables.

use crate::columns::{Cell, Column};
use crate::row::{FlowRow, RequestRow, SeriesRow};

/// A column, and the function that gets its value from a row.
pub(crate) struct ColumnOf<Row> {
    /// Its name, with the unit of its numbers.
    pub name: &'static str,
    /// The worlds that fill it.
    pub worlds: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// Whether only the results of scenarios with [[hosts]] have it.
    of_groups: bool,
    get: Get<Row>,
}

enum Get<Row> {
    Bool(fn(&Row) -> bool),
    Int(fn(&Row) -> i64),
    OptInt(fn(&Row) -> Option<i64>),
    Double(fn(&Row) -> f64),
    OptDouble(fn(&Row) -> Option<f64>),
    Name(fn(&Row) -> &'static str),
    Text(fn(&Row) -> Cell),
    OptText(fn(&Row) -> Option<Cell>),
}

const fn column<Row>(
    name: &'static str,
    worlds: &'static str,
    get: Get<Row>,
    meaning: &'static str,
) -> ColumnOf<Row> {
    ColumnOf {
        name,
        worlds,
        meaning,
        of_groups: false,
        get,
    }
}

/// A column that only the results of scenarios with `[[hosts]]` have.
const fn of_groups<Row>(
    name: &'static str,
    worlds: &'static str,
    get: Get<Row>,
    meaning: &'static str,
) -> ColumnOf<Row> {
    let mut of_groups = column(name, worlds, get, meaning);
    of_groups.of_groups = true;
    of_groups
}

const BOTH: &str = "both";
const SIM: &str = "sim";

/// The columns of `flows.parquet`.
#[rustfmt::skip]
pub(crate) const FLOWS: [ColumnOf<FlowRow>; 17] = [
    column("kind", BOTH, Get::Name(|r| r.kind), "Kind of the traffic entry: `incast`, `long`, `poisson`, `request` (both directions), `all_to_all` or `replay`"),
    column("traffic", BOTH, Get::Int(|r| r.traffic), "Number of the traffic entry in the scenario, from 0"),
    column("request", BOTH, Get::OptInt(|r| r.request), "Number of the request or step that the flow belongs to, from 0 in each entry"),
    column("src", BOTH, Get::Int(|r| r.src), "Number of the sending host"),
    of_groups("group", BOTH, Get::OptInt(|r| r.group), "Number of the sender's `[[hosts]]` entry in the scenario, from 0; null: it has none. Only in scenarios with `[[hosts]]`"),
    column("dst", BOTH, Get::Int(|r| r.dst), "Number of the receiving host"),
    column("size_bytes", BOTH, Get::OptInt(|r| r.size_bytes), "Payload; null: the flow has no end"),
    column("start_ns", BOTH, Get::Int(|r| r.start_ns), "Start time of the flow in the plan"),
    column("fct_ns", BOTH, Get::OptInt(|r| r.fct_ns), "From `start_ns` to the last byte at the receiver; null: unfinished or without end"),
    column("retransmissions", BOTH, Get::Int(|r| r.retransmissions), "Retransmitted segments"),
    column("timeouts", BOTH, Get::Int(|r| r.timeouts), "Retransmission timeouts"),
    column("measured", BOTH, Get::Bool(|r| r.measured), "Whether the flow started after the warm-up, so that it counts in metrics"),
    column("acked_ns", SIM, Get::OptInt(|r| r.simulated?.acked_ns), "From `start_ns` to the last acknowledgement at the sender; null: unfinished or without end"),
    column("ideal_fct_ns", SIM, Get::OptInt(|r| r.simulated?.ideal_fct_ns), "`acked_ns` of the same flow in an empty network, with full packets on every link; null: without end"),
    column("slowdown", SIM, Get::OptDouble(|r| r.simulated?.slowdown), "`acked_ns / ideal_fct_ns`"),
    column("held_ns", SIM, Get::OptInt(|r| Some(r.simulated?.held_ns)), "Time for which On-Ramp held the flow"),
    column("path", SIM, Get::OptText(|r| Some(r.path.as_deref()?.into())), "Names of the ports that the data passes, separated by spaces, the sender's first"),
];

/// The columns of `requests.parquet`.
#[rustfmt::skip]
pub(crate) const REQUESTS: [ColumnOf<RequestRow>; 7] = [
    column("traffic", BOTH, Get::Int(|r| r.traffic), "Number of the traffic entry in the scenario, from 0"),
    column("request", BOTH, Get::Int(|r| r.request), "Number of the request or step, from 0 in each entry"),
    column("start_ns", BOTH, Get::Int(|r| r.start_ns), "Start (rack: the aggregator's first write; simulator: the start of its first flow)"),
    column("rct_ns", BOTH, Get::OptInt(|r| r.rct_ns), "From `start_ns` to the last byte of its last flow at the receiver; null: unfinished"),
    column("acked_ns", SIM, Get::OptInt(|r| r.acked_ns), "From `start_ns` to the last acknowledgement at the last sender; null: unfinished"),
    column("missing", BOTH, Get::Int(|r| r.missing), "Number of its flows that did not finish"),
    column("measured", BOTH, Get::Bool(|r| r.measured), "Whether it started after the warm-up, so that it counts in metrics"),
];

/// The columns of `series.parquet`.
#[rustfmt::skip]
pub(crate) const SERIES: [ColumnOf<SeriesRow>; 4] = [
    column("time_ns", BOTH, Get::Int(|r| r.time_ns), "End of the interval"),
    column("name", BOTH, Get::Name(|r| r.name), "Name of the series, which ends with its unit: see [Series](#series)"),
    column("place", BOTH, Get::Text(|r| (*r.place).into()), "Port (`switch0-host3`), host (`host3`) or flow (`flow7`: row 7 of the run in flows.parquet)"),
    column("value", BOTH, Get::Double(|r| r.value), "The value, in the unit that `name` ends with"),
];

impl<Row> ColumnOf<Row> {
    /// Whether the results of a scenario have it.
    pub fn is_in(&self, with_groups: bool) -> bool {
        with_groups || !self.of_groups
    }

    /// Its declaration in a Parquet schema.
    pub fn declaration(&self) -> String {
        let kind = match self.get {
            Get::Bool(_) => "required boolean NAME",
            Get::Int(_) => "required int64 NAME",
            Get::OptInt(_) => "optional int64 NAME",
            Get::Double(_) => "required double NAME",
            Get::OptDouble(_) => "optional double NAME",
            Get::Name(_) | Get::Text(_) => "required binary NAME (UTF8)",
            Get::OptText(_) => "optional binary NAME (UTF8)",
        };
        kind.replace("NAME", self.name)
    }

    /// Its type, as text.
    pub fn kind(&self) -> &'static str {
        match self.get {
            Get::Bool(_) => "boolean",
            Get::Int(_) => "int64",
            Get::OptInt(_) => "int64 or null",
            Get::Double(_) => "double",
            Get::OptDouble(_) => "double or null",
            Get::Name(_) | Get::Text(_) => "text",
            Get::OptText(_) => "text or null",
        }
    }

    /// Its values in `rows`.
    pub fn values(&self, rows: &[Row]) -> Column {
        let rows = rows.iter();
        match self.get {
            Get::Bool(get) => Column::Bool(rows.map(get).collect()),
            Get::Int(get) => Column::Int(rows.map(get).collect()),
            Get::OptInt(get) => Column::OptInt(rows.map(get).collect()),
            Get::Double(get) => Column::Double(rows.map(get).collect()),
            Get::OptDouble(get) => Column::OptDouble(rows.map(get).collect()),
            Get::Name(get) => Column::Text(rows.map(get).collect()),
            Get::Text(get) => Column::Bytes(rows.map(get).collect()),
            Get::OptText(get) => Column::OptBytes(rows.map(get).collect()),
        }
    }
}

/// A Parquet file: the first part of its name, and the declarations of the columns that all runs have.
pub(crate) struct Table {
    /// `flows`.
    pub stem: &'static str,
    /// Name and declaration of each column, in order.
    pub columns: Vec<(&'static str, String)>,
}

/// All files of a scenario.
pub(crate) fn tables(with_groups: bool) -> [Table; 3] {
    [
        table("flows", &FLOWS, with_groups),
        table("requests", &REQUESTS, with_groups),
        table("series", &SERIES, with_groups),
    ]
}

fn table<Row>(stem: &'static str, columns: &[ColumnOf<Row>], with_groups: bool) -> Table {
    let columns = columns.iter().filter(|column| column.is_in(with_groups));
    let declared = |column: &ColumnOf<Row>| (column.name, column.declaration());
    Table {
        stem,
        columns: columns.map(declared).collect(),
    }
}

impl Table {
    /// The whole schema, which begins with the columns of `labels`.
    pub fn schema(&self, labels: &[String]) -> String {
        let own = self.columns.iter().map(|(_, declaration)| declaration);
        let all: String = labels.iter().chain(own).map(|d| format!("{d}; ")).collect();
        format!("message {} {{ {all}}}", self.stem)
    }

    /// Names of the columns that all runs have.
    pub fn names(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(name, _)| *name).collect()
    }
}
