// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Tells systemd that the daemon is ready, reloads, stops, or still works (sd_notify, watchdog). Without systemd it does
//! nothing.
use std::{
    env, io,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    path::PathBuf,
};

use nix::time::{clock_gettime, ClockId};
use tracing::warn;

/// Where systemd listens.
pub struct Notifier {
    socket: Option<SocketAddr>,
}

impl Notifier {
    /// Reads the environment that systemd gives to a service.
    pub fn from_env() -> Notifier {
        let text = env::var_os("NOTIFY_SOCKET").filter(|text| !text.is_empty());
        let socket = text.and_then(|text| {
            let text = text.to_string_lossy().into_owned();
            let address = address(&text);
            address
                .map_err(|error| warn!("NOTIFY_SOCKET is {text}: {error}; systemd is told nothing"))
                .ok()
        });
        Notifier { socket }
    }

    /// The daemon does its work.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// What it does has changed.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={status}"));
    }

    /// The daemon reads its configuration again; `ready` ends that.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
        let us = now.map_or(0, |now| now.tv_sec() * 1_000_000 + now.tv_nsec() / 1_000);
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={us}"));
    }

    /// The daemon restores its devices and ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// The daemon works. Once a second; the watchdog of a unit should wait for several.
    pub fn beat(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, text: &str) {
        let Some(socket) = &self.socket else { return };
        let sent =
            UnixDatagram::unbound().and_then(|own| own.send_to_addr(text.as_bytes(), socket));
        if let Err(error) = sent {
            warn!(
                "systemd was not told {:?}: {error}",
                text.lines().next().unwrap_or("")
            );
        }
    }
}

/// A path, or with @ an abstract name.
fn address(text: &str) -> io::Result<SocketAddr> {
    match text.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(PathBuf::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_is_told_over_paths_and_abstract_names() {
        let path = env::temp_dir().join(format!("onramp-notify-{}", std::process::id()));
        let abstract_name = format!("@onramp-notify-{}", std::process::id());
        for text in [path.display().to_string(), abstract_name] {
            let socket = address(&text).unwrap();
            let systemd = UnixDatagram::bind_addr(&socket).unwrap();
            let notifier = Notifier {
                socket: Some(socket),
            };
            notifier.reloading();
            notifier.ready("holding on eth0");
            let mut bytes = [0; 200];
            let mut next = || {
                let length = systemd.recv(&mut bytes).unwrap();
                String::from_utf8_lossy(&bytes[..length]).into_owned()
            };
            assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
            assert_eq!(next(), "READY=1\nSTATUS=holding on eth0");
        }
        std::fs::remove_file(path).unwrap();
        Notifier { socket: None }.beat();
    }
}
