//! `onramp clock run`: synchronisation alone, without a data path.
use std::{os::fd::AsFd, path::PathBuf, sync::Arc};

use anyhow::{bail, Context, Result};
use nix::poll::PollTimeout;
use onramp_clock::status::Status;
use onramp_status::{clock_socket_path, netns_inode, query};
use onramp_units::Span;

use crate::fleet::FleetArgs;
use crate::server::{answer_next, block_signals, listen, wait};

/// Options of `onramp clock run`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
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

/// Synchronises until SIGINT or SIGTERM.
///
/// # Errors
/// Another clock runs here; options that make no fleet; addresses that cannot be bound.
pub fn run(args: &Args) -> Result<()> {
    if args.lease <= Span::ZERO {
        bail!("--lease is {}, not above 0", args.lease);
    }
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => clock_socket_path(netns_inode().context("reading the network namespace")?),
    };
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
            Ok(_) => answer_next(&listener, || part.status()),
            Err(_) => break ready.map(|_| ()),
        }
    };
    let _ = std::fs::remove_file(&socket);
    outcome
}
