//! What a simulated run came to, as results: the names and meanings are the rack's (crates/results).
//! Series are series.rs's.

use super::{Instant, Observer};
use crate::config::Outcome;
use crate::delays::Delays;
use crate::huygens::ClockWindow;
use onramp_results::{FlowRow, RequestRow, RunResult, Simulated, Summary, Tables};
use onramp_scenario::{Arrival, HostKind, Kind, Qdisc, Run, Work};
use onramp_units::{Bytes, Span, Time};
use serde_json::{json, Value};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Sizes of flows by class: small up to 10 kB, medium up to 1 MB, large above.
const SMALL: Bytes = Bytes::new(10_000);
const MEDIUM: Bytes = Bytes::new(1_000_000);

pub fn report(
    run: &Run,
    index: usize,
    arrivals: &[Arrival],
    ports: &[String],
    observer: &Observer,
) -> (RunResult, Tables) {
    let flows = flows(run, arrivals, ports, observer);
    let requests = requests(run, &flows);
    let mut metrics = BTreeMap::new();
    traffic_metrics(run, arrivals, &flows, &requests, observer, &mut metrics);
    network_metrics(observer, &mut metrics);
    clock_metrics(observer, &mut metrics);
    if run.host.qdisc == Qdisc::FqCodel && run.host.kind == HostKind::Kernel {
        let drops = observer.simulation.counters().host_drops;
        metrics.insert("host.drops".to_owned(), json!(drops));
    }
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

/// How wrong synchronised clocks were, in the windows that ended under the traffic that counts.
fn clock_metrics(observer: &Observer, metrics: &mut BTreeMap<String, Value>) {
    let all = observer.simulation.clock_windows();
    let end = Time::ZERO + observer.duration;
    let counts = |w: &&ClockWindow| w.end > observer.warmup && w.end <= end;
    let windows: Vec<&ClockWindow> = all.iter().filter(counts).collect();
    let errors = |window: &&ClockWindow| window.errors_ns.clone();
    if let Some(errors) = magnitudes(windows.iter().flat_map(errors)) {
        metrics.insert("clock.error_ns".to_owned(), json!(errors));
        let sigmas = windows.iter().flat_map(|w| w.errors_in_sigmas.iter());
        metrics.insert("clock.within_2_sigma".to_owned(), json!(honest(sigmas)));
    }
    if !windows.is_empty() {
        let windows: Vec<Value> = windows.into_iter().map(clock_window).collect();
        metrics.insert("clock.windows".to_owned(), json!(windows));
    }
}

fn clock_window(window: &ClockWindow) -> Value {
    json!({
        "end_ms": (window.end - Time::ZERO).as_s_f64() * 1e3,
        "error_ns": magnitudes(window.errors_ns.iter().copied()),
        "within_2_sigma": honest(window.errors_in_sigmas.iter()),
        "edge_sigma_ns": window.edge_sigma_ns,
        "lost_hosts": window.lost,
        "pairs": window.pairs,
        "pure": window.pure,
    })
}

fn magnitudes(errors: impl Iterator<Item = f64>) -> Option<Summary> {
    Summary::of(errors.map(f64::abs).collect())
}

/// Part of the errors within two sigmas, if there are any.
fn honest<'a>(in_sigmas: impl Iterator<Item = &'a f64>) -> Option<f64> {
    let (mut within, mut all) = (0u32, 0u32);
    for error in in_sigmas {
        within += u32::from(error.abs() <= 2.0);
        all += 1;
    }
    (all > 0).then(|| f64::from(within) / f64::from(all))
}

/// Those that have started.
fn flows(run: &Run, arrivals: &[Arrival], ports: &[String], observer: &Observer) -> Vec<FlowRow> {
    let simulation = &observer.simulation;
    let mut paths = Paths::default();
    let mut rows = Vec::new();
    for (plan, (arrival, outcome)) in arrivals.iter().zip(simulation.each_outcome()).enumerate() {
        let Some(start) = simulation.started(plan) else {
            continue;
        };
        let outcome = since(&outcome, start - arrival.at);
        rows.push(FlowRow {
            kind: arrival.kind.name(),
            traffic: arrival.traffic as i64,
            request: arrival.request.map(|number| number as i64),
            src: i64::from(arrival.src),
            dst: i64::from(arrival.dst),
            size_bytes: match arrival.work {
                Work::Send(size) => Some(size.get() as i64),
                Work::Until(_) => None,
            },
            start_ns: (start - Time::ZERO).as_ns(),
            fct_ns: outcome.arrived.map(Span::as_ns),
            retransmissions: i64::from(outcome.retransmissions),
            timeouts: i64::from(outcome.timeouts),
            measured: i64::from(start - Time::ZERO >= run.warmup),
            path: simulation.ports_of(plan).map(|way| paths.name(way, ports)),
            simulated: Some(simulated(&outcome, simulation.ideal_fct(plan))),
        });
    }
    rows
}

/// `outcome` of a flow that started `late` after its plan, since that start.
fn since(outcome: &Outcome, late: Span) -> Outcome {
    Outcome {
        acked: outcome.acked.map(|acked| acked - late),
        arrived: outcome.arrived.map(|arrived| arrived - late),
        ..*outcome
    }
}

/// Names of ways, each once.
#[derive(Default)]
struct Paths(HashMap<Vec<u32>, Arc<str>>);

impl Paths {
    fn name(&mut self, way: Vec<u32>, ports: &[String]) -> Arc<str> {
        let named = |way: &Vec<u32>| {
            let names: Vec<&str> = way
                .iter()
                .map(|&port| ports[port as usize].as_str())
                .collect();
            names.join(" ").into()
        };
        let entry = self.0.entry(way);
        let name = match entry {
            Entry::Occupied(known) => return known.get().clone(),
            Entry::Vacant(new) => {
                let name = named(new.key());
                new.insert(name)
            }
        };
        name.clone()
    }
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

/// A request, or a step of all_to_all, runs from the first start to the last arrival of its flows.
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
            measured: 0,
        });
        let earlier_ns = row.start_ns - flow.start_ns.min(row.start_ns);
        row.start_ns -= earlier_ns;
        row.missing += i64::from(flow.fct_ns.is_none());
        let end_ns = |fct_ns: i64| flow.start_ns + fct_ns - row.start_ns;
        let ends_ns = row.rct_ns.zip(flow.fct_ns);
        row.rct_ns = ends_ns.map(|(rct_ns, fct_ns)| (rct_ns + earlier_ns).max(end_ns(fct_ns)));
        row.measured = i64::from(row.start_ns >= run.warmup.as_ns());
    }
    rows.into_values().collect()
}

fn traffic_metrics(
    run: &Run,
    arrivals: &[Arrival],
    flows: &[FlowRow],
    requests: &[RequestRow],
    observer: &Observer,
    metrics: &mut BTreeMap<String, Value>,
) {
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    let has = |kind: Kind| run.traffic.iter().any(|traffic| traffic.kind() == kind);
    for (kind, name, time) in [
        (Kind::Incast, "incast", "rct_us"),
        (Kind::Request, "request", "rct_us"),
        (Kind::AllToAll, "all_to_all", "step_us"),
    ] {
        if !has(kind) {
            continue;
        }
        let of_kind = |row: &&RequestRow| run.traffic[row.traffic as usize].kind() == kind;
        let measured = || {
            requests
                .iter()
                .filter(of_kind)
                .filter(|row| row.measured == 1)
        };
        let times = summary_us(measured().filter_map(|r| r.rct_ns));
        put(&format!("{name}.{time}"), times);
        let unfinished = measured().filter(|request| request.rct_ns.is_none());
        put(&format!("{name}.unfinished"), json!(unfinished.count()));
    }
    if has(Kind::Poisson) || has(Kind::Replay) {
        let measured = || {
            let background = |flow: &&FlowRow| ["poisson", "replay"].contains(&flow.kind);
            flows
                .iter()
                .filter(background)
                .filter(|flow| flow.measured == 1)
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
    let of_kind = |kind: Kind| {
        let flows = arrivals.iter().zip(&gbps);
        let flows = flows.filter(move |(arrival, _)| arrival.kind == kind);
        flows.map(|(_, gbps)| *gbps)
    };
    if has(Kind::Long) {
        let each: Vec<f64> = of_kind(Kind::Long).collect();
        put("long.goodput_gbps", json!(each));
    }
    let background =
        [Kind::Long, Kind::Poisson, Kind::Replay].map(|kind| of_kind(kind).sum::<f64>());
    let background: f64 = background.into_iter().sum();
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
    if let Some(delays) = observer.delays.as_ref().filter(|delays| delays.count() > 0) {
        put("owd_us", delays_us(delays));
    }
}

fn delays_us(delays: &Delays) -> Value {
    json!({
        "n": delays.count(),
        "mean": delays.mean_us(),
        "p50": delays.quantile_us(0.5),
        "p90": delays.quantile_us(0.9),
        "p95": delays.quantile_us(0.95),
        "p99": delays.quantile_us(0.99),
        "max": delays.longest_us(),
    })
}

fn summary_us(ns: impl Iterator<Item = i64>) -> Value {
    json!(Summary::of(ns.map(|ns| ns as f64 / 1e3).collect()))
}
