// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! In place of `parquet.rs` in builds without the feature `parquet`: no file is written or read.

use super::Column;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// A text.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell(String);

impl Cell {
    /// The text.
    pub fn as_utf8(&self) -> Result<&str> {
        Ok(&self.0)
    }

    /// Its bytes.
    pub fn data(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell(text.to_owned())
    }
}

/// Refuses.
pub fn write(
    path: &Path,
    _schema: &str,
    _groups: impl IntoIterator<Item = Result<Vec<Column>>>,
) -> Result<()> {
    Err(Error::NoParquet {
        path: path.to_owned(),
    })
}

/// Refuses.
pub fn read(path: PathBuf, _names: &[&'static str]) -> impl Iterator<Item = Result<Vec<Column>>> {
    std::iter::once(Err(Error::NoParquet { path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_file_and_feature() {
        let path = Path::new("results/flows-0.parquet");
        let message = "results/flows-0.parquet: this program was built without Parquet: enable the feature `parquet` of onramp-results";
        assert_eq!(write(path, "", []).unwrap_err().to_string(), message);
        let read = read(path.to_owned(), &[]).next().expect("an answer");
        assert_eq!(read.unwrap_err().to_string(), message);
    }
}
