// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp detach`: removes what daemons that were killed left on this host, and prints what it removed.
use std::path::PathBuf;

use anyhow::Result;

#[derive(clap::Args)]
pub struct Args {
    /// Device to restore [default: all devices in this network namespace]
    #[arg(long)]
    dev: Option<String>,
    /// BPF file system of the daemon, if it was started with --bpffs
    #[arg(long, value_name = "PATH")]
    bpffs: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let removed = onramp_agent::detach(args.dev.as_deref(), args.bpffs.as_deref())?;
    if removed.is_empty() {
        println!("nothing of On-Ramp was left");
    }
    for line in removed {
        println!("removed from {line}");
    }
    Ok(())
}
