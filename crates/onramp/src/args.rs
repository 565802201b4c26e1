// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Arguments that several verbs share, each declared once.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use onramp_results::{Lines, SummaryFile};
use onramp_runs::Existing;

use crate::scenario::{read, Read};

/// Most runs of a scenario, so most seeds.
const MAX_SEEDS: usize = 1000;

/// A scenario and replaced keys.
#[derive(clap::Args)]
pub struct ScenarioArgs {
    /// Scenario file (docs/scenario.md)
    file: PathBuf,
    /// Replace a key of the scenario, e.g. --set duration='20 ms'; repeat it for more keys
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
    /// Seed of all random numbers [default: the scenario's]
    #[arg(long, allow_negative_numbers = true, value_parser = seed)]
    seed: Option<u64>,
    /// Seeds, each with a run of every case: 1-5, or 1,4,9. The table has their means
    #[arg(long, allow_negative_numbers = true, value_parser = seeds, conflicts_with = "seed")]
    seeds: Option<Seeds>,
}

/// Seeds in the order in which they were given.
#[derive(Clone, Debug, PartialEq)]
pub struct Seeds(pub Vec<u64>);

/// What has a line in the table of a scenario's runs.
#[derive(clap::Args)]
pub struct LinesArgs {
    /// Print a line of the table for each seed, not their mean
    #[arg(long)]
    each_seed: bool,
}

impl LinesArgs {
    /// The table of `summary`, and what is to be noticed.
    pub fn table(&self, summary: &SummaryFile) -> String {
        let lines = match self.each_seed {
            true => Lines::Runs,
            false => Lines::Cases,
        };
        let mut text = onramp_results::table(summary, lines);
        for remark in onramp_results::remarks(summary) {
            text += &format!("note: {remark}\n");
        }
        text
    }
}

impl ScenarioArgs {
    /// Path of the scenario.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Sets one more key.
    pub fn set(&mut self, key: &str, value: &str) {
        self.set.push((key.to_owned(), value.to_owned()));
    }

    /// Reads the scenario and replaces its keys.
    pub fn read(&self) -> Result<Read> {
        let one = self.seed.map(|seed| seed.to_string());
        let several = self.seeds.as_ref().map(|Seeds(all)| format!("{all:?}"));
        let seed = one.or(several).map(|value| ("seed".to_owned(), value));
        let set: Vec<_> = self.set.iter().cloned().chain(seed).collect();
        read(&self.file, &set)
    }
}

/// The directory of results.
#[derive(clap::Args)]
pub struct OutArgs {
    /// Directory for the results [default: a new one in results/]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Replace all results in the directory. Without --force, an interrupted command resumes, and a
    /// directory with other results is an error
    #[arg(long)]
    force: bool,
}

impl OutArgs {
    /// The directory that was given, or `results/<scenario>-<seconds since 1970>`.
    pub fn directory(&self, scenario: &Path) -> PathBuf {
        let new = || {
            let name = scenario.file_stem().unwrap_or_default().to_string_lossy();
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.map_or(0, |since| since.as_secs());
            PathBuf::from(format!("results/{name}-{now}"))
        };
        self.out.clone().unwrap_or_else(new)
    }

    /// What to do with results that it has.
    pub fn existing(&self) -> Existing {
        match self.force {
            true => Existing::Replace,
            false => Existing::Keep,
        }
    }
}

/// Number of threads.
#[derive(clap::Args)]
pub struct ThreadArgs {
    /// Number of runs or virtual machines at a time. A simulated run uses several threads if there are
    /// fewer runs. Results do not depend on it [default: number of processors]
    #[arg(long, alias = "jobs", value_name = "NUMBER", allow_negative_numbers = true,
        value_parser = at_least_one)]
    pub threads: Option<usize>,
}

impl ThreadArgs {
    /// The given number, or the number of processors.
    pub fn number(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, Into::into);
        self.threads.unwrap_or_else(processors)
    }
}

pub fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        format!("{text} has no \"=\", expected KEY=VALUE such as duration='20 ms'")
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn seed(text: &str) -> Result<u64, String> {
    let bound = |_| format!("expected a whole number from 0 to {}", u64::MAX);
    text.parse().map_err(bound)
}

/// A range, or a list of numbers and ranges.
pub fn seeds(text: &str) -> Result<Seeds, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (seed(first.trim())?, seed(last.trim())?);
        if last < first {
            return Err(format!("{part} has no seed: its end is below its begin"));
        }
        if (last - first) >= MAX_SEEDS as u64 || all.len() >= MAX_SEEDS {
            return Err(format!("expected at most {MAX_SEEDS} seeds"));
        }
        all.extend(first..=last);
    }
    match (1..all.len()).find(|&at| all[..at].contains(&all[at])) {
        Some(at) => Err(format!("seed {} is twice in it", all[at])),
        None => Ok(Seeds(all)),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number, at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_bounds_are_refused_with_the_bound() {
        assert_eq!((at_least_one("2"), seed("0")), (Ok(2), Ok(0)));
        assert!(at_least_one("0").unwrap_err().contains("at least 1"));
        assert!(seed("-1")
            .unwrap_err()
            .contains("from 0 to 18446744073709551615"));
        assert!(key_value("duration").unwrap_err().contains("KEY=VALUE"));
    }

    #[test]
    fn seeds_are_ranges_and_lists() {
        assert_eq!(seeds("1-5"), Ok(Seeds(vec![1, 2, 3, 4, 5])));
        assert_eq!(seeds("9, 1,4-5"), Ok(Seeds(vec![9, 1, 4, 5])));
        for (text, part) in [
            ("5-1", "5-1 has no seed"),
            ("1-3,2", "seed 2 is twice in it"),
            ("0-18446744073709551615", "at most 1000 seeds"),
            ("one", "from 0 to 18446744073709551615"),
            ("", "from 0 to"),
            ("-1", "from 0 to"),
        ] {
            let error = seeds(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

/// Files for virtual machines.
#[derive(clap::Args)]
pub struct Machines {
    /// Kernel of the virtual machines [default: the one that `make setup` downloads]
    #[arg(long)]
    pub kernel: Option<PathBuf>,
    /// Directory of the files that `make setup` downloads
    #[arg(long, default_value = ".cache")]
    pub cache: PathBuf,
}
