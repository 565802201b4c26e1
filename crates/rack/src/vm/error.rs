//! What can go wrong with the virtual machine, in words that say what to do.

use std::path::{Path, PathBuf};

/// Lines of guest output an error carries.
const TAIL_LINES: usize = 20;

/// Why a job has no outcome.
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
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file of the host cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The guest ended without handing over results.
    #[error("the guest died before its command ended; its last lines:\n{tail}")]
    GuestDied {
        /// Last lines of the emulator, the kernel and the command.
        tail: String,
    },
    /// The guest no longer got on.
    #[error("the guest is stuck: {why}; its last lines:\n{tail}")]
    Stuck {
        /// How that is known.
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

/// How the kernel's account of its end begins; a trace as long as it likes follows.
const TROUBLE: &[&str] = &["sysrq:", "Kernel panic", "BUG:", "Oops", "Out of memory"];

/// What the kernel said of its trouble from the beginning, else its last lines.
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
