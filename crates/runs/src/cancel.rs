// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Ctrl-C: a flag that runs check, and the error of an interrupted command.

use std::sync::atomic::{AtomicBool, Ordering};

/// A command was interrupted. It exits with [`Interrupted::EXIT_CODE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted: {whole} of {all} {things} are complete; repeat the command to resume")]
pub struct Interrupted {
    /// Those that are complete.
    pub whole: usize,
    /// All of the command.
    pub all: usize,
    /// What they are: "runs".
    pub things: &'static str,
}

impl Interrupted {
    /// Exit code of a command that SIGINT ended, as in shells: 128 + 2.
    pub const EXIT_CODE: u8 = 130;
}

/// The flag that SIGINT and SIGTERM set from now on.
pub fn cancelled_by_signals() -> &'static AtomicBool {
    static CANCEL: AtomicBool = AtomicBool::new(false);
    // Setting a second handler fails; the first one sets the same flag.
    let _ = ctrlc::set_handler(|| CANCEL.store(true, Ordering::Relaxed));
    &CANCEL
}
