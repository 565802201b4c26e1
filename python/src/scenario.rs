// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Scenarios, from the text of a file or from Python's tables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::Value;

use crate::errors;

/// A scenario that has been checked.
#[pyclass(frozen, module = "onramp._onramp")]
pub struct Scenario {
    pub checked: onramp_scenario::Scenario,
    text: String,
}

#[pymethods]
impl Scenario {
    /// Checks the TOML `text`. `name` is its name in errors; `set` replaces keys; files that it names are below
    /// `directory`.
    #[new]
    fn new(
        text: String,
        name: &str,
        set: Vec<(String, String)>,
        directory: PathBuf,
    ) -> PyResult<Scenario> {
        let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let read = |path: &str| std::fs::read(directory.join(path));
        let checked = onramp_scenario::Scenario::parse_files(&text, name, &set, &read)
            .map_err(errors::scenario)?;
        Ok(Scenario { checked, text })
    }

    /// The TOML text of the tables in `json`.
    #[staticmethod]
    fn toml_of(json: &str) -> PyResult<String> {
        let value: Value = serde_json::from_str(json).map_err(errors::scenario)?;
        toml::to_string(&value).map_err(errors::scenario)
    }

    /// Its title.
    #[getter]
    fn title(&self) -> &str {
        self.checked.title()
    }

    /// Its text, before keys were replaced.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// For each run, the case and the parameters in which it differs from others.
    fn params(&self) -> Vec<BTreeMap<String, String>> {
        let runs = self.checked.runs().iter();
        runs.map(|run| run.params.clone()).collect()
    }

    /// What a specialist would notice before a run.
    fn remarks(&self) -> Vec<String> {
        onramp_results::planned_remarks(self.checked.runs())
    }

    /// Every setting of each run, as JSON.
    fn resolved(&self) -> String {
        serde_json::json!(self.checked.runs()).to_string()
    }
}

/// docs/scenario.md: every key with its unit, bounds, default and meaning.
#[pyfunction]
pub fn scenario_keys() -> String {
    onramp_scenario::explain_markdown()
}
