// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What happens when standard output takes no more: its reader goes away, as in `onramp ... | head`, or a disk is full.

use std::fmt::Display;
use std::io::{stderr, Write as _};
use std::panic;

/// Exit code of a program that SIGPIPE ends, as shells show it: 128 + 13.
const EXIT_CODE: i32 = 141;

/// `println!` panics if its output cannot be written. If nobody reads the pipe, the panic becomes a silent end, as of other
/// Unix tools, else an error. SIGPIPE itself stays ignored: the daemon and the rack must survive a peer that closes its end.
pub fn end_without_output() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let message = info.payload().downcast_ref::<String>();
        let message = message.map_or("", String::as_str);
        if message.starts_with("failed printing to std") && message.contains("Broken pipe") {
            std::process::exit(EXIT_CODE);
        }
        if let Some(cause) = message.strip_prefix("failed printing to stdout: ") {
            cannot_write(&cause);
        }
        if message.starts_with("failed printing to stderr: ") {
            std::process::exit(1); // there is nowhere to say why
        }
        report(info);
    }));
}

/// Ends the process because standard output takes no more.
pub fn cannot_write(cause: &dyn Display) -> ! {
    let _ = writeln!(stderr(), "onramp: cannot write to standard output: {cause}");
    std::process::exit(1);
}
