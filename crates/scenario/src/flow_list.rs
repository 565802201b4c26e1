// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads lists of flows to replay: the HPCC simulator's format, CSV, Parquet, and traces of daemons.

#[cfg(feature = "parquet")]
mod parquet;

use onramp_units::{Bytes, Sim, Span, Time};

/// A flow of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedFlow {
    /// When its data is ready to send.
    pub at: Time<Sim>,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Payload; above zero.
    pub size: Bytes,
}

/// Errors of a list. Lines and rows count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum FlowListError {
    #[error("line {line}: {what} is \"{found}\", expected {expected}")]
    Field {
        line: usize,
        what: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("line {line}: start is {start}, before the previous flow at {above}: sort the flows by start")]
    Unordered {
        line: usize,
        start: Span,
        above: Span,
    },
    #[error("the number of flows is {found}, but the first line gives {expected}")]
    Count { found: usize, expected: usize },
    #[error("the list has no flows, expected at least one")]
    Empty,
    #[error("line 1: the columns are \"{found}\", expected {column} once: a list has {COLUMNS}, in any order")]
    Columns { found: String, column: &'static str },
    #[error("not a CSV file: {message}")]
    Csv { message: String },
    #[error("not a Parquet file of {COLUMNS}: {message}")]
    Parquet { message: String },
    #[error("this program was built without Parquet: enable the feature `parquet` of onramp-scenario, or write the flows as CSV")]
    NoParquet,
    #[error("not a trace: {0}")]
    Trace(#[from] onramp_trace::TraceError),
}

/// The columns of CSV and Parquet files.
const COLUMNS: &str = "src,dst,size_bytes,start_ns";
const NUMBER: &str = "a whole number from 0";
const SIZE: &str = "a number of bytes from 1 to 10^15";
/// A petabyte, which takes hours on any line: times and sums of sizes stay far from what their types can hold.
const MOST_BYTES: u64 = 1_000_000_000_000_000;
const START: &str = "nanoseconds, at most 3600 s";
const LATEST: Span = Span::from_s(3600);

/// Reads a list by the ending of its file's name: `.csv`, `.parquet`, `.trace` or `.jsonl`, else the HPCC
/// simulator's format.
///
/// # Errors
/// Bytes that are no such list; a list without flows; flows that are not sorted by start.
pub fn read(name: &str, bytes: &[u8]) -> Result<Vec<ListedFlow>, FlowListError> {
    let text = || String::from_utf8_lossy(bytes);
    let flows = if name.ends_with(".parquet") {
        read_parquet(bytes)?
    } else if name.ends_with(".trace") || name.ends_with(".jsonl") {
        read_trace(&text())?
    } else if name.ends_with(".csv") {
        read_csv(&text())?
    } else {
        read_hpcc(&text(), &read_seconds)?
    };
    match flows.is_empty() {
        true => Err(FlowListError::Empty),
        false => Ok(flows),
    }
}

/// Reads the HPCC simulator's format: the number of flows, then a line
/// `src dst priority port size_bytes start_s` for each, in the order of their starts. Priority and
/// port are checked and ignored: the simulator has one class of data, and it numbers the ports of the
/// flows of a pair of hosts in order. `start` parses the start time.
///
/// # Errors
/// Text that is no flow list; flows that are not sorted by start.
pub fn read_hpcc(
    text: &str,
    start: &dyn Fn(&str) -> Option<Span>,
) -> Result<Vec<ListedFlow>, FlowListError> {
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let (line, first) = lines.next().unwrap_or((1, ""));
    let expected = field(line, "number of flows", first.trim(), NUMBER, |word| {
        word.parse().ok()
    })?;
    let mut flows = Vec::new();
    for (line, text) in lines {
        let flow = hpcc_flow(line, text, start)?;
        push(&mut flows, line, flow)?;
    }
    if flows.len() != expected {
        let found = flows.len();
        return Err(FlowListError::Count { found, expected });
    }
    Ok(flows)
}

fn hpcc_flow(
    line: usize,
    text: &str,
    start: &dyn Fn(&str) -> Option<Span>,
) -> Result<ListedFlow, FlowListError> {
    let mut words = text.split_whitespace();
    let mut next = || words.next().unwrap_or("");
    let number = |word: &str| word.parse::<u32>().ok();
    let src = field(line, "source", next(), NUMBER, number)?;
    let dst = field(line, "destination", next(), NUMBER, number)?;
    field(line, "priority", next(), NUMBER, number)?;
    field(line, "port", next(), NUMBER, number)?;
    let size = field(line, "size", next(), SIZE, read_size)?;
    let at = field(line, "start", next(), "seconds from 0 to 3600", |word| {
        start(word).filter(|span| (Span::ZERO..=LATEST).contains(span))
    })?;
    let end = |word: &str| word.is_empty().then_some(());
    field(line, "word 7", next(), "the end of the line", end)?;
    listed(line, src, dst, size, at)
}

/// Exactly.
pub(crate) fn read_seconds(word: &str) -> Option<Span> {
    format!("{word} s").parse().ok()
}

/// The hosts have the numbers of their addresses in order; the first flow starts at 0.
fn read_trace(text: &str) -> Result<Vec<ListedFlow>, FlowListError> {
    let merged = onramp_trace::merge(&[onramp_trace::read(text)?]);
    let listed = |(line, flow): (usize, &onramp_trace::ReplayFlow)| {
        field(line, "start", &flow.start.to_string(), START, |_| {
            read_start(flow.start.as_ns())
        })?;
        listed(line, flow.src, flow.dst, flow.size_bytes, flow.start)
    };
    (1..).zip(&merged.flows).map(listed).collect()
}

fn read_csv(text: &str) -> Result<Vec<ListedFlow>, FlowListError> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .flexible(true)
        .from_reader(text.as_bytes());
    let bad = |error: csv::Error| FlowListError::Csv {
        message: error.to_string(),
    };
    let header = reader.headers().map_err(bad)?.clone();
    let column = |name: &'static str| column_of(&header, name);
    let [src_at, dst_at, size_at, start_at] = [
        column("src")?,
        column("dst")?,
        column("size_bytes")?,
        column("start_ns")?,
    ];
    let mut flows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(bad)?;
        let line = record.position().map_or(0, |at| at.line() as usize);
        let word = |n: usize| record.get(n).unwrap_or("");
        let number = |word: &str| whole(word)?.parse::<u32>().ok();
        let src = field(line, "src", word(src_at), NUMBER, number)?;
        let dst = field(line, "dst", word(dst_at), NUMBER, number)?;
        let size = field(line, "size_bytes", word(size_at), SIZE, |word| {
            read_size(whole(word)?)
        })?;
        let at = field(line, "start_ns", word(start_at), START, |word| {
            read_start(whole(word)?.parse().ok()?)
        })?;
        let end = |word: &str| word.is_empty().then_some(());
        let beyond = word(header.len());
        field(
            line,
            "what follows the last column",
            beyond,
            "the end of the line",
            end,
        )?;
        let flow = listed(line, src, dst, size, at)?;
        push(&mut flows, line, flow)?;
    }
    Ok(flows)
}

/// The place of a column.
fn column_of(header: &csv::StringRecord, column: &'static str) -> Result<usize, FlowListError> {
    let places = header.iter().enumerate();
    let mut places = places.filter(|(_, name)| *name == column);
    match (places.next(), places.next()) {
        (Some((place, _)), None) => Ok(place),
        _ => Err(FlowListError::Columns {
            found: header.iter().collect::<Vec<_>>().join(","),
            column,
        }),
    }
}

/// The digits of a whole number, also of one that a program has written as a float: `1000.0`.
fn whole(word: &str) -> Option<&str> {
    match word.split_once('.') {
        Some((digits, zeros)) => zeros.bytes().all(|digit| digit == b'0').then_some(digits),
        None => Some(word),
    }
}

#[cfg(feature = "parquet")]
use parquet::read_parquet;

#[cfg(not(feature = "parquet"))]
fn read_parquet(_bytes: &[u8]) -> Result<Vec<ListedFlow>, FlowListError> {
    Err(FlowListError::NoParquet)
}

fn read_size(word: &str) -> Option<u64> {
    word.parse().ok().filter(|&size| is_size(size))
}

fn is_size(bytes: u64) -> bool {
    (1..=MOST_BYTES).contains(&bytes)
}

fn read_start(ns: i64) -> Option<Span> {
    let latest_ns = LATEST.as_ns();
    (0..=latest_ns).contains(&ns).then(|| Span::from_ns(ns))
}

fn listed(
    line: usize,
    src: u32,
    dst: u32,
    size: u64,
    start: Span,
) -> Result<ListedFlow, FlowListError> {
    let other = |_: &str| (src != dst).then_some(());
    let found = dst.to_string();
    field(
        line,
        "destination",
        &found,
        "a host other than the source",
        other,
    )?;
    Ok(ListedFlow {
        at: Time::ZERO + start,
        src,
        dst,
        size: Bytes::new(size),
    })
}

/// Appends a flow that starts no earlier than the others.
fn push(flows: &mut Vec<ListedFlow>, line: usize, flow: ListedFlow) -> Result<(), FlowListError> {
    if let Some(above) = flows.last().filter(|above| above.at > flow.at) {
        return Err(FlowListError::Unordered {
            line,
            start: flow.at - Time::ZERO,
            above: above.at - Time::ZERO,
        });
    }
    flows.push(flow);
    Ok(())
}

fn field<T>(
    line: usize,
    what: &'static str,
    found: &str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, FlowListError> {
    read(found).ok_or_else(|| FlowListError::Field {
        line,
        what,
        found: found.to_owned(),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_formats_say_the_same() {
        let hpcc = read("a.flow", b"2\n1 0 3 100 1001 0.00004\n2 0 3 100 5 0.5\n").unwrap();
        let csv = b"src,dst,size_bytes,start_ns\n# a comment\n1,0,1001,40000\n2, 0, 5, 500000000\n";
        assert_eq!(read("a.csv", csv).unwrap(), hpcc);
        assert_eq!(hpcc[0].at.ticks(), 40_000_000);
    }

    /// As pandas writes an index and floats.
    #[test]
    fn columns_are_found_by_their_names() {
        let usual = b"src,dst,size_bytes,start_ns\n1,0,20000,0\n2,0,30000,1000\n";
        let usual = read("a.csv", usual).unwrap();
        let index = b",src,dst,size_bytes,start_ns\n0,1,0,20000,0\n1,2,0,30000,1000\n";
        assert_eq!(read("a.csv", index).unwrap(), usual);
        let floats = b"start_ns,size_bytes,dst,src\n0.0,20000.0,0,1\n1000.0,30000.0,0,2\n";
        assert_eq!(read("a.csv", floats).unwrap(), usual);
    }

    /// Three flows, with zstd.
    #[cfg(feature = "parquet")]
    #[test]
    fn what_polars_writes_is_read() {
        let bytes = include_bytes!("../tests/polars.parquet");
        let sizes: Vec<u64> = read("a.parquet", bytes)
            .unwrap()
            .iter()
            .map(|f| f.size.get())
            .collect();
        assert_eq!(sizes, [20_000, 30_000, 1_000]);
    }

    #[test]
    fn a_trace_is_a_list_whose_hosts_are_in_the_order_of_their_addresses() {
        let flow = |from: u32, start: i64| {
            format!(
                "{{\"kind\":\"flow\",\"from\":\"10.0.0.{from}\",\"from_port\":1,\"to\":\"10.0.0.1\",\"to_port\":2,\
                 \"start_fleet_ns\":{start},\"duration_ns\":5,\"size_bytes\":70,\"delays\":null,\"held_ns\":0}}\n"
            )
        };
        let head = "{\"kind\":\"head\",\"version\":1,\"onramp\":\"\",\"addresses\":\"plain\",\"observes\":true,\
                    \"clock\":\"local\",\"look_ns\":1,\"gap_ns\":1,\"devices\":[]}\n";
        let text = head.to_owned() + &flow(3, 900) + &flow(2, 400);
        let flows = read("a.trace", text.as_bytes()).unwrap();
        let starts: Vec<_> = flows.iter().map(|f| (f.src, f.dst, f.at.ticks())).collect();
        assert_eq!(starts, [(1, 0, 0), (2, 0, 500_000)]);
        let long = head.to_owned() + &flow(3, 0) + &flow(3, 3_600_000_000_001);
        let error = read("a.trace", long.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("at most 3600 s"), "{error}");
        let error = read("a.jsonl", b"{}\n").unwrap_err().to_string();
        assert!(error.starts_with("not a trace: line 1"), "{error}");
    }

    #[test]
    fn bad_lists_are_refused_with_line_and_value() {
        let error = |name: &str, text: &str| read(name, text.as_bytes()).unwrap_err().to_string();
        let hpcc = |text| error("x.flow", text);
        assert_eq!(
            hpcc(""),
            "line 1: number of flows is \"\", expected a whole number from 0"
        );
        assert_eq!(
            hpcc("1\n1 0 3 100 0 2.0\n"),
            "line 2: size is \"0\", expected a number of bytes from 1 to 10^15"
        );
        assert_eq!(
            hpcc("1\n1 0 3 100 5 -2.0\n"),
            "line 2: start is \"-2.0\", expected seconds from 0 to 3600"
        );
        assert_eq!(
            hpcc("1\n1 1 3 100 5 2.0\n"),
            "line 2: destination is \"1\", expected a host other than the source"
        );
        assert_eq!(
            hpcc("2\n1 0 3 100 5 2.0\n1 0 3 100 5 1.5\n"),
            "line 3: start is 1.5 s, before the previous flow at 2 s: sort the flows by start"
        );
        assert_eq!(
            hpcc("2\n1 0 3 100 5 2.0\n"),
            "the number of flows is 1, but the first line gives 2"
        );
        let empty = "the list has no flows, expected at least one";
        assert_eq!(hpcc("0\n"), empty);
        assert_eq!(error("x.csv", "src,dst,size_bytes,start_ns\n"), empty);
        let csv = |rows: &str| error("x.csv", &format!("src,dst,size_bytes,start_ns\n{rows}"));
        assert_eq!(
            error("x.csv", "a,b\n"),
            "line 1: the columns are \"a,b\", expected src once: a list has src,dst,size_bytes,start_ns, in any order"
        );
        let twice = error("x.csv", "src,dst,size_bytes,start_ns,dst\n1,0,5,0,0\n");
        assert!(twice.contains("expected dst once"), "{twice}");
        assert_eq!(
            csv("1,0,5,0.5\n"),
            "line 2: start_ns is \"0.5\", expected nanoseconds, at most 3600 s"
        );
        assert_eq!(
            csv("1,0,5,0,7\n"),
            "line 2: what follows the last column is \"7\", expected the end of the line"
        );
        assert_eq!(
            csv("1,0,5,0\n1,0,-5,0\n"),
            "line 3: size_bytes is \"-5\", expected a number of bytes from 1 to 10^15"
        );
        assert_eq!(
            csv("1,0,5,-1\n"),
            "line 2: start_ns is \"-1\", expected nanoseconds, at most 3600 s"
        );
        assert_eq!(
            csv("1,0,5,7\n1,0,5,6\n"),
            "line 3: start is 6 ns, before the previous flow at 7 ns: sort the flows by start"
        );
        let parquet = match cfg!(feature = "parquet") {
            true => "not a Parquet file",
            false => "this program was built without Parquet: enable the feature `parquet` of onramp-scenario",
        };
        assert!(error("x.parquet", "PAR1").starts_with(parquet));
    }
}
