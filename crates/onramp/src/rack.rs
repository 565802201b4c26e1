//! `onramp rack`: a scenario on real TCP stacks. Reads the file, shows progress, prints the table;
//! the rack crate does the rest.
use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{bail, Context, Result};
use clap::Subcommand;
use onramp_rack::{cancelled_by_signals, native::Setup, Options, Place, Status};

/// How often a log gets a progress line when stderr is no terminal.
const LOG_PERIOD: Duration = Duration::from_secs(15);

#[derive(Subcommand)]
pub enum Command {
    /// Run a scenario: here if this kernel can, else in virtual machines in virtual time
    #[command(
        after_help = "Example: onramp rack run scenarios/incast.toml --set duration='120 ms'"
    )]
    Run(RunArgs),
    /// One run, on this kernel; what `run` starts in its virtual machines
    #[command(hide = true)]
    Guest(GuestArgs),
}

#[derive(clap::Args)]
pub struct RunArgs {
    file: PathBuf,
    /// Replace a key of the scenario, e.g. --set onramp.threshold='30 us'
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
    /// Seed of all that is random [default: the scenario's]
    #[arg(long)]
    seed: Option<u64>,
    /// Directory for the results [default: results/<scenario>-<time>]
    #[arg(long)]
    out: Option<PathBuf>,
    /// On this kernel, in real time
    #[arg(long, conflicts_with = "vm")]
    native: bool,
    /// In virtual machines, even where this kernel could
    #[arg(long)]
    vm: bool,
    #[command(flatten)]
    machines: Machines,
    /// Virtual machines at a time [default: one a processor]
    #[arg(long)]
    jobs: Option<usize>,
    /// Measure the CPU time per frame too; takes two to three times as long
    #[arg(long)]
    measure_cpu: bool,
    /// Print summary.json instead of the table
    #[arg(long)]
    json: bool,
}

/// What virtual machines are made of.
#[derive(clap::Args)]
pub struct Machines {
    /// Kernel of the virtual machines [default: the one that `make setup` fetched]
    #[arg(long)]
    pub kernel: Option<PathBuf>,
    /// Directory that `make setup` fills
    #[arg(long, default_value = ".cache")]
    pub cache: PathBuf,
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

fn run_scenario(mut args: RunArgs) -> Result<()> {
    if let Some(seed) = args.seed {
        args.set.push(("seed".into(), seed.to_string()));
    }
    let scenario = crate::scenario::read(&args.file, &args.set)?;
    let out = args.out.unwrap_or_else(|| default_out(&args.file));
    let options = Options {
        place: match (args.native, args.vm) {
            (true, _) => Place::Native,
            (_, true) => Place::Vm,
            _ => Place::Auto,
        },
        kernel: args.machines.kernel,
        cache: args.machines.cache,
        jobs: args
            .jobs
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into)),
        out: out.clone(),
        exe: std::env::current_exe()?,
        measure_cpu: args.measure_cpu,
        keep: false,
        cancel: cancelled_by_signals(),
    };
    let mut teller = Teller::new(&|_| String::new());
    let summary = onramp_rack::run(&scenario, &options, &mut |status| teller.tell(status));
    teller.end();
    let summary = summary.with_context(|| format!("running {}", args.file.display()))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        print!("{}", onramp_results::table(&summary));
    }
    eprintln!("results are in {}", out.display());
    if summary.partial {
        bail!(
            "ended early: {} of {} runs are there",
            summary.runs.len(),
            scenario.runs().len()
        );
    }
    Ok(())
}

/// `results/<scenario>-<seconds since 1970>`.
pub fn default_out(file: &Path) -> PathBuf {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    PathBuf::from(format!("results/{name}-{now}"))
}

pub fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text} is not KEY=VALUE"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Progress on stderr: one line that changes on a terminal, else a line now and then.
pub struct Teller<'a> {
    terminal: bool,
    last: Option<Instant>,
    label: &'a (dyn Fn(f64) -> String + Sync),
}

impl<'a> Teller<'a> {
    /// Lines begin with `label` of the part that is done.
    pub fn new(label: &'a (dyn Fn(f64) -> String + Sync)) -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            last: None,
            label,
        }
    }

    pub fn tell(&mut self, status: &Status) {
        let period = if self.terminal {
            Duration::from_millis(200)
        } else {
            LOG_PERIOD
        };
        if self.last.is_some_and(|last| last.elapsed() < period) {
            return;
        }
        self.last = Some(Instant::now());
        let running: Vec<String> = status
            .running
            .iter()
            .map(|(run, done)| format!("#{run} {:.0} %", done * 100.0))
            .collect();
        let left = status
            .left
            .map_or("unknown".into(), |left| format!("{} s", left.as_secs()));
        let line = format!(
            "{}{} of {} runs done, {} s, {left} left   {}",
            (self.label)(status.done),
            status.finished,
            status.runs,
            status.elapsed.as_secs(),
            running.join("  "),
        );
        if self.terminal {
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{line}");
        }
    }

    pub fn end(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}
