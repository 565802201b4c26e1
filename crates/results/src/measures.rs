// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Computes the measures of a run from its rows and counters, with the same formulas for both worlds.

use crate::correlation::rank_correlation;
use crate::counters::{
    ClockCounters, Counters, PairSample, PortCounters, RackCounters, Resent, RoundSample,
    SimCounters, WorldCounters,
};
use crate::metrics::metric_of;
use crate::{Class, FlowRow, RequestRow, Summary};
use onramp_scenario::{HostKind, Kind, Run};
use onramp_units::Span;
use serde::Serialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Kinds of traffic whose requests or steps are measured, with the names of their metrics.
const REQUESTS: [(Kind, &str, &str); 3] = [
    (Kind::Incast, "incast", "rct"),
    (Kind::Request, "request", "rct"),
    (Kind::AllToAll, "all_to_all", "step"),
];
/// Kinds whose flows are measured one by one.
const BACKGROUND: [Kind; 2] = [Kind::Poisson, Kind::Replay];

/// Takes the rows of a run, in any order, and computes its metrics.
pub struct Measures<'a> {
    run: &'a Run,
    /// By entry of `[[traffic]]`.
    requests: Vec<Times>,
    /// Requests of kind request whose answer arrived within the window.
    answered: u64,
    /// Of flows, by entry and class.
    flows: Vec<[Times; Class::ALL.len()]>,
    slowdowns: Vec<f64>,
}

/// Completion times of flows or requests that started after the warm-up.
#[derive(Clone, Default)]
struct Times {
    /// To the last byte at the receiver.
    received_us: Vec<f64>,
    /// To the last acknowledgement at the sender, of NIC hosts.
    acked_us: Vec<f64>,
    unfinished: u64,
}

impl Times {
    fn add(&mut self, received_ns: Option<i64>, acked_ns: Option<i64>) {
        self.received_us.extend(received_ns.map(us));
        self.acked_us.extend(acked_ns.map(us));
        self.unfinished += u64::from(received_ns.is_none());
    }

    /// Of all together.
    fn of<'a>(all: impl Iterator<Item = &'a Times>) -> Times {
        let mut sum = Times::default();
        for times in all {
            sum.received_us.extend(&times.received_us);
            sum.acked_us.extend(&times.acked_us);
            sum.unfinished += times.unfinished;
        }
        sum
    }
}

impl<'a> Measures<'a> {
    /// Of `run`, without rows so far.
    pub fn new(run: &'a Run) -> Measures<'a> {
        let entries = run.traffic.len();
        Measures {
            run,
            requests: vec![Times::default(); entries],
            answered: 0,
            flows: vec![Default::default(); entries],
            slowdowns: Vec::new(),
        }
    }

    /// Adds a flow.
    pub fn add_flow(&mut self, flow: &FlowRow) {
        let entry = flow.traffic as usize;
        if !flow.measured || !BACKGROUND.contains(&self.run.traffic[entry].kind()) {
            return;
        }
        let class = Class::of(flow.size_bytes.unwrap_or(0));
        let simulated = flow.simulated;
        let acked_ns = simulated.and_then(|simulated| simulated.acked_ns);
        self.flows[entry][class as usize].add(flow.fct_ns, acked_ns.filter(|_| is_nic(self.run)));
        let slowdown = simulated.and_then(|simulated| simulated.slowdown);
        self.slowdowns.extend(slowdown);
    }

    /// Adds a request or a step.
    pub fn add_request(&mut self, request: &RequestRow) {
        let entry = request.traffic as usize;
        if self.run.traffic[entry].kind() == Kind::Request {
            let end_ns = request.rct_ns.map(|rct_ns| request.start_ns + rct_ns);
            self.answered += u64::from(end_ns.is_some_and(|end_ns| self.is_in_window(end_ns)));
        }
        if request.measured {
            let acked_ns = request.acked_ns.filter(|_| is_nic(self.run));
            self.requests[entry].add(request.rct_ns, acked_ns);
        }
    }

    /// The metrics of all rows and `counters`.
    pub fn finish(mut self, counters: &Counters) -> BTreeMap<String, Value> {
        let mut metrics = Metrics::default();
        self.put_requests(&mut metrics);
        self.put_flows(&mut metrics);
        self.put_goodput(counters, &mut metrics);
        put_resent(&counters.resent, &mut metrics);
        metrics.put("drops", counters.drops);
        self.put_port(&counters.port, &mut metrics);
        put_clocks(&counters.clocks, &mut metrics);
        match &counters.world {
            WorldCounters::Sim(sim) => self.put_sim(sim, &mut metrics),
            WorldCounters::Rack(rack) => put_rack(rack, &mut metrics),
        }
        metrics.0
    }

    fn put_requests(&self, metrics: &mut Metrics) {
        for (kind, name, time) in REQUESTS {
            let entries = self.entries(&[kind]);
            if entries.is_empty() {
                continue;
            }
            let all = Times::of(entries.iter().map(|&entry| &self.requests[entry]));
            metrics.put(&format!("{name}.unfinished"), all.unfinished);
            self.put_times(&format!("{name}.{time}"), "", all, metrics);
        }
        if !self.entries(&[Kind::Request]).is_empty() {
            let answered_per_s = self.answered as f64 / self.window().as_s_f64();
            metrics.put("request.answered_per_s", answered_per_s);
        }
        for kind in [Kind::Incast, Kind::Request] {
            for entry in several(self.entries(&[kind])) {
                let times = self.requests[entry].clone();
                self.put_times(&format!("traffic.{entry}.rct"), "", times, metrics);
            }
        }
    }

    fn put_flows(&mut self, metrics: &mut Metrics) {
        let entries = self.entries(&BACKGROUND);
        if entries.is_empty() {
            return;
        }
        let mut unfinished = 0;
        for class in Class::ALL {
            let suffix = format!(".{}", class.name());
            let of_class = |&entry: &usize| &self.flows[entry][class as usize];
            let all = Times::of(entries.iter().map(of_class));
            unfinished += all.unfinished;
            self.put_times("background.fct", &suffix, all, metrics);
            for entry in several(entries.clone()) {
                let times = self.flows[entry][class as usize].clone();
                self.put_times(&format!("traffic.{entry}.fct"), &suffix, times, metrics);
            }
        }
        let of_all = |&entry: &usize| self.flows[entry].iter();
        let all = Times::of(entries.iter().flat_map(of_all));
        self.put_times("background.fct", ".all", all, metrics);
        metrics.put("background.unfinished", unfinished);
        let slowdowns = std::mem::take(&mut self.slowdowns);
        metrics.put_some("slowdown", Summary::of(slowdowns));
    }

    /// `NAME_us` at receivers and, for NIC hosts, `NAME_acked_us`.
    fn put_times(&self, name: &str, suffix: &str, times: Times, metrics: &mut Metrics) {
        let received = Summary::of(times.received_us);
        metrics.put(&format!("{name}_us{suffix}"), received);
        if is_nic(self.run) {
            let acked = Summary::of(times.acked_us);
            metrics.put(&format!("{name}_acked_us{suffix}"), acked);
        }
    }

    fn put_goodput(&self, counters: &Counters, metrics: &mut Metrics) {
        let window_s = self.window().as_s_f64();
        let gbps = |bytes: u64| bytes as f64 * 8.0 / window_s / 1e9;
        let received = &counters.received;
        if !self.entries(&[Kind::Long]).is_empty() {
            let each: Vec<f64> = received.long_bytes.iter().copied().map(gbps).collect();
            metrics.put("long.goodput_gbps", each);
        }
        metrics.put("background.goodput_gbps", gbps(received.background_bytes));
    }

    fn put_port(&self, port: &PortCounters, metrics: &mut Metrics) {
        metrics.put("port.name", &port.name);
        metrics.put("port.drops", port.drops);
        let could_bytes = port.rate.bytes_in(self.window()).get();
        metrics.put("utilisation", port.sent_bytes as f64 / could_bytes as f64);
        metrics.put("queue_us", port.queue_us);
        metrics.put_some("owd_us", port.owd_us);
    }

    fn put_sim(&self, sim: &SimCounters, metrics: &mut Metrics) {
        metrics.put("marks", sim.marks);
        metrics.put("or_acks", sim.or_acks);
        metrics.put("pfc_pauses", sim.pfc_pauses);
        if !sim.long_resent.is_empty() {
            metrics.put("long.retransmitted_fraction", &sim.long_resent);
        }
        metrics.put_some("host.drops", sim.host_drops);
        metrics.put_some("rtt_us", sim.rtt_us);
        let bits_per_s = sim.or_ack_bytes as f64 * 8.0 / self.window().as_s_f64();
        let hosts = f64::from(self.run.network.topology.hosts());
        metrics.put("or_ack_mbps", bits_per_s / hosts / 1e6);
        let correlation = |signal: fn(&PairSample) -> Span| {
            let pairs = sim.pairs.iter().map(|pair| (signal(pair), pair.owd));
            rank_correlation(&pairs.collect::<Vec<_>>())
        };
        metrics.put_some("pairs.owd_correlation", correlation(|pair| pair.last_owd));
        metrics.put_some("pairs.rtt_correlation", correlation(|pair| pair.last_rtt));
        self.put_rounds(&sim.rounds, metrics);
    }

    fn put_rounds(&self, rounds: &[RoundSample], metrics: &mut Metrics) {
        if rounds.is_empty() {
            return;
        }
        let rtts_us = rounds.iter().map(|round| us(round.least_rtt.as_ns()));
        metrics.put_some("rounds.rtt_us", Summary::of(rtts_us.collect()));
        let fraction = |round: &RoundSample| f64::from(round.marked) / f64::from(round.packets);
        let fractions = Summary::of(rounds.iter().map(fraction).collect());
        metrics.put_some("rounds.marked_fraction", fractions);
        // Fractions as whole numbers, which have an order.
        let q32 = |round: &RoundSample| (u64::from(round.marked) << 32) / u64::from(round.packets);
        let pairs = rounds.iter().map(|round| (q32(round), round.least_rtt));
        let correlation = rank_correlation(&pairs.collect::<Vec<_>>());
        metrics.put_some("rounds.mark_correlation", correlation);
    }

    fn window(&self) -> Span {
        self.run.duration - self.run.warmup
    }

    fn is_in_window(&self, time_ns: i64) -> bool {
        (self.run.warmup.as_ns()..self.run.duration.as_ns()).contains(&time_ns)
    }

    /// Entries of the traffic of one of `kinds`.
    fn entries(&self, kinds: &[Kind]) -> Vec<usize> {
        let traffic = self.run.traffic.iter().enumerate();
        let of_kinds = traffic.filter(|(_, traffic)| kinds.contains(&traffic.kind()));
        of_kinds.map(|(entry, _)| entry).collect()
    }
}

fn put_resent(resent: &Resent, metrics: &mut Metrics) {
    metrics.put("retransmissions", resent.retransmissions);
    metrics.put("timeouts", resent.timeouts);
    let fraction = resent.again as f64 / resent.sent.max(1) as f64;
    metrics.put("retransmitted_fraction", fraction);
}

fn put_clocks(clocks: &ClockCounters, metrics: &mut Metrics) {
    let magnitudes = clocks.errors_ns.iter().map(|error| error.abs());
    if let Some(magnitudes) = Summary::of(magnitudes.collect()) {
        metrics.put("clock.error_ns", magnitudes);
        metrics.put("clock.within_2_sigma", clocks.within_2_sigma);
        metrics.put("clock.most_sigmas", clocks.most_sigmas);
    }
    if !clocks.windows.is_empty() {
        metrics.put("clock.windows", &clocks.windows);
    }
}

fn put_rack(rack: &RackCounters, metrics: &mut Metrics) {
    metrics.put("connections", rack.connections);
    metrics.put("load.late_max_us", rack.late_us);
    metrics.put("host.drops", rack.host_drops);
    metrics.put("port.idle_fraction", rack.idle_fraction);
    metrics.put("probe.drops", rack.probed_drops);
    metrics.put("probe.lost_events", rack.lost_events);
    metrics.put("switch.unknown_frames", rack.unknown_frames);
    for (name, &value) in &rack.onramp {
        match name.strip_suffix("_ns") {
            Some(stem) => metrics.put(&format!("onramp.{stem}_us"), value / 1e3),
            None => metrics.put(&format!("onramp.{name}"), value as u64),
        }
    }
}

/// Metrics by name; all are in the table of metrics.
#[derive(Default)]
struct Metrics(BTreeMap<String, Value>);

impl Metrics {
    fn put(&mut self, name: &str, value: impl Serialize) {
        debug_assert!(metric_of(name).is_some(), "METRICS has no {name}");
        self.0.insert(name.to_owned(), json!(value));
    }

    /// A metric that is omitted if there is nothing to measure.
    fn put_some(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }
}

/// `entries` if there are several; with one entry, its metrics equal those of all.
fn several(entries: Vec<usize>) -> Vec<usize> {
    Some(entries).filter(|e| e.len() > 1).unwrap_or_default()
}

fn is_nic(run: &Run) -> bool {
    run.host.kind == HostKind::Nic
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests;
