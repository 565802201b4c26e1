// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A scenario: a base, cases and a sweep, and the runs that they define.

use crate::document::{self, Document, Given};
use crate::error::{Error, Errors, Origin, Problem};
use crate::files::{Files, NO_FILES};
use crate::keys::{self, TableEntry};
use crate::network::Inline;
use crate::resolve::resolve;
use crate::setting::{Layer, Setting};
use crate::types::Run;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of runs of a scenario.
const MAX_RUNS: usize = 1000;

/// A scenario file, checked, with its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    pub(crate) base: Layer,
    pub(crate) cases: Vec<(String, Layer)>,
    pub(crate) sweep: Vec<(String, Vec<Setting>)>,
    /// The value of `network.graph`.
    pub(crate) network: Option<Inline>,
    title: String,
    runs: Vec<Run>,
}

impl Scenario {
    /// Checks `text`; `name` is the file's name, for error messages.
    ///
    /// # Errors
    /// All errors, each with line, key, value and bound.
    ///
    /// ```
    /// use onramp_scenario::{Law, Scenario};
    /// let text = r#"
    /// title = "16-to-1 incast, edge off and on"
    /// seed = 7
    /// duration = "200 ms"
    /// [network]
    /// topology = { kind = "star", hosts = 17 }
    /// link = { rate = "10 Gbit/s", delay = "1 us" }
    /// [[traffic]]
    /// kind = "incast"
    /// fanout = 16
    /// size = "32 kB"
    /// [host]
    /// cc = "cubic"
    /// [sweep]
    /// "onramp.threshold" = ["off", "50 us"]
    /// "#;
    /// let scenario = Scenario::parse(text, "incast.toml")?;
    /// assert_eq!(scenario.runs()[0].onramp.law, Law::Off);
    /// assert_eq!(scenario.runs()[1].params["onramp.threshold"], "50 us");
    ///
    /// let wrong = text.replace("200 ms", "2 min").replace("hosts = 17", "hosts = 1");
    /// assert_eq!(
    ///     Scenario::parse(&wrong, "incast.toml").unwrap_err().to_string(),
    ///     "incast.toml:4: duration is \"2 min\", whose unit is not one of ps, ns, us, ms, s\n\
    ///      incast.toml:6: network.topology.hosts is 1, below min 2"
    /// );
    /// # Ok::<(), onramp_scenario::Errors>(())
    /// ```
    pub fn parse(text: &str, name: &str) -> Result<Scenario, Errors> {
        Scenario::parse_with(text, name, &[])
    }

    /// Like [`Scenario::parse`], with settings from the command line: each replaces the key in the
    /// file, its cases and its sweep.
    ///
    /// # Errors
    /// As for [`Scenario::parse`]; `--set` replaces the line for a wrong setting.
    pub fn parse_with(text: &str, name: &str, set: &[(&str, &str)]) -> Result<Scenario, Errors> {
        Scenario::parse_files(text, name, set, NO_FILES)
    }

    /// Like [`Scenario::parse_with`], for scenarios that name files: `read` returns the bytes of a file
    /// by its path in the scenario.
    ///
    /// # Errors
    /// As for [`Scenario::parse_with`]; and files that cannot be read, or have another format.
    pub fn parse_files(
        text: &str,
        name: &str,
        set: &[(&str, &str)],
        read: &dyn Fn(&str) -> std::io::Result<Vec<u8>>,
    ) -> Result<Scenario, Errors> {
        let files = Files::new(read);
        let mut document = Document::read(text);
        if document.is_toml {
            document.set(set);
        }
        let mut errors = std::mem::take(&mut document.errors);
        let too_many = refuse_too_many_runs(&document);
        // Without valid TOML no keys are known, so none can be missing.
        let runs = match document.is_toml && too_many.is_none() {
            true => resolve_all(&document, &files, &mut errors),
            false => Vec::new(),
        };
        errors.extend(too_many);
        match (Errors::collect(name, errors), runs.first()) {
            (None, Some(first)) => Ok(Scenario::new(&document, first.title.clone(), runs)),
            (Some(errors), _) => Err(errors),
            (None, None) => Err(unread(name)),
        }
    }

    fn new(document: &Document, title: String, runs: Vec<Run>) -> Scenario {
        let mut base = settings(&document.base);
        fill_defaults(&mut base, document);
        let layers = |(name, layer): &(String, document::Layer)| (name.clone(), settings(layer));
        let points = |(path, all): &(String, Vec<Given>)| {
            let settings = all.iter().filter_map(|given| given.setting.clone());
            (path.clone(), settings.collect())
        };
        Scenario {
            base,
            cases: document.cases.iter().map(layers).collect(),
            sweep: document.sweep.iter().map(points).collect(),
            network: document.network.clone(),
            title,
            runs,
        }
    }

    /// One line for people.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Every case at every point of the sweep: cases in the file's order; within a case the last key
    /// of the sweep changes fastest. Combinations that give the same run, such as several thresholds
    /// with law off, are one run.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
}

/// The error of a document that has no run and no other error.
fn unread(name: &str) -> Errors {
    let error = Error {
        place: Origin::Line(1),
        problem: Problem::Unread,
    };
    Errors::collect(name, vec![error]).expect("there is one")
}

fn settings(layer: &document::Layer) -> Layer {
    let all = layer.iter();
    all.filter_map(|(path, given)| Some((path.clone(), given.setting.clone()?)))
        .collect()
}

/// Adds the defaults that do not depend on other keys.
fn fill_defaults(base: &mut Layer, document: &Document) {
    let common = keys::all().filter(|key| key.on.is_none());
    let kinds = document.entries.traffic.iter().enumerate();
    let of_traffic = kinds.flat_map(|(number, kind)| {
        let keys = kind.map_or(&[] as &[_], |kind| kind.keys);
        keys.iter()
            .map(move |key| (key, Some(TableEntry::Traffic(number))))
    });
    for (key, entry) in common.map(|key| (key, None)).chain(of_traffic) {
        if let Some(text) = key.default() {
            let setting = Setting { key, entry, text };
            base.entry(setting.path()).or_insert(setting);
        }
    }
}

fn refuse_too_many_runs(document: &Document) -> Option<Error> {
    let points = document.sweep.iter().map(|(_, values)| values.len());
    let runs = points.fold(document.cases.len().max(1), usize::saturating_mul);
    if runs <= MAX_RUNS {
        return None;
    }
    let place = document
        .sweep
        .last()
        .and_then(|(_, values)| values.first())
        .map(|s| s.place);
    let (key, value) = ("case x sweep".to_owned(), format!("{runs} runs"));
    let problem = Problem::Above {
        key,
        value,
        max: MAX_RUNS.to_string(),
    };
    Some(Error {
        place: place.unwrap_or(Origin::Line(1)),
        problem,
    })
}

fn resolve_all(document: &Document, files: &Files<'_>, errors: &mut Vec<Error>) -> Vec<Run> {
    let varied = varied_keys(document);
    let mut runs: Vec<Run> = Vec::new();
    let unnamed = (String::new(), document::Layer::new());
    let cases = match document.cases.as_slice() {
        [] => std::slice::from_ref(&unnamed),
        cases => cases,
    };
    for (name, case) in cases {
        for point in points(&document.sweep) {
            let mut layer = document.base.clone();
            layer.extend(case.clone());
            layer.extend(point);
            match resolve(document, files, &layer) {
                Ok(mut run) => {
                    run.params = params(&run, name, &varied);
                    if !runs.contains(&run) {
                        runs.push(run);
                    }
                }
                Err(more) => errors.extend(more),
            }
        }
    }
    runs
}

/// Keys that a case or the sweep sets.
fn varied_keys(document: &Document) -> BTreeSet<&str> {
    let of_cases = document.cases.iter().flat_map(|(_, layer)| layer.keys());
    let of_sweep = document.sweep.iter().map(|(path, _)| path);
    of_cases.chain(of_sweep).map(String::as_str).collect()
}

fn params(run: &Run, case: &str, varied: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let all = run
        .settings()
        .map(|setting| (setting.path(), setting.text.clone()));
    let mut params: BTreeMap<_, _> = all
        .filter(|(path, _)| varied.contains(path.as_str()))
        .collect();
    if !case.is_empty() {
        params.insert("case".to_owned(), case.to_owned());
    }
    params
}

/// The cross product of a sweep's lists, the last key fastest; one empty point without a sweep.
fn points(sweep: &[(String, Vec<Given>)]) -> Vec<document::Layer> {
    let mut points = vec![document::Layer::new()];
    for (path, values) in sweep {
        let with = |point: &document::Layer, value: &Given| {
            let mut point = point.clone();
            point.insert(path.clone(), value.clone());
            point
        };
        points = points
            .iter()
            .flat_map(|p| values.iter().map(|v| with(p, v)).collect::<Vec<_>>())
            .collect();
    }
    points
}

#[cfg(test)]
mod tests;
