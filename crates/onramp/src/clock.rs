//! `onramp clock`: synchronisation alone, and what it knows. The work is onramp-clock's.
mod table;

use std::{path::PathBuf, thread, time::Duration};

use anyhow::{Context, Result};
use clap::Subcommand;
#[cfg(feature = "agent")]
use onramp_agent::{clock, metrics};
use onramp_clock::status::Status;
use onramp_status::{clock_socket_path, netns_inode, query};

use crate::sim;

#[derive(Subcommand)]
pub enum Command {
    #[cfg(feature = "agent")]
    /// Synchronise this host with its fleet, without a data path, until SIGINT or SIGTERM
    #[command(
        after_help = "Examples: onramp clock run --member 10.0.0.1,10.0.0.2 --key-file keys\n          \
                      onramp clock run --etcd http://10.0.0.9:2379 --key-file keys"
    )]
    Run(Box<clock::Args>),
    /// Synchronise this host with its fleet (not in this build)
    #[cfg(not(feature = "agent"))]
    Run(crate::missing::Args),
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
    #[cfg(feature = "agent")]
    #[command(hide = true)]
    Reference,
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

pub fn run(command: Command) -> Result<()> {
    match command {
        #[cfg(feature = "agent")]
        Command::Run(args) => clock::run(&args),
        #[cfg(not(feature = "agent"))]
        Command::Run(_) => crate::missing::refuse("agent"),
        Command::Status(args) => show(&args, table::status),
        Command::Matrix(args) => show(&args, table::matrix),
        Command::Watch(args) => loop {
            show(&args, table::line)?;
            thread::sleep(Duration::from_secs(2));
        },
        Command::Simulate(args) => sim::simulate_clocks(args),
        #[cfg(feature = "agent")]
        Command::Reference => {
            print!("{}", metrics::markdown());
            Ok(())
        }
    }
}

fn show(args: &QueryArgs, text: fn(&Status) -> String) -> Result<()> {
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => clock_socket_path(netns_inode().context("reading the network namespace")?),
    };
    let status: Status = query(&socket)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&status)?);
    } else {
        print!("{}", text(&status));
    }
    Ok(())
}
