// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Sweeps: points, parts that any process can make, and the data set that they become.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use onramp_reproduce::SIMULATOR;
use onramp_runs::{Existing, OutputDirectory};
use onramp_sweep::{finish, missing_parts, Making};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;

/// A sweep that has been checked.
#[pyclass(frozen, module = "onramp._onramp")]
pub struct Sweep {
    checked: onramp_sweep::Sweep,
    files: BTreeMap<String, Vec<u8>>,
    directory: Option<PathBuf>,
}

/// Ends the parts under way.
#[pyclass(frozen, module = "onramp._onramp")]
#[derive(Default)]
pub struct Stop(AtomicBool);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Stop {
        Stop::default()
    }

    /// From now on.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A directory of results that no other process writes into.
#[pyclass(frozen, module = "onramp._onramp")]
pub struct SweepDirectory(Mutex<Option<OutputDirectory>>);

#[pymethods]
impl SweepDirectory {
    /// Lets others write.
    fn close(&self) {
        let lock = self.0.lock();
        drop(lock.map(|mut directory| directory.take()));
    }
}

fn read(
    files: &BTreeMap<String, Vec<u8>>,
    directory: Option<&PathBuf>,
    path: &str,
) -> io::Result<Vec<u8>> {
    match (files.get(path), directory) {
        (Some(bytes), _) => Ok(bytes.clone()),
        (None, Some(directory)) => std::fs::read(directory.join(path)),
        (None, None) => Err(io::ErrorKind::NotFound.into()),
    }
}

#[pymethods]
impl Sweep {
    /// Checks the TOML `text`; `name` is its name in errors. Files that it names are those of `files`, or below `directory`.
    #[new]
    fn new(
        text: &str,
        name: &str,
        files: BTreeMap<String, Vec<u8>>,
        directory: Option<PathBuf>,
    ) -> PyResult<Sweep> {
        let read = |path: &str| read(&files, directory.as_ref(), path);
        let checked = onramp_sweep::Sweep::read(text, name, &read).map_err(errors::scenario)?;
        Ok(Sweep {
            checked,
            files,
            directory,
        })
    }

    #[getter]
    fn title(&self) -> &str {
        self.checked.title()
    }

    #[getter]
    fn points(&self) -> usize {
        self.checked.points()
    }

    #[getter]
    fn parts(&self) -> usize {
        self.checked.parts()
    }

    /// Settings of a point.
    fn point(&self, number: usize) -> Vec<(String, String)> {
        self.checked.point(number)
    }

    /// The files that its points name, with their bytes.
    fn named_files(&self, py: Python<'_>) -> BTreeMap<String, Py<PyBytes>> {
        let named = py.detach(|| {
            let named = RefCell::new(BTreeMap::new());
            let note = |path: &str| {
                let bytes = read(&self.files, self.directory.as_ref(), path)?;
                named.borrow_mut().insert(path.to_owned(), bytes.clone());
                Ok(bytes)
            };
            self.checked.note_files(&note);
            named.into_inner()
        });
        let bytes = |(path, bytes): (String, Vec<u8>)| (path, PyBytes::new(py, &bytes).unbind());
        named.into_iter().map(bytes).collect()
    }

    /// The bytes of the file of a part; None after `stop`.
    fn make(
        &self,
        py: Python<'_>,
        part: usize,
        threads: usize,
        stop: Option<&Stop>,
    ) -> Option<Py<PyBytes>> {
        let made = py.detach(|| {
            let read = |path: &str| read(&self.files, self.directory.as_ref(), path);
            let making = Making {
                sweep: &self.checked,
                read: &read,
                threads,
            };
            let goes_on = |_: f64| !stop.is_some_and(|stop| stop.0.load(Ordering::Relaxed));
            making.part(part, &mut { goes_on }).map(|part| part.bytes())
        });
        made.map(|bytes| PyBytes::new(py, &bytes).unbind())
    }

    /// Opens or creates a directory for its results; `force` replaces those that it has.
    fn open(&self, directory: PathBuf, force: bool) -> PyResult<SweepDirectory> {
        let existing = match force {
            true => Existing::Replace,
            false => Existing::Keep,
        };
        let opened = self.checked.open(&directory, SIMULATOR, existing);
        Ok(SweepDirectory(Mutex::new(Some(
            opened.map_err(errors::results)?,
        ))))
    }

    /// The parts that a directory lacks.
    fn missing(&self, directory: PathBuf) -> Vec<usize> {
        missing_parts(&self.checked, &directory)
    }

    /// Makes the data set of the parts that a directory has. Returns the text of `sweep.json`.
    fn finish(&self, py: Python<'_>, directory: PathBuf) -> PyResult<String> {
        let outcome = py.detach(|| finish(&self.checked, &directory));
        let outcome = outcome.map_err(errors::results)?;
        serde_json::to_string(&outcome).map_err(errors::results)
    }
}
