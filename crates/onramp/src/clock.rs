//! `onramp clock`: synchronisation alone, and what it knows. The work is onramp-clock's.
mod etcd;
pub mod fleet;
mod metrics;
mod table;

use std::{
    os::{fd::AsFd, unix::net::UnixListener},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{bail, Result};
use clap::Subcommand;
use nix::poll::PollTimeout;
use onramp_clock::status::Status;
use onramp_units::Span;
use tracing::warn;

use crate::agent::status::{answer, query, RUN_DIR};
use crate::agent::{block_signals, listen, netns_inode, wait};
use crate::sim;
use fleet::{FleetArgs, Part};

#[derive(Subcommand)]
pub enum Command {
    /// Synchronise this host with its fleet, without a data path, until SIGINT or SIGTERM
    #[command(
        after_help = "Examples: onramp clock run --member 10.0.0.1,10.0.0.2 --key-file keys\n          \
                      onramp clock run --etcd http://10.0.0.9:2379 --key-file keys"
    )]
    Run(Box<RunArgs>),
    /// Offset, drift and sigma of this host's fleet time, its edges, what failed
    #[command(after_help = "Example: onramp clock status --json")]
    Status(QueryArgs),
    /// The same in a line every two seconds, until interrupted
    #[command(after_help = "Example: onramp clock watch")]
    Watch(QueryArgs),
    /// Shortest and present one-way delays; of all pairs that are probed on the coordinator's host
    #[command(after_help = "Examples: onramp clock matrix\n          \
                      onramp clock matrix --json > matrix.json; onramp report matrix.json")]
    Matrix(QueryArgs),
    /// Huygens on a scenario's network in the simulator, under its load: how wrong the clocks are
    #[command(after_help = "Example: onramp clock simulate scenarios/clock.toml --threads 2")]
    Simulate(sim::RunArgs),
    /// Print docs/metrics.md: every metric of --metrics
    #[command(hide = true)]
    Reference,
}

#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    fleet: FleetArgs,
    /// File with the fleet's keys, a line each: ID (0-3) and 32 hex digits; the first signs
    #[arg(long)]
    key_file: Option<PathBuf>,
    /// Without word from the coordinator for this long there is no fleet time
    #[arg(long, default_value = "5s")]
    lease: Span,
    /// Where `onramp clock status` finds this daemon [default: in /run/onramp]
    #[arg(long)]
    socket: Option<PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct QueryArgs {
    /// Socket of the daemon, when it was started with --socket
    #[arg(long)]
    socket: Option<PathBuf>,
    /// JSON, for machines
    #[arg(long)]
    json: bool,
}

/// Where `onramp clock status` finds the daemon: `given`, or by this network namespace.
pub fn socket_path(given: Option<&Path>) -> Result<PathBuf> {
    let usual = || Ok(Path::new(RUN_DIR).join(format!("clock-{}.sock", netns_inode()?)));
    given.map_or_else(usual, |path| Ok(path.to_owned()))
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Run(args) => synchronise(&args),
        Command::Status(args) => show(&args, table::status),
        Command::Matrix(args) => show(&args, table::matrix),
        Command::Watch(args) => loop {
            show(&args, table::line)?;
            thread::sleep(Duration::from_secs(2));
        },
        Command::Simulate(args) => sim::simulate_clocks(args),
        Command::Reference => {
            print!("{}", metrics::markdown());
            Ok(())
        }
    }
}

fn synchronise(args: &RunArgs) -> Result<()> {
    if args.lease <= Span::ZERO {
        bail!("--lease is {}, not above 0", args.lease);
    }
    let socket = socket_path(args.socket.as_deref())?;
    if let Ok(other) = query::<Status>(&socket) {
        bail!(
            "a clock already runs here (pid {}); stop it first",
            other.pid
        );
    }
    let signals = block_signals()?;
    let part = args
        .fleet
        .join(args.key_file.as_deref(), args.lease, None)?;
    let part = Arc::new(part);
    let listener = listen(&socket)?;
    let told = Arc::downgrade(&part);
    args.fleet.serve_metrics(told)?;
    let outcome = loop {
        let ready = wait(&[signals.as_fd(), listener.as_fd()], PollTimeout::NONE);
        match ready.as_deref() {
            Ok([true, _]) => break Ok(()),
            Ok(_) => tell(&listener, &part),
            Err(_) => break ready.map(|_| ()),
        }
    };
    let _ = std::fs::remove_file(&socket);
    outcome
}

/// Answers one client of the clock's socket.
pub fn tell(listener: &UnixListener, part: &Part) {
    let answered = listener
        .accept()
        .map_err(anyhow::Error::from)
        .and_then(|(stream, _)| answer(stream, &part.status()));
    if let Err(error) = answered {
        warn!("clock client: {error:#}");
    }
}

fn show(args: &QueryArgs, text: fn(&Status) -> String) -> Result<()> {
    let status: Status = query(&socket_path(args.socket.as_deref())?)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&status)?);
    } else {
        print!("{}", text(&status));
    }
    Ok(())
}
