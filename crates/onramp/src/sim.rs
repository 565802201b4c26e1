//! `onramp sim`: scenarios in the simulator. Reads files, spreads runs over threads, shows progress,
//! prints tables; the sim crate does the rest.
mod bench;
mod clocks;
pub mod memory;
mod replay;
pub mod watch;

use std::{
    collections::BTreeSet,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, Ordering},
        Mutex,
    },
    time::{Duration, Instant},
};

use anyhow::{bail, Context, Result};
use clap::Subcommand;
use onramp_results::{forget, merge, missing_runs, part, write_json, write_tables, SummaryFile};
use onramp_scenario::Scenario;
use onramp_sim::run::{run_in_parts, Parts, Progress};
use onramp_units::Time;
use watch::Watch;

/// How often progress is shown on a terminal, and in a log.
const PERIODS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

#[derive(Subcommand)]
pub enum Command {
    /// Simulate a scenario: the same tables as the rack's
    #[command(after_help = "Example: onramp sim run scenarios/fabric.toml --threads 2")]
    Run(RunArgs),
    /// Simulate a list of flows on a network file, both in the HPCC simulator's formats; prints CSV
    #[command(
        after_help = "Example: onramp sim replay star4.topo long2short1.flow --cc timely --rounding ns3"
    )]
    Replay(replay::Args),
    /// Packet-hops per second on the papers' fabric: 320 hosts, web search at 60 %
    #[command(after_help = "Example: onramp sim bench --cc dcqcn")]
    Bench(bench::Args),
}

#[derive(clap::Args)]
pub struct RunArgs {
    file: PathBuf,
    /// Replace a key of the scenario, e.g. --set network.buffer='16 MiB'
    #[arg(long, value_name = "KEY=VALUE", value_parser = crate::rack::key_value)]
    set: Vec<(String, String)>,
    /// Seed of all that is random [default: the scenario's]
    #[arg(long)]
    seed: Option<u64>,
    /// Threads: runs at a time and, where there are fewer runs, parts of one. The results do not depend
    /// on it [default: one a processor]
    #[arg(long)]
    threads: Option<usize>,
    /// Directory for the results [default: results/<scenario>-<time>]
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    watch: Watch,
    /// Print summary.json instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Run(args) => run_scenario(args, onramp_results::table),
        Command::Replay(args) => replay::run(&args),
        Command::Bench(args) => bench::run(&args),
    }
}

/// `onramp clock simulate`: what Huygens makes of a scenario's clocks.
pub fn simulate_clocks(mut args: RunArgs) -> Result<()> {
    args.set.push(("clock.sync".into(), "huygens".into()));
    run_scenario(args, clocks::table)
}

fn run_scenario(mut args: RunArgs, table: fn(&SummaryFile) -> String) -> Result<()> {
    if let Some(seed) = args.seed {
        args.set.push(("seed".into(), seed.to_string()));
    }
    let scenario = crate::scenario::read(&args.file, &args.set)?;
    args.watch.check(&scenario)?;
    let processors = std::thread::available_parallelism().map_or(1, Into::into);
    let threads = args.threads.unwrap_or(processors);
    memory::check(&scenario, threads, memory::available())?;
    let out = args
        .out
        .unwrap_or_else(|| crate::rack::default_out(&args.file));
    let cancel = onramp_rack::cancelled_by_signals();
    let job = Job {
        scenario: &scenario,
        watch: &args.watch,
        out: &out,
        threads,
        cancel,
        keep: false,
        label: &|_| String::new(),
    };
    let summary =
        simulate_all(&job).with_context(|| format!("simulating {}", args.file.display()))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        print!("{}", table(&summary));
    }
    eprintln!("results are in {}", out.display());
    if summary.partial {
        let (done, runs) = (summary.whole_runs(), scenario.runs().len());
        bail!("ended early: {done} of {runs} runs are whole");
    }
    Ok(())
}

/// A scenario to simulate.
pub struct Job<'a> {
    pub scenario: &'a Scenario,
    pub watch: &'a Watch,
    /// Directory for the results.
    pub out: &'a Path,
    /// Runs at a time.
    pub threads: usize,
    /// Ends it early.
    pub cancel: &'a AtomicBool,
    /// Whether runs that are whole in `out` are left as they are.
    pub keep: bool,
    /// What progress begins with, by the part that is done.
    pub label: &'a (dyn Fn(f64) -> String + Sync),
}

/// Simulates all runs, or those that are missing.
pub fn simulate_all(job: &Job<'_>) -> Result<SummaryFile> {
    let (scenario, out) = (job.scenario, job.out);
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    if !job.keep {
        forget(scenario, out)?;
    }
    let missing = missing_runs(scenario, out);
    if !missing.is_empty() {
        let board = Board::new(missing, job);
        std::thread::scope(|scope| {
            for _ in 0..job.threads.clamp(1, board.todo.len()) {
                scope.spawn(|| work(job, &board));
            }
        });
        if let Some(failure) = board.end() {
            merge(scenario, out, "sim")?;
            return Err(failure);
        }
    }
    Ok(merge(scenario, out, "sim")?)
}

/// Takes runs until there are none left.
fn work(job: &Job<'_>, board: &Board<'_>) {
    while let Some((index, threads)) = board.take() {
        let mut progress = |now: Progress| board.note(index, now);
        let (scenario, watch, out) = (job.scenario, job.watch, job.out);
        let outcome = simulate(scenario, watch, index, threads, out, &mut progress);
        board.finish(index, threads, outcome);
    }
}

fn simulate(
    scenario: &Scenario,
    watch: &Watch,
    index: usize,
    threads: usize,
    out: &Path,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Simulated> {
    let run = &scenario.runs()[index];
    let watch = watch.open(out, index)?;
    let parts = Parts::AtMost(threads);
    let report = run_in_parts(run, index, watch, parts, progress)?;
    write_tables(
        out,
        index,
        report.flows(),
        report.requests(),
        report.series(),
    )?;
    // Last: a run with this file is over.
    write_json(&part(out, "run", index, "json"), report.result())?;
    Ok(Simulated {
        why_one_thread: report.why_one_thread,
    })
}

/// What is told of a run that is over, beside its results.
#[derive(Default)]
struct Simulated {
    why_one_thread: Option<&'static str>,
}

/// What threads share: which run is next, how far each is, and whether to go on.
struct Board<'a> {
    /// Numbers of the runs.
    todo: Vec<usize>,
    label: &'a (dyn Fn(f64) -> String + Sync),
    started: Instant,
    cancel: &'a AtomicBool,
    terminal: bool,
    state: Mutex<State>,
}

struct State {
    next: usize,
    /// Threads without work.
    free: usize,
    finished: usize,
    /// Why threads had nothing to do.
    why_one_thread: BTreeSet<&'static str>,
    /// Packet-hops of finished runs.
    hops: u64,
    running: Vec<(usize, Option<Progress>)>,
    failure: Option<anyhow::Error>,
    told: Option<Instant>,
}

impl<'a> Board<'a> {
    fn new(todo: Vec<usize>, job: &Job<'a>) -> Self {
        Self {
            todo,
            label: job.label,
            started: Instant::now(),
            cancel: job.cancel,
            terminal: std::io::stderr().is_terminal(),
            state: Mutex::new(State {
                next: 0,
                free: job.threads,
                finished: 0,
                why_one_thread: BTreeSet::new(),
                hops: 0,
                running: Vec::new(),
                failure: None,
                told: None,
            }),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no thread panicked")
    }

    /// The next run, and how many threads are for it: what is free, shared with the runs that are left.
    fn take(&self) -> Option<(usize, usize)> {
        let mut state = self.lock();
        if state.failure.is_some() || state.next == self.todo.len() || self.cancelled() {
            return None;
        }
        let threads = (state.free / (self.todo.len() - state.next)).max(1);
        state.free = state.free.saturating_sub(threads);
        state.next += 1;
        let index = self.todo[state.next - 1];
        state.running.push((index, None));
        Some((index, threads))
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Notes how far a run is; whether it is to go on.
    fn note(&self, index: usize, now: Progress) -> bool {
        let mut state = self.lock();
        let runs = state.running.iter_mut();
        runs.filter(|(run, _)| *run == index)
            .for_each(|(_, progress)| *progress = Some(now));
        let period = if self.terminal { PERIODS.0 } else { PERIODS.1 };
        if state.told.unwrap_or(self.started).elapsed() >= period {
            state.told = Some(Instant::now());
            self.tell(&state);
        }
        !self.cancelled()
    }

    fn finish(&self, index: usize, threads: usize, outcome: Result<Simulated>) {
        let mut state = self.lock();
        state.free += threads;
        let ended = |(run, _): &&(usize, _)| *run == index;
        let progress = state.running.iter().find(ended).and_then(|(_, p)| *p);
        state.hops += progress.map_or(0, |progress| progress.packet_hops);
        state.running.retain(|(run, _)| *run != index);
        match outcome {
            Ok(simulated) => {
                state.finished += 1;
                state.why_one_thread.extend(simulated.why_one_thread);
            }
            Err(error) => {
                state.failure.get_or_insert(error);
            }
        }
    }

    fn tell(&self, state: &State) {
        let elapsed = self.started.elapsed().as_secs_f64();
        let now = |(_, progress): &(usize, Option<Progress>)| *progress;
        let parts: f64 = state.running.iter().filter_map(now).map(|p| p.done).sum();
        let done = (state.finished as f64 + parts) / self.todo.len() as f64;
        let left = match done > 0.0 {
            true => format!("{:.0} s left", elapsed * (1.0 - done) / done),
            false => "time left unknown".to_owned(),
        };
        let running = state.running.iter().filter_map(|(run, progress)| {
            let span = (*progress)?.now - Time::ZERO;
            Some(format!("#{run} {:.3} ms", span.as_s_f64() * 1e3))
        });
        let line = format!(
            "{}{} of {} runs done, {elapsed:.0} s, {left}, {}   {}",
            (self.label)(done),
            state.finished,
            self.todo.len(),
            self.speed(state),
            running.collect::<Vec<_>>().join("  "),
        );
        if self.terminal {
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{line}");
        }
    }

    fn speed(&self, state: &State) -> String {
        let now = |(_, progress): &(usize, Option<Progress>)| *progress;
        let running: u64 = state
            .running
            .iter()
            .filter_map(now)
            .map(|p| p.packet_hops)
            .sum();
        let seconds = self.started.elapsed().as_secs_f64();
        let per_s = (state.hops + running) as f64 / seconds.max(1e-9);
        format!("{:.2} M packet-hops/s", per_s / 1e6)
    }

    /// Says how fast it was; answers with what failed.
    fn end(self) -> Option<anyhow::Error> {
        let line = {
            let state = self.lock();
            let seconds = self.started.elapsed().as_secs_f64();
            format!(
                "{} packet-hops in {seconds:.2} s: {}",
                state.hops,
                self.speed(&state)
            )
        };
        eprintln!("{}{line}", if self.terminal { "\r\x1b[K" } else { "" });
        let state = self.state.into_inner().expect("no thread panicked");
        for why in &state.why_one_thread {
            eprintln!("one thread a run, though more were free: {why}");
        }
        state.failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEEP: &str = r#"title = "t"
duration = "200 us"
[network]
topology = { kind = "leaf_spine", hosts = 8, leaves = 2, spines = 2 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
[[traffic]]
kind = "poisson"
to = "all"
workload = "websearch"
load = "50 %"
[sweep]
"host.cc" = ["hpcc", "dcqcn", "timely", "dctcp"]
seed = [1, 2]
"#;

    fn simulate_in(
        scenario: &Scenario,
        out: &Path,
        threads: usize,
        cancelled: bool,
    ) -> Result<SummaryFile> {
        simulate_all(&Job {
            scenario,
            watch: &Watch::default(),
            out,
            threads,
            cancel: &AtomicBool::new(cancelled),
            keep: false,
            label: &|_| String::new(),
        })
    }

    fn directory(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("onramp-sim-{name}-{}", std::process::id()))
    }

    #[test]
    fn any_number_of_threads_writes_the_same_bytes() {
        let scenario = Scenario::parse(SWEEP, "t").unwrap();
        let files = |threads: usize| {
            let out = directory(&threads.to_string());
            simulate_in(&scenario, &out, threads, false).unwrap();
            let names = ["summary.json", "flows.parquet", "series.parquet"];
            let bytes = names.map(|name| std::fs::read(out.join(name)).unwrap());
            std::fs::remove_dir_all(&out).unwrap();
            bytes
        };
        assert!(files(1) == files(3));
    }

    /// Of seven threads, three runs have two, two and three.
    #[test]
    fn threads_without_a_run_help_those_with_one() {
        let (scenario, watch, cancel) = (
            Scenario::parse(SWEEP, "t").unwrap(),
            Watch::default(),
            AtomicBool::new(false),
        );
        let job = |threads| Job {
            scenario: &scenario,
            watch: &watch,
            out: Path::new(""),
            threads,
            cancel: &cancel,
            keep: false,
            label: &|_| String::new(),
        };
        let board = Board::new(vec![0, 1, 2], &job(7));
        let taken: Vec<_> = std::iter::from_fn(|| board.take()).collect();
        assert_eq!(taken, [(0, 2), (1, 2), (2, 3)]);
        let board = Board::new(vec![0, 1, 2], &job(2));
        assert_eq!((board.take(), board.take()), (Some((0, 1)), Some((1, 1))));
        board.finish(0, 1, Ok(Simulated::default()));
        assert_eq!(board.take(), Some((2, 1)));
    }

    #[test]
    fn an_output_that_cannot_be_written_is_named_and_left_alone() {
        let scenario = Scenario::parse(SWEEP, "t").unwrap();
        let file = directory("file");
        std::fs::write(&file, "mine").unwrap();
        let error = simulate_in(&scenario, &file, 1, false).unwrap_err();
        assert!(format!("{error:#}").contains(&file.display().to_string()));
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_is_ended_early_is_marked_partial() {
        let scenario = Scenario::parse(SWEEP, "t").unwrap();
        let out = directory("early");
        let summary = simulate_in(&scenario, &out, 1, true).unwrap();
        std::fs::remove_dir_all(&out).unwrap();
        assert!(summary.partial && summary.runs.is_empty());
    }
}
