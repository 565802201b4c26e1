// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp sweep`: a scenario at many points. Reads files, makes missing parts, prints what came out; the sweep crate knows
//! points, parts and the data set.
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;

use anyhow::{bail, Context, Error, Result};
use clap::ValueEnum;
use onramp_reproduce::SIMULATOR;
use onramp_results::write_whole;
use onramp_runs::{count, run_all, Existing, Handle, Interrupted, Job, Line, Status, Threads};
use onramp_sweep::{finish, missing_parts, part_file, Making, Outcome, Sweep};

use crate::args::{OutArgs, ThreadArgs};
use crate::output;

/// Most failures that are printed.
const MOST_SHOWN: usize = 10;

#[derive(clap::Args)]
pub struct Args {
    /// Sweep file (docs/guide/sweeps.md)
    file: PathBuf,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    out: OutArgs,
    /// What makes the points. A Ray cluster needs the Python package onramp with Ray here and on each node
    #[arg(long, value_enum, default_value = "threads")]
    engine: Engine,
    /// Address of the Ray cluster, e.g. auto or ray://10.0.0.1:10001 [default: a new one on this machine]
    #[arg(long)]
    address: Option<String>,
    /// Print the settings of each point, a line a point, and simulate nothing
    #[arg(long)]
    points: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// Threads of this machine
    Threads,
    /// A Ray cluster
    Ray,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let out = args.out.directory(&args.file);
    let is_url = out.to_string_lossy().contains("://");
    match (args.points, args.engine == Engine::Ray || is_url) {
        (false, true) => by_python(args, &out),
        _ => here(args, &out).map(|()| ExitCode::SUCCESS),
    }
}

/// Ray is Python's, and so are the file systems of URLs.
fn by_python(args: &Args, out: &Path) -> Result<ExitCode> {
    let engine = args.engine.to_possible_value().expect("none is skipped");
    let mut python = Command::new("python3");
    python.args(["-m", "onramp", "sweep"]).arg(&args.file);
    python
        .arg("--out")
        .arg(out)
        .args(["--engine", engine.get_name()]);
    python.args(
        args.address
            .iter()
            .flat_map(|address| ["--address", address]),
    );
    let threads = args.threads.threads.map(|number| number.to_string());
    python.args(threads.iter().flat_map(|number| ["--threads", number]));
    python.args((args.out.existing() == Existing::Replace).then_some("--force"));
    let has_package = Command::new("python3")
        .args(["-c", "import onramp"])
        .output();
    if !has_package.is_ok_and(|output| output.status.success()) {
        bail!(
            "--engine ray and URLs need the Python package onramp, which python3 does not find: build its wheel with \
             `make wheel` and install it, with ray or s3fs (docs/guide/sweeps.md)"
        );
    }
    let status = python.status().context("cannot start python3")?;
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}

fn here(args: &Args, out: &Path) -> Result<()> {
    let text = std::fs::read_to_string(&args.file)
        .with_context(|| format!("cannot read the sweep {}", args.file.display()))?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let read = |path: &str| std::fs::read(folder.join(path));
    let sweep = Sweep::read(&text, &args.file.display().to_string(), &read)?;
    if args.points {
        print_points(&sweep);
        return Ok(());
    }
    let cancel = onramp_runs::cancelled_by_signals();
    let directory = sweep.open(out, SIMULATOR, args.out.existing())?;
    let missing = missing_parts(&sweep, directory.path());
    let kept = sweep.parts() - missing.len();
    output::tell_kept(&directory, kept, &count(sweep.parts(), "part"));
    let made = make(
        &sweep,
        folder,
        directory.path(),
        missing,
        args.threads.number(),
        cancel,
    );
    // What was made before a failure is in the data set too.
    let outcome = finish(&sweep, directory.path());
    made.with_context(|| {
        format!(
            "{} has what was made; repeat the command to resume",
            out.display()
        )
    })?;
    let outcome = outcome?;
    print(&outcome, out);
    whole(&outcome)
}

fn print_points(sweep: &Sweep) {
    for number in 0..sweep.points() {
        let settings = sweep.point(number).into_iter();
        let settings: Vec<String> = settings
            .map(|(key, value)| format!("{key}='{value}'"))
            .collect();
        println!("{number} {}", settings.join(" "));
    }
}

/// Makes the missing parts, several at a time.
fn make(
    sweep: &Sweep,
    folder: &Path,
    directory: &Path,
    missing: Vec<usize>,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<()> {
    let read = |path: &str| std::fs::read(folder.join(path));
    let part = |index: usize| Job {
        index,
        weight: sweep.points_of(index).len() as f64,
        run: Box::new(move |handle: &Handle<'_>| {
            let making = Making {
                sweep,
                read: &read,
                threads: handle.threads,
            };
            let mut going = |done: f64| {
                handle.note(done, String::new);
                !handle.is_cancelled()
            };
            match making.part(index, &mut going) {
                Some(part) => Ok(write_whole(&part_file(directory, index), &part.bytes())?),
                None => Ok(()),
            }
        }),
    };
    let threads = Threads {
        in_all: threads,
        of_a_run: usize::MAX,
    };
    let mut line = Line::default();
    let jobs = missing.into_iter().map(part).collect();
    run_all::<Error>(jobs, threads, cancel, &mut |status: &Status| {
        line.show(|| progress(sweep, status));
    })
}

/// A line about all parts, also those that were there before.
fn progress(sweep: &Sweep, status: &Status) -> String {
    let done = sweep.parts() - status.runs + status.finished;
    format!(
        "{done} of {} done, {}",
        count(sweep.parts(), "part"),
        status.times()
    )
}

fn print(outcome: &Outcome, out: &Path) {
    let points = count(outcome.points, "point");
    println!(
        "{}: {} of {points}, {}",
        outcome.title,
        outcome.made,
        count(outcome.runs, "run")
    );
    for failure in outcome.failures.iter().take(MOST_SHOWN) {
        println!("point {} failed: {}", failure.point, failure.error);
    }
    if outcome.failed > MOST_SHOWN {
        println!(
            "and {} more failed; column error of the data set has all",
            outcome.failed - MOST_SHOWN
        );
    }
    eprintln!("the data set is {}", out.join("data").display());
}

/// Missing points and failed ones are errors.
fn whole(outcome: &Outcome) -> Result<()> {
    if outcome.partial {
        return Err(Error::new(Interrupted {
            whole: outcome.made,
            all: outcome.points,
            things: "points",
        }));
    }
    if outcome.failed > 0 {
        bail!(
            "{} of {} failed; the others are whole",
            outcome.failed,
            count(outcome.runs, "run")
        );
    }
    Ok(())
}
