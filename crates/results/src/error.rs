// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of files of results.

use std::io;
use std::path::{Path, PathBuf};

/// Results could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of results has another format than this version's.
    #[error("{path}: {reason}")]
    Format {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// This program was built without the feature `parquet`.
    #[error("{path}: this program was built without Parquet: enable the feature `parquet` of onramp-results")]
    NoParquet {
        /// Which file needs it.
        path: PathBuf,
    },
}

/// Result of reading or writing results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A Parquet file that this version did not write.
    pub(crate) fn foreign(path: &Path) -> Error {
        Error::Format {
            path: path.to_owned(),
            reason: "its columns are not those that this onramp writes; run the scenario again"
                .to_owned(),
        }
    }
}
