// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The rack on this kernel: one run from an empty machine to files of results and back.
//!
//! Does: build the network ([`topology`]), start the daemons ([`edge`]), play the traffic
//! ([`load`]), read the instruments ([`probe`]), write the results ([`report`]).
//! Does not: choose runs, boot machines, print.

mod bpf;
mod capable;
mod clocks;
mod congestion;
mod dilation;
mod edge;
mod links;
mod load;
mod observe;
mod probe;
mod progress;
mod report;
mod soak;
mod switch;
mod sys;
mod tools;
mod topology;

pub use capable::capabilities;
pub use dilation::{Dilation, DILATE_RTO};
pub use progress::Progress;

use self::congestion::Loaded;
use self::edge::Edges;
use self::observe::Watch;
use self::soak::Soak;
use self::topology::Rack;
use crate::error::{Error, Result};
use onramp_results::{part, write_json};
use onramp_scenario::{rack_limits, rack_plan, RackLimit, Run};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a run needs besides its scenario.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// Takes the results.
    pub directory: &'a Path,
    /// The `onramp` binary that hosts run when the scenario wants the edge.
    pub agent: &'a Path,
    /// Whether to measure the CPU time per frame, on a machine with one CPU. The run then takes
    /// two to three times as long.
    pub measure_cpu: bool,
    /// Ends the run, within a second of the rack's time, when it becomes true.
    pub cancel: &'a AtomicBool,
}

/// Runs `run` on this kernel and writes `run-{index}.json` and its Parquet parts.
///
/// # Errors
/// What the kernel refuses, daemons that fail, files that cannot be written. The network is gone
/// in any case.
pub fn run_one(
    run: &Run,
    index: usize,
    setup: Setup<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let Setup {
        directory,
        agent,
        measure_cpu,
        cancel,
    } = setup;
    refuse(run)?;
    std::fs::create_dir_all(directory).map_err(|source| Error::File {
        path: directory.to_owned(),
        source,
    })?;
    progress(Progress::Building);
    sys::raise_open_files();
    let plan = rack_plan(run);
    let measured = run.observed_host();
    let soak = measure_cpu.then(Soak::start).transpose()?;
    let congestion_controls = Loaded::new(run)?; // dropped after the rack and its sockets
    let mut rack = Rack::build(run, measured)?;
    congestion_controls.hook(run, rack.hosts())?;
    let edges = match run.edge_hosts().next() {
        Some(_) => {
            let mut loading = |part| progress(Progress::Daemons(part));
            Some(Edges::start(run, rack.hosts(), agent, &mut loading)?)
        }
        None => None,
    };
    let (observer, instruments) = rack.split();
    let mut watch = Watch::new(run, measured, instruments, cancel, progress);
    if let Some(soak) = soak {
        watch = watch.measuring_cpu(soak);
    }
    let over = AtomicBool::new(false);
    let (outcome, clock_errors) = std::thread::scope(|scope| {
        let fleet_times = edges
            .as_ref()
            .map(|edges| move |at_ns| edges.fleet_times(at_ns));
        let over = &over;
        let watching = scope.spawn(move || clocks::watch(run, fleet_times, over));
        let outcome = load::play(run, &plan, observer, &mut watch);
        over.store(true, Ordering::Relaxed);
        (outcome, watching.join().expect("it does not panic"))
    });
    let outcome = outcome?;
    let observed = watch.finish()?;
    let counters = edges.as_ref().map(Edges::counters).transpose()?;
    edges.map(Edges::stop).transpose()?;
    progress(Progress::Writing);
    let (result, tables) = report::report(run, index, &outcome, &observed, counters, &clock_errors);
    tables.write(directory, &result)?;
    // Last: a run with this file is finished.
    Ok(write_json(&part(directory, "run", index, "json"), &result)?)
}

/// What the rack cannot do with the run; the rate is the virtual machine's limit alone.
fn refuse(run: &Run) -> Result<()> {
    let native = |limit: &RackLimit| !matches!(limit, RackLimit::Rate { .. });
    match rack_limits(run).into_iter().find(native) {
        Some(limit) => Err(Error::Limit(limit)),
        None => Ok(()),
    }
}
