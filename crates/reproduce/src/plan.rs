// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A figure at a scale: its scenario, resolved with the scale's settings and seeds, and whether its
//! rows and plots mean runs that there are.

use crate::error::{Error, Result};
use crate::library::{natural, Library};
use crate::spec::{Choice, PlotSpec, RowSpec, Scale, ScaleName, Show, Spec};
use crate::world::{cost_data_path, World};
use crate::{plots, rows};
use onramp_results::figure::{Figure, MadeBy, Plot};
use onramp_results::{figure::SCHEMA, SEED};
use onramp_scenario::{rack_limits, Scenario};
use serde_json::json;
use siphasher::sip::SipHasher13;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// A figure that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// As on the command line.
    pub id: String,
    /// What is declared; its rows are those of the scale.
    pub spec: Spec,
    /// At which scale.
    pub scale: ScaleName,
    /// What that sets.
    pub settings: Scale,
    /// Seeds of every case.
    pub seeds: Vec<u64>,
    /// Whether real kernels run it, beside the simulator.
    pub on_rack: bool,
    /// All its runs; none for a figure that compares what was measured elsewhere.
    pub scenario: Option<Scenario>,
    /// Digests of the files that the scenario names, by path: a result is of their contents too.
    pub files: Digests,
}

/// SipHash of files by path.
pub type Digests = BTreeMap<String, u64>;

impl Planned {
    /// Figure `id`, which may be one that another shows too.
    ///
    /// # Errors
    /// There is none of that name, or none that declares the scale; it or its scenario is not valid,
    /// or beyond the rack; a row means no run.
    pub fn read(library: &Library, id: &str, scale: ScaleName) -> Result<Planned> {
        let (id, spec) = find(library, id)?;
        let Some(settings) = spec.scale(scale).cloned() else {
            return Err(match scale {
                ScaleName::Rack => Error::NotOnRack {
                    id,
                    known: on_rack(library)?.join(", "),
                },
                _ => Error::NoScale {
                    id,
                    scale: scale.to_string(),
                },
            });
        };
        let file = format!("figures/{id}.toml");
        let seeds: Vec<u64> = (1..=settings.seeds).collect();
        let (scenario, files) = match &spec.scenario {
            Some(name) => {
                let path = format!("scenarios/{name}");
                let called = format!("{path} ({scale} of {file})");
                let read = |path: &str| library.read(path);
                let (scenario, files) = scenario(&read, (&path, &called), &settings, &seeds)?;
                (Some(scenario), files)
            }
            None => (None, Digests::new()),
        };
        let planned = Planned {
            spec: spec_of_runs(spec, scenario.as_ref(), scale),
            on_rack: scale == ScaleName::Rack,
            scenario,
            files,
            id,
            scale,
            settings,
            seeds,
        };
        planned.check(&file)?;
        Ok(planned)
    }

    /// The experiment of one's own that the text of `experiment.toml` declares, whose scenario `read` finds by its path
    /// from there. `id` names it, `file` is its path for errors. `seeds` replace those that it has, if there are any.
    ///
    /// # Errors
    /// It or its scenario is not valid, or beyond the rack; a row or a plot means no run, or runs of several settings.
    pub fn experiment(
        text: &str,
        (id, file): (&str, &str),
        read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
        seeds: Option<Vec<u64>>,
        on_rack: bool,
    ) -> Result<Planned> {
        let spec = Spec::parse_experiment(text, file)?;
        let settings = spec.quick.clone();
        let seeds = seeds.unwrap_or_else(|| (1..=settings.seeds).collect());
        let path = spec.scenario.clone().unwrap_or_default();
        let called = format!("{path} (of {file})");
        let (scenario, files) = scenario(read, (&path, &called), &settings, &seeds)?;
        let planned = Planned {
            spec: spec_of_runs(spec, Some(&scenario), ScaleName::Own),
            id: id.to_owned(),
            scale: ScaleName::Own,
            scenario: Some(scenario),
            on_rack,
            files,
            settings,
            seeds,
        };
        planned.check(file)?;
        Ok(planned)
    }

    /// All figures that declare the scale, in the paper's order.
    ///
    /// # Errors
    /// As of [`Planned::read`].
    pub fn all(library: &Library, scale: ScaleName) -> Result<Vec<Planned>> {
        let ids = match scale {
            ScaleName::Rack => on_rack(library)?,
            _ => ids(library)?,
        };
        ids.iter()
            .map(|id| Planned::read(library, id, scale))
            .collect()
    }

    /// Whether a row needs the rack's CPU time.
    pub fn measures_cpu(&self) -> bool {
        self.spec.rows.iter().any(|row| row.is_cpu())
    }

    /// `figure.json` of what `worlds` measured, the simulator's first.
    ///
    /// # Errors
    /// Results that cannot be read.
    pub fn figure(
        &self,
        worlds: &[World],
        version: &str,
        partial: bool,
        mut made_by: MadeBy,
    ) -> Result<Figure> {
        let has_cost = self.spec.rows.iter().any(|row| row.measure.cost.is_some());
        if has_cost && made_by.data_path.is_none() {
            made_by.data_path = cost_data_path();
        }
        let rows = self.spec.rows.iter().map(|row| rows::row(row, worlds));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let mut drawn: Vec<Plot> = Vec::new();
        for plot in &self.spec.plots {
            drawn.extend(plots::plots(plot, worlds)?);
        }
        let scale = &self.settings;
        Ok(Figure {
            schema: SCHEMA,
            version: version.to_owned(),
            id: self.id.clone(),
            title: self.spec.title.clone(),
            asked: self.spec.asked.trim().to_owned(),
            scale: self.scale.to_string(),
            scaled_down: scaled_down(scale),
            seeds: self.seeds.clone(),
            partial,
            rows,
            made_by,
            plots: drawn,
            resolved: self
                .scenario
                .iter()
                .map(|scenario| json!(scenario))
                .collect(),
        })
    }

    /// Whether rows and plots mean runs that there are: a row one for each seed.
    fn check(&self, file: &str) -> Result<()> {
        let Some(scenario) = &self.scenario else {
            return Ok(());
        };
        let runs: Vec<&Choice> = scenario.runs().iter().map(|run| &run.params).collect();
        let checked = match self.on_rack {
            true => check_rack(scenario),
            false => Ok(()),
        };
        let checked = checked.and_then(|()| self.check_rows(&runs));
        let checked = checked.and_then(|()| self.check_plots(&runs));
        checked.map_err(|(key, reason)| Error::Key {
            file: file.to_owned(),
            key,
            reason,
        })
    }

    fn check_rows(&self, runs: &[&Choice]) -> Checked {
        let seeds = self.seeds.len() as u64;
        let measured = |row: &&RowSpec| row.measure.cost.is_none();
        for row in self.spec.rows.iter().filter(measured) {
            for choice in std::iter::once(&row.runs.of).chain(&row.runs.over) {
                let found = count(choice, runs);
                if found != seeds {
                    let key = format!("row \"{}\": {choice:?}", row.name);
                    let at = match self.scale {
                        ScaleName::Own => String::new(),
                        scale => format!(" at scale {scale}"),
                    };
                    let reason = format!("{found} runs of {seeds} seeds{at}");
                    return Err((key, format!("{reason}; there are {}", values(choice, runs))));
                }
            }
        }
        Ok(())
    }

    fn check_plots(&self, runs: &[&Choice]) -> Checked {
        for plot in &self.spec.plots {
            let wrong = |reason| Err((format!("plot \"{}\"", plot.title), reason));
            let mut keys = Vec::new();
            match &plot.show {
                Show::Bars { x, by, .. } => keys.extend(x.iter().chain(by)),
                Show::Time { by, .. } => keys.extend(by),
                Show::Cdf { by, .. } => keys.push(by),
                Show::Pairs { .. } => {}
            }
            let varied = |key: &&String| runs.iter().any(|run| run.contains_key(*key));
            if let Some(missing) = keys.into_iter().find(|key| !varied(key)) {
                return wrong(format!("by {missing}, which no run varies"));
            }
            if let Show::Bars {
                x: Some(x), groups, ..
            } = &plot.show
            {
                let is_run = |group: &&String| {
                    runs.iter()
                        .any(|run| run.get(x).is_some_and(|v| v == *group))
                };
                if let Some(none) = groups.iter().find(|group| !is_run(group)) {
                    return wrong(format!("group {none}, which no run is"));
                }
            }
            if count(&plot.of, runs) == 0 {
                return wrong(format!("of {:?}, which no run is", plot.of));
            }
            if let Some(key) = mixed(plot, runs, self.scale == ScaleName::Own) {
                return wrong(format!(
                    "of runs that differ in {key}; choose one with of = {{ \"{key}\" = ... }}, draw by = \"{key}\" or x = \"{key}\", \
                     or make a plot each = {{ \"{key}\" = \"all\" }}"
                ));
            }
        }
        Ok(())
    }
}

/// If not: the key, and what is wrong with it.
type Checked = std::result::Result<(), (String, String)>;

fn check_rack(scenario: &Scenario) -> Checked {
    let mut limits = scenario.runs().iter().flat_map(rack_limits);
    let wrong = |limit| Err(("rack".to_owned(), format!("beyond the rack: {limit}")));
    limits.next().map_or(Ok(()), wrong)
}

/// Runs that a choice means.
fn count(choice: &Choice, runs: &[&Choice]) -> u64 {
    let means = |run: &&&Choice| {
        choice
            .iter()
            .all(|(key, value)| run.get(key) == Some(value))
    };
    runs.iter().filter(means).count() as u64
}

/// A key of whose values a bar of `plot` would be the mean. In an experiment of one's own also one that a distribution would
/// mix, or that lines of one name differ in; figures of papers do so where the paper does.
fn mixed<'a>(plot: &PlotSpec, runs: &[&'a Choice], own: bool) -> Option<&'a String> {
    let (x, by) = match &plot.show {
        Show::Bars { x, by, .. } => (x.as_ref(), by.as_ref()),
        Show::Cdf { by, .. } if own => (None, Some(by)),
        Show::Time { by: Some(by), .. } if own => (None, Some(by)),
        _ => return None,
    };
    let is_of = |run: &&&Choice| {
        plot.of
            .iter()
            .all(|(key, value)| run.get(key) == Some(value))
    };
    let bar = |run: &Choice| [x, by].map(|key| key.and_then(|key| run.get(key).cloned()));
    let drawn: Vec<&Choice> = runs.iter().filter(is_of).copied().collect();
    let differs = |run: &&'a Choice| {
        let first = drawn.iter().find(|other| bar(other) == bar(run))?;
        let mut keys = run.keys().filter(|key| *key != SEED);
        keys.find(|key| run.get(*key) != first.get(*key))
    };
    drawn.iter().find_map(differs)
}

/// What runs have of the keys of `choice`, or of all keys if it has none.
fn values(choice: &Choice, runs: &[&Choice]) -> String {
    let all = Choice::new();
    let choice = match choice.is_empty() {
        true => runs.first().unwrap_or(&&all),
        false => choice,
    };
    let of = |key: &String| {
        let values: BTreeSet<&str> = runs
            .iter()
            .filter_map(|run| run.get(key))
            .map(String::as_str)
            .collect();
        format!("{key} {values:?}")
    };
    choice.keys().map(of).collect::<Vec<_>>().join(", ")
}

fn scaled_down(scale: &Scale) -> String {
    let seeds = match scale.seeds {
        1 => "one seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    };
    let few = scale.few_seeds.iter().map(|why| format!("{seeds}: {why}"));
    let smaller = Some(scale.scaled_down.trim().to_owned()).filter(|text| !text.is_empty());
    smaller
        .into_iter()
        .chain(few)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Ids in the paper's order.
fn ids(library: &Library) -> Result<Vec<String>> {
    library.ids().map_err(|source| Error::File {
        path: "figures".to_owned(),
        source,
    })
}

/// Those that declare a run on the rack.
fn on_rack(library: &Library) -> Result<Vec<String>> {
    let mut declared = Vec::new();
    for id in ids(library)? {
        if spec(library, &id)?.rack.is_some() {
            declared.push(id);
        }
    }
    Ok(declared)
}

fn spec(library: &Library, id: &str) -> Result<Spec> {
    let path = format!("figures/{id}.toml");
    let text = text(&|path| library.read(path), &path)?;
    Spec::parse(&text, &path)
}

fn text(read: &dyn Fn(&str) -> io::Result<Vec<u8>>, path: &str) -> Result<String> {
    let bytes = read(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The figure called `id`, or that shows it too.
fn find(library: &Library, id: &str) -> Result<(String, Spec)> {
    let known = ids(library)?;
    if known.iter().any(|other| other == id) {
        return Ok((id.to_owned(), spec(library, id)?));
    }
    let mut names = Vec::new();
    for other in known {
        let spec = spec(library, &other)?;
        if spec.also.iter().any(|also| also == id) {
            return Ok((other, spec));
        }
        names.extend(spec.also);
        names.push(other);
    }
    names.sort_by_key(|name| natural(name));
    Err(Error::Unknown {
        id: id.to_owned(),
        known: names.join(", "),
    })
}

/// The rows and plots of `scale`, one for each value that the runs have.
fn spec_of_runs(spec: Spec, scenario: Option<&Scenario>, scale: ScaleName) -> Spec {
    let runs = scenario.map_or(&[][..], Scenario::runs);
    let mut spec = spec.expanded(&runs.iter().map(|run| &run.params).collect::<Vec<_>>());
    spec.rows.retain(|row| row.at.is_none_or(|at| at == scale));
    if scale == ScaleName::Rack {
        for row in &mut spec.rows {
            row.note = row
                .rack_note
                .take()
                .unwrap_or(std::mem::take(&mut row.note));
        }
    }
    spec
}

/// The scenario at `path`, called so in errors, with all settings and seeds, and digests of the files that it names.
fn scenario(
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    (path, called): (&str, &str),
    settings: &Scale,
    seeds: &[u64],
) -> Result<(Scenario, Digests)> {
    let text = text(read, path)?;
    let mut set: Vec<(String, String)> = Vec::new();
    for (key, value) in &settings.set {
        set.push((key.clone(), setting(value)));
    }
    set.push(("seed".to_owned(), format!("{seeds:?}")));
    let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let files = RefCell::new(Digests::new());
    let beside = |path: &str| {
        let bytes = read(&joined(directory, path))?;
        let digest = SipHasher13::new().hash(&bytes);
        files.borrow_mut().insert(path.to_owned(), digest);
        Ok(bytes)
    };
    let scenario = Scenario::parse_files(&text, called, &set, &beside)?;
    Ok((scenario, files.into_inner()))
}

/// As `--set` has it: texts without their quotes.
fn setting(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `path` from `directory`.
fn joined(directory: &str, path: &str) -> String {
    match directory.is_empty() || path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{directory}/{path}"),
    }
}
