// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp clock run`: clock synchronisation without a data path.
use std::{os::fd::AsFd, sync::Arc};

use anyhow::{bail, Context, Result};
use nix::poll::PollTimeout;
use onramp_clock::{keys::Keys, status::Status};
use onramp_status::{clock_socket_path, netns_inode, query, Reloaded, Request};
use tracing::{error, info};

use crate::capabilities;
use crate::config::{ClockOptions, Configuration, Daemon, Given};
use crate::fleet::{self, Part};
use crate::metrics::{self, Snapshot};
use crate::notify::Notifier;
use crate::server::{asked, block_signals, json, wait, Asked, OwnDoor};

/// Time between two signs of life for systemd.
const BEAT_MS: u16 = 1_000;

/// Synchronises until SIGINT or SIGTERM.
///
/// # Errors
/// Another clock runs here, the configuration is refused, or an address cannot be bound.
pub fn run(options: &ClockOptions) -> Result<()> {
    let config = Configuration::load(&options.0, Daemon::Clock)?;
    let socket = match &config.socket {
        Some(socket) => socket.clone(),
        None => clock_socket_path(netns_inode().context("reading the network namespace")?),
    };
    if let Ok(other) = query::<Status>(&socket) {
        bail!(
            "a clock already runs in this network namespace (pid {0}); stop it first: kill {0}",
            other.pid
        );
    }
    capabilities::keep_only(capabilities::of_clock(config.fleet.discipline))?;
    let signals = block_signals()?;
    let part = Arc::new(fleet::join(&config, None)?);
    let door = OwnDoor::open(socket)?;
    if let Some(address) = config.metrics {
        let part = Arc::downgrade(&part);
        metrics::serve(address, move || {
            let clock = Some(part.upgrade()?.status());
            Some(Snapshot {
                datapath: None,
                clock,
            })
        })?;
    }
    let mut running = Running {
        given: options.0.clone(),
        config,
        part: Arc::clone(&part),
    };
    let notifier = Notifier::from_env();
    notifier.ready("synchronising");
    let outcome = loop {
        notifier.beat();
        let ready = wait(&[signals.as_fd(), door.as_fd()], PollTimeout::from(BEAT_MS));
        match ready.as_deref() {
            Ok([true, _]) => match asked(&signals) {
                Ok(Asked::Reload) => drop(running.reload()),
                stop => break stop.map(|_| ()),
            },
            Ok([_, true]) => door.answer(|request| match request {
                Request::Status => json(&part.status()),
                Request::Reload => json(&running.reload()),
                Request::Flow(_) => bail!("a clock has no flows"),
            }),
            Ok(_) => {}
            Err(_) => break ready.map(|_| ()),
        }
    };
    notifier.stopping();
    outcome
}

/// A clock that runs, as far as a reload changes it.
struct Running {
    given: Given,
    config: Configuration,
    part: Arc<Part>,
}

impl Running {
    /// Reads file, keys and members again. If any of them is refused, nothing changes.
    fn reload(&mut self) -> Reloaded {
        let outcome = self.try_reload();
        match &outcome {
            Ok(_) => info!("reloaded: keys and members are in use"),
            Err(error) => error!("not reloaded, the former configuration stays: {error:#}"),
        }
        let file = self.config.file.as_ref();
        Reloaded {
            file: file.map(|file| file.display().to_string()),
            error: outcome.as_ref().err().map(|error| format!("{error:#}")),
            changed: outcome.unwrap_or_default(),
        }
    }

    fn try_reload(&mut self) -> Result<Vec<String>> {
        let new = Configuration::load(&self.given, Daemon::Clock)?;
        let changed = self.config.changes(&new)?;
        let file = new.peers.key_file.as_deref();
        let keys = file.map_or(Ok(Keys::well_known()), Keys::read)?;
        self.part.set_members(&new.fleet)?;
        self.part.set_keys(keys);
        self.config = new;
        Ok(changed)
    }
}
