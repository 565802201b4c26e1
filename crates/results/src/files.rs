// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Files of results: their names, and JSON that is written whole or not at all.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The folder of the files of single runs: apart, so that `*.parquet` means each row once.
pub const RUNS: &str = "runs";

/// Path of a file of run `index`.
pub fn part(directory: &Path, stem: &str, index: usize, extension: &str) -> PathBuf {
    directory
        .join(RUNS)
        .join(format!("{stem}-{index}.{extension}"))
}

/// Reads a file of results if it has the schema `known`. `remedy` makes it again.
///
/// # Errors
/// It cannot be read, is not JSON of this type, or has another schema.
pub fn read_versioned<T: for<'de> Deserialize<'de>>(
    path: &Path,
    known: u32,
    remedy: &str,
) -> Result<T> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    let Versioned { schema } = read_json(path)?;
    if schema == known {
        return read_json(path);
    }
    let age = match schema < known {
        true => "an older",
        false => "a newer",
    };
    Err(Error::Format {
        path: path.to_owned(),
        reason: format!(
            "it is of {age} onramp: its schema is {schema}, expected {known}; {remedy} again"
        ),
    })
}

/// Writes `value` as indented JSON, atomically.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    write_whole(path, &json_bytes(value))
}

/// The bytes of a file that [`write_json`] writes.
pub fn json_bytes(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("plain data has a JSON form");
    text.push(b'\n');
    text
}

/// Writes `content` atomically: `path` has either the old or the new content.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    whole(path, |part| {
        std::fs::write(part, content).map_err(|error| Error::File {
            path: path.to_owned(),
            error,
        })
    })
}

/// Lets `write` make a file beside `path`, then renames it to `path`.
pub(crate) fn whole(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let at = |error| Error::File {
        path: path.to_owned(),
        error,
    };
    if let Some(folder) = path.parent().filter(|folder| folder.ends_with(RUNS)) {
        std::fs::create_dir_all(folder).map_err(at)?;
    }
    let written = write(&part).and_then(|()| std::fs::rename(&part, path).map_err(at));
    if written.is_err() {
        // The file may not exist; the error to report is the first one.
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// Reads JSON that [`write_json`] wrote.
pub fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = std::fs::read(path).map_err(|error| Error::File {
        path: path.to_owned(),
        error,
    })?;
    serde_json::from_slice(&text).map_err(|error| Error::Format {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}
