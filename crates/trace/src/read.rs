// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads the text of a trace.

use crate::{Flow, Head, Hour, Record, VERSION};

/// Most flows of a trace.
const MOST_FLOWS: usize = 10_000_000;
/// Longest address, and largest number, that is believed.
const LONGEST_NAME: usize = 64;
const LARGEST: i64 = i64::MAX / 4;

/// Whether a file that begins so is a trace.
pub fn is_trace(start: &[u8]) -> bool {
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let head = |line| serde_json::from_slice::<serde_json::Value>(line).ok();
    head(line).is_some_and(|value| value["kind"] == "head")
}

/// A trace of one daemon.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Its first line.
    pub head: Head,
    /// Flows, as they were written: in the order of their ends.
    pub flows: Vec<Flow>,
    /// Peers by hour.
    pub hours: Vec<Hour>,
    /// The last line was cut: the daemon was killed, or writes it now.
    pub is_cut: bool,
}

/// Why a text is no trace. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// It does not begin with a head.
    #[error("line 1 is no head of a trace; give a file that onramp agent run --trace has written")]
    NoHead,
    /// The format has another version.
    #[error("line {line}: the version of the trace is {found}, expected {VERSION}; use the onramp of the daemon's version")]
    Version {
        /// Number of the line.
        line: usize,
        /// Its version.
        found: u32,
    },
    /// A line is no record.
    #[error("line {line} is no record of a trace: {message}")]
    Line {
        /// Number of the line.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A value is out of bounds.
    #[error("line {line}: {name} is {found}, outside {least} to {most}")]
    Value {
        /// Number of the line.
        line: usize,
        /// Name of the field.
        name: &'static str,
        /// Its value.
        found: i128,
        /// The least value.
        least: i64,
        /// The largest value.
        most: i64,
    },
    /// There are too many flows.
    #[error(
        "the trace has more than {MOST_FLOWS} flows; give fewer files, or a part of the trace"
    )]
    TooMany,
}

/// Reads a trace. Later heads, of a daemon that began again, replace the first. A last line without its end is left out.
///
/// # Errors
/// The text is no trace, or a value is out of bounds.
pub fn read(text: &str) -> Result<Trace, TraceError> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = (1..)
        .zip(text[..whole].lines())
        .filter(|(_, line)| !line.is_empty());
    let (number, first) = lines.next().ok_or(TraceError::NoHead)?;
    let Ok(Record::Head(head)) = record(number, first) else {
        return Err(TraceError::NoHead);
    };
    check_head(number, &head)?;
    let mut trace = Trace {
        head,
        flows: vec![],
        hours: vec![],
        is_cut: whole < text.len(),
    };
    for (number, line) in lines {
        match record(number, line)? {
            Record::Head(head) => {
                check_head(number, &head)?;
                trace.head = head;
            }
            Record::Flow(flow) => {
                check_flow(number, &flow)?;
                trace.flows.push(flow);
            }
            Record::Hour(hour) => trace.hours.push(hour),
        }
        if trace.flows.len() > MOST_FLOWS {
            return Err(TraceError::TooMany);
        }
    }
    Ok(trace)
}

fn record(line: usize, text: &str) -> Result<Record, TraceError> {
    serde_json::from_str(text).map_err(|error| TraceError::Line {
        line,
        message: error.to_string(),
    })
}

fn check_head(line: usize, head: &Head) -> Result<(), TraceError> {
    let found = head.version;
    match found {
        VERSION => within(line, "look_ns", head.look_ns.into(), 1),
        _ => Err(TraceError::Version { line, found }),
    }
}

fn check_flow(line: usize, flow: &Flow) -> Result<(), TraceError> {
    let names = [("from", &flow.from), ("to", &flow.to)];
    if let Some((name, text)) = names
        .into_iter()
        .find(|(_, text)| text.len() > LONGEST_NAME)
    {
        let message = format!("{name} has {} bytes, above max {LONGEST_NAME}", text.len());
        return Err(TraceError::Line { line, message });
    }
    within(line, "start_fleet_ns", flow.start_fleet_ns.into(), -LARGEST)?;
    within(line, "duration_ns", flow.duration_ns.into(), 0)?;
    within(line, "size_bytes", flow.size_bytes.into(), 1)?;
    if let Some(delays) = &flow.delays {
        within(line, "min_ns", delays.min_ns.into(), -LARGEST)?;
        within(line, "p50_ns", delays.p50_ns.into(), delays.min_ns)?;
        within(line, "p99_ns", delays.p99_ns.into(), delays.p50_ns)?;
    }
    within(line, "held_ns", flow.held_ns.into(), 0)
}

fn within(line: usize, name: &'static str, found: i128, least: i64) -> Result<(), TraceError> {
    let most = LARGEST;
    match (i128::from(least)..=i128::from(most)).contains(&found) {
        true => Ok(()),
        false => Err(TraceError::Value {
            line,
            name,
            found,
            least,
            most,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Delays;

    fn head() -> String {
        let head = Head {
            version: VERSION,
            onramp: "0".into(),
            addresses: "plain".into(),
            observes: true,
            clock: "huygens".into(),
            look_ns: 1,
            gap_ns: 1,
            devices: vec![],
        };
        line(&Record::Head(head))
    }

    fn line(record: &Record) -> String {
        serde_json::to_string(record).unwrap() + "\n"
    }

    fn flow() -> Flow {
        Flow {
            from: "10.0.0.1".into(),
            from_port: 1,
            to: "10.0.0.2".into(),
            to_port: 2,
            start_fleet_ns: -5,
            duration_ns: 7,
            size_bytes: 9,
            delays: Delays::of(&mut [4, 2, 3]),
            held_ns: 0,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = head() + &line(&Record::Flow(flow()));
        let trace = read(&text).unwrap();
        assert_eq!(trace.flows, [flow()]);
        assert!(!trace.is_cut);
        let delays = trace.flows[0].delays.unwrap();
        assert_eq!((delays.min_ns, delays.p50_ns, delays.p99_ns), (2, 3, 4));
    }

    #[test]
    fn a_cut_last_line_is_left_out_and_said() {
        let text = head() + &line(&Record::Flow(flow()));
        for cut in head().len() + 1..text.len() {
            let trace = read(&text[..cut]).unwrap();
            assert!(trace.is_cut && trace.flows.is_empty());
        }
    }

    #[test]
    fn bad_traces_are_refused_with_line_and_value() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        for text in ["", "\n", "{}\n", "src,dst\n"] {
            assert_eq!(read(text), Err(TraceError::NoHead));
        }
        let newer = head().replace("\"version\":1", "\"version\":2");
        assert!(error(&newer).starts_with("line 1: the version of the trace is 2, expected 1"));
        let with = |flow: Flow| head() + &line(&Record::Flow(flow));
        let empty = Flow {
            size_bytes: 0,
            ..flow()
        };
        assert!(error(&with(empty)).starts_with("line 2: size_bytes is 0, outside 1 to"));
        let late = Flow {
            start_fleet_ns: i64::MIN,
            ..flow()
        };
        assert!(error(&with(late)).starts_with("line 2: start_fleet_ns is -9223372036854775808"));
        let long = Flow {
            to: "x".repeat(65),
            ..flow()
        };
        assert!(error(&with(long)).contains("to has 65 bytes, above max 64"));
        assert!(error(&(head() + "{\"kind\":\"dog\"}\n")).starts_with("line 2 is no record"));
    }
}
