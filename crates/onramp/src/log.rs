// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Where and how the program logs: to standard error with levels; with colours on a terminal alone; with times unless
//! journald, which adds its own, reads.
use std::io::{stderr, IsTerminal};

use nix::sys::stat::fstat;

/// Begins to log.
pub fn start() {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let lines = tracing_subscriber::fmt()
        .with_writer(stderr)
        .with_target(false)
        .with_ansi(stderr().is_terminal() && !no_color);
    match is_journald() {
        true => lines.without_time().init(),
        false => lines.init(),
    }
}

/// Whether journald reads standard error: it names device and inode of the stream.
fn is_journald() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    fstat(stderr()).is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}
