// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Arguments that several verbs share, each declared once.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use onramp_runs::Existing;

use crate::scenario::{read, Read};

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
        let seed = self.seed.map(|seed| ("seed".to_owned(), seed.to_string()));
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
