// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls of ours for the Linux kernel, in BPF (bpf/cc). Loads them, so that sockets and routes can name
//! them, and unloads them. A loaded one stays until it is unloaded or the machine ends: its link is pinned in `PINS`.
//! Does not know sockets, routes or scenarios.
#![warn(missing_docs)]

use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::ErrorKind;
use onramp_cc::{Cc, Tuning};

mod hooks;
mod objects;

pub use hooks::Error as HookError;

/// Where the links of loaded ones are pinned.
pub const PINS: &str = "/sys/fs/bpf/onramp/cc";
/// Those that the kernel has, separated by spaces.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

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
    Cc::all().filter(|cc| cc.is_loaded_by_us()).map(Cc::name)
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

/// Registers `name` with the kernel. `tuning` is within the bounds of the registry.
///
/// # Errors
///
/// See [`Error`]. Then nothing has changed.
pub fn load(name: &str, tuning: &Tuning) -> Result<(), Error> {
    let (cc, path) = find(name)?;
    let name = cc.name();
    if available().is_ok_and(|names| names.iter().any(|n| n == name)) {
        return Err(Error::Present { name });
    }
    let configuration = cc.in_kernel(tuning).expect("ours have one");
    let pin = |path: &Path| {
        let path = path.to_owned();
        |source| Error::Pin { path, source }
    };
    std::fs::create_dir_all(PINS).map_err(pin(Path::new(PINS)))?;
    let hooks = needs_hooks(name).then(|| hooks_of(name));
    if let Some(directory) = &hooks {
        remove_hooks(name)?; // of a load that was interrupted
        std::fs::create_dir_all(directory).map_err(pin(directory))?;
    }
    let pinned = objects::register(name, &configuration, hooks.as_deref())
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
    objects::hooks(name).is_some()
}

/// Attaches the programs of `name`, which is loaded, to a device of the calling thread's network namespace. They stay
/// until it is unloaded or the device is gone.
///
/// # Errors
///
/// See [`Error`]. Then the device has not changed.
pub fn hook(name: &str, dev: &str) -> Result<(), Error> {
    let (cc, path) = find(name)?;
    let name = cc.name();
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
    let (cc, path) = find(name)?;
    let name = cc.name();
    std::fs::remove_file(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Error::Absent { name, path },
        _ => Error::Pin { path, source },
    })?;
    remove_hooks(name)
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

/// One of ours, and its pin.
fn find(name: &str) -> Result<(Cc, PathBuf), Error> {
    let cc = Cc::all().find(|cc| cc.is_loaded_by_us() && cc.name() == name);
    let cc = cc.ok_or_else(|| Error::Unknown { name: name.into() })?;
    Ok((cc, Path::new(PINS).join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_program_with_room_for_its_configuration_and_a_name_for_linux() {
        for cc in Cc::all() {
            let Some(configuration) = cc.in_kernel(&Tuning::default()) else {
                continue;
            };
            assert!(cc.name().len() < 16, "TCP_CA_NAME_MAX: {cc}");
            objects::open(cc.name(), &configuration).unwrap();
            if let Some(hooks) = objects::hooks(cc.name()) {
                objects::open(&hooks, &configuration).unwrap();
            }
        }
    }

    #[test]
    fn no_program_is_for_nobody() {
        let is_used = |object: &str| {
            let name = object.strip_suffix(objects::HOOKS).unwrap_or(object);
            names().any(|own| own == name)
        };
        for object in objects::names() {
            assert!(is_used(object), "bpf/cc/{object}.bpf.c");
        }
    }

    #[test]
    fn a_name_that_is_none_of_ours_is_refused() {
        let error = load("cubic", &Tuning::default()).unwrap_err().to_string();
        let start = "cubic is none of ours; onramp loads ";
        let all = names().collect::<Vec<_>>().join(", ");
        assert_eq!(error, format!("{start}{all}"));
    }
}
