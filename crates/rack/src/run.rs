// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A whole scenario: each of its runs on this kernel, one after the other, or each in a virtual
//! machine of its own, several at a time. Keeps what has finished when it is ended early.

mod phases;

use crate::error::{Error, Missing, Result};
use crate::native::{self, Progress, Setup};
use crate::vm::{Content, GuestFile, Job, Kernel, Vm, VmError};
use onramp_results::{merge, missing_runs, part, read_json, write_json, RunResult, SummaryFile};
use onramp_runs::{self as schedule, Handle, Status, Threads};
use onramp_scenario::Scenario;
use phases::Phases;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A machine that tells no progress for this much of its own time is given up; a daemon may take 120 s.
const VM_PATIENCE: Duration = Duration::from_secs(600);
/// Start of the lines in which a guest tells how far it is.
const PROGRESS: &str = "progress ";

/// Where runs take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// Here if the kernel can, else in virtual machines.
    #[default]
    Auto,
    /// On this kernel, in real time.
    Native,
    /// In virtual machines, in virtual time.
    Vm,
}

/// What a scenario needs to be run.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Where.
    pub place: Backend,
    /// Kernel of the virtual machines; none: the one that set-up fetched into `cache`.
    pub kernel: Option<PathBuf>,
    /// Directory that set-up fills.
    pub cache: PathBuf,
    /// Virtual machines at a time.
    pub jobs: usize,
    /// Takes the results.
    pub out: PathBuf,
    /// The `onramp` binary. In a machine, `onramp rack guest` must call [`guest`].
    pub exe: PathBuf,
    /// See [`Setup::measure_cpu`].
    pub measure_cpu: bool,
    /// Ends everything when it becomes true.
    pub cancel: &'a AtomicBool,
}

/// Makes the runs of `scenario` that are missing in `options.out` and merges all results. `show` is
/// told how far they are. When `options.cancel` ends it, the summary is partial.
///
/// # Errors
/// The first run that failed; the others' results are merged on disk all the same.
pub fn run(
    scenario: &Scenario,
    options: &Options<'_>,
    show: &mut (dyn FnMut(&Status) + Send),
) -> Result<SummaryFile> {
    let missing = missing_runs(scenario, &options.out);
    if missing.is_empty() {
        return Ok(merge(scenario, &options.out, "rack")?);
    }
    let machine = machine(options)?;
    let threads = Threads {
        in_all: machine.as_ref().map_or(1, |_| options.jobs.max(1)),
        of_a_run: 1,
    };
    let job = |index: usize| {
        let phases = match machine {
            Some(_) => Phases::in_machine(&scenario.runs()[index]),
            None => Phases::native(&scenario.runs()[index]),
        };
        let machine = machine.as_ref();
        schedule::Job {
            index,
            weight: phases.all_s(),
            run: Box::new(move |handle: &Handle<'_>| {
                let mut progress = |progress: Progress| {
                    let (part, doing) = phases.part(progress);
                    handle.note(part, || doing.to_owned());
                };
                make(scenario, index, options, machine, &mut progress)
            }),
        }
    };
    let jobs = missing.into_iter().map(job).collect();
    let outcome = schedule::run_all(jobs, threads, options.cancel, show);
    let merged = merge(scenario, &options.out, "rack");
    match outcome {
        Err(Error::Cancelled | Error::Vm(VmError::Cancelled)) | Ok(()) => Ok(merged?),
        Err(error) => Err(error),
    }
}

/// The guest's part: the one run of the scenario `file`, as number `index` of the real one, with
/// results in `setup.directory`. Prints how far it is.
///
/// # Errors
/// As [`native::run_one`]; a file that is not a scenario with one run.
pub fn guest(file: &Path, index: usize, setup: Setup<'_>) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|source| at(file, source))?;
    let format = |reason: String| Error::Format {
        path: file.to_owned(),
        reason,
    };
    let scenario =
        Scenario::parse(&text, &file.display().to_string()).map_err(|e| format(e.to_string()))?;
    let [run] = scenario.runs() else {
        return Err(format(format!("{} runs, not one", scenario.runs().len())));
    };
    native::run_one(run, index, setup, &mut |progress| {
        println!("{PROGRESS}{progress}");
    })
}

/// The virtual machine to use; none: this kernel.
fn machine(options: &Options<'_>) -> Result<Option<Vm>> {
    let capable = || native::capabilities();
    match (options.place, capable()) {
        (Backend::Native, Err(missing)) => return Err(Error::Incapable(missing)),
        (Backend::Native | Backend::Auto, Ok(())) => return Ok(None),
        (Backend::Auto, Err(missing)) => note(&missing),
        (Backend::Vm, _) => {}
    }
    let kernel = match &options.kernel {
        Some(path) => Kernel::at(path)?,
        None => Kernel::find(&options.cache)?,
    };
    Ok(Some(Vm {
        kernel,
        cache: options.cache.clone(),
        memory_mib: 0,
        processors: 1,
        seed: 0,
        plugin: None,
        cards: vec![],
        ptp_clock: None,
        modules: &[],
    }))
}

fn note(missing: &[Missing]) {
    for Missing { what, because } in missing {
        tracing::debug!(what, because, "this kernel cannot be a rack");
    }
}

/// Makes run `index`, in `machine` or on this kernel.
fn make(
    scenario: &Scenario,
    index: usize,
    options: &Options<'_>,
    machine: Option<&Vm>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let started = Instant::now();
    match machine {
        Some(machine) => run_in_machine(scenario, index, options, machine, progress)?,
        None => run_here(scenario, index, options, progress)?,
    }
    add_wall_time(&options.out, index, started.elapsed())
}

fn run_here(
    scenario: &Scenario,
    index: usize,
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let setup = Setup {
        directory: &options.out,
        agent: &options.exe,
        measure_cpu: options.measure_cpu,
        cancel: options.cancel,
    };
    native::run_one(&scenario.runs()[index], index, setup, progress)
}

fn run_in_machine(
    scenario: &Scenario,
    index: usize,
    options: &Options<'_>,
    machine: &Vm,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let run = &scenario.runs()[index];
    // Maps and sockets of each host on top of the system.
    let memory_mib = 768 + 40 * run.network.topology.hosts();
    let machine = Vm {
        memory_mib,
        seed: run.seed,
        ..machine.clone()
    };
    let mut command: Vec<String> = [
        "/job/onramp",
        "rack",
        "guest",
        "/job/run.toml",
        "--out",
        "/out",
        "--index",
    ]
    .map(String::from)
    .into();
    command.push(index.to_string());
    if options.measure_cpu {
        command.push("--measure-cpu".into());
    }
    let file = |path: &str, content| GuestFile {
        path: path.into(),
        content,
    };
    let job = Job {
        command,
        files: vec![
            file("/job/onramp", Content::Host(options.exe.clone())),
            file("/job/run.toml", Content::Bytes(run.to_toml().into_bytes())),
        ],
        out: options.out.clone(),
        patience: VM_PATIENCE,
    };
    let on_line = &mut |line: &str| {
        if let Some(Ok(now)) = line.strip_prefix(PROGRESS).map(str::parse) {
            progress(now);
        }
    };
    machine.run(&job, options.cancel, on_line)?.success()?;
    Ok(())
}

fn add_wall_time(directory: &Path, index: usize, wall: Duration) -> Result<()> {
    let path = part(directory, "run", index, "json");
    let mut result: RunResult = read_json(&path)?;
    result.cost.insert("wall_s".into(), wall.as_secs_f64());
    Ok(write_json(&path, &result)?)
}

fn at(path: &Path, source: std::io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}
