// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about the daemon and its data path on the stock kernel, each a test of `cargo test`.
//!
//! Does: boot Debian's cloud kernel in virtual time (crates/rack/src/vm), run this same program in
//! it as the guest, and there build namespaces, start the real `onramp agent run`, move real TCP
//! through it, break something, and look at sockets, `tc` and `onramp status`.
//! Does not: measure performance (benches do), or need the network.
//!
//! The time of facts is virtual: it counts the instructions of the machine and skips what the machine idles. So a sleep,
//! an instant or a bound in a fact is the same however busy this machine is. Only host.rs runs in this machine's time,
//! and no verdict depends on that.
//!
//! A missing kernel fails every test (`make setup` fetches it); ONRAMP_NO_VM=1 reports them as
//! ignored instead. ONRAMP_VM_LOG=1 prints what the guests print, ONRAMP_VM_SEED=N makes other
//! machines of them.
mod agent;
mod compare;
mod facts;
mod guest;
mod host;
mod maps;
mod net;
mod orack;
mod tcp;
mod wire;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some(guest::ALL) => guest::run_all(&arguments[2..]),
        Some(guest::ONE) => guest::run_one(&arguments[2]),
        _ => host::run(),
    }
}
