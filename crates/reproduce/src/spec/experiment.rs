// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `experiment.toml`: an experiment of one's own. It has rows and plots as figures have them, one scale, and no paper
//! that it is compared with.

use super::claim::{wrong, Paper};
use super::row::RowSpec;
use super::{PlotSpec, Scale, Spec};
use crate::error::{Error, Result};
use onramp_results::figure::By;
use onramp_results::unit_of;
use serde::Deserialize;
use std::collections::BTreeMap;

/// `experiment.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    title: String,
    #[serde(default)]
    question: String,
    /// From the file's folder.
    scenario: String,
    /// Seeds 1 to this.
    #[serde(default = "five")]
    seeds: u64,
    #[serde(default)]
    series: Vec<String>,
    /// Keys of the scenario; a list is swept.
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    #[serde(default, rename = "row")]
    rows: Vec<RowSpec>,
    #[serde(default, rename = "plot")]
    plots: Vec<PlotSpec>,
}

fn five() -> u64 {
    super::LEAST_SEEDS
}

impl Spec {
    /// Reads the text of an experiment in `file`, its name for errors.
    ///
    /// # Errors
    /// What is wrong with it, with file, line and key.
    pub fn parse_experiment(text: &str, file: &str) -> Result<Spec> {
        let keys: Keys = toml::from_str(text).map_err(|error| Error::Format {
            file: file.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        of_keys(keys).map_err(|(key, reason)| Error::Key {
            file: file.to_owned(),
            key,
            reason,
        })
    }
}

fn of_keys(keys: Keys) -> Result<Spec, (String, String)> {
    if keys.seeds == 0 {
        return wrong("seeds", "0, below min 1").map(|()| unreachable!());
    }
    let mut rows = keys.rows;
    for (n, row) in rows.iter_mut().enumerate() {
        check_row(row).map_err(|(key, reason)| (format!("row.{n}.{key}"), reason))?;
        if row.runs.by == By::Value && row.unit.is_none() {
            row.unit = unit(row);
        }
    }
    let spec = Spec {
        title: keys.title,
        also: Vec::new(),
        asked: keys.question,
        scenario: Some(keys.scenario),
        series: keys.series,
        quick: Scale {
            seeds: keys.seeds,
            few_seeds: None,
            scaled_down: String::new(),
            takes_s: 0.0,
            set: keys.set,
        },
        full: None,
        rack: None,
        rows,
        plots: keys.plots,
    };
    spec.check_content()?;
    Ok(spec)
}

/// A row has no key that is about a paper.
fn check_row(row: &RowSpec) -> Result<(), (String, String)> {
    let of_papers = "a key of figures of papers: an experiment is compared with none";
    if row.paper != Paper::default() {
        return wrong("paper", of_papers);
    }
    for (key, is_given) in [
        ("at", row.at.is_some()),
        ("rack_note", row.rack_note.is_some()),
        ("cost", row.measure.cost.is_some()),
    ] {
        if is_given {
            return wrong(key, of_papers);
        }
    }
    Ok(())
}

/// That of the metric, if it is measured as it is.
fn unit(row: &RowSpec) -> Option<String> {
    let measure = &row.measure;
    if measure.per.is_some() || measure.times.is_some() {
        return None;
    }
    let unit = unit_of(measure.metric.as_deref()?).ok()?;
    Some(if unit == "1" { "" } else { unit }.to_owned())
}
