//! What happens when the reader of standard output goes away, as in `onramp ... | head`.

use std::panic;

/// Exit code of a program that SIGPIPE ends, as shells show it: 128 + 13.
const EXIT_CODE: i32 = 141;

/// `println!` panics if nobody reads its pipe. The panic becomes a silent end, as of other Unix tools. SIGPIPE itself
/// stays ignored: the daemon and the rack must survive a peer that closes its end.
pub fn end_silently_without_reader() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let message = info.payload().downcast_ref::<String>();
        let message = message.map_or("", String::as_str);
        if message.starts_with("failed printing to std") && message.contains("Broken pipe") {
            std::process::exit(EXIT_CODE);
        }
        report(info);
    }));
}
