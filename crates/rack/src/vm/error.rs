// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of the virtual machine, with their remedies.

use std::path::{Path, PathBuf};

/// Lines of guest output an error carries.
const TAIL_LINES: usize = 20;

/// A job has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// No kernel was found where the set-up puts it.
    #[error("no kernel in {}: run `make setup`, or name one with --kernel", .0.display())]
    NoKernel(PathBuf),
    /// A path given as kernel does not lead to a kernel with its modules.
    #[error("{}: {reason}", path.display())]
    BadKernel {
        /// The path as given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The kernel has a needed module neither built in nor beside it.
    #[error("kernel {release} has no module {module}, which the rack needs")]
    NoModule {
        /// Release of the kernel.
        release: String,
        /// The module.
        module: String,
    },
    /// A program of the host is missing or cannot be run.
    #[error("cannot run {program}: {source}; `make setup` installs it")]
    NoProgram {
        /// The program.
        program: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A file of the host cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The guest ended without handing over results.
    #[error("the guest died before its command ended; its last lines:\n{tail}")]
    GuestDied {
        /// Last lines of the emulator, the kernel and the command.
        tail: String,
    },
    /// The guest was stuck.
    #[error("the guest is stuck: {why}; its last lines:\n{tail}")]
    Stuck {
        /// The reason for the decision.
        why: super::Stuck,
        /// Last lines of the kernel and the command.
        tail: String,
    },
    /// The command ended with a failure.
    #[error("the command ended with exit code {code} in the guest; its last lines:\n{tail}")]
    CommandFailed {
        /// Its exit code.
        code: i32,
        /// Its last lines.
        tail: String,
    },
    /// The caller asked the guest to end.
    #[error("the run was cancelled")]
    Cancelled,
}

/// Turns an I/O error at `path` into a [`VmError`].
pub(super) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> VmError + '_ {
    move |source| VmError::Io {
        path: path.to_owned(),
        source,
    }
}

/// First words of the kernel's report of a panic; a trace of any length follows.
const TROUBLE: &[&str] = &["sysrq:", "Kernel panic", "BUG:", "Oops", "Out of memory"];

/// The kernel's report of a panic from its beginning, or else its last lines.
pub(super) fn trouble(console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    let is_trouble = |line: &&str| TROUBLE.iter().any(|word| line.contains(word));
    match lines.iter().position(is_trouble) {
        Some(first) => lines[first..lines.len().min(first + TAIL_LINES)].join("\n"),
        None => tail(console),
    }
}

/// The last lines of `text`.
pub(super) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
