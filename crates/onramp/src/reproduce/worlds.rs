//! A figure's runs in its worlds: what is missing is run, what is there and whole stays.
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use onramp_rack::{Options, Place};
use onramp_reproduce::{Planned, ScaleName};
use onramp_results::SummaryFile;
use onramp_runs::{Existing, Interrupted, OutputDirectory};
use onramp_scenario::Scenario;
use serde_json::{json, Value};

use crate::output::{self, World};
use crate::rack::{run_on_rack, Machines};
use crate::sim::{watch::Watch, Simulations};

/// How a figure is run.
pub struct Runner<'a> {
    pub figure: &'a Planned,
    /// Takes all results of the figure.
    pub out: &'a Path,
    /// Simulated runs, or virtual machines, at a time.
    pub threads: usize,
    /// What becomes of results that are there.
    pub existing: Existing,
    pub machines: &'a Machines,
    pub cancel: &'a AtomicBool,
}

/// What progress begins with, by the part of a world's runs that is done.
pub type Label<'a> = &'a (dyn Fn(f64) -> String + Sync);

impl Runner<'_> {
    /// The worlds of the figure's scale with the runs that are whole, the simulator first; and whether
    /// somebody ended it before all runs were.
    pub fn worlds(
        &self,
        label: Label<'_>,
    ) -> Result<(Vec<onramp_reproduce::World>, Option<Interrupted>)> {
        let Some(scenario) = &self.figure.scenario else {
            return Ok((Vec::new(), None));
        };
        let id = &self.figure.id;
        let mut summaries = Vec::new();
        if self.figure.scale == ScaleName::Rack {
            let [sim, rack] = ["sim", "rack"].map(|world| self.out.join(world));
            // Next to what the rack takes, the simulator takes no time.
            let summary = self.simulate(scenario, &sim, &|_| label(0.0));
            summaries.push((summary.with_context(|| format!("simulating {id}"))?, sim));
            let summary = self.on_rack(scenario, &rack, label);
            summaries.push((summary.with_context(|| format!("running {id}"))?, rack));
        } else {
            let out = self.out.to_owned();
            let summary = self.simulate(scenario, &out, label);
            summaries.push((summary.with_context(|| format!("simulating {id}"))?, out));
        }
        let sum = |of: fn(&SummaryFile) -> usize| summaries.iter().map(|(s, _)| of(s)).sum();
        let interrupted = Interrupted {
            whole: sum(SummaryFile::whole_runs),
            runs: sum(|summary| summary.planned_runs),
        };
        let worlds = summaries
            .into_iter()
            .map(|(summary, out)| world(summary, out));
        let is_partial = interrupted.whole < interrupted.runs;
        Ok((worlds.collect(), is_partial.then_some(interrupted)))
    }

    fn simulate(&self, scenario: &Scenario, out: &Path, label: Label<'_>) -> Result<SummaryFile> {
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
        simulations.run()
    }

    /// In virtual machines, whatever this kernel can: their time does not depend on how busy this one is.
    fn on_rack(&self, scenario: &Scenario, out: &Path, label: Label<'_>) -> Result<SummaryFile> {
        let measure_cpu = self.figure.measures_cpu();
        let options = json!({ "measure_cpu": measure_cpu });
        let directory = self.open(World::Rack, scenario, out, options)?;
        let options = Options {
            place: Place::Vm,
            kernel: self.machines.kernel.clone(),
            cache: self.machines.cache.clone(),
            jobs: self.threads,
            out: directory.path().to_owned(),
            exe: std::env::current_exe()?,
            measure_cpu,
            cancel: self.cancel,
        };
        run_on_rack(scenario, &options, label)
    }

    fn open(
        &self,
        world: World,
        scenario: &Scenario,
        out: &Path,
        options: Value,
    ) -> Result<OutputDirectory> {
        let plan = output::plan(world, scenario, &self.figure.files, options);
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
