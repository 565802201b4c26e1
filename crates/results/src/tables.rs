//! The tables of a run: flows, requests, series. Times in ns of the real network, since the start
//! of the traffic.

use crate::columns::{self, Column};
use crate::error::Result;
use crate::part;
use std::path::Path;
use std::sync::Arc;

/// One flow, answer or endless flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRow {
    /// "incast", "long", "poisson", "request" (both ways), "all_to_all" or "replay".
    pub kind: &'static str,
    /// Entry of the scenario's traffic.
    pub traffic: i64,
    /// Request that it answers or is, or step.
    pub request: Option<i64>,
    /// Sending host.
    pub src: i64,
    /// Receiving host.
    pub dst: i64,
    /// Payload; none: endless.
    pub size_bytes: Option<i64>,
    /// When it was due.
    pub start_ns: i64,
    /// Until its last byte arrived; none: it did not.
    pub fct_ns: Option<i64>,
    /// Segments sent again.
    pub retransmissions: i64,
    /// Retransmission timeouts.
    pub timeouts: i64,
    /// 1 if it started after the warm-up and so counts.
    pub measured: i64,
    /// Names of the ports that its data passes, the sender's first; none: not known.
    pub path: Option<Arc<str>>,
    /// What only a simulator knows.
    pub simulated: Option<Simulated>,
}

/// What only a simulator knows of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simulated {
    /// Until the sender had the last acknowledgement; none: it did not.
    pub acked_ns: Option<i64>,
    /// The same in an otherwise empty network; none: endless.
    pub ideal_fct_ns: Option<i64>,
    /// How much longer it took, at least 1: `acked_ns / ideal_fct_ns`.
    pub slowdown: Option<f64>,
    /// For how long On-Ramp held it.
    pub held_ns: i64,
}

/// One request, or one step of all_to_all.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestRow {
    /// Entry of the scenario's traffic.
    pub traffic: i64,
    /// Its number within the entry.
    pub request: i64,
    /// When the aggregator asked.
    pub start_ns: i64,
    /// Until the last byte of the last answer arrived; none: it did not.
    pub rct_ns: Option<i64>,
    /// Answers that are missing.
    pub missing: i64,
    /// 1 if it started after the warm-up and so counts.
    pub measured: i64,
}

/// A value of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesRow {
    /// When.
    pub time_ns: i64,
    /// What, with its unit: "queue_us", "owd_us".
    pub name: &'static str,
    /// Of which port or flow: "switch0-host0", "host0", "flow7".
    pub place: Arc<str>,
    /// How much.
    pub value: f64,
}

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

/// Names of the files with their columns, `run` first.
pub(super) const SCHEMAS: [(&str, &str); 3] = [
    (
        "flows",
        "message flows { required int64 run; required binary kind (UTF8); required int64 traffic; \
         optional int64 request; required int64 src; required int64 dst; optional int64 size_bytes; \
         required int64 start_ns; optional int64 fct_ns; required int64 retransmissions; \
         required int64 timeouts; required int64 measured; optional int64 acked_ns; \
         optional int64 ideal_fct_ns; optional double slowdown; optional int64 held_ns; \
         optional binary path (UTF8); }",
    ),
    (
        "requests",
        "message requests { required int64 run; required int64 traffic; required int64 request; \
         required int64 start_ns; optional int64 rct_ns; required int64 missing; \
         required int64 measured; }",
    ),
    (
        "series",
        "message series { required int64 run; required int64 time_ns; required binary name (UTF8); \
         required binary place (UTF8); required double value; }",
    ),
];

impl Tables {
    /// Writes the three parts of run `index`.
    pub fn write(&self, directory: &Path, index: usize) -> Result<()> {
        let groups = [
            self.flow_columns(index),
            self.request_columns(index),
            self.series_columns(index),
        ];
        for ((stem, schema), group) in SCHEMAS.into_iter().zip(groups) {
            columns::write(
                &part(directory, stem, index, "parquet"),
                schema,
                [Ok(group)],
            )?;
        }
        Ok(())
    }

    fn flow_columns(&self, index: usize) -> Vec<Column> {
        let rows = &self.flows;
        let int = |get: fn(&FlowRow) -> i64| Column::Int(rows.iter().map(get).collect());
        let opt = |get: fn(&FlowRow) -> Option<i64>| Column::OptInt(rows.iter().map(get).collect());
        vec![
            Column::Int(vec![index as i64; rows.len()]),
            Column::Text(rows.iter().map(|r| r.kind).collect()),
            int(|r| r.traffic),
            opt(|r| r.request),
            int(|r| r.src),
            int(|r| r.dst),
            opt(|r| r.size_bytes),
            int(|r| r.start_ns),
            opt(|r| r.fct_ns),
            int(|r| r.retransmissions),
            int(|r| r.timeouts),
            int(|r| r.measured),
            opt(|r| r.simulated?.acked_ns),
            opt(|r| r.simulated?.ideal_fct_ns),
            Column::OptDouble(rows.iter().map(|r| r.simulated?.slowdown).collect()),
            opt(|r| Some(r.simulated?.held_ns)),
            Column::OptBytes(
                rows.iter()
                    .map(|r| Some((*r.path.as_deref()?).into()))
                    .collect(),
            ),
        ]
    }

    fn request_columns(&self, index: usize) -> Vec<Column> {
        let rows = &self.requests;
        let int = |get: fn(&RequestRow) -> i64| Column::Int(rows.iter().map(get).collect());
        vec![
            Column::Int(vec![index as i64; rows.len()]),
            int(|r| r.traffic),
            int(|r| r.request),
            int(|r| r.start_ns),
            Column::OptInt(rows.iter().map(|r| r.rct_ns).collect()),
            int(|r| r.missing),
            int(|r| r.measured),
        ]
    }

    fn series_columns(&self, index: usize) -> Vec<Column> {
        vec![
            Column::Int(vec![index as i64; self.series.len()]),
            Column::Int(self.series.iter().map(|r| r.time_ns).collect()),
            Column::Text(self.series.iter().map(|r| r.name).collect()),
            Column::Bytes(self.series.iter().map(|r| (*r.place).into()).collect()),
            Column::Double(self.series.iter().map(|r| r.value).collect()),
        ]
    }
}
