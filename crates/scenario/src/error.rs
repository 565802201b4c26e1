// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of scenarios. Every message names the line, the key, the value and the bound.

use crate::graph::GraphError;
use onramp_keys::Wrong;
use std::fmt;

/// All errors of a scenario, in the order of the file's lines; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Errors {
    file: String,
    list: Vec<Error>,
}

/// One error.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// Where it is.
    pub place: Origin,
    /// What it is.
    pub problem: Problem,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A line of the file, from 1.
    Line(usize),
    /// The command line.
    Set,
}

/// The kinds of errors. `key` is the dotted key; values are text with units.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum Problem {
    #[error("not TOML: {message}")]
    Syntax { message: String },
    #[error("unknown key {key}{hint}")]
    UnknownKey { key: String, hint: String },
    #[error("{key} has been replaced by {new}")]
    Replaced { key: String, new: String },
    #[error("{key}: {of_all} is the same for all hosts: set it outside of [[hosts]]")]
    OfAllHosts { key: String, of_all: String },
    #[error(
        "{key} is {value}, but host {host} is also in {other}: a host is in one group at most"
    )]
    InTwoGroups {
        key: String,
        value: String,
        host: u32,
        other: String,
    },
    #[error("{key} is set twice: remove one of the lines")]
    Twice { key: String },
    #[error("{key} is missing, expected {expected}")]
    Missing { key: String, expected: String },
    #[error("{key} is {found}, expected {expected}")]
    Expected {
        key: String,
        found: String,
        expected: String,
    },
    #[error("{key} is {value}, {why}")]
    Wrong {
        key: String,
        value: String,
        why: String,
    },
    #[error("{key} is {value}, below min {min}")]
    Below {
        key: String,
        value: String,
        min: String,
    },
    #[error("{key} is {value}, above max {max}")]
    Above {
        key: String,
        value: String,
        max: String,
    },
    #[error("{key} is {value}, not below {bound}")]
    NotBelow {
        key: String,
        value: String,
        bound: String,
    },
    #[error("{key} is {value}, which needs {needs}")]
    Needs {
        key: String,
        value: String,
        needs: String,
    },
    #[error("{key} and {other} are both set: remove one of them")]
    Beside { key: String, other: String },
    #[error(
        "{key} is a key of traffic kind {owners}, but the kind of this entry is {kind}: remove it"
    )]
    Foreign {
        key: String,
        owners: String,
        kind: String,
    },
    #[error("{key} is {path}: {error}")]
    File {
        key: String,
        path: String,
        error: String,
    },
    #[error("{key}: {error}")]
    Graph { key: String, error: GraphError },
    #[error("{key} is host {host}, which is also the receiver: set another host")]
    ToItself { key: String, host: u32 },
    #[error("{key} is the same in all runs: set it outside of cases and sweep")]
    Fixed { key: String },
    #[error("a kind of traffic of another crate refuses its entry, and does not say why")]
    Unread,
    #[error("case.name is \"{name}\", the name of an earlier case: set another name")]
    SameName { name: String },
}

impl Problem {
    /// `text` is no value of `key`.
    pub(crate) fn wrong(key: &str, text: &str, wrong: Wrong) -> Problem {
        let (key, value, quoted) = (key.to_owned(), text.trim().to_owned(), format!("{text:?}"));
        match wrong {
            Wrong::Below(min) => Problem::Below { key, value, min },
            Wrong::Above(max) => Problem::Above { key, value, max },
            Wrong::Unlike(expected) => Problem::Expected {
                key,
                found: quoted,
                expected,
            },
            Wrong::Other(why) => Problem::Wrong {
                key,
                value: quoted,
                why,
            },
        }
    }

    /// The problem's key, if it has one.
    pub(crate) fn key_mut(&mut self) -> Option<&mut String> {
        match self {
            Problem::Missing { key, .. }
            | Problem::Expected { key, .. }
            | Problem::Below { key, .. }
            | Problem::Above { key, .. }
            | Problem::NotBelow { key, .. }
            | Problem::Needs { key, .. }
            | Problem::Beside { key, .. } => Some(key),
            _ => None,
        }
    }
}

impl Errors {
    /// Sorts by line, and keeps one of several equal errors. `None` if `list` is empty.
    pub(crate) fn collect(file: &str, mut list: Vec<Error>) -> Option<Errors> {
        list.sort_by_cached_key(|e| (e.place, e.problem.to_string()));
        list.dedup();
        (!list.is_empty()).then(|| Errors {
            file: file.to_owned(),
            list,
        })
    }

    /// The errors, by place.
    pub fn iter(&self) -> impl Iterator<Item = &Error> {
        self.list.iter()
    }
}

impl std::error::Error for Errors {}

impl fmt::Display for Errors {
    /// One line an error: `scenarios/incast.toml:8: network.buffer is 1 B, below min 2 kB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Error { place, problem }) in self.list.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            match place {
                Origin::Line(line) => write!(f, "{newline}{}:{line}: {problem}", self.file)?,
                Origin::Set => write!(f, "{newline}--set: {problem}")?,
            }
        }
        Ok(())
    }
}
