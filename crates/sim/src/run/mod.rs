// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Simulates one run of a scenario, and reports the same results as the rack.
//!
//! Does not read scenarios, write files or read clocks. The caller receives progress.

mod build;
mod clocks;
mod limits;
mod memory;
mod observe;
mod pace;
mod parts;
mod ports;
mod report;
mod rows;
mod series;

use crate::net::port_name::find;
use crate::watch::capture::Output;
use onramp_cc::Mistakes;
use onramp_scenario::{try_plan, Run};
use onramp_units::{Sim, Time};

use build::Setup;
use observe::{warm_up, Observer};
use pace::Pace;
use parts::why_one;
use ports::wanted;
use rows::Labels;
use series::Subject;

pub use build::{build, build_in_parts, config, BuildError};
pub use limits::FlowLimits;
pub use memory::memory_needed;
pub use parts::Parts;
pub use report::Report;

/// Captures and series of a run.
#[derive(Default)]
pub struct Watch {
    /// Names of ports, and the outputs for their packets.
    pub captures: Vec<(String, Output)>,
    /// Requested series: names of ports, "ports", "flow7", "flows", "pairs", "rtts", "rounds".
    pub series: Vec<String>,
}

/// Checks that the network of `run` has all these ports, and those of `measure.ports`.
///
/// # Errors
/// A missing port, or an invalid network. Numbers of flows are not checked.
pub fn check_watch(run: &Run, ports: &[String], series: &[String]) -> Result<(), BuildError> {
    let names = build::topology(&run.network)?.port_names();
    for port in ports {
        find(&names, port)?;
    }
    for place in series {
        Subject::parse(place, &names)?;
    }
    wanted(&run.measure(), &names)?;
    Ok(())
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time<Sim>,
    /// Fraction of the run's duration.
    pub done: f64,
    /// Transmissions of packets over one link so far.
    pub packet_hops: u64,
}

/// Simulates `run` as number `index` of its scenario, on one thread. It calls `progress`, which interrupts
/// the run by returning `false`; the report then covers the time until the interrupt. So does a mistake of a part of
/// another crate ([`Report::mistake`]).
///
/// # Errors
/// A run that the simulator does not support; captures that cannot be written; a kind of traffic of another crate that is wrong.
pub fn run(
    run: &Run,
    index: usize,
    watch: Watch,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Report, BuildError> {
    run_in_parts(run, index, watch, Parts::AtMost(1), progress)
}

/// Like [`run`], in several domains in parallel; the result is the same.
///
/// # Errors
/// As [`run`].
pub fn run_in_parts(
    run: &Run,
    index: usize,
    watch: Watch,
    parts: Parts,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Report, BuildError> {
    // The plan is dropped before the simulation is made, because with many flows both need much memory.
    let (labels, setup) = {
        let arrivals = try_plan(run)?;
        let labels = Labels::of(run, &arrivals);
        (labels, Setup::of(run, &arrivals, parts)?)
    };
    let watched = setup.mistakes();
    let mistake = || watched.iter().find_map(Mistakes::first);
    let progress = &mut |now: Progress| mistake().is_none() && progress(now);
    let mut simulation = setup.simulation()?;
    let topology = build::topology(&run.network)?;
    let names = topology.port_names();
    let why_one = why_one(&topology, parts, &simulation);
    for (name, out) in watch.captures {
        simulation.start_capture(find(&names, &name)?, &name, out)?;
    }
    let places = places(&watch.series, &names, labels.count())?;
    let wanted = wanted(&run.measure(), &names)?;
    let mut pace = Pace::new(Time::ZERO + run.duration);
    let warm = warm_up(run, &mut simulation, &mut pace, progress);
    if places.contains(&Subject::Pairs) {
        simulation.watch_signals();
    }
    if places.contains(&Subject::Rtts) {
        simulation.watch_rtts(Time::ZERO + run.duration, RTT_FLOWS);
    }
    if places.contains(&Subject::Rounds) {
        simulation.watch_rounds(Time::ZERO + run.duration);
    }
    let mut observer = Observer::new(run, simulation, labels, &places, (&names, wanted), pace);
    let whole = warm && observer.watch(progress);
    observer.simulation.end_captures()?;
    let whole = whole && mistake().is_none();
    let mut report = Report::new(run, index, names, observer, whole);
    report.why_one_thread = why_one;
    report.mistake = mistake().cloned();
    Ok(report)
}

/// With `--series rtts`: flows of the plan whose round-trip times have rows.
const RTT_FLOWS: u32 = 4;

fn places(wanted: &[String], ports: &[String], flows: usize) -> Result<Vec<Subject>, BuildError> {
    let mut places = Vec::new();
    for name in wanted {
        let place = Subject::parse(name, ports)?;
        if let Subject::Flow(flow) = place {
            let last = flows.saturating_sub(1) as u32;
            if flow > last {
                return Err(BuildError::NoSuchFlow { flow, last });
            }
        }
        places.push(place);
    }
    Ok(places)
}

#[cfg(test)]
mod tests;
