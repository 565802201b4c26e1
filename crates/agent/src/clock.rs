//! `onramp clock run`: clock synchronisation without a data path.
use std::{os::fd::AsFd, path::PathBuf, sync::Arc};

use anyhow::{bail, Context, Result};
use nix::poll::PollTimeout;
use onramp_clock::status::Status;
use onramp_status::{clock_socket_path, netns_inode, query};
use onramp_units::Span;

use crate::capabilities;
use crate::fleet::FleetArgs;
use crate::metrics::{self, Snapshot};
use crate::server::{answer_next, block_signals, is_hangup, listen, reload_keys, wait};

/// Options of `onramp clock run`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// File with the fleet's keys, mode 600. Each line has an ID (0-3) and 32 hex digits. The first key
    /// signs; all are accepted
    #[arg(long)]
    key_file: Option<PathBuf>,
    /// Fleet time ends if the leader is not heard for this time
    #[arg(long, default_value = "5s")]
    lease: Span,
    /// Socket that `onramp clock status` connects to [default: one in /run/onramp]
    #[arg(long)]
    socket: Option<PathBuf>,
    #[command(flatten)]
    fleet: FleetArgs,
}

/// Synchronises until SIGINT or SIGTERM.
///
/// # Errors
/// Another clock runs here, an option is refused, or an address cannot be bound.
pub fn run(args: &Args) -> Result<()> {
    if args.lease <= Span::ZERO {
        bail!("--lease is {}; it must be above 0", args.lease);
    }
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => clock_socket_path(netns_inode().context("reading the network namespace")?),
    };
    if let Ok(other) = query::<Status>(&socket) {
        bail!(
            "a clock already runs in this network namespace (pid {0}); stop it first: kill {0}",
            other.pid
        );
    }
    capabilities::keep_only(capabilities::of_clock(args.fleet.discipline))?;
    let signals = block_signals()?;
    let part = args
        .fleet
        .join(args.key_file.as_deref(), args.lease, None)?;
    let part = Arc::new(part);
    let listener = listen(&socket)?;
    if let Some(address) = args.fleet.metrics {
        let part = Arc::downgrade(&part);
        metrics::serve(address, move || {
            let clock = Some(part.upgrade()?.status());
            Some(Snapshot {
                datapath: None,
                clock,
            })
        })?;
    }
    let outcome = loop {
        let ready = wait(&[signals.as_fd(), listener.as_fd()], PollTimeout::NONE);
        match ready.as_deref() {
            Ok([true, _]) => match is_hangup(&signals) {
                Ok(true) => reload_keys(args.key_file.as_deref(), |keys| {
                    part.set_keys(keys);
                    Ok(())
                }),
                stop => break stop.map(|_| ()),
            },
            Ok(_) => answer_next(&listener, || part.status()),
            Err(_) => break ready.map(|_| ()),
        }
    };
    let _ = std::fs::remove_file(&socket);
    outcome
}
