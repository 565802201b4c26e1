// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp rack`: runs a scenario on real TCP stacks. Reads the file, shows progress and prints the table;
//! the rack crate runs it.
use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use anyhow::{Context, Result};
use clap::Subcommand;
use onramp_rack::{native::Setup, Backend, Options};
use onramp_results::SummaryFile;
use onramp_runs::{cancelled_by_signals, Line};
use onramp_scenario::Scenario;
use serde_json::json;

use crate::args::{LinesArgs, Machines, OutArgs, ScenarioArgs, ThreadArgs};
use crate::output::{self, World};

#[derive(Subcommand)]
pub enum Command {
    /// Run a scenario: on this kernel if it can, or else in virtual machines in virtual time
    #[command(
        after_help = "Example: onramp rack run scenarios/incast.toml --set duration='120 ms'"
    )]
    Run(RunArgs),
    /// One run on this kernel: `run` starts this in its virtual machines
    #[command(hide = true)]
    Guest(GuestArgs),
}

#[derive(clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    out: OutArgs,
    /// Run on this kernel, in real time
    #[arg(long, conflicts_with = "vm")]
    native: bool,
    /// Run in virtual machines, even if this kernel could run it
    #[arg(long)]
    vm: bool,
    #[command(flatten)]
    machines: Machines,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Also measure the CPU time per frame; takes two to three times as long
    #[arg(long)]
    measure_cpu: bool,
    #[command(flatten)]
    lines: LinesArgs,
    /// Print summary.json instead of the table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct GuestArgs {
    file: PathBuf,
    #[arg(long)]
    out: PathBuf,
    #[arg(long)]
    index: usize,
    #[arg(long)]
    measure_cpu: bool,
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Run(args) => run_scenario(args),
        Command::Guest(args) => {
            let exe = std::env::current_exe()?;
            let setup = Setup {
                directory: &args.out,
                agent: &exe,
                measure_cpu: args.measure_cpu,
                cancel: cancelled_by_signals(),
            };
            Ok(onramp_rack::guest(&args.file, args.index, setup)?)
        }
    }
}

fn run_scenario(args: RunArgs) -> Result<()> {
    let file = args.scenario.file();
    let (scenario, files) = args.scenario.read()?;
    let out = args.out.directory(file);
    let options = json!({ "measure_cpu": args.measure_cpu, "native": args.native, "vm": args.vm });
    let plan = output::plan(World::Rack, &scenario, &files, options);
    let directory = output::open(&out, &plan, &scenario, args.out.existing())?;
    let options = Options {
        place: match (args.native, args.vm) {
            (true, _) => Backend::Native,
            (_, true) => Backend::Vm,
            _ => Backend::Auto,
        },
        kernel: args.machines.kernel,
        cache: args.machines.cache,
        jobs: args.threads.number(),
        out: directory.path().to_owned(),
        exe: std::env::current_exe()?,
        measure_cpu: args.measure_cpu,
        cancel: cancelled_by_signals(),
    };
    let summary = run_on_rack(&scenario, &options, &|_| String::new());
    let summary = summary.with_context(|| format!("running {}", file.display()))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        print!("{}", args.lines.table(&summary));
    }
    eprintln!("results are in {}", out.display());
    output::whole(&summary)
}

/// A scenario that runs in virtual machines.
pub struct InMachines<'a> {
    pub scenario: &'a Scenario,
    pub out: &'a Path,
    pub machines: &'a Machines,
    /// Machines at a time.
    pub jobs: usize,
    pub measure_cpu: bool,
    pub cancel: &'a AtomicBool,
    pub label: &'a (dyn Fn(f64) -> String + Sync),
}

/// Makes the missing runs of a figure, in virtual machines even if this kernel could run them, because
/// virtual time does not depend on the load of this machine.
pub fn run_in_machines(runs: &InMachines<'_>) -> Result<SummaryFile> {
    let options = Options {
        place: Backend::Vm,
        kernel: runs.machines.kernel.clone(),
        cache: runs.machines.cache.clone(),
        jobs: runs.jobs,
        out: runs.out.to_owned(),
        exe: std::env::current_exe()?,
        measure_cpu: runs.measure_cpu,
        cancel: runs.cancel,
    };
    run_on_rack(runs.scenario, &options, runs.label)
}

/// Makes the missing runs. Lines of progress begin with `label` of the fraction done.
fn run_on_rack(
    scenario: &Scenario,
    options: &Options<'_>,
    label: &(dyn Fn(f64) -> String + Sync),
) -> Result<SummaryFile> {
    let mut line = Line::default();
    let summary = onramp_rack::run(scenario, options, &mut |status| {
        line.show(|| label(status.part_done()) + &status.text(""));
    });
    drop(line);
    summary.map_err(|error| output::keeping(error.into(), scenario, &options.out))
}
