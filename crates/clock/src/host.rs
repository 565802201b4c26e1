// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Synchronisation on one host: a thread that wakes it, and what it publishes.

use std::{
    io,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::Receiver,
        Arc,
    },
    thread::JoinHandle,
};

use nix::time::ClockId;

use crate::{
    config::Config,
    keys::Keys,
    members::Members,
    node::{Begin, Node, Reader},
    roster::Roster,
    stamps::{now_mono_ns, now_ns, sleep_until, Socket},
    status::{FleetClock, OneWayDelays, Status},
};

/// A running synchronisation; it ends when dropped.
pub struct Host {
    reader: Reader,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Starts to take part, on a socket bound to the host's address, in the fleet that `rosters` describe.
    ///
    /// # Errors
    /// The thread cannot be created, or the host may not set the system clock but should.
    pub fn start(config: Config, socket: Socket, rosters: Receiver<Roster>) -> io::Result<Host> {
        let begin = Begin {
            mono_ns: now_mono_ns(),
            // Of the wall clock, so that numbers grow over restarts.
            seq: now_ns(ClockId::CLOCK_REALTIME).max(0) as u64 >> 10,
            epoch: boot(),
        };
        let node = Node::new(config, rosters, begin)?;
        let reader = node.reader().clone();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("clock".into())
            .spawn(move || run(node, socket, &stopped))?;
        Ok(Host {
            reader,
            stop,
            thread: Some(thread),
        })
    }

    /// Signs and checks messages with these keys from now on.
    pub fn set_keys(&self, keys: Keys) {
        self.reader.set_keys(keys);
    }

    /// Fleet time now, if it may be used.
    pub fn clock(&self) -> Option<FleetClock> {
        self.reader.clock(now_mono_ns())
    }

    /// The shortest one-way delays of the last half minute to neighbours.
    pub fn delays(&self) -> Vec<OneWayDelays> {
        self.reader.delays()
    }

    /// The members of the fleet, this host included.
    pub fn members(&self) -> Members {
        self.reader.members()
    }

    /// The status now, without the fleet in etcd, which the caller knows.
    pub fn status(&self) -> Status {
        self.reader.status(now_mono_ns())
    }
}

/// A number of this boot of the machine; 0 if the kernel does not say.
fn boot() -> u32 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    u32::from_str_radix(id.get(..8).unwrap_or_default(), 16).unwrap_or(0)
}

/// Wakes the synchronisation until told to stop.
fn run(mut node: Node, mut socket: Socket, stop: &AtomicBool) {
    // Sleeps end on time, not 50 us later.
    let _ = nix::sys::prctl::set_timerslack(1);
    while !stop.load(Ordering::Relaxed) {
        sleep_until(node.wake(&mut socket));
    }
    node.stop(now_mono_ns());
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
