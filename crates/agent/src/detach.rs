// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp detach`: restores the devices of this network namespace that daemons left without restoring them, and removes
//! all else that they left.
use std::path::Path;

use anyhow::{bail, Context, Result};
use onramp_status::{clock_socket_path, netns_inode, query, socket_path, Status, RUN_DIR};

use crate::{
    config::BPFFS,
    datapath::{
        edge::{restore_left, NetDevice},
        kept,
        pins::Pins,
        remove_filters,
    },
    devices::{self, Lock},
};

/// Removes what daemons left on `dev`, or on all devices. Returns what was removed, a line each.
///
/// # Errors
/// A daemon runs, or something cannot be removed.
pub fn detach(dev: Option<&str>, bpffs: Option<&Path>) -> Result<Vec<String>> {
    let bpffs = bpffs.unwrap_or(Path::new(BPFFS));
    let netns = netns_inode().context("reading the network namespace")?;
    let names = match dev {
        Some(dev) => vec![dev.to_owned()],
        None => devices::names()?,
    };
    for name in &names {
        if let Ok(daemon) = query::<Status>(&socket_path(netns, name)) {
            bail!(
                "On-Ramp runs on {name} (pid {0}) and restores it when it stops; stop it first: kill {0}",
                daemon.pid
            );
        }
    }
    libbpf_rs::set_print(None); // it would print an error for each device that has no filter
    let mut removed = vec![];
    for name in &names {
        let parts =
            detach_one(name, netns, bpffs).with_context(|| format!("cannot restore {name}"))?;
        if !parts.is_empty() {
            removed.push(format!("{name}: {}", parts.join(", ")));
        }
    }
    for gone in kept::sweep(bpffs)? {
        removed.push(format!("{gone}: the pins of a device that has gone"));
    }
    if dev.is_none() {
        let socket = clock_socket_path(netns);
        if query::<serde_json::Value>(&socket).is_err() {
            let _ = std::fs::remove_file(socket);
        }
    }
    let _ = std::fs::remove_dir(RUN_DIR); // unless others are in it
    Ok(removed)
}

/// Returns what was removed.
fn detach_one(dev: &str, netns: u64, bpffs: &Path) -> Result<Vec<String>> {
    let ifindex = devices::index(dev).with_context(|| {
        format!("--dev is {dev}, which is not a network device here; ip link lists them")
    })?;
    let place = NetDevice::of(ifindex)?;
    let _lock = Lock::take(place.lock_file())?;
    let mut removed = vec![];
    let has_pins = Pins::of(bpffs, place.name()).map_or(Ok(false), |pins| pins.clear())?;
    if has_pins {
        removed.push("tcx programs and maps".to_owned());
    }
    if remove_filters(ifindex) {
        removed.push("filters of clsact".to_owned());
    }
    removed.extend(restore_left(place)?);
    if std::fs::remove_file(socket_path(netns, dev)).is_ok() {
        removed.push("the socket of a daemon that was killed".to_owned());
    }
    Ok(removed)
}
