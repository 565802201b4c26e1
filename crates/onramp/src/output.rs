// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The output directory of a command with runs: which results it keeps, and the messages about it.

use std::path::Path;

use anyhow::{Error, Result};
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_folder_of_runs_is_the_one_that_a_directory_knows() {
        assert_eq!(onramp_runs::RUNS, onramp_results::RUNS);
    }
}
