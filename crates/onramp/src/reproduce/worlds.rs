//! A figure's runs in its worlds: what is missing is run, what is there and whole stays.
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use onramp_rack::{Options, Place};
use onramp_reproduce::{Digests, Planned, ScaleName, World, RACK, SIMULATOR};
use onramp_results::{missing_runs, read_json, write_json, SummaryFile};
use onramp_scenario::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use super::VERSION;
use crate::rack::{Machines, Teller};
use crate::sim::{simulate_all, watch::Watch, Job};

/// What the runs of a directory are of: those of another plan are not kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Plan {
    version: String,
    series: Vec<String>,
    scenario: Value,
    #[serde(default)]
    files: Digests,
    #[serde(default)]
    measure_cpu: bool,
}

/// `plan.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    /// Digest of the sources of what ran them. Those of others are kept, and it is said.
    #[serde(default)]
    model: String,
    #[serde(flatten)]
    plan: Plan,
}

impl Stored {
    fn by(model: &str, plan: Plan) -> Stored {
        let model = model.to_owned();
        Stored { model, plan }
    }
}

/// How a figure is run.
pub struct Runner<'a> {
    pub figure: &'a Planned,
    /// Takes all results of the figure.
    pub out: &'a Path,
    /// Simulated runs, or virtual machines, at a time.
    pub threads: usize,
    /// Runs again what is there.
    pub again: bool,
    pub machines: &'a Machines,
    pub cancel: &'a AtomicBool,
}

/// What progress begins with, by the part of a world's runs that is done.
pub type Label<'a> = &'a (dyn Fn(f64) -> String + Sync);

impl Runner<'_> {
    /// The worlds of the figure's scale with the runs that are whole, the simulator first; and whether
    /// all runs are.
    pub fn worlds(&self, label: Label<'_>) -> Result<(Vec<World>, bool)> {
        let Some(scenario) = &self.figure.scenario else {
            return Ok((Vec::new(), true));
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
        let is_whole = summaries.iter().all(|(summary, _)| !summary.partial);
        let worlds = summaries
            .into_iter()
            .map(|(summary, out)| world(summary, out));
        Ok((worlds.collect(), is_whole))
    }

    fn simulate(&self, scenario: &Scenario, out: &Path, label: Label<'_>) -> Result<SummaryFile> {
        let series = &self.figure.spec.series;
        let watch = Watch::series(series.clone());
        watch.check(scenario)?;
        let plan = Plan {
            series: series.clone(),
            ..self.plan(scenario)
        };
        self.keep_or_clear(&Stored::by(SIMULATOR, plan), scenario, out)?;
        simulate_all(&Job {
            scenario,
            watch: &watch,
            out,
            threads: self.threads,
            cancel: self.cancel,
            keep: true,
            label,
        })
    }

    /// In virtual machines, whatever this kernel can: their time does not depend on how busy this one is.
    fn on_rack(&self, scenario: &Scenario, out: &Path, label: Label<'_>) -> Result<SummaryFile> {
        let measure_cpu = self.figure.measures_cpu();
        let plan = Plan {
            measure_cpu,
            ..self.plan(scenario)
        };
        self.keep_or_clear(&Stored::by(RACK, plan), scenario, out)?;
        let options = Options {
            place: Place::Vm,
            kernel: self.machines.kernel.clone(),
            cache: self.machines.cache.clone(),
            jobs: self.threads,
            out: out.to_owned(),
            exe: std::env::current_exe()?,
            measure_cpu,
            keep: true,
            cancel: self.cancel,
        };
        let mut teller = Teller::new(label);
        let summary = onramp_rack::run(scenario, &options, &mut |status| teller.tell(status));
        teller.end();
        Ok(summary?)
    }

    fn plan(&self, scenario: &Scenario) -> Plan {
        Plan {
            version: VERSION.to_owned(),
            series: Vec::new(),
            scenario: json!(scenario),
            files: self.figure.files.clone(),
            measure_cpu: false,
        }
    }

    /// Says what is there already, and removes what is of no use.
    fn keep_or_clear(&self, asked: &Stored, scenario: &Scenario, out: &Path) -> Result<()> {
        let place = out.display();
        std::fs::create_dir_all(out).with_context(|| format!("cannot make {place}"))?;
        let path = out.join("plan.json");
        let found = read_json::<Stored>(&path).ok();
        let found = found.filter(|found| found.plan == asked.plan && !self.again);
        let runs = scenario.runs().len();
        let there = runs - missing_runs(scenario, out).len();
        if there > 0
            && found
                .as_ref()
                .is_some_and(|found| found.model != asked.model)
        {
            eprintln!("{place}: runs are of other sources of onramp; --again runs them again");
        }
        match (found.is_some(), there) {
            (true, there) if there == runs => eprintln!("{place}: all {runs} runs are there"),
            (true, 0) => write_json(&path, asked)?,
            (true, there) => eprintln!("{place}: goes on, {there} of {runs} runs are there"),
            (false, _) => {
                if path.exists() && !self.again {
                    eprintln!("{place}: is of another version or scenario and is run again");
                }
                clear(out).with_context(|| format!("cannot clear {place}"))?;
                write_json(&path, asked)?;
            }
        }
        Ok(())
    }
}

/// Removes what an earlier version, or another scenario, left.
fn clear(out: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(out)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_ours = name.ends_with(".parquet")
            || name.ends_with(".part")
            || ["plan.json", "summary.json", "figure.json"].contains(&name.as_str())
            || (name.starts_with("run-") && name.ends_with(".json"));
        if is_ours {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn world(summary: SummaryFile, directory: PathBuf) -> World {
    World {
        name: summary.world,
        directory,
        runs: summary
            .runs
            .into_iter()
            .filter(|run| !run.partial)
            .collect(),
    }
}
