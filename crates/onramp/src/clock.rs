// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp clock`: starts clock synchronisation and shows its status. onramp-clock does the work.
mod table;

use std::{path::PathBuf, thread, time::Duration};

use anyhow::{Context, Result};
use clap::Subcommand;
#[cfg(feature = "agent")]
use onramp_agent::{clock, config::ClockOptions, metrics};
use onramp_clock::status::Status;
use onramp_status::{clock_socket_path, netns_inode, query};

use crate::sim;

#[derive(Subcommand)]
pub enum Command {
    #[cfg(feature = "agent")]
    /// Synchronise this host with its fleet until SIGINT or SIGTERM; holds no traffic
    #[command(
        after_help = "Examples: onramp clock run --member 10.0.0.1,10.0.0.2 --key-file keys\n          \
                      onramp clock run --etcd http://10.0.0.9:2379 --key-file keys"
    )]
    Run(Box<ClockOptions>),
    /// Synchronise this host with its fleet (not in this build)
    #[cfg(not(feature = "agent"))]
    Run(crate::missing::Args),
    /// Show this host's fleet time (offset, drift, sigma), its neighbours and failures
    #[command(after_help = "Example: onramp clock status --json")]
    Status(QueryArgs),
    /// Show the fleet time in one line every two seconds, until interrupted
    #[command(after_help = "Example: onramp clock watch")]
    Watch(QueryArgs),
    /// Show minimum and median one-way delays; the leader shows those of all pairs
    #[command(after_help = "Examples: onramp clock matrix\n          \
                      onramp clock matrix --json > matrix.json; onramp report matrix.json")]
    Matrix(QueryArgs),
    /// Simulate the synchronisation under a scenario's load and show the errors of the clocks
    #[command(after_help = "Example: onramp clock simulate scenarios/clock.toml --threads 2")]
    Simulate(sim::RunArgs),
    /// Print docs/metrics.md: every metric of --metrics
    #[cfg(feature = "agent")]
    #[command(hide = true)]
    Reference,
}

#[derive(Clone, Debug, clap::Args)]
pub struct QueryArgs {
    /// Socket of a daemon that was started with --socket
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Print JSON
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
