// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Why a file is no log.

use std::fmt;

/// A file could not be read as flows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{place}: {reason}")]
pub struct LogError {
    file: String,
    place: Place,
    reason: Box<Reason>,
}

/// Where in a file; counts from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Whole,
    Line(u64),
    Packet(u64),
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum Reason {
    #[error("cannot read it: {0}")]
    Read(String),
    #[error("it is compressed; decompress it first, e.g. with gunzip or zstd -d")]
    Compressed,
    #[error("the file ends within a packet, so the capture was cut; keep its whole packets: editcap FILE WHOLE")]
    Cut,
    #[error("not a capture: {0}")]
    Capture(String),
    #[error("its packets are of link type {0}, expected Ethernet, Linux cooked or raw IP; capture on a device, not on a tunnel")]
    LinkType(String),
    #[error("{lacks} lacks; {expected}")]
    Column {
        lacks: &'static str,
        expected: &'static str,
    },
    #[error(
        "{found} fields, but {expected} columns: the line is cut, or it is no line of this log"
    )]
    Fields { found: usize, expected: usize },
    #[error("not JSON of a conn.log: {0}")]
    Json(String),
    #[error("{column} is \"{found}\", expected {expected}")]
    Value {
        column: String,
        found: String,
        expected: &'static str,
    },
    #[error("it ends {0} ns before it starts")]
    Backwards(i64),
    #[error(transparent)]
    Trace(onramp_trace::TraceError),
    #[error("traces of daemons are given with other records, whose flows may be the same; give records of one kind")]
    Mixed,
    #[error(
        "clock.source of a daemon is local, so their times do not agree; give one trace, record with clock.source = \
         \"huygens\", or say that the hosts share one kernel: --one-clock"
    )]
    Clocks,
    #[error("more than {0} flows; give a part of the log")]
    TooMany(usize),
}

impl LogError {
    pub(crate) fn of(reason: Reason) -> LogError {
        LogError::at(Place::Whole, reason)
    }

    pub(crate) fn at(place: Place, reason: Reason) -> LogError {
        let file = String::new();
        LogError {
            file,
            place,
            reason: Box::new(reason),
        }
    }

    pub(crate) fn read(name: &str, error: &std::io::Error) -> LogError {
        LogError::of(Reason::Read(error.to_string())).in_file(name)
    }

    pub(crate) fn in_file(self, name: &str) -> LogError {
        LogError {
            file: name.to_owned(),
            ..self
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Line(number) => write!(f, ", line {number}"),
            Place::Packet(number) => write!(f, ", packet {number}"),
        }
    }
}
