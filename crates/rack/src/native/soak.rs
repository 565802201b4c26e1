// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Measures the CPU time of a rack. The kernel's accounting counts interrupts that wake an idle CPU as idle
//! time, and nearly all of a rack's work happens there. So a thread of the lowest class counts while the CPU
//! is otherwise idle; the remaining time is the rack's work.
//!
//! For a machine with one CPU. In the virtual machine it turns skipped idle time into emulated
//! instructions, so a measured run takes two to three times as long.

use crate::error::{Doing, Result};
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Steps of the short and the long batch by whose difference a step is timed, and how often: the
/// fastest of each met no interrupt.
const BATCHES: [u64; 2] = [10_000, 30_000];
const TRIES: u32 = 200;

/// The counting thread; ends when dropped.
#[derive(Debug)]
pub struct Soak {
    shared: Arc<Shared>,
    ns_per_step: f64,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    steps: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    /// A step of the same few instructions every time, in calibration as in use.
    #[inline(never)]
    fn count(&self, most: u64) {
        // No copy of this function for a known number of steps.
        let most = black_box(most);
        let mut steps = 0;
        while steps < most && !self.stop.load(Ordering::Relaxed) {
            steps += 1;
            self.steps.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn fastest_ns(&self, steps: u64) -> f64 {
        let time = |_| {
            let started = Instant::now();
            self.count(steps);
            started.elapsed().as_nanos()
        };
        (0..TRIES).map(time).min().unwrap_or(0) as f64
    }
}

impl Soak {
    /// Starts to count; the machine must be quiet at this moment.
    pub fn start() -> Result<Soak> {
        let shared = Arc::new(Shared::default());
        let [short, long] = BATCHES.map(|steps| shared.fastest_ns(steps));
        let ns_per_step = (long - short) / (BATCHES[1] - BATCHES[0]) as f64;
        shared.steps.store(0, Ordering::Relaxed);
        let counting = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("soak".into())
            .spawn(move || {
                // With another class the numbers would be wrong, not the run: do not count at all.
                if lowest_class().is_ok() {
                    counting.count(u64::MAX);
                }
            });
        Ok(Soak {
            shared,
            ns_per_step,
            thread: Some(thread.doing(|| "starting a thread".into())?),
        })
    }

    /// CPU time that nobody else has wanted so far, ns.
    pub fn idle_ns(&self) -> i64 {
        (self.shared.steps.load(Ordering::Relaxed) as f64 * self.ns_per_step) as i64
    }
}

impl Drop for Soak {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lowest_class() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: changes the scheduling class of the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
