// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The runs of a scenario in the simulator, several at a time.
//!
//! Knows scenarios, the simulator and the scheduler of runs. Does not know files or terminals: the caller says what
//! becomes of a report, and shows the progress.

#![warn(missing_docs)]

mod memory;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use onramp_runs::{run_all, Handle, Job, Status, Threads};
use onramp_scenario::{Run, Scenario};
use onramp_sim::run::{run_in_parts, BuildError, Parts, Progress, Report, Watch};
use onramp_units::Time;

pub use memory::{available as available_memory, check as check_memory, MemoryError};

/// A scenario to simulate.
pub struct Batch<'a> {
    /// Its runs are made.
    pub scenario: &'a Scenario,
    /// Runs at a time, or threads of one.
    pub threads: usize,
    /// Interrupts it: no run starts any more, and those under way end at once.
    pub cancel: &'a AtomicBool,
}

/// What the caller does with the runs.
pub struct Hooks<'a, E> {
    /// Captures and series of the run of this number.
    pub watch: &'a (dyn Fn(usize) -> Result<Watch, E> + Sync),
    /// Keeps the report of the run of this number; it is partial after an interrupt.
    pub keep: &'a (dyn Fn(usize, Report) -> Result<(), E> + Sync),
    /// Shows the progress, with the packet-hops of all runs so far.
    pub show: &'a mut (dyn FnMut(&Status, u64) + Send),
}

impl Batch<'_> {
    /// Simulates the runs of these numbers.
    ///
    /// # Errors
    /// The first run that the simulator refuses, or that a hook does. The others under way are kept.
    pub fn run<E>(&self, numbers: Vec<usize>, hooks: Hooks<'_, E>) -> Result<(), E>
    where
        E: From<BuildError> + Send,
    {
        let runs = self.scenario.runs();
        let hops: Vec<AtomicU64> = runs.iter().map(|_| AtomicU64::new(0)).collect();
        let (hops, watch, keep) = (&hops, hooks.watch, hooks.keep);
        let job = |index: usize| Job {
            index,
            weight: weight(&runs[index]),
            run: Box::new(move |handle: &Handle<'_>| {
                let mut progress = |now: Progress| {
                    hops[index].store(now.packet_hops, Ordering::Relaxed);
                    let ms = (now.now - Time::ZERO).as_s_f64() * 1e3;
                    handle.note(now.done, || format!("{ms:.3} ms"));
                    !handle.is_cancelled()
                };
                let parts = Parts::AtMost(handle.threads);
                let watch = watch(index)?;
                let report = run_in_parts(&runs[index], index, watch, parts, &mut progress)?;
                keep(index, report)
            }),
        };
        let threads = Threads {
            in_all: self.threads,
            of_a_run: usize::MAX,
        };
        let jobs = numbers.into_iter().map(job).collect();
        run_all(jobs, threads, self.cancel, &mut |status: &Status| {
            let all = hops.iter().map(|hops| hops.load(Ordering::Relaxed));
            (hooks.show)(status, all.sum());
        })
    }
}

/// Weight of a run among those of its scenario. Hosts send all the time, so it grows with their number.
fn weight(run: &Run) -> f64 {
    run.duration.as_s_f64() * f64::from(run.network.topology.hosts())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    const SWEEP: &str = r#"title = "t"
duration = "200 us"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[[traffic]]
kind = "long"
flows = 2
[sweep]
seed = [1, 2, 3]
"#;

    /// Numbers of the runs, and whether they are whole.
    fn made(cancelled: bool) -> (Vec<(usize, bool)>, u64) {
        let scenario = Scenario::parse(SWEEP, "t").expect("it is right");
        let (kept, mut shown) = (Mutex::new(Vec::new()), 0);
        let batch = Batch {
            scenario: &scenario,
            threads: 2,
            cancel: &AtomicBool::new(cancelled),
        };
        let hooks = Hooks::<BuildError> {
            watch: &|_| Ok(Watch::default()),
            keep: &|number, report| {
                let mut kept = kept.lock().expect("no run panicked");
                kept.push((number, !report.result().partial));
                Ok(())
            },
            show: &mut |_, hops| shown = hops,
        };
        batch.run(vec![0, 2], hooks).expect("it runs");
        let mut kept = kept.into_inner().expect("no run panicked");
        kept.sort_unstable();
        (kept, shown)
    }

    #[test]
    fn the_runs_that_are_asked_for_are_made_and_counted() {
        let (kept, hops) = made(false);
        assert_eq!(kept, [(0, true), (2, true)]);
        assert!(hops > 100, "{hops}");
    }

    #[test]
    fn a_cancelled_batch_makes_none() {
        assert_eq!(made(true).0, []);
    }
}
