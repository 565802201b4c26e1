// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What tests need that run real programs on this machine: waiting for an event, and addresses that nobody else has.
//! No outcome depends on this machine's speed or on what else runs on it.
#![allow(dead_code)] // each test that includes this file uses a part of it

use std::{
    net::{Ipv4Addr, SocketAddr},
    process,
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

/// After so long a test hangs: no event takes a tenth of it, however busy the machine.
const HANG: Duration = Duration::from_secs(1800);
const LOOK: Duration = Duration::from_millis(20);

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now(); // machine: a guard against a test that hangs
    while !is_so() {
        assert!(began.elapsed() < HANG, "never: {what}"); // machine: as above
        thread::sleep(LOOK); // machine: between two looks
    }
}

/// Addresses of 127.0.0.0/8, with one port, free for TCP and UDP. They have the number of this process, and each call
/// takes another port, none that the kernel gives to connections.
pub fn addresses<const N: usize>() -> [SocketAddr; N] {
    /// Numbers of processes have 22 bits.
    const MOST: usize = 4;
    const { assert!(N <= MOST) };
    static PORT: AtomicU16 = AtomicU16::new(10_000);
    let first = Ipv4Addr::new(127, 0, 0, 0).to_bits() + process::id() * MOST as u32;
    let port = PORT.fetch_add(1, Ordering::Relaxed);
    std::array::from_fn(|n| (Ipv4Addr::from_bits(first + n as u32), port).into())
}
