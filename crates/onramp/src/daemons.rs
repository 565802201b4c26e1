// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Which daemons a command asks, and how often: options that `onramp status`, `top` and `trace` share.
use std::{path::PathBuf, time::Duration};

use anyhow::{bail, Context, Result};
use onramp_status::{netns_inode, sockets};
use onramp_units::Span;

const LONGEST: Span = Span::from_s(3600);

#[derive(clap::Args)]
pub struct Daemons {
    /// Device of the daemon [default: the daemons in this network namespace]
    #[arg(long)]
    dev: Option<String>,
    /// Socket of a daemon that was started with --socket
    #[arg(long, conflicts_with = "dev")]
    socket: Option<PathBuf>,
}

impl Daemons {
    /// Where they answer: at least one socket, and one for each device of a daemon.
    ///
    /// # Errors
    /// No daemon runs, or none on that device.
    pub fn sockets(&self) -> Result<Vec<PathBuf>> {
        if let Some(socket) = &self.socket {
            return Ok(vec![socket.clone()]);
        }
        let netns = netns_inode().context("reading the network namespace")?;
        Ok(sockets(netns, self.dev.as_deref())?)
    }
}

#[derive(clap::Args)]
pub struct Interval {
    /// Time between two looks, over which rates are computed
    #[arg(long, default_value = "1s")]
    interval: Span,
}

impl Interval {
    /// The time, if it is `least` or longer.
    ///
    /// # Errors
    /// It is not.
    pub fn at_least(&self, least: Span) -> Result<Duration> {
        if !(least..=LONGEST).contains(&self.interval) {
            bail!(
                "--interval is {}, outside {least} to {LONGEST}",
                self.interval
            );
        }
        Ok(Duration::from_nanos(self.interval.as_ns() as u64))
    }
}
