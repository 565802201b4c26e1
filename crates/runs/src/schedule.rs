// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Makes runs in order, several at a time, until all are complete, one fails, or an interrupt.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::estimate::{seconds_left, Underway};
use crate::{Running, Status};

/// Fraction of all work that must be complete before the remaining time is estimated.
const TELLING: f64 = 0.02;

/// Shortest time between two records of a run's progress. All runs wait for each of them.
const PERIOD: Duration = Duration::from_millis(20);

/// A run to make.
pub struct Job<'a, E> {
    /// Its number in its scenario.
    pub index: usize,
    /// Its estimated time, in a unit that the jobs of a schedule share.
    pub weight: f64,
    /// Makes the run. It polls [`Handle::is_cancelled`], and ends when that is true.
    pub run: Make<'a, E>,
}

/// The function that makes a run.
pub type Make<'a, E> = Box<dyn FnOnce(&Handle<'_>) -> Result<(), E> + Send + 'a>;

/// Threads of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads {
    /// Threads of all runs together.
    pub in_all: usize,
    /// Upper bound for one run, if there are fewer runs than threads.
    pub of_a_run: usize,
}

impl Threads {
    /// Number of `free` threads for the next of `waiting` runs.
    pub(crate) fn share(self, free: usize, waiting: usize) -> usize {
        (free / waiting.max(1)).clamp(1, self.of_a_run)
    }
}

/// A run's view of its schedule.
pub struct Handle<'a> {
    /// Threads that it may use.
    pub threads: usize,
    index: usize,
    board: &'a dyn Noting,
    cancel: &'a AtomicBool,
    noted: Cell<Option<Instant>>,
}

impl Handle<'_> {
    /// Records the run's progress, 0 to 1 of its time, and its current step. Cheap: what follows too soon is not recorded.
    pub fn note(&self, done: f64, doing: impl FnOnce() -> String) {
        if self
            .noted
            .get()
            .is_some_and(|noted| noted.elapsed() < PERIOD)
        {
            return;
        }
        self.noted.set(Some(Instant::now()));
        self.board.note(self.index, done, doing());
    }

    /// Whether the run must end now.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

/// Runs `jobs` in order and calls `show` with the status. After a failure, or when `cancel` becomes true,
/// no more runs start.
///
/// # Errors
/// The first failure, after the runs in progress have ended.
pub fn run_all<E: Send>(
    jobs: Vec<Job<'_, E>>,
    threads: Threads,
    cancel: &AtomicBool,
    show: &mut (dyn FnMut(&Status) + Send),
) -> Result<(), E> {
    let workers = threads.in_all.clamp(1, jobs.len().max(1));
    let board = Mutex::new(Board::new(jobs, threads, show));
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(|| work(&board, cancel));
        }
        work(&board, cancel);
    });
    let failure = board.into_inner().expect("no run panicked").failure;
    failure.map_or(Ok(()), Err)
}

/// Takes runs until none remain.
fn work<E: Send>(board: &Mutex<Board<'_, '_, E>>, cancel: &AtomicBool) {
    while !cancel.load(Ordering::Relaxed) {
        let Some((job, threads)) = lock(board).take() else {
            return;
        };
        let handle = Handle {
            threads,
            index: job.index,
            board,
            cancel,
            noted: Cell::new(None),
        };
        let outcome = (job.run)(&handle);
        lock(board).finish(job.index, outcome);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no run panicked")
}

/// A [`Board`] without its error type.
trait Noting: Sync {
    fn note(&self, index: usize, done: f64, doing: String);
}

impl<E: Send> Noting for Mutex<Board<'_, '_, E>> {
    fn note(&self, index: usize, done: f64, doing: String) {
        lock(self).note(index, done, doing);
    }
}

/// A run in progress.
struct InProgress {
    shown: Running,
    weight: f64,
    threads: usize,
    started: Instant,
}

impl InProgress {
    fn work_done(&self) -> f64 {
        self.weight * self.shown.done
    }

    /// Thread seconds that it has used so far.
    fn used_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * self.threads as f64
    }
}

/// State that workers share.
struct Board<'a, 's, E> {
    waiting: VecDeque<Job<'a, E>>,
    threads: Threads,
    free: usize,
    running: Vec<InProgress>,
    runs: usize,
    finished: usize,
    weight: f64,
    finished_weight: f64,
    finished_used_s: f64,
    started: Instant,
    failure: Option<E>,
    show: &'s mut (dyn FnMut(&Status) + Send),
}

impl<'a, 's, E> Board<'a, 's, E> {
    fn new(
        jobs: Vec<Job<'a, E>>,
        threads: Threads,
        show: &'s mut (dyn FnMut(&Status) + Send),
    ) -> Self {
        Board {
            runs: jobs.len(),
            weight: jobs.iter().map(|job| job.weight).sum(),
            waiting: jobs.into(),
            threads,
            free: threads.in_all,
            running: Vec::new(),
            finished: 0,
            finished_weight: 0.0,
            finished_used_s: 0.0,
            started: Instant::now(),
            failure: None,
            show,
        }
    }

    /// The next run, and its number of threads.
    fn take(&mut self) -> Option<(Job<'a, E>, usize)> {
        if self.failure.is_some() {
            return None;
        }
        let threads = self.threads.share(self.free, self.waiting.len());
        let job = self.waiting.pop_front()?;
        self.free = self.free.saturating_sub(threads);
        self.running.push(InProgress {
            shown: Running {
                index: job.index,
                done: 0.0,
                doing: String::new(),
            },
            weight: job.weight,
            threads,
            started: Instant::now(),
        });
        self.tell();
        Some((job, threads))
    }

    fn note(&mut self, index: usize, done: f64, doing: String) {
        let entry = |entry: &&mut InProgress| entry.shown.index == index;
        if let Some(entry) = self.running.iter_mut().find(entry) {
            entry.shown.done = done.clamp(0.0, 1.0);
            entry.shown.doing = doing;
        }
        self.tell();
    }

    fn finish(&mut self, index: usize, outcome: Result<(), E>) {
        let entry = |entry: &InProgress| entry.shown.index == index;
        if let Some(at) = self.running.iter().position(entry) {
            let entry = self.running.remove(at);
            self.free += entry.threads;
            self.finished_weight += entry.weight;
            self.finished_used_s += entry.used_s();
        }
        match outcome {
            Ok(()) => self.finished += 1,
            Err(error) => {
                self.failure.get_or_insert(error);
            }
        }
        self.tell();
    }

    fn tell(&mut self) {
        let status = Status {
            runs: self.runs,
            finished: self.finished,
            running: self.running.iter().map(|e| e.shown.clone()).collect(),
            elapsed: self.started.elapsed(),
            left: self.left_s().map(std::time::Duration::from_secs_f64),
        };
        (self.show)(&status);
    }

    /// None while too little is complete for an estimate.
    fn left_s(&self) -> Option<f64> {
        let sum = |of: fn(&InProgress) -> f64| self.running.iter().map(of).sum::<f64>();
        let work = self.finished_weight + sum(InProgress::work_done);
        let used_s = self.finished_used_s + sum(InProgress::used_s);
        let underway = self.running.iter().map(|entry| Underway {
            left: entry.weight - entry.work_done(),
            threads: entry.threads,
        });
        let waiting: Vec<f64> = self.waiting.iter().map(|job| job.weight).collect();
        (work > TELLING * self.weight).then(|| {
            let underway: Vec<_> = underway.collect();
            seconds_left(&underway, &waiting, self.threads, used_s / work)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn jobs<'a>(
        count: usize,
        run: impl Fn(usize, &Handle<'_>) -> Result<(), usize> + Copy + Send + 'a,
    ) -> Vec<Job<'a, usize>> {
        let job = |index| Job {
            index,
            weight: 1.0,
            run: Box::new(move |handle: &Handle<'_>| run(index, handle)),
        };
        (0..count).map(job).collect()
    }

    fn each(in_all: usize) -> Threads {
        Threads {
            in_all,
            of_a_run: 1,
        }
    }

    static GO_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn every_run_is_made_once_whatever_the_number_of_threads() {
        for threads in [1, 3, 20] {
            let made = AtomicUsize::new(0);
            let run = |index: usize, _: &Handle<'_>| {
                made.fetch_add(1 << (4 * index), Ordering::Relaxed);
                Ok(())
            };
            let mut last = None;
            let mut show = |status: &Status| last = Some(status.clone());
            run_all(jobs(7, run), each(threads), &GO_ON, &mut show).unwrap();
            assert_eq!(made.into_inner(), 0x111_1111);
            let last = last.unwrap();
            assert_eq!((last.finished, last.running.len()), (7, 0));
            assert_eq!(last.part_done(), 1.0);
        }
    }

    #[test]
    fn no_run_starts_after_a_failure() {
        let run = |index: usize, _: &Handle<'_>| if index == 2 { Err(index) } else { Ok(()) };
        let mut finished = 0;
        let mut show = |status: &Status| finished = status.finished;
        let failure = run_all(jobs(5, run), each(1), &GO_ON, &mut show);
        assert_eq!((failure, finished), (Err(2), 2));
    }

    #[test]
    fn no_run_starts_after_cancellation_and_the_one_under_way_sees_it() {
        let cancel = AtomicBool::new(false);
        let seen = AtomicUsize::new(0);
        let run = |_: usize, handle: &Handle<'_>| {
            cancel.store(true, Ordering::Relaxed);
            seen.fetch_add(usize::from(handle.is_cancelled()), Ordering::Relaxed);
            Ok(())
        };
        run_all(jobs(5, run), each(1), &cancel, &mut |_| {}).unwrap();
        assert_eq!(seen.into_inner(), 1);
    }

    /// Three runs share seven threads: they have two, two and three.
    #[test]
    fn threads_without_a_run_help_those_with_one() {
        let taken = |threads: usize, runs: usize| -> Vec<usize> {
            let threads = Threads {
                in_all: threads,
                of_a_run: usize::MAX,
            };
            let mut show = |_: &Status| {};
            let mut board = Board::new(jobs(runs, |_, _| Ok(())), threads, &mut show);
            std::iter::from_fn(|| board.take())
                .map(|(_, threads)| threads)
                .collect()
        };
        assert_eq!(taken(7, 3), [2, 2, 3]);
        assert_eq!(taken(2, 2), [1, 1]);
    }

    #[test]
    fn nothing_is_told_of_the_end_before_something_is_over() {
        let run = |_: usize, handle: &Handle<'_>| {
            // Not by `note`, which leaves out the second if it comes soon.
            handle.board.note(handle.index, 0.01, String::new());
            handle.board.note(handle.index, 0.5, "half".to_owned());
            Ok(())
        };
        let mut shown = Vec::new();
        let mut show = |status: &Status| shown.push(status.left.is_some());
        run_all(jobs(1, run), each(1), &GO_ON, &mut show).unwrap();
        assert_eq!(shown, [false, false, true, true]);
    }
}
