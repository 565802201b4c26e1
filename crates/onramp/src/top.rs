// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp top`: peers with delays, pauses and OR-ACKs a second, live and sortable. Without a terminal it prints once.
mod rows;
mod screen;

use std::{
    io::{stdout, IsTerminal},
    path::PathBuf,
    thread,
    time::Instant,
};

use anyhow::{bail, Result};
use onramp_status::{query, Status};
use onramp_units::Span;

use crate::daemons::{Daemons, Interval};
use rows::{Order, View, COLUMNS};

/// A look at a daemon of thousands of peers takes some milliseconds of it.
const SHORTEST: Span = Span::from_ms(100);

/// Options of the command. It shows the first of the daemons.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    daemons: Daemons,
    #[command(flatten)]
    interval: Interval,
    /// Column to sort by, largest first: peer, delay, min, wait, T, OR-ACKs, pauses, paused
    #[arg(long, default_value = "paused", value_parser = column)]
    sort: usize,
    /// Print once and end, as without a terminal
    #[arg(long)]
    once: bool,
}

fn column(name: &str) -> Result<usize> {
    let is = |column: &&str| column.eq_ignore_ascii_case(name);
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    match names.iter().position(is) {
        Some(index) => Ok(index),
        None => bail!("there is no column {name}; columns: {}", names.join(", ")),
    }
}

/// Two statuses of a daemon, one after the other.
struct Watch {
    socket: PathBuf,
    before: (Instant, Status),
}

impl Watch {
    fn start(socket: PathBuf) -> Result<Self> {
        let before = (Instant::now(), query(&socket)?);
        Ok(Self { socket, before })
    }

    /// What has changed since the last look.
    fn look(&mut self) -> Result<View> {
        let now: (Instant, Status) = (Instant::now(), query(&self.socket)?);
        let elapsed = now.0 - self.before.0;
        let view = View::between(&self.before.1, &now.1, elapsed);
        self.before = now;
        Ok(view)
    }
}

pub fn run(args: &Args) -> Result<()> {
    let interval = args.interval.at_least(SHORTEST)?;
    let socket = args.daemons.sockets()?.remove(0);
    let mut watch = Watch::start(socket)?;
    let order = Order::by(args.sort);
    if args.once || !stdout().is_terminal() {
        thread::sleep(interval);
        let lines = watch.look()?.lines(order);
        lines.iter().for_each(|line| println!("{line}"));
        return Ok(());
    }
    screen::show(&mut watch, order, interval)
}
