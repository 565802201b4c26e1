// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Simulates the missing runs of a scenario, several at a time, and merges the results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::Result;
use onramp_batch::{Batch, Hooks};
use onramp_results::{merge, missing_runs, part, write_json, write_tables, SummaryFile};
use onramp_runs::{Line, Status};
use onramp_scenario::Scenario;
use onramp_sim::run::Report;
use onramp_sim::Deadlock;

use super::watch::Watch;
use crate::output::keeping;

/// A scenario to simulate.
pub struct Simulations<'a> {
    pub scenario: &'a Scenario,
    pub watch: &'a Watch,
    /// Directory for the results; complete runs in it are kept.
    pub out: &'a Path,
    /// Runs at a time, or threads of one.
    pub threads: usize,
    /// Interrupts it.
    pub cancel: &'a AtomicBool,
    /// First words of a line of progress, by the fraction done.
    pub label: &'a (dyn Fn(f64) -> String + Sync),
}

/// Shorter simulations need no other thread, so it is not said why they have one.
const WORTH_THREADS_S: f64 = 10.0;

/// Counters of all runs.
struct Tally {
    started: Instant,
    /// Packet-hops of all runs.
    hops: AtomicU64,
    /// Why a run had one thread although more were free.
    why_one_thread: Mutex<BTreeSet<&'static str>>,
    /// Runs that ended in a deadlock.
    deadlocks: Mutex<BTreeMap<usize, Deadlock>>,
}

impl Tally {
    fn new() -> Tally {
        Tally {
            started: Instant::now(),
            hops: AtomicU64::new(0),
            why_one_thread: Mutex::default(),
            deadlocks: Mutex::default(),
        }
    }

    fn hops(&self) -> u64 {
        self.hops.load(Ordering::Relaxed)
    }

    fn speed(&self) -> String {
        let seconds = self.started.elapsed().as_secs_f64().max(1e-9);
        format!("{:.2} M packet-hops/s", self.hops() as f64 / seconds / 1e6)
    }

    /// Prints the speed.
    fn tell(&self) {
        let seconds = self.started.elapsed().as_secs_f64();
        let (hops, speed) = (self.hops(), self.speed());
        eprintln!("{hops} packet-hops in {seconds:.2} s: {speed}");
        for (run, deadlock) in &*self.deadlocks.lock().expect("no run panicked") {
            eprintln!("at the end of run {run} {deadlock}");
        }
        if seconds < WORTH_THREADS_S {
            return;
        }
        for why in self.why_one_thread.lock().expect("no run panicked").iter() {
            eprintln!("a run uses one thread although more are free: {why}");
        }
    }
}

impl Simulations<'_> {
    /// Simulates the runs that are missing in the directory and merges all. The summary is partial after
    /// an interrupt.
    pub fn run(&self) -> Result<SummaryFile> {
        let (scenario, out) = (self.scenario, self.out);
        let missing = missing_runs(scenario, out);
        if missing.is_empty() {
            return Ok(merge(scenario, out, "sim")?);
        }
        let tally = Tally::new();
        let failure = self.make(missing, &tally).err();
        tally.tell();
        let merged = merge(scenario, out, "sim");
        match failure {
            Some(error) => Err(keeping(error, scenario, out)),
            None => Ok(merged?),
        }
    }

    fn make(&self, missing: Vec<usize>, tally: &Tally) -> Result<()> {
        let batch = Batch {
            scenario: self.scenario,
            threads: self.threads,
            cancel: self.cancel,
        };
        let mut line = Line::default();
        let hooks = Hooks {
            watch: &|index| self.watch.open(self.out, index),
            keep: &|index, report| self.write(index, &report, tally),
            show: &mut |status: &Status, hops| {
                tally.hops.store(hops, Ordering::Relaxed);
                line.show(|| {
                    let speed = format!(", {}", tally.speed());
                    (self.label)(status.part_done()) + &status.text(&speed)
                });
            },
        };
        batch.run(missing, hooks)
    }

    fn write(&self, index: usize, report: &Report, tally: &Tally) -> Result<()> {
        let (flows, requests) = (report.flows(), report.requests());
        write_tables(self.out, report.result(), flows, requests, report.series())?;
        // Last, because a run with this file is complete.
        write_json(&part(self.out, "run", index, "json"), report.result())?;
        let mut why = tally.why_one_thread.lock().expect("no run panicked");
        why.extend(report.why_one_thread);
        let mut deadlocks = tally.deadlocks.lock().expect("no run panicked");
        deadlocks.extend(report.deadlock.clone().map(|deadlock| (index, deadlock)));
        Ok(())
    }
}
