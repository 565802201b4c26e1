// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What can be wrong with a sweep.

/// Errors of a sweep's file, and of its results.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Its text is not TOML, or has a key that is not one of a sweep.
    #[error("{name}: {source}")]
    Text {
        /// The file.
        name: String,
        /// Line, column and what is wrong.
        source: toml::de::Error,
    },
    /// A key of it has a value that cannot be.
    #[error("{name}: {key} {problem}")]
    Value {
        /// The file.
        name: String,
        /// The key, with the table that it is in.
        key: String,
        /// What is wrong, with the bound.
        problem: String,
    },
    /// The scenario is wrong at its first point.
    #[error("{name}: at its first point ({point}): {error}")]
    Scenario {
        /// The file.
        name: String,
        /// The settings of the point.
        point: String,
        /// The scenario's errors.
        error: onramp_scenario::Errors,
    },
    /// Results that cannot be read or written.
    #[error(transparent)]
    Results(#[from] onramp_results::Error),
}
