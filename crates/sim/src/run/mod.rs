//! One run of a scenario: simulates it, and reports what the rack would report.
//!
//! Does not: read scenarios, write files, or look at clocks; progress goes to whoever asks.

mod build;
mod memory;
mod parts;
mod report;
mod series;

use crate::capture::Output;
use crate::config::Counters;
use crate::delays::Delays;
use crate::port::PortState;
use crate::port_name::find;
use crate::probe::Times;
use crate::simulation::Simulation;
use onramp_results::{RunResult, Tables};
use onramp_scenario::{plan, HostId, Receivers, Run, Traffic};
use onramp_units::{Bytes, Sim, Span, Time};

use series::{Place, Series};

pub use build::{build, build_in_parts, config, BuildError};
pub use memory::memory_needed;
pub use parts::Parts;

/// What of a run is watched beside its results.
#[derive(Default)]
pub struct Watch {
    /// Names of ports, and where their packets go.
    pub captures: Vec<(String, Output)>,
    /// Places whose series are kept: names of ports, "ports", "flow7", "flows".
    pub series: Vec<String>,
}

/// Checks that the network of `run` has all these ports, and places for series.
///
/// # Errors
/// It has not; or it is no network. Numbers of flows are not looked at.
pub fn check_watch(run: &Run, ports: &[String], series: &[String]) -> Result<(), BuildError> {
    let names = build::topology(&run.network)?.port_names();
    for port in ports {
        find(&names, port)?;
    }
    for place in series {
        Place::parse(place, &names)?;
    }
    Ok(())
}

/// Samples of the measured port's queue in a run, at least as many as times that progress is told.
const SAMPLES: i64 = 20_000;
const STOPS: i64 = 2_000;
/// But not more often than this.
const SAMPLE_INTERVAL: Span = Span::from_ns(100);
/// What is not over so long after the traffic is unfinished, as in the rack.
const PATIENCE: Span = Span::from_s(2);

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time<Sim>,
    /// Part of the run's duration.
    pub done: f64,
    /// Transmissions of packets over one link so far.
    pub packet_hops: u64,
}

/// Simulates `run` as number `index` of its scenario, on one thread. `progress` is told how far it is,
/// and ends it with `false`: then there is no result.
///
/// # Errors
/// A run that the simulator cannot do; captures that cannot be written.
pub fn run(
    run: &Run,
    index: usize,
    watch: Watch,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<(RunResult, Tables)>, BuildError> {
    run_in_parts(run, index, watch, Parts::AtMost(1), progress)
}

/// The same in several parts side by side; the result is the same.
///
/// # Errors
/// As [`run`].
pub fn run_in_parts(
    run: &Run,
    index: usize,
    watch: Watch,
    parts: Parts,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<(RunResult, Tables)>, BuildError> {
    let arrivals = plan(run);
    let mut simulation = build_in_parts(run, &arrivals, parts)?;
    let names = build::topology(&run.network)?.port_names();
    for (name, out) in watch.captures {
        simulation.start_capture(find(&names, &name)?, &name, out)?;
    }
    let places = places(&watch.series, &names, arrivals.len())?;
    let mut observer = Observer::new(run, simulation, &places, &names);
    let end = Time::ZERO + run.duration;
    if !observer.sample_until(end, progress) || !observer.drain(end + PATIENCE, progress) {
        return Ok(None);
    }
    observer.simulation.end_captures()?;
    let (result, mut tables) = report::report(run, index, &arrivals, &names, &observer);
    tables.series = observer.series.into_rows();
    Ok(Some((result, tables)))
}

fn places(wanted: &[String], ports: &[String], flows: usize) -> Result<Vec<Place>, BuildError> {
    let mut places = Vec::new();
    for name in wanted {
        let place = Place::parse(name, ports)?;
        if let Place::Flow(flow) = place {
            let last = flows.saturating_sub(1) as u32;
            if flow > last {
                return Err(BuildError::NoSuchFlow { flow, last });
            }
        }
        places.push(place);
    }
    Ok(places)
}

/// A simulation and what has been seen of it.
struct Observer {
    simulation: Simulation,
    warmup: Time<Sim>,
    duration: Span,
    /// Whose port is measured.
    host: HostId,
    interval: Span,
    /// How long a packet would have waited.
    waits: Vec<Span>,
    /// Of data packets to the measured host within the window.
    delays: Option<Delays>,
    series: Series,
    /// At the warm-up's end and at the traffic's.
    warm: Instant,
    end: Instant,
}

/// What had happened by an instant.
#[derive(Clone)]
struct Instant {
    counters: Counters,
    port: PortState,
    /// By flow.
    received: Vec<Bytes>,
}

impl Instant {
    fn of(simulation: &Simulation, host: HostId, now: Time<Sim>) -> Instant {
        Instant {
            counters: simulation.counters(),
            port: simulation.port_to(host, now),
            received: simulation.received(),
        }
    }
}

impl Observer {
    fn new(run: &Run, mut simulation: Simulation, places: &[Place], names: &[String]) -> Observer {
        let (host, warmup) = (measured_host(run), Time::ZERO + run.warmup);
        simulation.run_until(warmup - Span::from_ps(1));
        let warm = Instant::of(&simulation, host, warmup);
        let interval = ((run.duration - run.warmup) / SAMPLES).max(SAMPLE_INTERVAL);
        let samples = (run.duration - run.warmup).as_ps() / interval.as_ps();
        let times = Times {
            next: warmup,
            interval,
            end: Time::ZERO + run.duration,
        };
        Observer {
            series: Series::new(&simulation, places, names, host, (samples, times)),
            simulation,
            warmup,
            duration: run.duration,
            host,
            interval,
            waits: Vec::new(),
            delays: None,
            end: warm.clone(),
            warm,
        }
    }

    /// From the warm-up's end, which is now, to the end of the traffic.
    fn sample_until(&mut self, end: Time<Sim>, progress: &mut dyn FnMut(Progress) -> bool) -> bool {
        self.simulation.measure_delays(self.host);
        let per_point = self.series.per_point();
        let span = (end - self.warmup).as_ps() as u64;
        let samples = span.div_ceil(self.interval.as_ps() as u64) as i64;
        let stride = (samples / STOPS).max(1);
        let mut sample = 0;
        while sample < samples {
            let now = self.warmup + self.interval * sample;
            self.simulation.run_until(now);
            if sample % per_point == 0 {
                self.series.point(&self.simulation, now);
            }
            if !progress(self.progress(now)) {
                return false;
            }
            let next_point = (sample / per_point + 1) * per_point;
            sample = next_point.min(sample + stride);
        }
        self.simulation.run_until(end);
        self.waits = self.series.waits(&self.simulation);
        self.simulation
            .each()
            .for_each(|mut domain| domain.look(end));
        if samples % per_point == 0 {
            self.series.point(&self.simulation, end);
        }
        self.end = Instant::of(&self.simulation, self.host, end);
        self.delays = self.simulation.measured_delays(self.host);
        true
    }

    /// Until every flow is over, at most until `end`.
    fn drain(&mut self, end: Time<Sim>, progress: &mut dyn FnMut(Progress) -> bool) -> bool {
        let mut now = Time::ZERO + self.duration;
        while self.simulation.unfinished() > 0 && now < end {
            now += Span::from_ms(1);
            self.simulation.run_until(now);
            if !progress(self.progress(now)) {
                return false;
            }
        }
        true
    }

    fn progress(&self, now: Time<Sim>) -> Progress {
        let done = (now - Time::ZERO).as_s_f64() / self.duration.as_s_f64();
        Progress {
            now,
            done: done.min(1.0),
            packet_hops: self.simulation.counters().packet_hops,
        }
    }
}

/// The first aggregator, else the first receiver.
fn measured_host(run: &Run) -> HostId {
    let incast = run.traffic.iter().find_map(|traffic| match traffic {
        Traffic::Incast(incast) => Some(incast.to),
        _ => None,
    });
    let first = |receivers: Receivers| match receivers {
        Receivers::Host(host) | Receivers::Range(host, _) => host,
        Receivers::All => 0,
    };
    let receiver = |traffic: &Traffic| match traffic {
        Traffic::Incast(incast) => incast.to,
        Traffic::Long(long) => long.to,
        Traffic::Poisson(poisson) => first(poisson.to),
        Traffic::Request(request) => first(request.to),
        Traffic::AllToAll(all) => first(all.among),
        Traffic::Replay(replay) => replay.flows.first().map_or(0, |flow| flow.dst),
    };
    incast.unwrap_or_else(|| run.traffic.first().map_or(0, receiver))
}

#[cfg(test)]
mod tests;
