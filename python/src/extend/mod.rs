// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Parts of the simulator that are written in Python. A class is known by its name, so that it can be defined again, as
//! notebooks do; the registries of the simulator have an entry for the name, once.

pub mod congestion_control;
pub mod law;
pub mod rate_control;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use onramp_cc::{Mistake, ParameterValue, Parameters, Tuning};
use onramp_units::{Span, Time};
use pyo3::prelude::*;

use crate::errors::PartFailure;

/// Parts written in Python have no keys in scenarios: their parameters are those of their class.
/// `TIME_STAMPS`: packets carry their time, for NICs.
#[derive(Debug, Clone)]
struct NoParameters<const TIME_STAMPS: bool>;

impl<const TIME_STAMPS: bool> Parameters for NoParameters<TIME_STAMPS> {
    fn tune(&mut self, _given: &Tuning) {}

    fn get(&self, _name: &str) -> Option<ParameterValue> {
        None
    }
}

/// Nanoseconds, with picoseconds behind the point.
fn ns(span: Span) -> f64 {
    span.as_ps() as f64 / 1e3
}

/// The classes of a kind of part, by name.
struct Classes(Mutex<BTreeMap<String, Py<PyAny>>>);

impl Classes {
    const fn new() -> Classes {
        Classes(Mutex::new(BTreeMap::new()))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Py<PyAny>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the class of that name. Whether there was one.
    fn put(&self, name: &str, class: Py<PyAny>) -> bool {
        self.all().insert(name.to_owned(), class).is_some()
    }

    /// The class of that name.
    fn get(&self, py: Python<'_>, name: &str) -> Py<PyAny> {
        let all = self.all();
        all.get(name).expect("it was registered").clone_ref(py)
    }
}

/// The last exception of a part, for who ends the run.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

fn raised() -> MutexGuard<'static, Option<PyErr>> {
    RAISED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What Python answers. An exception is a mistake of the part, which ends the run.
fn answer<T>(f: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    Python::attach(|py| match f(py) {
        Ok(answer) => answer,
        Err(error) => {
            let text = error.to_string();
            *raised() = Some(error);
            // As a panic, but without its message on the terminal.
            std::panic::resume_unwind(Box::new(text))
        }
    })
}

/// The exception that tells of `mistake`. Its cause is that of the part, if the part raised one.
pub fn mistake_of(mistake: &Mistake) -> PyErr {
    let at = mistake.at.map_or(String::new(), |at| {
        format!(", at {} of simulated time", at - Time::ZERO)
    });
    let what = mistake.what.replacen("panicked: ", "raised ", 1);
    let error = PartFailure::new_err(format!("{} {what}{at}", mistake.call));
    Python::attach(|py| error.set_cause(py, raised().take()));
    error
}
