// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Runs a figure in its worlds: makes missing runs and keeps complete ones.
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use onramp_reproduce::{Planned, ScaleName};
use onramp_results::{
    figure::{MadeBy, ANOTHER_BUILD},
    SummaryFile,
};
use onramp_runs::{Existing, Interrupted, OutputDirectory};
use onramp_scenario::Scenario;
use serde_json::{json, Value};

use crate::args::Machines;
use crate::output::{self, World};
#[cfg(feature = "rack")]
use crate::rack::{run_in_machines, InMachines};
use crate::sim::{watch::Watch, Simulations};

/// Options of a figure's runs.
pub struct Runner<'a> {
    pub figure: &'a Planned,
    /// Directory for all results of the figure.
    pub out: &'a Path,
    /// Simulated runs, or virtual machines, at a time.
    pub threads: usize,
    /// What to do with existing results.
    pub existing: Existing,
    #[cfg_attr(not(feature = "rack"), allow(dead_code))]
    pub machines: &'a Machines,
    pub cancel: &'a AtomicBool,
}

/// First words of a line of progress, by the fraction of a world's runs that is done.
pub type Label<'a> = &'a (dyn Fn(f64) -> String + Sync);

/// The results of a figure's runs.
#[derive(Default)]
pub struct Worlds {
    /// The complete runs of each world, the simulator first.
    pub worlds: Vec<onramp_reproduce::World>,
    /// Whether it was interrupted before all runs were complete.
    pub interrupted: Option<Interrupted>,
    pub made_by: MadeBy,
}

/// The runs of one world.
struct Made {
    summary: SummaryFile,
    /// Whether other sources made some of them.
    by_another_model: bool,
}

impl Made {
    fn of(summary: SummaryFile, directory: &OutputDirectory) -> Made {
        Made {
            summary,
            by_another_model: directory.is_of_other_sources(),
        }
    }
}

impl Runner<'_> {
    /// Makes the missing runs in the worlds of the figure's scale.
    pub fn worlds(&self, label: Label<'_>) -> Result<Worlds> {
        let Some(scenario) = &self.figure.scenario else {
            return Ok(Worlds::default());
        };
        let id = &self.figure.id;
        let mut summaries = Vec::new();
        if self.figure.on_rack {
            let [sim, rack] = ["sim", "rack"].map(|world| self.out.join(world));
            // The simulator's time is negligible beside the rack's.
            let made = self.simulate(scenario, &sim, &|_| label(0.0));
            summaries.push((made.with_context(|| format!("simulating {id}"))?, sim));
            let made = self.on_rack(scenario, &rack, label);
            summaries.push((made.with_context(|| format!("running {id}"))?, rack));
        } else {
            // An experiment may be run with and without the rack, in one directory.
            let out = match self.figure.scale {
                ScaleName::Own => self.out.join("sim"),
                _ => self.out.to_owned(),
            };
            let made = self.simulate(scenario, &out, label);
            summaries.push((made.with_context(|| format!("simulating {id}"))?, out));
        }
        let sum =
            |of: fn(&SummaryFile) -> usize| summaries.iter().map(|(m, _)| of(&m.summary)).sum();
        let interrupted = Interrupted {
            whole: sum(SummaryFile::whole_runs),
            all: sum(|summary| summary.planned_runs),
            things: "runs",
        };
        let now = self.figure.made_by();
        let by = |name: &str, digest: Option<String>| {
            let made = &summaries.iter().find(|(m, _)| m.summary.world == name)?.0;
            match made.by_another_model {
                true => Some(ANOTHER_BUILD.to_owned()),
                false => digest,
            }
        };
        let made_by = MadeBy {
            model: by("sim", now.model),
            data_path: by("rack", now.data_path),
        };
        let is_partial = interrupted.whole < interrupted.all;
        Ok(Worlds {
            made_by,
            interrupted: is_partial.then_some(interrupted),
            worlds: summaries
                .into_iter()
                .map(|(made, out)| world(made.summary, out))
                .collect(),
        })
    }

    fn simulate(&self, scenario: &Scenario, out: &Path, label: Label<'_>) -> Result<Made> {
        let watch = Watch::series(self.figure.spec.series.clone());
        watch.check(scenario)?;
        let directory = self.open(World::Sim, scenario, out, json!(watch))?;
        let simulations = Simulations {
            scenario,
            watch: &watch,
            out: directory.path(),
            threads: self.threads,
            cancel: self.cancel,
            label,
        };
        Ok(Made::of(simulations.run()?, &directory))
    }

    #[cfg(feature = "rack")]
    /// In virtual machines always, because virtual time does not depend on the load of this machine.
    fn on_rack(&self, scenario: &Scenario, out: &Path, label: Label<'_>) -> Result<Made> {
        let measure_cpu = self.figure.measures_cpu();
        let options = json!({ "measure_cpu": measure_cpu });
        let directory = self.open(World::Rack, scenario, out, options)?;
        let summary = run_in_machines(&InMachines {
            scenario,
            out: directory.path(),
            machines: self.machines,
            jobs: self.threads,
            measure_cpu,
            cancel: self.cancel,
            label,
        })?;
        Ok(Made::of(summary, &directory))
    }

    #[cfg(not(feature = "rack"))]
    fn on_rack(&self, _: &Scenario, _: &Path, _: Label<'_>) -> Result<Made> {
        crate::missing::refuse("rack")
    }

    fn open(
        &self,
        world: World,
        scenario: &Scenario,
        out: &Path,
        options: Value,
    ) -> Result<OutputDirectory> {
        let mut plan = output::plan(world, scenario, &self.figure.files, options);
        // Runs are kept if the simulator's results in this figure are unchanged, even if its source changed.
        let model = self.figure.made_by().model;
        if let (World::Sim, Some(model)) = (world, model) {
            plan.model = model;
        }
        output::open(out, &plan, scenario, self.existing)
    }
}

fn world(summary: SummaryFile, directory: PathBuf) -> onramp_reproduce::World {
    onramp_reproduce::World {
        name: summary.world,
        directory,
        runs: summary
            .runs
            .into_iter()
            .filter(|run| !run.partial)
            .collect(),
    }
}
