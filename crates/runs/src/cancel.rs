//! Ctrl-C: a flag that runs look at, and the error that a command ends with.

use std::sync::atomic::{AtomicBool, Ordering};

/// Somebody ended a command early. The command exits with [`Interrupted::EXIT_CODE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted: {whole} of {runs} runs are complete; the same command resumes")]
pub struct Interrupted {
    /// Runs that are complete.
    pub whole: usize,
    /// Runs that were asked for.
    pub runs: usize,
}

impl Interrupted {
    /// What shells give a command that SIGINT ended: 128 + 2.
    pub const EXIT_CODE: u8 = 130;
}

/// The flag that SIGINT and SIGTERM set from now on.
pub fn cancelled_by_signals() -> &'static AtomicBool {
    static CANCEL: AtomicBool = AtomicBool::new(false);
    // A second handler is refused; the first one serves the same flag.
    let _ = ctrlc::set_handler(|| CANCEL.store(true, Ordering::Relaxed));
    &CANCEL
}
