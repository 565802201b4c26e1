// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Domains and their threads: one thread for each domain, one of them the caller's.
//!
//! Threads proceed in windows. A window begins with the first event of all domains and is as long as the
//! lookahead, so that no event in it affects another domain before its end. After a window threads exchange
//! their mail and wait for each other. All of them then compute the same start of the next window.
//!
//! Handles windows, mail and waiting. Does not know the meaning of events.

use crate::engine::barrier::Barrier;
use onramp_units::{Sim, Span, Time};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// No event.
const NEVER: i64 = i64::MAX;

/// A part of a simulation, for one thread.
pub(crate) trait Part: Send + 'static {
    /// Packets that a part sends to another one in a window.
    type Mail: Default + Send;

    /// Simulates up to `end`.
    fn run_until(&mut self, end: Time<Sim>);
    /// Time of its next event.
    fn next_at(&self) -> Option<Time<Sim>>;
    /// By part: the mail for it.
    fn outgoing(&mut self) -> &mut [Self::Mail];
    /// Time of the first packet of some mail; `None`: it is empty.
    fn due(mail: &Self::Mail) -> Option<Time<Sim>>;
    /// Takes the mail of another part and leaves `mail` empty.
    fn take_mail(&mut self, mail: &mut Self::Mail);
}

/// A part for each thread.
pub(crate) struct Team<P: Part> {
    common: Arc<Common<P>>,
    threads: Vec<JoinHandle<()>>,
}

/// State that threads share. It is double buffered: threads use one half in one window and the other half
/// in the next, so that one barrier for each window is enough.
struct Common<P: Part> {
    domains: Vec<Mutex<P>>,
    lookahead: Span,
    barrier: Barrier,
    /// The end of the simulation, and whether threads return.
    end: AtomicI64,
    over: AtomicBool,
    /// By half and domain: time of the first event in the domain or in its mail.
    next: [Vec<AtomicI64>; 2],
    /// By half, sender and receiver.
    mail: [Vec<Vec<Mutex<P::Mail>>>; 2],
}

impl<P: Part> Team<P> {
    /// A team of `domains`, which do not affect each other within `lookahead`.
    pub fn new(domains: Vec<P>, lookahead: Span) -> Team<P> {
        let count = domains.len();
        let next = || (0..count).map(|_| AtomicI64::new(NEVER)).collect();
        let row = || (0..count).map(|_| Mutex::default()).collect();
        let mail = || (0..count).map(|_| row()).collect();
        let common = Arc::new(Common {
            domains: domains.into_iter().map(Mutex::new).collect(),
            lookahead,
            barrier: Barrier::new(count),
            end: AtomicI64::new(0),
            over: AtomicBool::new(false),
            next: [next(), next()],
            mail: [mail(), mail()],
        });
        let spawn = |me| {
            let common = common.clone();
            std::thread::spawn(move || common.work(me))
        };
        Team {
            threads: (1..count).map(spawn).collect(),
            common,
        }
    }

    /// Domain `n`, between two runs.
    pub fn domain(&self, n: usize) -> MutexGuard<'_, P> {
        self.common.domain(n)
    }

    /// Simulates all domains up to `end`, or until no event remains.
    pub fn run_until(&mut self, end: Time<Sim>) {
        if self.threads.is_empty() {
            return self.domain(0).run_until(end);
        }
        self.common.end.store(end.ticks(), Relaxed);
        self.common.barrier.wait();
        self.common.go(0);
        // So that no other thread has a domain when this returns.
        self.common.barrier.wait();
    }
}

impl<P: Part> Drop for Team<P> {
    fn drop(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        if std::thread::panicking() {
            return self.common.barrier.give_up();
        }
        self.common.over.store(true, Relaxed);
        self.common.barrier.wait();
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed its message and broken the barrier.
            let _ = thread.join();
        }
    }
}

impl<P: Part> Common<P> {
    fn domain(&self, n: usize) -> MutexGuard<'_, P> {
        lock(&self.domains[n])
    }

    /// The loop of thread `me`.
    fn work(&self, me: usize) {
        let _breaks = self.barrier.break_on_panic();
        loop {
            self.barrier.wait();
            if self.over.load(Relaxed) {
                return;
            }
            self.go(me);
            self.barrier.wait();
        }
    }

    /// Simulates domain `me` until the end, in step with the others.
    fn go(&self, me: usize) {
        let _breaks = self.barrier.break_on_panic();
        let mut domain = self.domain(me);
        let end = Time::from_ticks(self.end.load(Relaxed));
        self.tell_next(me, 0, domain.next_at());
        for window in 0..usize::MAX {
            let (before, now) = (window % 2, (window + 1) % 2);
            self.barrier.wait();
            let next = self.next[before].iter().map(|n| n.load(Relaxed));
            let first = next.min().filter(|&first| first < NEVER);
            self.take_mail(me, before, &mut domain);
            let Some(start) = first.map(Time::from_ticks).filter(|&first| first <= end) else {
                return domain.run_until(end);
            };
            // Events at the end of a window belong to the next one, because a line adds transmission time
            // to its delay.
            domain.run_until(end.min(start + self.lookahead));
            let mail = self.give_mail(me, now, &mut domain);
            let next = domain.next_at().into_iter().chain(mail).min();
            self.tell_next(me, now, next);
        }
    }

    fn tell_next(&self, me: usize, half: usize, next: Option<Time<Sim>>) {
        self.next[half][me].store(next.map_or(NEVER, Time::ticks), Relaxed);
    }

    /// Hands over the mail of a domain, and returns the time of its first packet.
    fn give_mail(&self, me: usize, half: usize, domain: &mut P) -> Option<Time<Sim>> {
        let mut first = None;
        for (mail, outgoing) in self.mail[half][me].iter().zip(domain.outgoing()) {
            if let Some(due) = P::due(outgoing) {
                first = Some(first.map_or(due, |first: Time<Sim>| first.min(due)));
                std::mem::swap(&mut *lock(mail), outgoing);
            }
        }
        first
    }

    fn take_mail(&self, me: usize, half: usize, domain: &mut P) {
        for of_sender in &self.mail[half] {
            domain.take_mail(&mut lock(&of_sender[me]));
        }
    }
}

/// The state after a panic is never read, because the barrier is broken.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panicked")
}
