//! Domains and the threads that simulate them, one each, the caller's among them.
//!
//! Threads go from window to window. A window begins with the next event of all domains and is as long
//! as the lookahead: nothing that happens in it means anything to another domain before its end. Then
//! they hand over their mail, wait for each other, and see alike where the next window begins.
//!
//! Does: windows, mail, waiting. Does not: know what events mean.

use crate::engine::barrier::Barrier;
use onramp_units::{Sim, Span, Time};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// No event.
const NEVER: i64 = i64::MAX;

/// A part of a simulation, for one thread.
pub(crate) trait Part: Send + 'static {
    /// What a part sends to another one in a window.
    type Mail: Default + Send;

    /// Lets time go by, to `end`.
    fn run_until(&mut self, end: Time<Sim>);
    /// When its next event is due.
    fn next_at(&self) -> Option<Time<Sim>>;
    /// By part: the mail for it.
    fn outgoing(&mut self) -> &mut [Self::Mail];
    /// When the first of some mail is due; `None`: it is empty.
    fn due(mail: &Self::Mail) -> Option<Time<Sim>>;
    /// Takes what another part has sent; `mail` is empty then.
    fn take_mail(&mut self, mail: &mut Self::Mail);
}

/// A part for each thread.
pub(crate) struct Team<P: Part> {
    common: Arc<Common<P>>,
    threads: Vec<JoinHandle<()>>,
}

/// What threads share. Of what is there twice they use one half in one window and the other in the
/// next, so that waiting once a window is enough.
struct Common<P: Part> {
    domains: Vec<Mutex<P>>,
    lookahead: Span,
    barrier: Barrier,
    /// How far to go, and whether to come back.
    end: AtomicI64,
    over: AtomicBool,
    /// By half and domain: when there is something to do, in it or in mail from it.
    next: [Vec<AtomicI64>; 2],
    /// By half, sender and receiver.
    mail: [Vec<Vec<Mutex<P::Mail>>>; 2],
}

impl<P: Part> Team<P> {
    /// Of `domains`, which need not look at each other within `lookahead`.
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

    /// Lets time go by in all domains, to `end` or until nothing is left to do.
    pub fn run_until(&mut self, end: Time<Sim>) {
        if self.threads.is_empty() {
            return self.domain(0).run_until(end);
        }
        self.common.end.store(end.ticks(), Relaxed);
        self.common.barrier.wait();
        self.common.go(0);
        // So that nobody else has a domain when this returns.
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
            // One that panicked has said so, and the barrier has told the others.
            let _ = thread.join();
        }
    }
}

impl<P: Part> Common<P> {
    fn domain(&self, n: usize) -> MutexGuard<'_, P> {
        lock(&self.domains[n])
    }

    /// What thread `me` does while the team exists.
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
            // Of what a packet does at the very end of a window the next one takes care, for lines take
            // time beside their delay.
            domain.run_until(end.min(start + self.lookahead));
            let mail = self.give_mail(me, now, &mut domain);
            let next = domain.next_at().into_iter().chain(mail).min();
            self.tell_next(me, now, next);
        }
    }

    fn tell_next(&self, me: usize, half: usize, next: Option<Time<Sim>>) {
        self.next[half][me].store(next.map_or(NEVER, Time::ticks), Relaxed);
    }

    /// Hands over what a domain has for others; when the first of it is due.
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

/// Nobody reads what a thread left behind that panicked: the barrier is broken then.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panicked")
}
