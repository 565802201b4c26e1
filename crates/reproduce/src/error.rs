// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of figures and their results.

use std::io;

/// A figure could not be read or made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum Error {
    #[error("cannot read {path}: {source}")]
    File { path: String, source: io::Error },
    #[error("{file}: {reason}")]
    Format { file: String, reason: String },
    #[error("{file}: {key} is {reason}")]
    Key {
        file: String,
        key: String,
        reason: String,
    },
    #[error("unknown figure {id}, expected one of {known}")]
    Unknown { id: String, known: String },
    #[error(
        "figure {id} has no section [rack], so it cannot run on the rack; expected one of {known}"
    )]
    NotOnRack { id: String, known: String },
    #[error("figure {id} has no section [{scale}], so it cannot run at this scale")]
    NoScale { id: String, scale: String },
    #[error(transparent)]
    Scenario(#[from] onramp_scenario::Errors),
    #[error(transparent)]
    Results(#[from] onramp_results::Error),
}

/// Result of operations on figures.
pub type Result<T, E = Error> = std::result::Result<T, E>;
