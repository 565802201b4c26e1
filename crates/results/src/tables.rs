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
    /// How much longer it took: `acked_ns / ideal_fct_ns`. Below 1 where fewer bytes were on a link than
    /// the ideal counts, which has full packets everywhere.
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
    /// Until the sender of the last answer had its last acknowledgement; none: it did not, or not known.
    pub acked_ns: Option<i64>,
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
         required int64 start_ns; optional int64 rct_ns; optional int64 acked_ns; required int64 missing; \
         required int64 measured; }",
    ),
    (
        "series",
        "message series { required int64 run; required int64 time_ns; required binary name (UTF8); \
         required binary place (UTF8); required double value; }",
    ),
];

/// Rows of a row group: what is held of a table while it is written.
const ROWS_OF_A_GROUP: usize = 1 << 16;

impl Tables {
    /// Writes the three parts of run `index`.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn write(self, directory: &Path, index: usize) -> Result<()> {
        let Tables {
            flows,
            requests,
            series,
        } = self;
        write_tables(directory, index, flows, requests, series)
    }
}

/// Writes the three parts of run `index`, a row group at a time: all rows need not be held at once.
///
/// # Errors
/// Files that cannot be written.
pub fn write_tables(
    directory: &Path,
    index: usize,
    flows: impl IntoIterator<Item = FlowRow>,
    requests: impl IntoIterator<Item = RequestRow>,
    series: impl IntoIterator<Item = SeriesRow>,
) -> Result<()> {
    let flows = groups(flows, |rows| flow_columns(index, rows));
    let requests = groups(requests, |rows| request_columns(index, rows));
    let series = groups(series, |rows| series_columns(index, rows));
    let tables: [&mut dyn Iterator<Item = Vec<Column>>; 3] =
        [&mut { flows }, &mut { requests }, &mut { series }];
    for ((stem, schema), groups) in SCHEMAS.into_iter().zip(tables) {
        let path = part(directory, stem, index, "parquet");
        columns::write(&path, schema, groups.map(Ok))?;
    }
    Ok(())
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

fn flow_columns(index: usize, rows: &[FlowRow]) -> Vec<Column> {
    let int = |get: fn(&FlowRow) -> i64| Column::Int(rows.iter().map(get).collect());
    let opt = |get: fn(&FlowRow) -> Option<i64>| Column::OptInt(rows.iter().map(get).collect());
    let path = |row: &FlowRow| Some(row.path.as_deref()?.into());
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
        Column::OptBytes(rows.iter().map(path).collect()),
    ]
}

fn request_columns(index: usize, rows: &[RequestRow]) -> Vec<Column> {
    let int = |get: fn(&RequestRow) -> i64| Column::Int(rows.iter().map(get).collect());
    vec![
        Column::Int(vec![index as i64; rows.len()]),
        int(|r| r.traffic),
        int(|r| r.request),
        int(|r| r.start_ns),
        Column::OptInt(rows.iter().map(|r| r.rct_ns).collect()),
        Column::OptInt(rows.iter().map(|r| r.acked_ns).collect()),
        int(|r| r.missing),
        int(|r| r.measured),
    ]
}

fn series_columns(index: usize, rows: &[SeriesRow]) -> Vec<Column> {
    vec![
        Column::Int(vec![index as i64; rows.len()]),
        Column::Int(rows.iter().map(|r| r.time_ns).collect()),
        Column::Text(rows.iter().map(|r| r.name).collect()),
        Column::Bytes(rows.iter().map(|r| (*r.place).into()).collect()),
        Column::Double(rows.iter().map(|r| r.value).collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
