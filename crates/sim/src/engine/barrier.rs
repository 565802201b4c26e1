// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A barrier for threads. A waiting thread polls first, because a window is short, and then sleeps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Polls of the generation before a thread sleeps: half a millisecond, about the work of a window. Almost
/// none if threads share processors. There is no pause instruction between polls, because a hypervisor takes
/// the processor away from a guest that pauses often.
const LOOKS: u32 = 500_000;
const FEW_LOOKS: u32 = 10;
/// Interval at which a sleeping thread checks whether the barrier is broken.
const NAP: Duration = Duration::from_millis(100);

/// A reusable barrier for a number of threads.
pub(crate) struct Barrier {
    threads: usize,
    looks: u32,
    here: AtomicUsize,
    /// Number of times that all threads reached the barrier.
    generation: AtomicUsize,
    sleepers: AtomicUsize,
    broken: AtomicBool,
    mutex: Mutex<()>,
    everybody: Condvar,
}

/// Breaks a barrier if its thread panics.
pub(crate) struct BreakOnPanic<'a>(&'a Barrier);

impl Drop for BreakOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.give_up();
        }
    }
}

impl Barrier {
    pub fn new(threads: usize) -> Barrier {
        let processors = std::thread::available_parallelism().map_or(1, Into::into);
        Barrier {
            threads,
            looks: match threads <= processors {
                true => LOOKS,
                false => FEW_LOOKS,
            },
            here: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            sleepers: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            mutex: Mutex::new(()),
            everybody: Condvar::new(),
        }
    }

    /// Until the guard is dropped, a panic of this thread makes the waiting threads panic too.
    pub fn break_on_panic(&self) -> BreakOnPanic<'_> {
        BreakOnPanic(self)
    }

    /// Makes the waiting threads panic.
    pub fn give_up(&self) {
        self.broken.store(true, SeqCst);
    }

    /// Waits until all threads wait. Writes before the barrier are visible to all threads after it.
    ///
    /// # Panics
    /// Another thread has panicked.
    pub fn wait(&self) {
        let generation = self.generation.load(SeqCst);
        if self.here.fetch_add(1, SeqCst) + 1 == self.threads {
            self.here.store(0, SeqCst);
            self.generation.store(generation + 1, SeqCst);
            if self.sleepers.load(SeqCst) > 0 {
                // A thread that is about to sleep holds the mutex and polls once more.
                drop(self.mutex.lock());
                self.everybody.notify_all();
            }
            return;
        }
        for _ in 0..self.looks {
            if self.generation.load(SeqCst) != generation {
                return;
            }
        }
        self.sleep(generation);
    }

    fn sleep(&self, generation: usize) {
        self.sleepers.fetch_add(1, SeqCst);
        let mut guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        while self.generation.load(SeqCst) == generation && !self.broken.load(SeqCst) {
            let napped = self.everybody.wait_timeout(guard, NAP);
            guard = napped.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(guard);
        assert!(!self.broken.load(SeqCst), "another thread panicked");
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_a_round_ahead() {
        const ROUNDS: usize = 200;
        let (barrier, done) = (Barrier::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        assert!(done.fetch_add(1, SeqCst) < 3 * (round + 1));
                        barrier.wait();
                        assert!(done.load(SeqCst) >= 3 * (round + 1));
                        barrier.wait();
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 3 * ROUNDS);
    }

    #[test]
    fn a_panic_wakes_the_others() {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait());
            let panics = scope.spawn(|| {
                let _breaks = barrier.break_on_panic();
                panic!("on purpose");
            });
            assert!(panics.join().is_err());
            assert!(waits.join().is_err());
        });
    }
}
