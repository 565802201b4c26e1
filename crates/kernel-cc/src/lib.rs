// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls of ours for the Linux kernel, in BPF (bpf/cc). Loads them, so that sockets and routes can name
//! them, and unloads them. A loaded one stays until it is unloaded or the machine ends: its link is pinned in `PINS`.
//! Does not know sockets, routes or scenarios.
#![warn(missing_docs)]

use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::{ErrorKind, Link};
use onramp_cc::{Cc, Setting, Tuning};
use onramp_units::Rate;

mod hooks;
mod rapid;
mod tbtcp;
mod timely;

pub use hooks::Error as HookError;

/// Where the links of loaded ones are pinned.
pub const PINS: &str = "/sys/fs/bpf/onramp/cc";
/// Those that the kernel has, separated by spaces.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// A congestion control of ours: its name in scenarios and in the kernel, and what registers it.
struct Control {
    name: &'static str,
    register: Register,
}

/// How it is registered.
enum Register {
    /// By itself.
    Alone(fn(&Settings) -> libbpf_rs::Result<Link>),
    /// With programs for devices, which it pins in a directory.
    Hooked(fn(&Settings, &Path) -> libbpf_rs::Result<Link>),
}

const CONTROLS: &[Control] = &[
    Control {
        name: "tbtcp",
        register: Register::Alone(tbtcp::register),
    },
    Control {
        name: "rapid",
        register: Register::Hooked(rapid::register),
    },
    Control {
        name: "timely",
        register: Register::Alone(timely::register),
    },
];

/// Why a congestion control cannot be loaded or unloaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its name is not one of ours.
    #[error("{name} is none of ours; onramp loads {}", names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The kernel has one of this name.
    #[error("the kernel has {name} already; unload it first: onramp cc unload {name}")]
    Present {
        /// The name.
        name: &'static str,
    },
    /// It is not loaded.
    #[error("{name} is not loaded by onramp ({} is missing)", path.display())]
    Absent {
        /// The name.
        name: &'static str,
        /// Its pin.
        path: PathBuf,
    },
    /// The kernel refuses it.
    #[error("the kernel does not load {name}: it {}", needs(source))]
    Kernel {
        /// The name.
        name: &'static str,
        /// The error of libbpf.
        source: libbpf_rs::Error,
    },
    /// It has no programs for devices.
    #[error("--dev: {name} needs nothing at devices; leave the option out")]
    NoHooks {
        /// The name.
        name: &'static str,
    },
    /// A device does not get its programs.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The pin cannot be made or removed.
    #[error("cannot write {}, on a file system of BPF (mount -t bpf bpf /sys/fs/bpf): {source}", path.display())]
    Pin {
        /// The pin.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// What the kernel lacks, from its error.
fn needs(error: &libbpf_rs::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: run the command with sudo"
        }
        _ => "needs Linux >= 6.4 with CONFIG_DEBUG_INFO_BTF=y and CONFIG_BPF_JIT=y",
    }
}

/// Names of all that can be loaded.
pub fn names() -> impl Iterator<Item = &'static str> {
    CONTROLS.iter().map(|control| control.name)
}

/// Names that sockets can have now, whoever has loaded them.
///
/// # Errors
///
/// The kernel does not tell.
pub fn available() -> io::Result<Vec<String>> {
    let text = std::fs::read_to_string(AVAILABLE)?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Parameters of one of ours: those that are set, and defaults.
pub struct Settings<'a> {
    cc: Cc,
    tuning: &'a Tuning,
}

impl Settings<'_> {
    fn get(&self, parameter: &str) -> Setting {
        // No default of a kernel's congestion control depends on it.
        let line = Rate::from_bits_per_s(1).expect("above zero");
        let default = || self.cc.default_of(parameter, line);
        let value = self.tuning.get(parameter).or_else(default);
        value.expect("the registry has this parameter")
    }

    fn fraction(&self, parameter: &str) -> f64 {
        match self.get(parameter) {
            Setting::Fraction(value) => value,
            other => panic!("{parameter} is no fraction: {other}"),
        }
    }

    fn q16(&self, parameter: &str) -> u32 {
        (self.fraction(parameter) * 65536.0).round() as u32
    }

    /// Up to a second.
    fn ns(&self, parameter: &str) -> u32 {
        match self.get(parameter) {
            Setting::Span(value) => (value.as_ps() / 1000) as u32,
            other => panic!("{parameter} is no time: {other}"),
        }
    }

    /// Any span.
    fn span_ns(&self, parameter: &str) -> u64 {
        match self.get(parameter) {
            Setting::Span(value) => (value.as_ps() / 1000) as u64,
            other => panic!("{parameter} is no time: {other}"),
        }
    }

    fn flag(&self, parameter: &str) -> bool {
        match self.get(parameter) {
            Setting::Flag(value) => value,
            other => panic!("{parameter} is no flag: {other}"),
        }
    }

    fn bytes_per_s(&self, parameter: &str) -> u64 {
        match self.get(parameter) {
            Setting::Rate(value) => (value.bits_per_s() / 8).max(1),
            other => panic!("{parameter} is no rate: {other}"),
        }
    }

    fn count(&self, parameter: &str) -> u32 {
        match self.get(parameter) {
            Setting::Count(value) => value,
            other => panic!("{parameter} is no count: {other}"),
        }
    }
}

/// Registers `name` with the kernel. `tuning` is within the bounds of the registry.
///
/// # Errors
///
/// See [`Error`]. Then nothing has changed.
pub fn load(name: &str, tuning: &Tuning) -> Result<(), Error> {
    let (control, path) = find(name)?;
    let name = control.name;
    if available().is_ok_and(|names| names.iter().any(|n| n == name)) {
        return Err(Error::Present { name });
    }
    let cc = Cc::named(name).expect("the registry has ours");
    let settings = Settings { cc, tuning };
    let pin = |path: &Path| {
        let path = path.to_owned();
        |source| Error::Pin { path, source }
    };
    std::fs::create_dir_all(PINS).map_err(pin(Path::new(PINS)))?;
    let link = match control.register {
        Register::Alone(register) => register(&settings),
        Register::Hooked(register) => {
            let directory = hooks_of(name);
            remove_hooks(name)?; // of a load that was interrupted
            std::fs::create_dir_all(&directory).map_err(pin(&directory))?;
            register(&settings, &directory)
        }
    };
    let pinned = link
        .map_err(|source| Error::Kernel { name, source })
        .and_then(|mut link| {
            link.pin(&path)
                .map_err(|error| pin(&path)(io::Error::other(error)))
        });
    if pinned.is_err() {
        let _ = remove_hooks(name); // the first error is the one to report
    }
    pinned
}

/// Whether `name` is one of ours that is loaded, by us.
#[must_use]
pub fn is_loaded(name: &str) -> bool {
    find(name).is_ok_and(|(_, path)| path.exists())
}

/// Whether devices of a host that has `name` need programs of it.
#[must_use]
pub fn needs_hooks(name: &str) -> bool {
    find(name).is_ok_and(|(control, _)| matches!(control.register, Register::Hooked(_)))
}

/// Attaches the programs of `name`, which is loaded, to a device of the calling thread's network namespace. They stay
/// until it is unloaded or the device is gone.
///
/// # Errors
///
/// See [`Error`]. Then the device has not changed.
pub fn hook(name: &str, dev: &str) -> Result<(), Error> {
    let (control, path) = find(name)?;
    let name = control.name;
    if !needs_hooks(name) {
        return Err(Error::NoHooks { name });
    }
    if !path.exists() {
        return Err(Error::Absent { name, path });
    }
    Ok(hooks::attach(&hooks_of(name), dev)?)
}

/// Takes `name` out of the kernel, and its programs from all devices. Connections that have it keep it until they end.
///
/// # Errors
///
/// See [`Error`].
pub fn unload(name: &str) -> Result<(), Error> {
    let (control, path) = find(name)?;
    std::fs::remove_file(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Error::Absent {
            name: control.name,
            path,
        },
        _ => Error::Pin { path, source },
    })?;
    remove_hooks(control.name)
}

/// Where its programs and their links are pinned.
fn hooks_of(name: &str) -> PathBuf {
    Path::new(PINS).join(format!("{name}-hooks"))
}

fn remove_hooks(name: &str) -> Result<(), Error> {
    let path = hooks_of(name);
    match std::fs::remove_dir_all(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Pin { path, source }),
        _ => Ok(()),
    }
}

fn find(name: &str) -> Result<(&'static Control, PathBuf), Error> {
    let control = CONTROLS.iter().find(|control| control.name == name);
    let control = control.ok_or_else(|| Error::Unknown { name: name.into() })?;
    Ok((control, Path::new(PINS).join(control.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_in_the_registry_and_in_linux_by_that_name() {
        for name in names() {
            assert!(name.len() < 16, "TCP_CA_NAME_MAX");
        }
        let registered = Cc::all().filter(|cc| cc.is_loaded_by_us());
        let registered: Vec<_> = registered.map(Cc::name).collect();
        assert_eq!(names().collect::<Vec<_>>(), registered);
    }

    #[test]
    fn a_name_that_is_none_of_ours_is_refused() {
        let error = load("cubic", &Tuning::default()).unwrap_err().to_string();
        assert_eq!(
            error,
            "cubic is none of ours; onramp loads tbtcp, rapid, timely"
        );
    }
}
