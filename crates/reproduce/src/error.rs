//! What can be wrong with figures and their results.

use std::io;

/// Why a figure could not be read or made.
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
    #[error("there is no figure {id}; there are {known}")]
    Unknown { id: String, known: String },
    #[error("figure {id} has no [rack], so it cannot be run on the rack; those that can: {known}")]
    NotOnRack { id: String, known: String },
    #[error(transparent)]
    Scenario(#[from] onramp_scenario::Errors),
    #[error(transparent)]
    Results(#[from] onramp_results::Error),
}

/// Result of working with figures.
pub type Result<T, E = Error> = std::result::Result<T, E>;
