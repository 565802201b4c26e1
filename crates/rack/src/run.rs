//! A whole scenario: each of its runs on this kernel, one after the other, or each in a virtual
//! machine of its own, several at a time. Keeps what has finished when it is ended early.

use crate::error::{Error, Result};
use crate::native::{self, Missing, Progress, Setup};
use crate::vm::{Content, GuestFile, Job, Kernel, Vm, VmError};
use onramp_results::{forget, merge, missing_runs, part, read_json, write_json};
use onramp_results::{RunResult, SummaryFile};
use onramp_scenario::Scenario;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Wall-clock time after which a machine is given up.
const VM_PATIENCE: Duration = Duration::from_secs(3600);
/// Start of the lines in which a guest tells how far it is.
const PROGRESS: &str = "progress ";

/// Where runs take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
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
    pub place: Place,
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
    /// Whether runs that are whole in `out` are left as they are.
    pub keep: bool,
    /// Ends everything when it becomes true.
    pub cancel: &'a AtomicBool,
}

/// How far a scenario is.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Runs to make.
    pub runs: usize,
    /// Those that have finished.
    pub finished: usize,
    /// Runs under way, and how far each is, 0 to 1.
    pub running: Vec<(usize, f64)>,
    /// The part of all that is done, 0 to 1.
    pub done: f64,
    /// Since the start.
    pub elapsed: Duration,
    /// Time still needed, as far as can be told.
    pub left: Option<Duration>,
}

/// Runs all of `scenario`, or what is missing, and merges the results. When `cancel` ends it, the summary is partial.
///
/// # Errors
/// The first run that failed; the others' results are merged on disk all the same.
pub fn run(
    scenario: &Scenario,
    options: &Options<'_>,
    progress: &mut (dyn FnMut(&Status) + Send),
) -> Result<SummaryFile> {
    std::fs::create_dir_all(&options.out).map_err(|source| at(&options.out, source))?;
    if !options.keep {
        forget(scenario, &options.out)?;
    }
    let missing = missing_runs(scenario, &options.out);
    if missing.is_empty() {
        return Ok(merge(scenario, &options.out, "rack")?);
    }
    let machine = machine(options)?;
    let jobs = if machine.is_some() {
        options.jobs.max(1)
    } else {
        1
    };
    let board = Mutex::new(Board::new(missing, progress));
    std::thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(|| work(scenario, options, machine.as_ref(), &board));
        }
        work(scenario, options, machine.as_ref(), &board);
    });
    let summary = merge(scenario, &options.out, "rack")?;
    match board.into_inner().expect("no worker panicked").failure {
        Some(Error::Cancelled | Error::Vm(VmError::Cancelled)) | None => Ok(summary),
        Some(error) => Err(error),
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
        if let Progress::Traffic(done) = progress {
            println!("{PROGRESS}{done:.3}");
        }
    })
}

/// The virtual machine to use; none: this kernel.
fn machine(options: &Options<'_>) -> Result<Option<Vm>> {
    let capable = || native::capabilities();
    match (options.place, capable()) {
        (Place::Native, Err(missing)) => return Err(Error::Incapable(missing)),
        (Place::Native | Place::Auto, Ok(())) => return Ok(None),
        (Place::Auto, Err(missing)) => note(&missing),
        (Place::Vm, _) => {}
    }
    let kernel = match &options.kernel {
        Some(path) => Kernel::at(path)?,
        None => Kernel::find(&options.cache)?,
    };
    Ok(Some(Vm {
        kernel,
        cache: options.cache.clone(),
        memory_mib: 0,
        seed: 0,
        plugin: None,
    }))
}

fn note(missing: &[Missing]) {
    for Missing { what, because } in missing {
        tracing::debug!(what, because, "this kernel cannot be a rack");
    }
}

/// What workers share.
struct Board<'a> {
    /// Numbers of the runs.
    todo: Vec<usize>,
    next: usize,
    started: Instant,
    finished: usize,
    running: Vec<(usize, f64)>,
    failure: Option<Error>,
    progress: &'a mut (dyn FnMut(&Status) + Send),
}

impl<'a> Board<'a> {
    fn new(todo: Vec<usize>, progress: &'a mut (dyn FnMut(&Status) + Send)) -> Board<'a> {
        Board {
            todo,
            next: 0,
            started: Instant::now(),
            finished: 0,
            running: Vec::new(),
            failure: None,
            progress,
        }
    }

    fn take(&mut self) -> Option<usize> {
        if self.failure.is_some() {
            return None;
        }
        let index = *self.todo.get(self.next)?;
        self.next += 1;
        self.running.push((index, 0.0));
        self.tell();
        Some(index)
    }

    fn note(&mut self, index: usize, done: f64) {
        for (_, part) in self
            .running
            .iter_mut()
            .filter(|(running, _)| *running == index)
        {
            *part = done.clamp(0.0, 1.0);
        }
        self.tell();
    }

    fn finish(&mut self, index: usize, outcome: Result<()>) {
        self.running.retain(|(running, _)| *running != index);
        match outcome {
            Ok(()) => self.finished += 1,
            Err(error) => {
                self.failure.get_or_insert(error);
            }
        }
        self.tell();
    }

    fn tell(&mut self) {
        let elapsed = self.started.elapsed();
        let done = self.finished as f64 + self.running.iter().map(|(_, part)| part).sum::<f64>();
        let done = done / self.todo.len() as f64;
        let status = Status {
            runs: self.todo.len(),
            finished: self.finished,
            running: self.running.clone(),
            done,
            elapsed,
            left: time_left(elapsed, done),
        };
        (self.progress)(&status);
    }
}

/// From the part done so far; unknown before 2 % are.
fn time_left(elapsed: Duration, done: f64) -> Option<Duration> {
    (done >= 0.02).then(|| elapsed.mul_f64((1.0 - done).max(0.0) / done))
}

fn work(
    scenario: &Scenario,
    options: &Options<'_>,
    machine: Option<&Vm>,
    board: &Mutex<Board<'_>>,
) {
    let lock = || board.lock().expect("no worker panicked");
    while !options.cancel.load(Ordering::Relaxed) {
        let Some(index) = lock().take() else { return };
        let started = Instant::now();
        let mut progress = |done: f64| lock().note(index, done);
        let outcome = match machine {
            Some(machine) => run_in_machine(scenario, index, options, machine, &mut progress),
            None => run_here(scenario, index, options, &mut progress),
        };
        let outcome = outcome.and_then(|()| add_wall_time(&options.out, index, started.elapsed()));
        lock().finish(index, outcome);
    }
}

fn run_here(
    scenario: &Scenario,
    index: usize,
    options: &Options<'_>,
    progress: &mut dyn FnMut(f64),
) -> Result<()> {
    let setup = Setup {
        directory: &options.out,
        agent: &options.exe,
        measure_cpu: options.measure_cpu,
        cancel: options.cancel,
    };
    native::run_one(&scenario.runs()[index], index, setup, &mut |now| {
        if let Progress::Traffic(done) = now {
            progress(done);
        }
    })
}

fn run_in_machine(
    scenario: &Scenario,
    index: usize,
    options: &Options<'_>,
    machine: &Vm,
    progress: &mut dyn FnMut(f64),
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
        timeout: VM_PATIENCE,
    };
    let on_line = &mut |line: &str| {
        if let Some(done) = line
            .strip_prefix(PROGRESS)
            .and_then(|text| text.trim().parse().ok())
        {
            progress(done);
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

/// Has SIGINT and SIGTERM set the flag that it returns: the caller's [`Options::cancel`].
pub fn cancelled_by_signals() -> &'static AtomicBool {
    static CANCEL: AtomicBool = AtomicBool::new(false);
    // A second handler is refused; the first one serves the same flag.
    let _ = ctrlc::set_handler(|| CANCEL.store(true, Ordering::Relaxed));
    &CANCEL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_from_the_part_done() {
        assert_eq!(time_left(Duration::from_secs(10), 0.01), None);
        assert_eq!(
            time_left(Duration::from_secs(10), 0.25),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            time_left(Duration::from_secs(10), 1.0),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn no_run_starts_after_a_failure() {
        let mut seen = Vec::new();
        let mut progress = |status: &Status| seen.push((status.finished, status.running.len()));
        let mut board = Board::new(vec![0, 2, 5], &mut progress);
        assert_eq!((board.take(), board.take()), (Some(0), Some(2)));
        board.finish(0, Ok(()));
        board.finish(2, Err(Error::Cancelled));
        assert_eq!(board.take(), None);
        assert_eq!(seen, [(0, 1), (0, 2), (1, 1), (1, 0)]);
    }
}
