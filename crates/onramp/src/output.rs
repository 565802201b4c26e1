// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The output directory of a command with runs: which results it keeps, and the messages about it.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{bail, Context, Error, Result};
use onramp_reproduce::{Digests, RACK, SIMULATOR};
use onramp_results::{missing_runs, SummaryFile};
use onramp_runs::{count, Existing, Interrupted, OutputDirectory, Plan};
use onramp_scenario::{expected_flows, Scenario};
use serde_json::{json, Value};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bytes of results for each run and for each flow, in the run's files and in the merged files.
const RUN_BYTES: f64 = 1e6;
const FLOW_BYTES: f64 = 200.0;

/// What makes the runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum World {
    Sim,
    #[cfg_attr(not(feature = "rack"), allow(dead_code))]
    Rack,
}

/// The plan of `scenario`'s runs. `files` are digests of the files that it names; `options` are the
/// options that change the results.
pub fn plan(world: World, scenario: &Scenario, files: &Digests, options: Value) -> Plan {
    let (world, model) = match world {
        World::Sim => ("sim", SIMULATOR),
        World::Rack => ("rack", RACK),
    };
    Plan {
        world: world.to_owned(),
        version: VERSION.to_owned(),
        model: model.to_owned(),
        asked: json!({ "scenario": scenario, "files": files, "options": options }),
    }
}

/// Opens `path` for the runs of `scenario`, and prints how many of them it has.
pub fn open(
    path: &Path,
    plan: &Plan,
    scenario: &Scenario,
    existing: Existing,
) -> Result<OutputDirectory> {
    let flows: f64 = scenario.runs().iter().map(expected_flows).sum();
    let runs = scenario.runs().len();
    let room = runs as f64 * RUN_BYTES + flows * FLOW_BYTES;
    let directory = OutputDirectory::open(path, plan, existing, room as u64)?;
    let kept = runs - missing_runs(scenario, path).len();
    tell_kept(&directory, kept, &count(runs, "run"));
    Ok(directory)
}

/// Prints how many of `all` the directory has.
pub fn tell_kept(directory: &OutputDirectory, kept: usize, all: &str) {
    let shown = directory.path().display();
    if directory.has_replaced() {
        eprintln!("{shown}: replaced the previous results");
    }
    if kept > 0 {
        eprintln!("{shown}: kept {kept} of {all}");
    }
    if kept > 0 && directory.is_of_other_sources() {
        eprintln!("{shown}: another build of onramp made these results; --force replaces them");
    }
}

/// A partial summary is an error, with its own exit code.
pub fn whole(summary: &SummaryFile) -> Result<()> {
    match summary.partial {
        true => Err(Error::new(Interrupted {
            whole: summary.whole_runs(),
            all: summary.planned_runs,
            things: "runs",
        })),
        false => Ok(()),
    }
}

/// `error`, with the number of complete runs in `path`.
pub fn keeping(error: Error, scenario: &Scenario, path: &Path) -> Error {
    let runs = scenario.runs().len();
    match runs - missing_runs(scenario, path).len() {
        0 => error,
        whole => error.context(format!(
            "{} has {whole} of {}; fix the cause and repeat the command to resume",
            path.display(),
            count(runs, "run")
        )),
    }
}

/// Writes a file that a user goes on with. One that exists is left as it is, and `other` says what to name instead.
pub fn write_new(path: &Path, text: &str, other: &str) -> Result<()> {
    let shown = path.display();
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = match file {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{shown} exists, and is not overwritten; {other}")
        }
        Err(error) => {
            let fix =
                format!("cannot write {shown}; name a file in a directory that you can write");
            return Err(Error::new(error).context(fix));
        }
        Ok(file) => file,
    };
    file.write_all(text.as_bytes())
        .with_context(|| format!("cannot write {shown}"))
}

#[cfg(test)]
mod tests {
    use super::write_new;

    #[test]
    fn a_file_that_exists_is_left_as_it_is() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("mine.toml");
        write_new(&path, "first", "").expect("it is new");
        let error = write_new(&path, "second", "name another").expect_err("it exists");
        let error = error.to_string();
        assert!(
            error.ends_with("mine.toml exists, and is not overwritten; name another"),
            "{error}"
        );
        let kept = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(kept, "first");
    }

    #[test]
    fn the_folder_of_runs_is_the_one_that_a_directory_knows() {
        assert_eq!(onramp_runs::RUNS, onramp_results::RUNS);
    }
}
