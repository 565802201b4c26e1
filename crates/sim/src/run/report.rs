//! What a simulated run came to, as results: the names and meanings are the rack's (crates/results).
//! Series are series.rs's.

use super::{Instant, Observer};
use crate::config::Outcome;
use onramp_results::{FlowRow, RequestRow, RunResult, Simulated, Summary, Tables};
use onramp_scenario::{Arrival, Kind, Run, Work};
use onramp_units::{Bytes, Span, Time};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Sizes of flows by class: small up to 10 kB, medium up to 1 MB, large above.
const SMALL: Bytes = Bytes::new(10_000);
const MEDIUM: Bytes = Bytes::new(1_000_000);

pub fn report(
    run: &Run,
    index: usize,
    arrivals: &[Arrival],
    observer: &Observer,
) -> (RunResult, Tables) {
    let flows = flows(run, arrivals, observer);
    let requests = requests(run, &flows);
    let mut metrics = BTreeMap::new();
    traffic_metrics(run, &flows, &requests, observer, &mut metrics);
    network_metrics(observer, &mut metrics);
    let counters = observer.simulation.counters();
    let result = RunResult {
        run: index,
        params: run.params.clone(),
        resolved: json!(run),
        metrics,
        cost: BTreeMap::from([
            ("events".to_owned(), counters.events as f64),
            ("packet_hops".to_owned(), counters.packet_hops as f64),
            ("flows".to_owned(), arrivals.len() as f64),
        ]),
    };
    let tables = Tables {
        flows,
        requests,
        series: Vec::new(),
    };
    (result, tables)
}

fn flows(run: &Run, arrivals: &[Arrival], observer: &Observer) -> Vec<FlowRow> {
    let simulation = &observer.simulation;
    let row = |(plan, (arrival, outcome)): (usize, (&Arrival, Outcome))| FlowRow {
        kind: match arrival.kind {
            Kind::Incast => "incast",
            Kind::Long => "long",
            Kind::Poisson => "poisson",
        },
        traffic: arrival.traffic as i64,
        request: arrival.request.map(|number| number as i64),
        src: i64::from(arrival.src),
        dst: i64::from(arrival.dst),
        size_bytes: match arrival.work {
            Work::Send(size) => Some(size.get() as i64),
            Work::Until(_) => None,
        },
        start_ns: (arrival.at - Time::ZERO).as_ns(),
        fct_ns: outcome.arrived.map(Span::as_ns),
        retransmissions: i64::from(outcome.retransmissions),
        timeouts: i64::from(outcome.timeouts),
        measured: i64::from(arrival.at - Time::ZERO >= run.warmup),
        simulated: Some(simulated(&outcome, simulation.ideal_fct(plan))),
    };
    let outcomes = arrivals.iter().zip(simulation.outcomes());
    outcomes.enumerate().map(row).collect()
}

fn simulated(outcome: &Outcome, ideal: Option<Span>) -> Simulated {
    // Floored at 1: the ideal counts full packets on every link.
    let slowdown = |(acked, ideal): (Span, Span)| (acked.as_s_f64() / ideal.as_s_f64()).max(1.0);
    Simulated {
        acked_ns: outcome.acked.map(Span::as_ns),
        ideal_fct_ns: ideal.map(Span::as_ns),
        slowdown: outcome.acked.zip(ideal).map(slowdown),
        held_ns: outcome.held.as_ns(),
    }
}

/// A request is over when its last answer has arrived.
fn requests(run: &Run, flows: &[FlowRow]) -> Vec<RequestRow> {
    let mut rows: BTreeMap<(i64, i64), RequestRow> = BTreeMap::new();
    for flow in flows {
        let Some(request) = flow.request else {
            continue;
        };
        let row = rows.entry((flow.traffic, request)).or_insert(RequestRow {
            traffic: flow.traffic,
            request,
            start_ns: flow.start_ns,
            rct_ns: Some(0),
            missing: 0,
            measured: i64::from(flow.start_ns >= run.warmup.as_ns()),
        });
        row.missing += i64::from(flow.fct_ns.is_none());
        row.rct_ns = row.rct_ns.zip(flow.fct_ns).map(|(rct, fct)| rct.max(fct));
    }
    rows.into_values().collect()
}

fn traffic_metrics(
    run: &Run,
    flows: &[FlowRow],
    requests: &[RequestRow],
    observer: &Observer,
    metrics: &mut BTreeMap<String, Value>,
) {
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    let has = |kind: Kind| run.traffic.iter().any(|traffic| traffic.kind() == kind);
    if has(Kind::Incast) {
        let measured = || requests.iter().filter(|request| request.measured == 1);
        put(
            "incast.rct_us",
            summary_us(measured().filter_map(|r| r.rct_ns)),
        );
        let unfinished = measured().filter(|request| request.rct_ns.is_none());
        put("incast.unfinished", json!(unfinished.count()));
    }
    if has(Kind::Poisson) {
        let measured = || {
            let poisson = flows.iter().filter(|flow| flow.kind == "poisson");
            poisson.filter(|flow| flow.measured == 1)
        };
        for class in ["small", "medium", "large"] {
            let of_class = measured().filter(|flow| class_of(flow) == Some(class));
            let times = summary_us(of_class.filter_map(|flow| flow.fct_ns));
            put(&format!("background.fct_us.{class}"), times);
        }
        let slowdowns = measured().filter_map(|flow| flow.simulated?.slowdown);
        put("slowdown", json!(Summary::of(slowdowns.collect())));
        let unfinished = measured().filter(|flow| flow.fct_ns.is_none());
        put("background.unfinished", json!(unfinished.count()));
    }
    let gbps = received_gbps(run, &observer.warm, &observer.end);
    let of_kind = |kind: &'static str| {
        let flows = flows
            .iter()
            .zip(&gbps)
            .filter(move |(flow, _)| flow.kind == kind);
        flows.map(|(_, gbps)| *gbps)
    };
    if has(Kind::Long) {
        put(
            "long.goodput_gbps",
            json!(of_kind("long").collect::<Vec<f64>>()),
        );
    }
    let background: f64 = of_kind("long").chain(of_kind("poisson")).sum();
    put("background.goodput_gbps", json!(background));
}

fn class_of(flow: &FlowRow) -> Option<&'static str> {
    let size = Bytes::new(flow.size_bytes? as u64);
    Some(match size {
        _ if size <= SMALL => "small",
        _ if size <= MEDIUM => "medium",
        _ => "large",
    })
}

/// Of each flow, within the window.
fn received_gbps(run: &Run, warm: &Instant, end: &Instant) -> Vec<f64> {
    let window_s = (run.duration - run.warmup).as_s_f64();
    let gbps = |(before, after): (&Bytes, &Bytes)| {
        (after.get() - before.get()) as f64 * 8.0 / window_s / 1e9
    };
    warm.received.iter().zip(&end.received).map(gbps).collect()
}

fn network_metrics(observer: &Observer, metrics: &mut BTreeMap<String, Value>) {
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    let (warm, end) = (&observer.warm, &observer.end);
    let (before, after) = (warm.counters, observer.simulation.counters());
    let retransmissions = after.retransmissions - before.retransmissions;
    let sent = (after.data_packets - before.data_packets).max(1);
    put("retransmissions", json!(retransmissions));
    let fraction = retransmissions as f64 / sent as f64;
    put("retransmitted_fraction", json!(fraction));
    put("timeouts", json!(after.timeouts - before.timeouts));
    put("drops", json!(after.drops - before.drops));
    put("marks", json!(after.marks - before.marks));
    put("or_acks", json!(after.or_acks - before.or_acks));
    put("pfc_pauses", json!(after.pauses - before.pauses));
    let now = observer.simulation.now();
    let port = observer.simulation.port_to(observer.host, now);
    put("port.drops", json!(port.drops - warm.port.drops));
    let window = Time::ZERO + observer.duration - observer.warmup;
    let sent = end.port.sent.get() - warm.port.sent.get();
    let could = port.rate.bytes_in(window).get();
    put("utilisation", json!(sent as f64 / could as f64));
    let waits = observer.waits.iter().map(|wait| wait.as_ns());
    put("queue_us", summary_us(waits));
}

fn summary_us(ns: impl Iterator<Item = i64>) -> Value {
    json!(Summary::of(ns.map(|ns| ns as f64 / 1e3).collect()))
}
