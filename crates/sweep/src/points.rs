// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The points that a sweep's file means: each of its explicit points, at each combination of the grid, at each sample.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use onramp_runs::{DirectoryError, Existing, OutputDirectory, Plan};
use onramp_scenario::{Errors, Scenario};
use serde_json::json;

use crate::error::SweepError;
use crate::file::{text_of, File};
use crate::sample::{places, Source};

/// Most points of a sweep.
const MOST_POINTS: usize = 1_000_000;
/// Most files that hold the results of parts.
const MOST_PARTS: usize = 4096;

/// Bytes of results for a run.
const RUN_BYTES: u64 = 8_000;

/// Settings of a scenario, in the order of the sweep's file.
pub type Point = Vec<(String, String)>;

/// A sweep, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Of the file, for errors.
    name: String,
    file: File,
    /// Text of the scenario.
    scenario: String,
    explicit: Vec<Point>,
    grid: Vec<(String, Vec<String>)>,
    sources: Vec<(String, Source)>,
    /// Of each sample, the place of each source, 0 to 1.
    places: Vec<Vec<f64>>,
}

/// Reads a file by its path in the sweep or in the scenario.
pub type Read<'a> = &'a dyn Fn(&str) -> io::Result<Vec<u8>>;

impl Sweep {
    /// Checks the TOML `text`, and the scenario at the first point. `name` is the file's name in errors.
    ///
    /// # Errors
    /// All that [`SweepError`] has, but for results.
    pub fn read(text: &str, name: &str, read: Read<'_>) -> Result<Sweep, SweepError> {
        let file: File = toml::from_str(text).map_err(|source| SweepError::Text {
            name: name.to_owned(),
            source,
        })?;
        let wrong = |key: &str, problem: String| SweepError::Value {
            name: name.to_owned(),
            key: key.to_owned(),
            problem,
        };
        let unread = |error: io::Error| wrong("scenario", format!("{}: {error}", file.scenario));
        let scenario = String::from_utf8(read(&file.scenario).map_err(unread)?);
        let scenario =
            scenario.map_err(|_| wrong("scenario", format!("{} is no text", file.scenario)))?;
        check_keys(&file).map_err(|(key, problem)| wrong(&key, problem))?;
        let sources = sources(&file).map_err(|(key, problem)| wrong(&key, problem))?;
        let places = file.sample.as_ref().map_or(Ok(Vec::new()), places);
        let places = places.map_err(|problem| wrong("sample.points", problem))?;
        let pairs = |point: &indexmap::IndexMap<String, toml::Value>| {
            let pairs = point
                .iter()
                .map(|(key, value)| (key.clone(), text_of(value)));
            pairs.collect()
        };
        let grid = file.grid.iter();
        let grid = grid.map(|(key, all)| (key.clone(), all.iter().map(text_of).collect()));
        let sweep = Sweep {
            name: name.to_owned(),
            explicit: file.point.iter().map(pairs).collect(),
            grid: grid.collect(),
            sources,
            places,
            scenario,
            file,
        };
        if sweep.points() > MOST_POINTS {
            let points = sweep.points();
            return Err(wrong(
                "it",
                format!("has {points} points, above max {MOST_POINTS}"),
            ));
        }
        let first = sweep.point(0);
        sweep
            .scenario(&first, read)
            .map_err(|error| SweepError::Scenario {
                name: name.to_owned(),
                point: line(&first),
                error,
            })?;
        Ok(sweep)
    }

    /// One line for people.
    pub fn title(&self) -> &str {
        self.file.title.as_deref().unwrap_or(&self.name)
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        let explicit = self.explicit.len().max(1);
        let grid = self.grid.iter().map(|(_, values)| values.len());
        let samples = self.places.len().max(1);
        grid.chain([samples]).fold(explicit, usize::saturating_mul)
    }

    /// Settings of the point of this number, below [`Sweep::points`]. Samples change fastest, then the last key of the
    /// grid.
    pub fn point(&self, number: usize) -> Point {
        let samples = self.places.len().max(1);
        let (mut rest, sample) = (number / samples, number % samples);
        let mut on_grid = Vec::new();
        for (key, values) in self.grid.iter().rev() {
            on_grid.push((key.clone(), values[rest % values.len()].clone()));
            rest /= values.len();
        }
        let mut point = self.explicit.get(rest).cloned().unwrap_or_default();
        point.extend(on_grid.into_iter().rev());
        let places = self.places.get(sample).into_iter().flatten();
        let drawn = self.sources.iter().zip(places);
        point.extend(drawn.map(|((key, source), place)| (key.clone(), source.at(*place))));
        point
    }

    /// The scenario at a point, with all seeds.
    ///
    /// # Errors
    /// Those of the scenario with these settings.
    pub fn scenario(&self, point: &Point, read: Read<'_>) -> Result<Scenario, Errors> {
        let seeds = format!("{:?}", self.file.seeds);
        let seeds = (!self.file.seeds.is_empty()).then_some(("seed", seeds.as_str()));
        let pairs = point
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let set: Vec<(&str, &str)> = pairs.chain(seeds).collect();
        Scenario::parse_files(&self.scenario, &self.file.scenario, &set, read)
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.points().div_ceil(self.points_of_a_part())
    }

    /// The points of a part, below [`Sweep::parts`].
    pub fn points_of(&self, part: usize) -> std::ops::Range<usize> {
        let many = self.points_of_a_part();
        part * many..((part + 1) * many).min(self.points())
    }

    fn points_of_a_part(&self) -> usize {
        self.points().div_ceil(MOST_PARTS)
    }

    /// Reads the files that its points name, to note them. Points whose scenario is wrong name none.
    pub fn note_files(&self, read: Read<'_>) {
        // Whoever reads one notes it.
        let _ = read(&self.file.scenario);
        for number in 0..self.points() {
            let _ = self.scenario(&self.point(number), read);
        }
    }

    /// Creates or opens a directory for its results, which `model`, a digest of the simulator's sources, makes.
    ///
    /// # Errors
    /// Those of the directory.
    pub fn open(
        &self,
        directory: &Path,
        model: &str,
        existing: Existing,
    ) -> Result<OutputDirectory, DirectoryError> {
        let plan = Plan {
            world: "sim".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model: model.to_owned(),
            asked: json!({ "sweep": self.file, "scenario": self.scenario }),
        };
        // Cases of the scenario are not counted.
        let runs = self.points() * self.file.seeds.len().max(1);
        OutputDirectory::open(directory, &plan, existing, runs as u64 * RUN_BYTES)
    }
}

/// Settings in a line.
fn line(point: &Point) -> String {
    let all: Vec<String> = point
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    all.join(", ")
}

/// A key has values in one table only, and lists have values.
fn check_keys(file: &File) -> Result<(), (String, String)> {
    let of_points: BTreeSet<&String> = file.point.iter().flat_map(|point| point.keys()).collect();
    let of_sample = file.sample.iter().flat_map(|sample| sample.keys.keys());
    let mut known = BTreeSet::new();
    for key in of_points
        .into_iter()
        .chain(file.grid.keys())
        .chain(of_sample)
    {
        if key == "seed" {
            return Err((
                key.clone(),
                "cannot vary between points; use seeds = [1, 2, 3]".to_owned(),
            ));
        }
        if !known.insert(key) {
            return Err((
                key.clone(),
                "has values in two of point, grid and sample".to_owned(),
            ));
        }
    }
    if let Some((key, _)) = file.grid.iter().find(|(_, values)| values.is_empty()) {
        return Err((format!("grid.{key}"), "has no value".to_owned()));
    }
    if file
        .sample
        .as_ref()
        .is_some_and(|sample| sample.points == 0 || sample.keys.is_empty())
    {
        let problem = "has no points or no keys, expected at least one of each".to_owned();
        return Err(("sample".to_owned(), problem));
    }
    Ok(())
}

fn sources(file: &File) -> Result<Vec<(String, Source)>, (String, String)> {
    let keys = file.sample.iter().flat_map(|sample| &sample.keys);
    let source = |(key, range)| match Source::of(range) {
        Ok(source) => Ok((String::clone(key), source)),
        Err(problem) => Err((format!("sample.keys.{key}"), problem)),
    };
    keys.map(source).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub const STAR: &str = r#"title = "t"
duration = "100 us"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[[traffic]]
kind = "long"
to = 0
flows = 2
"#;

    pub fn read(path: &str) -> io::Result<Vec<u8>> {
        match path {
            "star.toml" => Ok(STAR.into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn sweep(text: &str) -> Result<Sweep, SweepError> {
        Sweep::read(
            &format!("scenario = \"star.toml\"\n{text}"),
            "s.toml",
            &read,
        )
    }

    #[test]
    fn points_are_all_combinations_the_last_fastest() {
        let all = r#"
[[point]]
"host.cc" = "cubic"
[[point]]
"host.cc" = "bbr"
"host.sack" = true
[grid]
"network.link.rate" = ["1 Gbit/s", "2 Gbit/s", "3 Gbit/s"]
[sample]
method = "sobol"
points = 2
keys."network.link.delay" = { from = "1 us", to = "9 us" }
"#;
        // The scenario has no such key; what a point is does not depend on it.
        let error = sweep(&all.replace("\"cubic\"", "\"cubic\"\n\"host.sack\" = true"));
        assert!(matches!(error, Err(SweepError::Scenario { .. })));
        let all = sweep(all).unwrap();
        assert_eq!((all.points(), all.parts()), (12, 12));
        let texts: Vec<String> = (0..12).map(|number| line(&all.point(number))).collect();
        assert!(texts[1]
            .starts_with("host.cc = cubic, network.link.rate = 1 Gbit/s, network.link.delay = "));
        assert!(texts[4].starts_with("host.cc = cubic, network.link.rate = 3 Gbit/s"));
        assert!(
            texts[6].starts_with("host.cc = bbr, host.sack = true, network.link.rate = 1 Gbit/s")
        );
        let delay = |number: usize| texts[number].rsplit_once(' ').unwrap().0.to_owned();
        assert!(delay(0) != delay(1));
        assert_eq!(
            texts[0].rsplit_once(", ").unwrap().1,
            texts[2].rsplit_once(", ").unwrap().1
        );
        assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), 12);
    }

    #[test]
    fn a_point_has_all_seeds_and_none_is_one_point() {
        let seeds = sweep("seeds = [1, 2, 3]").unwrap();
        assert_eq!((seeds.points(), seeds.point(0)), (1, vec![]));
        let scenario = seeds.scenario(&seeds.point(0), &read).unwrap();
        let seeds: Vec<u64> = scenario.runs().iter().map(|run| run.seed).collect();
        assert_eq!(seeds, [1, 2, 3]);
    }

    #[test]
    fn parts_have_every_point_once() {
        let values: Vec<String> = (1..=9001)
            .map(|number| format!("\"{number} ns\""))
            .collect();
        let all = sweep(&format!(
            "[grid]\n\"network.link.delay\" = [{}]",
            values.join(", ")
        ))
        .unwrap();
        let points: Vec<usize> = (0..all.parts())
            .flat_map(|part| all.points_of(part))
            .collect();
        assert!(points.into_iter().eq(0..9001));
        assert!(all.parts() <= MOST_PARTS);
    }

    #[test]
    fn mistakes_are_named_with_key_and_value() {
        for (text, error) in [
            ("seeds = [1]\nsize = 3", "unknown field `size`"),
            (
                "[grid]\nseed = [1]",
                "s.toml: seed cannot vary between points",
            ),
            (
                "[grid]\n\"host.cc\" = []",
                "s.toml: grid.host.cc has no value",
            ),
            (
                "[grid]\na = [1]\n[sample]\nmethod = \"random\"\npoints = 1\nkeys.a = [1]",
                "s.toml: a has values in two of point, grid and sample",
            ),
            (
                "[sample]\nmethod = \"sobol\"\npoints = 65537\nkeys.a = [1]",
                "s.toml: sample.points sobol has at most 65536 points",
            ),
            (
                "[sample]\nmethod = \"random\"\npoints = 1\nkeys.a = { from = 2, to = 1 }",
                "s.toml: sample.keys.a goes from 2 to 1",
            ),
            (
                "[grid]\n\"host.cc\" = [\"cubbic\"]",
                "s.toml: at its first point (host.cc = cubbic): ",
            ),
        ] {
            let found = sweep(text).unwrap_err().to_string();
            assert!(found.contains(error), "{text}: {found}");
        }
        let found = Sweep::read("scenario = \"no.toml\"", "s.toml", &read).unwrap_err();
        assert!(found.to_string().starts_with("s.toml: scenario no.toml: "));
    }
}
