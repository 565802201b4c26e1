// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Zeek's conn.log: tab-separated with a head, or JSON lines (docs.zeek.org, Log Formats and Inspection).

use crate::connection::{Connection, Connections};
use crate::error::{LogError, Place, Reason};
use crate::time::{number_ns, since_1970_ns, Unit};
use serde_json::{Map, Value};
use std::io::BufRead;

const EXPECTED: &str =
    "expected a conn.log with ts, id.orig_h, id.orig_p, id.resp_h, id.resp_p, proto, duration, orig_bytes and resp_bytes";

/// The columns that are read.
const COLUMNS: [&str; 9] = [
    "ts",
    "id.orig_h",
    "id.orig_p",
    "id.resp_h",
    "id.resp_p",
    "proto",
    "duration",
    "orig_bytes",
    "resp_bytes",
];

/// Values of a line, in the order of [`COLUMNS`]; none: unset.
type Line = [Option<String>; COLUMNS.len()];

/// Adds the connections of a conn.log with a head.
pub fn text(file: impl BufRead, into: &mut Connections) -> Result<(), LogError> {
    let mut places: Option<(Vec<usize>, usize)> = None;
    let mut unset = "-".to_owned();
    for (number, line) in (1..).zip(file.lines()) {
        let here = |reason| LogError::at(Place::Line(number), reason);
        let line = line.map_err(|error| here(Reason::Read(error.to_string())))?;
        if let Some(head) = line.strip_prefix('#') {
            match head.split_once('\t') {
                Some(("fields", names)) => places = Some(places_of(names).map_err(here)?),
                Some(("unset_field", text)) => unset = text.to_owned(),
                _ => {}
            }
            continue;
        }
        let Some((places, expected)) = &places else {
            return Err(here(Reason::Column {
                lacks: "the line #fields",
                expected: EXPECTED,
            }));
        };
        let fields: Vec<&str> = line.split('\t').collect();
        if fields.len() != *expected {
            let (found, expected) = (fields.len(), *expected);
            return Err(here(Reason::Fields { found, expected }));
        }
        let value = |n: usize| Some(fields[places[n]]).filter(|text| *text != unset);
        let line: Line = std::array::from_fn(|n| value(n).map(str::to_owned));
        add(line, into).map_err(here)?;
    }
    match places {
        Some(_) => Ok(()),
        None => Err(LogError::of(Reason::Column {
            lacks: "the line #fields",
            expected: EXPECTED,
        })),
    }
}

/// The places of [`COLUMNS`] among the names of the head, and the number of names.
fn places_of(names: &str) -> Result<(Vec<usize>, usize), Reason> {
    let names: Vec<&str> = names.split('\t').collect();
    let place = |column: &&'static str| {
        let found = names.iter().position(|name| name == column);
        found.ok_or(Reason::Column {
            lacks: column,
            expected: EXPECTED,
        })
    };
    let places: Result<Vec<usize>, Reason> = COLUMNS.iter().map(place).collect();
    Ok((places?, names.len()))
}

/// Adds the connections of a conn.log of JSON lines.
pub fn json(file: impl BufRead, into: &mut Connections) -> Result<(), LogError> {
    for (number, line) in (1..).zip(file.lines()) {
        let here = |reason| LogError::at(Place::Line(number), reason);
        let line = line.map_err(|error| here(Reason::Read(error.to_string())))?;
        if line.trim().is_empty() {
            continue;
        }
        let object: Map<String, Value> =
            serde_json::from_str(&line).map_err(|error| here(Reason::Json(error.to_string())))?;
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        let line: Line = std::array::from_fn(|n| text(object.get(COLUMNS[n])?));
        add(line, into).map_err(here)?;
    }
    Ok(())
}

fn add(line: Line, into: &mut Connections) -> Result<(), Reason> {
    let [start, from, from_port, to, to_port, protocol, duration, bytes, back_bytes] = line;
    let given = |text: Option<String>, column: usize| {
        text.ok_or(Reason::Column {
            lacks: COLUMNS[column],
            expected: EXPECTED,
        })
    };
    if given(protocol, 5)? != "tcp" {
        into.leave_out();
        return Ok(());
    }
    let start = given(start, 0)?;
    let wrong = |column: usize, found: &str, expected| Reason::Value {
        column: COLUMNS[column].to_owned(),
        found: found.to_owned(),
        expected,
    };
    let port = |text: Option<String>, column: usize| {
        let text = given(text, column)?;
        text.parse()
            .map_err(|_| wrong(column, &text, "a port, 0 to 65535"))
    };
    let count = |text: Option<String>, column: usize| match text {
        None => Ok(0),
        Some(text) => text
            .parse()
            .map_err(|_| wrong(column, &text, "a number of bytes")),
    };
    let duration_ns = match &duration {
        None => 0,
        Some(text) => {
            number_ns(text, Unit::Seconds).ok_or_else(|| wrong(6, text, "a time in seconds"))?
        }
    };
    into.add(&Connection {
        start_ns: since_1970_ns(&start, Unit::Seconds)
            .ok_or_else(|| wrong(0, &start, "seconds since 1970, or a date"))?,
        from: given(from, 1)?,
        from_port: port(from_port, 2)?,
        to: given(to, 3)?,
        to_port: port(to_port, 4)?,
        duration_ns,
        bytes: count(bytes, 7)?,
        back_bytes: count(back_bytes, 8)?,
    })
}
