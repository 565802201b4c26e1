// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors as Python's exceptions.

use std::fmt::Display;

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::PyErr;

create_exception!(
    _onramp,
    ScenarioError,
    PyValueError,
    "A scenario is wrong, or the simulator cannot run it: key, value and bound of each error."
);
create_exception!(
    _onramp,
    ResultsError,
    PyRuntimeError,
    "Results cannot be read, written or compared."
);

create_exception!(
    _onramp,
    PartFailure,
    PyRuntimeError,
    "An algorithm that was written in Python failed."
);

/// A wrong scenario. Keys that were replaced are those of `set` here.
pub fn scenario(error: impl Display) -> PyErr {
    ScenarioError::new_err(error.to_string().replace("--set: ", ""))
}

/// Results that cannot be used.
pub fn results(error: impl Display) -> PyErr {
    ResultsError::new_err(error.to_string())
}
