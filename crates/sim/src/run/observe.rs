// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Observes a run: samples, progress, and counters at the boundaries of the window.

use super::pace::{progress_of, Pace};
use super::ports::{MeasuredPorts, Wanted};
use super::rows::Labels;
use super::series::{Series, Subject};
use super::Progress;
use crate::host::delays::Delays;
use crate::net::counters::Counters;
use crate::simulation::Simulation;
use crate::watch::probe::Times;
use onramp_scenario::{HostId, Measured, Run};
use onramp_units::{Bytes, Sim, Span, Time};

/// Number of samples of a measured port's queue in a run; at least the number of progress reports.
pub(super) const SAMPLES: i64 = 20_000;
const STOPS: i64 = 2_000;
/// Shortest interval between samples.
const SAMPLE_INTERVAL: Span = Span::from_ns(100);
/// Flows that have not finished this long after the traffic are unfinished, as in the rack.
const PATIENCE: Span = Span::from_s(2);

/// A simulation and its observations.
pub(super) struct Observer {
    pub simulation: Simulation,
    pub labels: Labels,
    pub warmup: Time<Sim>,
    /// End of the traffic.
    pub end: Time<Sim>,
    /// The measured host.
    pub host: HostId,
    interval: Span,
    /// Up to which it has been simulated.
    now: Time<Sim>,
    pace: Pace,
    pub ports: MeasuredPorts,
    /// Delays of data packets to the measured host within the window.
    pub delays: Option<Delays>,
    pub series: Series,
    pub at_warmup: Instant,
    pub at_end: Instant,
}

/// Counters at an instant.
#[derive(Clone)]
pub(super) struct Instant {
    pub counters: Counters,
    /// Received payload of Poisson, replayed and long flows, and of each long one.
    pub background: Bytes,
    pub long: Vec<Bytes>,
    /// Packets that each long flow has sent again.
    pub long_again: Vec<u32>,
}

impl Instant {
    fn of(simulation: &Simulation, labels: &Labels) -> Instant {
        let mut instant = Instant {
            counters: simulation.counters(),
            background: Bytes::ZERO,
            long: Vec::new(),
            long_again: Vec::new(),
        };
        for (measured, outcome) in labels.measured().zip(simulation.each_outcome()) {
            if !measured.is_together() {
                instant.background += outcome.received;
            }
            if measured == Measured::Goodput {
                instant.long.push(outcome.received);
                instant.long_again.push(outcome.retransmissions);
            }
        }
        instant
    }
}

impl Observer {
    /// Starts to observe `simulation` at the end of the warm-up.
    pub fn new(
        run: &Run,
        simulation: Simulation,
        labels: Labels,
        places: &[Subject],
        (names, wanted): (&[String], Vec<Wanted>),
        pace: Pace,
    ) -> Observer {
        let (host, warmup) = (run.observed_host(), Time::ZERO + run.warmup);
        let at_warmup = Instant::of(&simulation, &labels);
        let interval = ((run.duration - run.warmup) / SAMPLES).max(SAMPLE_INTERVAL);
        let samples = (run.duration - run.warmup).as_ps() / interval.as_ps();
        let end = Time::ZERO + run.duration;
        let times = Times {
            next: warmup,
            interval,
            end,
        };
        Observer {
            ports: MeasuredPorts::new(run, &simulation, wanted, times),
            series: Series::new(&simulation, places, names, host, (samples, times)),
            simulation,
            labels,
            warmup,
            end,
            host,
            interval,
            now: warmup,
            pace,
            delays: None,
            at_end: at_warmup.clone(),
            at_warmup,
        }
    }

    /// Simulates until every flow is finished. Returns whether the run was not interrupted.
    pub fn watch(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> bool {
        self.sample(progress) && self.drain(progress)
    }

    /// Simulates from now, the end of the warm-up, to the end of the traffic.
    fn sample(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> bool {
        self.simulation.measure_delays(self.host);
        let (per_point, end) = (self.series.per_point(), self.end);
        let span = (end - self.warmup).as_ps() as u64;
        let samples = span.div_ceil(self.interval.as_ps() as u64) as i64;
        let stride = (samples / STOPS).max(1);
        let mut sample = 0;
        while sample < samples {
            let now = self.warmup + self.interval * sample;
            if !self.run_until(now, progress) {
                return false;
            }
            if sample % per_point == 0 {
                self.series.point(&self.simulation, now);
            }
            if !progress(self.progress(now)) {
                return false;
            }
            let next_point = (sample / per_point + 1) * per_point;
            sample = next_point.min(sample + stride);
        }
        if !self.run_until(end, progress) {
            return false;
        }
        self.ports.end(&self.simulation, end);
        self.simulation
            .each()
            .for_each(|mut domain| domain.look(end));
        if samples % per_point == 0 {
            self.series.point(&self.simulation, end);
        }
        self.at_end = Instant::of(&self.simulation, &self.labels);
        self.delays = self.simulation.measured_delays(self.host);
        true
    }

    /// Simulates until every flow is finished, or the time limit.
    fn drain(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> bool {
        while self.simulation.unfinished() > 0 && self.now < self.end + PATIENCE {
            let now = self.now + Span::from_ms(1);
            if !self.run_until(now, progress) || !progress(self.progress(now)) {
                return false;
            }
        }
        true
    }

    fn run_until(&mut self, to: Time<Sim>, progress: &mut dyn FnMut(Progress) -> bool) -> bool {
        let span = (self.now, to);
        self.now = to;
        self.pace.run_until(&mut self.simulation, span, progress)
    }

    fn progress(&self, now: Time<Sim>) -> Progress {
        progress_of(&self.simulation, now, self.end)
    }
}

/// Simulates up to the end of the warm-up. Returns whether the run was not interrupted.
pub(super) fn warm_up(
    run: &Run,
    simulation: &mut Simulation,
    pace: &mut Pace,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> bool {
    let stride = (run.duration / STOPS).max(SAMPLE_INTERVAL);
    let (warmup, end) = (Time::ZERO + run.warmup, Time::ZERO + run.duration);
    let mut now = Time::ZERO + stride;
    while now < warmup {
        let is_wanted = pace.run_until(simulation, (now - stride, now), progress);
        if !is_wanted || !progress(progress_of(simulation, now, end)) {
            return false;
        }
        now += stride;
    }
    simulation.run_until(warmup - Span::from_ps(1));
    true
}
