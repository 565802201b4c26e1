// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Turns what a run came to into its rows and counters: real time, real rates. crates/results makes the
//! metrics of them.

use super::dilation::Dilation;
use super::load::{Flow, Outcome};
use super::observe::Observed;
use crate::measure::{QueueDelay, Sample};
use onramp_results::{
    ClockCounters, Counters, FlowRow, Measures, PortCounters, RackCounters, Received, RequestRow,
    Resent, RunResult, SeriesRow, Summary, Tables, WorldCounters,
};
use onramp_scenario::{Measured, Run};
use onramp_sync::synthetic::FleetErrors;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The results of run `index`, and its tables. `onramp` are the daemons' counters.
pub fn report(
    run: &Run,
    index: usize,
    outcome: &Outcome,
    observed: &Observed,
    onramp: Option<BTreeMap<String, u64>>,
    clocks: &FleetErrors,
) -> (RunResult, Tables) {
    let scale = Scale::of(run);
    let tables = tables(run, scale, outcome, observed);
    let counters = Counters {
        received: received(run, outcome),
        resent: Resent {
            retransmissions: outcome.whole.retransmissions,
            timeouts: outcome.whole.timeouts,
            again: outcome.whole.repeated_bytes,
            sent: outcome.whole.sent_bytes,
        },
        drops: observed.drops,
        port: port_counters(run, scale, observed),
        ports: Vec::new(),
        clocks: ClockCounters {
            errors_ns: clocks.ns.iter().map(|ns| scale.real_ns(*ns)).collect(),
            within_2_sigma: clocks.within_2_sigma(),
            most_sigmas: clocks.most_sigmas(),
            windows: Vec::new(),
        },
        world: WorldCounters::Rack(rack_counters(scale, outcome, observed, onramp)),
    };
    let mut measures = Measures::new(run);
    tables.flows.iter().for_each(|row| measures.add_flow(row));
    let requests = tables.requests.iter();
    requests.for_each(|row| measures.add_request(row));
    let result = RunResult {
        run: index,
        params: run.params.clone(),
        resolved: json!(run),
        partial: false,
        metrics: measures.finish(&counters),
        cost: cost(outcome, observed),
    };
    (result, tables)
}

#[derive(Clone, Copy)]
struct Scale {
    dilation: Dilation,
    /// In the rack's time.
    warmup_ns: i64,
}

impl Scale {
    fn of(run: &Run) -> Scale {
        let dilation = Dilation::new(run.time_dilation);
        Scale {
            dilation,
            warmup_ns: dilation.slow(run.warmup).as_ns(),
        }
    }

    fn measured(self, start_ns: i64) -> bool {
        start_ns >= self.warmup_ns
    }

    fn real_ns(self, rack_ns: f64) -> f64 {
        self.dilation.real_us(rack_ns) * 1e3
    }
}

fn received(run: &Run, outcome: &Outcome) -> Received {
    let entries = run.traffic.iter().zip(&outcome.window);
    let background = entries.filter(|(traffic, _)| !traffic.measured().is_together());
    let long = outcome
        .flows
        .iter()
        .filter(|flow| flow.kind.measured == Measured::Goodput);
    Received {
        background_bytes: background.map(|(_, window)| window.received_bytes).sum(),
        long_bytes: long.map(|flow| flow.measured_bytes).collect(),
    }
}

fn port_counters(run: &Run, scale: Scale, observed: &Observed) -> PortCounters {
    let us = |ns: &f64| scale.dilation.real_us(*ns);
    let queue_us = |queue: &QueueDelay| Summary {
        n: None,
        mean: us(&queue.mean),
        p50: us(&queue.p50),
        p90: us(&queue.p90),
        p95: us(&queue.p95),
        p99: us(&queue.p99),
        max: us(&queue.max),
    };
    PortCounters {
        name: measured_port(run),
        rate: run.network.link_of(run.observed_host()).rate,
        sent_bytes: observed.port.admitted_bytes,
        drops: observed.port.drops,
        queue_us: observed.port.queue.as_ref().map(queue_us),
        owd_us: Summary::of(observed.one_way.ns.iter().map(us).collect()),
    }
}

fn rack_counters(
    scale: Scale,
    outcome: &Outcome,
    observed: &Observed,
    onramp: Option<BTreeMap<String, u64>>,
) -> RackCounters {
    // Daemons count times in the rack's time.
    let real = |(name, count): (String, u64)| match name.ends_with("_ns") {
        true => (name, scale.real_ns(count as f64)),
        false => (name, count as f64),
    };
    RackCounters {
        connections: outcome.connections,
        late_us: scale.dilation.real_us(outcome.late_ns as f64),
        host_drops: observed.host_drops,
        idle_fraction: observed.port.idle_fraction,
        probed_drops: observed.port.probed_drops,
        lost_events: observed.lost_events,
        unknown_frames: observed.unknown_frames,
        onramp: onramp.into_iter().flatten().map(real).collect(),
    }
}

fn measured_port(run: &Run) -> String {
    format!("switch0-host{}", run.observed_host())
}

/// What the run cost the machine that ran the rack, in its own time. In the virtual machine a nanosecond of CPU
/// time is a guest instruction.
fn cost(outcome: &Outcome, observed: &Observed) -> BTreeMap<String, f64> {
    let mut cost = BTreeMap::from([
        ("rack_s".to_owned(), observed.elapsed_ns as f64 / 1e9),
        ("frames".to_owned(), observed.frames as f64),
        ("flows".to_owned(), outcome.flows.len() as f64),
    ]);
    if let Some(busy_ns) = observed.busy_ns {
        cost.insert("cpu_s".to_owned(), busy_ns as f64 / 1e9);
        cost.insert(
            "cpu_ns_per_frame".to_owned(),
            busy_ns as f64 / observed.frames.max(1) as f64,
        );
    }
    cost
}

fn tables(run: &Run, scale: Scale, outcome: &Outcome, observed: &Observed) -> Tables {
    let real = |ns: i64| scale.dilation.real_ns(ns);
    let flow = |flow: &Flow| FlowRow {
        kind: flow.kind.name,
        traffic: flow.traffic as i64,
        request: flow.request.map(|number| number as i64),
        src: i64::from(flow.src),
        group: run.group_of(flow.src).map(|group| group as i64),
        dst: i64::from(flow.dst),
        size_bytes: flow.size_bytes.map(|size| size as i64),
        start_ns: real(flow.start_ns),
        fct_ns: flow.fct_ns.map(real),
        retransmissions: flow.retransmissions as i64,
        timeouts: flow.timeouts as i64,
        measured: scale.measured(flow.start_ns),
        path: None,
        simulated: None,
    };
    let requests = outcome.requests.iter().map(|request| RequestRow {
        traffic: request.traffic as i64,
        request: request.number as i64,
        start_ns: real(request.start_ns),
        rct_ns: request.rct_ns.map(real),
        acked_ns: None,
        missing: i64::from(request.missing),
        measured: scale.measured(request.start_ns),
    });
    let host = run.observed_host();
    let port = measured_port(run);
    let line_gbps = run.network.link_of(host).rate.bits_per_s() as f64 / 1e9;
    let us = |value| scale.dilation.real_us(value);
    let gbps = |fraction| fraction * line_gbps;
    let series = |name, place: &str, samples: &[Sample], value: &dyn Fn(f64) -> f64| {
        let place: Arc<str> = place.into();
        let row = |sample: &Sample| SeriesRow {
            time_ns: real(sample.time_ns),
            name,
            place: place.clone(),
            value: value(sample.value),
        };
        samples.iter().map(row).collect::<Vec<_>>()
    };
    let (queue, load) = (&observed.port.queue_series, &observed.port.load_series);
    let (receiver, owd) = (format!("host{host}"), &observed.one_way.series);
    Tables {
        flows: outcome.flows.iter().map(flow).collect(),
        requests: requests.collect(),
        series: [
            series("queue_us", &port, queue, &us),
            series("rate_gbps", &port, load, &gbps),
            series("owd_us", &receiver, owd, &us),
        ]
        .concat(),
    }
}
