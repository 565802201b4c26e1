// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Series for `series.parquet`: queues, rates and pauses of ports, and limits of flows over time.
//!
//! A `place` is a port by its name (port_name.rs) or a flow by its row in `flows.parquet` ("flow7"). A point
//! describes the interval that ends at its time. Queues are the largest sample and delays the largest of all
//! packets in the interval, rates and fractions are means, and limits of flows are those at the end. The
//! number of rows is bounded, so with more series each has fewer points. The measured port and its host
//! always have series. Delays are true values, without errors of clocks.

use super::limits::FlowLimits;
use crate::host::kernel::rounds::Round;
use crate::host::kernel::signals::Pair;
use crate::host::rtts::RttSample;
use crate::net::port_name::{find, UnknownPort};
use crate::simulation::Simulation;
use crate::watch::probe::Times;
use onramp_results::SeriesRow;
use onramp_units::{Bytes, Sim, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Points of a series: enough for a chart as wide as a screen.
const MOST_POINTS: i64 = 2_000;
/// Rows of a run.
const MOST_ROWS: i64 = 2_000_000;
/// Series of a port, and of a flow.
const SERIES_OF_PORT: usize = 5;
const SERIES_OF_FLOW: usize = 4;

/// The requested series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Port(u32),
    AllPorts,
    Flow(u32),
    AllFlows,
    /// Delays of packets, and the last measurements of their senders.
    Pairs,
    /// Round-trip times that congestion controls got.
    Rtts,
    /// Marks and round-trip times of rounds.
    Rounds,
}

impl Subject {
    /// `name`, in a network whose ports are `ports`.
    pub fn parse(name: &str, ports: &[String]) -> Result<Subject, UnknownPort> {
        let flow = || name.strip_prefix("flow")?.parse().ok();
        match name {
            "ports" => Ok(Subject::AllPorts),
            "flows" => Ok(Subject::AllFlows),
            "pairs" => Ok(Subject::Pairs),
            "rtts" => Ok(Subject::Rtts),
            "rounds" => Ok(Subject::Rounds),
            _ => match flow() {
                Some(flow) => Ok(Subject::Flow(flow)),
                None => find(ports, name).map(Subject::Port),
            },
        }
    }
}

/// A port, with its probe's number.
struct PortSeries {
    place: Arc<str>,
    port: u32,
    probe: usize,
    /// State at the last point.
    sent: Bytes,
    paused: Span,
}

/// A flow in progress, and the time for which it had been held at the last point.
struct FlowSeries {
    place: Arc<str>,
    held: Span,
}

/// The flows with series.
enum Flows {
    All,
    Some(BTreeSet<u32>),
}

/// Collects the rows.
pub(super) struct Series {
    ports: Vec<PortSeries>,
    chosen: Flows,
    flows: BTreeMap<u32, FlowSeries>,
    /// Samples of a point.
    per_point: i64,
    /// The first begins the first interval.
    last_point: Option<Time<Sim>>,
    rows: Vec<SeriesRow>,
}

impl Series {
    /// Series of `places`, with the network's ports called `names`, from `samples` samples at `times`.
    pub fn new(
        simulation: &Simulation,
        places: &[Subject],
        names: &[String],
        measured: u32,
        (samples, times): (i64, Times),
    ) -> Series {
        let host_port = simulation.network().port_of(measured);
        let mut ports = vec![host_port ^ 1, host_port];
        let mut flows = BTreeSet::new();
        for place in places {
            match *place {
                Subject::Port(port) if !ports.contains(&port) => ports.push(port),
                Subject::AllPorts => ports = (0..names.len() as u32).collect(),
                Subject::Flow(flow) => {
                    flows.insert(flow);
                }
                Subject::Port(_)
                | Subject::AllFlows
                | Subject::Pairs
                | Subject::Rtts
                | Subject::Rounds => {}
            }
        }
        let (chosen, flow_count) = match places.contains(&Subject::AllFlows) {
            true => (Flows::All, simulation.network().flows.len()),
            false => (Flows::Some(flows.clone()), flows.len()),
        };
        let series = ports.len() * SERIES_OF_PORT + flow_count * SERIES_OF_FLOW;
        let points = (MOST_ROWS / series as i64).clamp(1, MOST_POINTS);
        let domain = |port| simulation.domain_of(port);
        let of_port = |port: u32| PortSeries {
            place: names[port as usize].as_str().into(),
            port,
            probe: domain(port).probes.start(port, times, false),
            sent: Bytes::ZERO,
            paused: Span::ZERO,
        };
        Series {
            ports: ports.into_iter().map(of_port).collect(),
            chosen,
            flows: BTreeMap::new(),
            per_point: (samples as u64).div_ceil(points as u64).max(1) as i64,
            last_point: None,
            rows: Vec::new(),
        }
    }

    /// By time.
    pub fn rows(&self) -> &[SeriesRow] {
        &self.rows
    }

    /// Samples of a point.
    pub fn per_point(&self) -> i64 {
        self.per_point
    }

    /// Ends an interval, after a sample.
    pub fn point(&mut self, simulation: &Simulation, now: Time<Sim>) {
        let last = self.last_point.replace(now);
        let interval_s = (now - last.unwrap_or(Time::ZERO)).as_s_f64();
        let kept = self.rows.len();
        for port in &mut self.ports {
            port.point(simulation, now, interval_s, &mut self.rows);
        }
        for limits in simulation.limits() {
            let is_chosen = match &self.chosen {
                Flows::All => true,
                Flows::Some(flows) => flows.contains(&limits.plan),
            };
            if is_chosen {
                let flow = self.flows.entry(limits.plan).or_insert_with(|| FlowSeries {
                    place: format!("flow{}", limits.plan).into(),
                    held: Span::ZERO,
                });
                flow.point(&limits, now, interval_s, &mut self.rows);
            }
        }
        if last.is_none() {
            self.rows.truncate(kept);
        }
    }
}

impl PortSeries {
    fn point(
        &mut self,
        simulation: &Simulation,
        now: Time<Sim>,
        interval_s: f64,
        rows: &mut Vec<SeriesRow>,
    ) {
        let mut domain = simulation.domain_of(self.port);
        let port = &domain.site.net.ports[self.port as usize];
        let (sent, paused) = (Bytes::new(port.sent_bytes), port.paused_until(now));
        let host = (!port.on_switch).then_some(port.node);
        let sent_bits = (sent.get() - self.sent.get()) as f64 * 8.0;
        let state = domain.site.net.port_state(self.port, now);
        let probe = domain.probes.probe(self.probe);
        let longest_wait = std::mem::replace(&mut probe.longest_wait, state.wait);
        let most_queued = std::mem::replace(&mut probe.most_queued, state.queued);
        let mut put = |name, value| rows.push(row(&self.place, now, name, value));
        put("queue_us", us(longest_wait));
        put("queue_bytes", most_queued.get() as f64);
        put("rate_gbps", sent_bits / interval_s / 1e9);
        let paused_s = (paused - self.paused).as_s_f64();
        put("pfc_paused_fraction", paused_s / interval_s);
        // Of all packets to this host; none if there were none.
        let delay = host.map_or(Span::ZERO, |host| domain.arrivals.take_longest(host));
        if delay > Span::ZERO {
            put("owd_us", us(delay));
        }
        (self.sent, self.paused) = (sent, paused);
    }
}

impl FlowSeries {
    fn point(
        &mut self,
        limits: &FlowLimits,
        now: Time<Sim>,
        interval_s: f64,
        rows: &mut Vec<SeriesRow>,
    ) {
        let mut put = |name, value| rows.push(row(&self.place, now, name, value));
        if let Some(rate) = limits.rate {
            put("rate_limit_gbps", rate.bits_per_s() as f64 / 1e9);
        }
        if let Some(estimate) = limits.estimate {
            put("estimate_gbps", estimate.bits_per_s() as f64 / 1e9);
        }
        if let Some(window) = limits.window {
            put("window_bytes", window.get() as f64);
        }
        if limits.has_law {
            let holding = limits.held_since.map_or(Span::ZERO, |since| now - since);
            let held = limits.held + holding;
            put("held_fraction", (held - self.held).as_s_f64() / interval_s);
            self.held = held;
        }
    }
}

/// Rows of at most [`MOST_POINTS`] of `pairs`.
pub(super) fn pair_rows(pairs: &[Pair]) -> Vec<SeriesRow> {
    let stride = pairs.len().div_ceil(MOST_POINTS as usize).max(1);
    let rows = pairs.iter().step_by(stride).flat_map(|pair| {
        let place: Arc<str> = format!("flow{}", pair.plan).into();
        let values = [
            ("pair_owd_us", pair.owd),
            ("pair_last_owd_us", pair.last_owd),
            ("pair_last_rtt_us", pair.last_rtt),
        ];
        values.map(|(name, span)| row(&place, pair.at, name, us(span)))
    });
    rows.collect()
}

/// Rows of at most [`MOST_POINTS`] of `rounds`.
pub(super) fn round_rows(rounds: &[Round]) -> Vec<SeriesRow> {
    let stride = rounds.len().div_ceil(MOST_POINTS as usize).max(1);
    let rows = rounds.iter().step_by(stride).flat_map(|round| {
        let place: Arc<str> = format!("flow{}", round.plan).into();
        let values = [
            ("round_marked_fraction", round.marked_fraction()),
            ("round_rtt_us", us(round.least_rtt)),
        ];
        values.map(|(name, value)| row(&place, round.at, name, value))
    });
    rows.collect()
}

/// Rows of at most [`MOST_POINTS`] of `samples`.
pub(super) fn rtt_rows(samples: &[RttSample]) -> Vec<SeriesRow> {
    let stride = samples.len().div_ceil(MOST_POINTS as usize).max(1);
    let rows = samples.iter().step_by(stride).map(|sample| {
        let place: Arc<str> = format!("flow{}", sample.plan).into();
        row(&place, sample.at, "rtt_us", us(sample.rtt))
    });
    rows.collect()
}

/// All flows in progress; of flows in order on a connection, the first.
fn row(place: &Arc<str>, now: Time<Sim>, name: &'static str, value: f64) -> SeriesRow {
    SeriesRow {
        time_ns: (now - Time::ZERO).as_ns(),
        name,
        place: place.clone(),
        value,
    }
}

fn us(span: Span) -> f64 {
    span.as_ps() as f64 / 1e6
}
