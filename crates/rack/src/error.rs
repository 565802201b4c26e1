// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of a rack, with the values that explain them.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A rack could not be built, run or measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused an operation.
    #[error("{doing}: {source}")]
    System {
        /// The operation and its object.
        doing: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel does not take a congestion control of ours.
    #[error(transparent)]
    CongestionControl(onramp_kernel_cc::Error),
    /// Results could not be read or written.
    #[error(transparent)]
    Results(#[from] onramp_results::Error),
    /// A file has another format than this version's.
    #[error("{path}: {reason}")]
    Format {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// `ip` or `tc` failed.
    #[error("`{command}` failed: {message}")]
    Tool {
        /// The command line.
        command: String,
        /// Its standard error.
        message: String,
    },
    /// A BPF program was not accepted.
    #[error("{doing}: {source}")]
    Bpf {
        /// The operation and its object.
        doing: String,
        /// libbpf's error.
        source: libbpf_rs::Error,
    },
    /// The agent of a host failed.
    #[error("On-Ramp agent of host {host}: {reason}")]
    Agent {
        /// Host number.
        host: u32,
        /// What happened.
        reason: String,
    },
    /// Connections were not established before the measured time.
    #[error("{missing} of {wanted} connections not established after {waited_s} s")]
    Unconnected {
        /// Number of missing connections.
        missing: usize,
        /// Number of required connections.
        wanted: usize,
        /// Time for which the rack waited, in its own (dilated) time.
        waited_s: u64,
    },
    /// The scenario is too much for a rack.
    #[error("{0}")]
    Limit(onramp_scenario::RackLimit),
    /// The run was interrupted.
    #[error("ended before it had finished")]
    Cancelled,
    /// This kernel lacks requirements of the rack, and no virtual machine was requested.
    #[error("this kernel cannot be a rack: {}", list(.0))]
    Incapable(Vec<Missing>),
    /// The virtual machine failed.
    #[error(transparent)]
    Vm(#[from] crate::vm::VmError),
}

/// A requirement that this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The requirement.
    pub what: String,
    /// The machine's error.
    pub because: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.because)
    }
}

fn list(missing: &[Missing]) -> String {
    missing
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Result of the rack.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the operation to an error of the kernel.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::System {
            doing: what(),
            source,
        })
    }
}

impl<T> Doing<T> for Result<T, libbpf_rs::Error> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Bpf {
            doing: what(),
            source,
        })
    }
}

impl<T> Doing<T> for rustix::io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(io::Error::from).doing(what)
    }
}
