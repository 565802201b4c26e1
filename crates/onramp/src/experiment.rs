// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp experiment`: begins and runs experiments of one's own. The reproduce crate knows their rows and plots.
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use clap::Subcommand;
use onramp_batch::{available_memory, check_memory};
use onramp_reproduce::Planned;
use onramp_runs::{cancelled_by_signals, count, Existing};

use crate::args::{seeds, Machines, Seeds, ThreadArgs};
use crate::output::write_new;
use crate::report;
use crate::reproduce::{has_results, Session};
use crate::scenario::Template;

const FILE: &str = "experiment.toml";

#[derive(Subcommand)]
pub enum Command {
    /// Make a directory with a commented experiment and its scenario to start from, which runs in seconds
    #[command(after_help = "Example: onramp experiment new mine")]
    New {
        /// Directory to make; files that exist are not overwritten
        directory: PathBuf,
    },
    /// Run an experiment: simulates what is missing, prints its numbers, and keeps them for onramp report
    #[command(
        after_help = "Example: onramp experiment run mine --seeds 1-20\nRepeat an interrupted command to resume it."
    )]
    Run(RunArgs),
}

#[derive(clap::Args)]
pub struct RunArgs {
    /// Directory with experiment.toml, or such a file (docs/guide/experiments.md)
    experiment: PathBuf,
    /// Seeds, each with a run of every case: 1-5, or 1,4,9 [default: those of the experiment]
    #[arg(long, allow_negative_numbers = true, value_parser = seeds)]
    seeds: Option<Seeds>,
    /// Run on real kernels in virtual machines too: minutes for each run
    #[arg(long)]
    rack: bool,
    /// Directory for the results [default: results/experiments/NAME]
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Replace results of another scenario or other seeds, and repeat runs. Without --force, an interrupted command
    /// resumes, and a directory with other results is an error
    #[arg(long)]
    force: bool,
    /// Print figure.json instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machines: Machines,
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::New { directory } => new(directory),
        Command::Run(args) => run_experiment(args),
    }
}

fn new(directory: &Path) -> Result<()> {
    let shown = directory.display().to_string();
    let scenario = directory.join("scenario.toml");
    let name = name_of(directory)?;
    let text = include_str!("../templates/experiment.toml");
    let text = text.replace("DIR", &shown).replace("NAME", &name);
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {shown}"))?;
    let other = "name another directory: onramp experiment new NAME";
    write_new(&directory.join(FILE), &text, other)?;
    let of_scenario = Template::Incast.text(&scenario.display().to_string());
    write_new(&scenario, &of_scenario, other)?;
    let planned = read(directory, None, false)?;
    println!("{shown}: {}: {}", runs(&planned), planned.spec.title);
    println!("run it: onramp experiment run {shown}");
    Ok(())
}

fn run_experiment(args: &RunArgs) -> Result<()> {
    let seeds = args.seeds.as_ref().map(|Seeds(all)| all.clone());
    let planned = read(&args.experiment, seeds, args.rack)?;
    let threads = args.threads.number();
    if let Some(scenario) = &planned.scenario {
        check_memory(scenario, threads, available_memory())?;
    }
    let default = || Path::new("results/experiments").join(&planned.id);
    let out = args.out.clone().unwrap_or_else(default);
    let session = Session {
        threads,
        existing: match args.force {
            true => Existing::Replace,
            false => Existing::Keep,
        },
        json: args.json,
        machines: &args.machines,
        cancel: cancelled_by_signals(),
    };
    let made = session.figure(&planned, &out, &|_| String::new());
    if has_results(&made) {
        let shown = out.display();
        eprintln!("results are in {shown}; numbers and plots on a page: onramp report {shown}");
    }
    made
}

/// The experiment in a directory, or in the file itself.
fn read(given: &Path, seeds: Option<Vec<u64>>, on_rack: bool) -> Result<Planned> {
    let file = match given.is_dir() {
        true => given.join(FILE),
        false => given.to_owned(),
    };
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(&file).with_context(|| {
        format!("cannot read the experiment {shown}; onramp experiment new DIR begins one")
    })?;
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let name = match file.file_name().is_some_and(|name| name == FILE) {
        true => name_of(folder)?,
        false => file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    };
    let read = |path: &str| std::fs::read(folder.join(path));
    Ok(Planned::experiment(
        &text,
        (&name, &shown),
        &read,
        seeds,
        on_rack,
    )?)
}

fn name_of(directory: &Path) -> Result<String> {
    match report::name(directory) {
        name if name.is_empty() => bail!("{} has no name; name a directory", directory.display()),
        name => Ok(name),
    }
}

fn runs(planned: &Planned) -> String {
    let runs = planned
        .scenario
        .as_ref()
        .map_or(0, |scenario| scenario.runs().len());
    count(runs, "run")
}
