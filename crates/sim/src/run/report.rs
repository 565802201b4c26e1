//! What a simulated run came to, as results: the names and meanings are the rack's (crates/results).
//! Rows are rows.rs's, series series.rs's.

use super::clocks::clock_metrics;
use super::observe::{Instant, Observer};
use super::rows::{Requests, Rows};
use super::series::pair_rows;
use crate::delays::Delays;
use crate::edge::OR_ACK_BYTES;
use crate::signals::{rank_correlation, Pair};
use onramp_results::{FlowRow, RequestRow, RunResult, SeriesRow, Summary, Tables};
use onramp_scenario::{HostKind, Kind, Qdisc, Run};
use onramp_units::{Bytes, Span, Time};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Sizes of flows by class: small up to 10 kB, medium up to 1 MB, large above.
const SMALL: Bytes = Bytes::new(10_000);
const MEDIUM: Bytes = Bytes::new(1_000_000);
const CLASSES: [&str; 3] = ["small", "medium", "large"];

/// What a run came to. Rows are made while they are taken: all of them may be too much to hold.
pub struct Report {
    result: RunResult,
    requests: Requests,
    observer: Observer,
    /// Of ports.
    names: Vec<String>,
    /// Why one thread did what several were offered for, if one did. Where threads are is no result.
    pub why_one_thread: Option<&'static str>,
}

impl Report {
    /// Of number `index` of a scenario; `whole`: nobody has ended it before its time.
    pub(super) fn new(
        run: &Run,
        index: usize,
        names: Vec<String>,
        observer: Observer,
        whole: bool,
    ) -> Report {
        let (mut requests, mut tally) = (Requests::default(), Tally::default());
        for (_, flow) in rows(&observer).each() {
            requests.add(&flow);
            tally.add(&flow);
        }
        for (traffic, request) in rows(&observer).missing() {
            requests.miss(traffic, request);
        }
        let counters = observer.simulation.counters();
        let result = RunResult {
            run: index,
            params: run.params.clone(),
            resolved: json!(run),
            partial: !whole,
            metrics: match whole {
                true => metrics(run, &requests, tally, &observer),
                false => BTreeMap::new(),
            },
            cost: BTreeMap::from([
                ("events".to_owned(), counters.events as f64),
                ("packet_hops".to_owned(), counters.packet_hops as f64),
                ("flows".to_owned(), observer.labels.count() as f64),
            ]),
        };
        Report {
            result,
            requests,
            observer,
            names,
            why_one_thread: None,
        }
    }

    /// Metrics; of a run that was ended early none.
    pub fn result(&self) -> &RunResult {
        &self.result
    }

    /// Flows that have started, in the plan's order.
    pub fn flows(&self) -> impl Iterator<Item = FlowRow> + '_ {
        let rows = rows(&self.observer);
        rows.each().map(move |(plan, row)| FlowRow {
            path: rows.path(plan, &self.names).map(Into::into),
            ..row
        })
    }

    /// Requests that have started, by entry of the scenario's traffic and number.
    pub fn requests(&self) -> impl Iterator<Item = RequestRow> + '_ {
        self.requests.rows(self.observer.warmup)
    }

    /// Values by time.
    pub fn series(&self) -> impl Iterator<Item = SeriesRow> + '_ {
        let pairs = pair_rows(&self.observer.simulation.pairs());
        self.observer.series.rows().iter().cloned().chain(pairs)
    }

    /// The same with all rows at once.
    pub fn into_tables(self) -> (RunResult, Tables) {
        let tables = Tables {
            flows: self.flows().collect(),
            requests: self.requests().collect(),
            series: self.series().collect(),
        };
        (self.result, tables)
    }
}

fn rows(observer: &Observer) -> Rows<'_> {
    Rows {
        simulation: &observer.simulation,
        labels: &observer.labels,
        warmup: observer.warmup,
        now: observer.simulation.now(),
    }
}

/// Completion times by class.
type Classes = [Vec<f64>; CLASSES.len()];

/// What metrics need of measured Poisson and replayed flows.
#[derive(Default)]
struct Tally {
    fcts_us: Classes,
    /// The same of each entry of the traffic.
    of_entries: BTreeMap<i64, Classes>,
    slowdowns: Vec<f64>,
    unfinished: u64,
}

impl Tally {
    fn add(&mut self, flow: &FlowRow) {
        if flow.measured == 0 || !["poisson", "replay"].contains(&flow.kind) {
            return;
        }
        let fct_us = flow.fct_ns.map(us);
        let class = class_of(flow);
        self.fcts_us[class].extend(fct_us);
        let of_entry = self.of_entries.entry(flow.traffic).or_default();
        of_entry[class].extend(fct_us);
        let slowdown = flow.simulated.and_then(|simulated| simulated.slowdown);
        self.slowdowns.extend(slowdown);
        self.unfinished += u64::from(fct_us.is_none());
    }
}

/// Number of a flow's class.
fn class_of(flow: &FlowRow) -> usize {
    match Bytes::new(flow.size_bytes.unwrap_or(0) as u64) {
        size if size <= SMALL => 0,
        size if size <= MEDIUM => 1,
        _ => 2,
    }
}

fn metrics(
    run: &Run,
    requests: &Requests,
    tally: Tally,
    observer: &Observer,
) -> BTreeMap<String, Value> {
    let mut metrics = BTreeMap::new();
    request_metrics(run, requests, &mut metrics);
    traffic_metrics(run, tally, observer, &mut metrics);
    network_metrics(observer, &mut metrics);
    signal_metrics(observer, &mut metrics);
    clock_metrics(observer, &mut metrics);
    if run.host.qdisc == Qdisc::FqCodel && run.host.kind == HostKind::Kernel {
        let drops = observer.simulation.counters().host_drops;
        metrics.insert("host.drops".to_owned(), json!(drops));
    }
    metrics
}

fn has(run: &Run, kind: Kind) -> bool {
    run.traffic.iter().any(|traffic| traffic.kind() == kind)
}

fn request_metrics(run: &Run, requests: &Requests, metrics: &mut BTreeMap<String, Value>) {
    for (kind, name, time) in [
        (Kind::Incast, "incast", "rct_us"),
        (Kind::Request, "request", "rct_us"),
        (Kind::AllToAll, "all_to_all", "step_us"),
    ] {
        if !has(run, kind) {
            continue;
        }
        let of_kind = |row: &RequestRow| run.traffic[row.traffic as usize].kind() == kind;
        let measured = requests.rows(Time::ZERO + run.warmup);
        let measured = measured.filter(|row| row.measured == 1 && of_kind(row));
        let (mut times_us, mut unfinished) = (Vec::new(), 0);
        for request in measured {
            times_us.extend(request.rct_ns.map(us));
            unfinished += u64::from(request.rct_ns.is_none());
        }
        let times = json!(Summary::of(times_us));
        metrics.insert(format!("{name}.{time}"), times);
        metrics.insert(format!("{name}.unfinished"), json!(unfinished));
    }
    for entry in entries_of_shared_kind(run, &[Kind::Incast]) {
        let of_entry = requests.rows(Time::ZERO + run.warmup);
        let of_entry = of_entry.filter(|row| row.measured == 1 && row.traffic as usize == entry);
        let times_us: Vec<f64> = of_entry.filter_map(|row| row.rct_ns.map(us)).collect();
        let times = json!(Summary::of(times_us));
        metrics.insert(format!("traffic.{entry}.rct_us"), times);
    }
}

/// Entries of the traffic of one of `kinds`, if there are several: what is of all says little of each.
fn entries_of_shared_kind(run: &Run, kinds: &[Kind]) -> Vec<usize> {
    let kinds_of = run.traffic.iter().map(|traffic| traffic.kind());
    let entries = kinds_of
        .enumerate()
        .filter(|(_, kind)| kinds.contains(kind));
    let entries: Vec<usize> = entries.map(|(entry, _)| entry).collect();
    if entries.len() > 1 {
        entries
    } else {
        Vec::new()
    }
}

fn traffic_metrics(
    run: &Run,
    mut tally: Tally,
    observer: &Observer,
    metrics: &mut BTreeMap<String, Value>,
) {
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    if has(run, Kind::Poisson) || has(run, Kind::Replay) {
        for (class, fcts_us) in CLASSES.into_iter().zip(tally.fcts_us) {
            let fcts = json!(Summary::of(fcts_us));
            put(&format!("background.fct_us.{class}"), fcts);
        }
        for entry in entries_of_shared_kind(run, &[Kind::Poisson, Kind::Replay]) {
            let fcts_us = tally.of_entries.remove(&(entry as i64)).unwrap_or_default();
            for (class, fcts_us) in CLASSES.into_iter().zip(fcts_us) {
                let fcts = json!(Summary::of(fcts_us));
                put(&format!("traffic.{entry}.fct_us.{class}"), fcts);
            }
        }
        put("slowdown", json!(Summary::of(tally.slowdowns)));
        put("background.unfinished", json!(tally.unfinished));
    }
    let (before, after) = (&observer.at_warmup, &observer.at_end);
    let window_s = (run.duration - run.warmup).as_s_f64();
    let gbps = |before: Bytes, after: Bytes| (after - before).get() as f64 * 8.0 / window_s / 1e9;
    if has(run, Kind::Long) {
        let each = before.long.iter().zip(&after.long);
        let each: Vec<f64> = each.map(|(&before, &after)| gbps(before, after)).collect();
        put("long.goodput_gbps", json!(each));
    }
    let or_acks = (after.counters.or_acks - before.counters.or_acks) as f64;
    let or_ack_bits = or_acks * f64::from(OR_ACK_BYTES) * 8.0;
    let hosts = f64::from(run.network.topology.hosts());
    put("or_ack_mbps", json!(or_ack_bits / window_s / hosts / 1e6));
    let background = gbps(before.background, after.background);
    put("background.goodput_gbps", json!(background));
}

fn network_metrics(observer: &Observer, metrics: &mut BTreeMap<String, Value>) {
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    let (warm, end): (&Instant, &Instant) = (&observer.at_warmup, &observer.at_end);
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
    let sent = end.port.sent.get() - warm.port.sent.get();
    let could = port.rate.bytes_in(observer.end - observer.warmup).get();
    put("utilisation", json!(sent as f64 / could as f64));
    let waits_us = observer.waits.iter().map(|wait| us(wait.as_ns()));
    put("queue_us", json!(Summary::of(waits_us.collect())));
    if let Some(delays) = observer.delays.as_ref().filter(|delays| delays.count() > 0) {
        put("owd_us", delays_us(delays));
    }
}

/// How well what senders knew told the delays that their packets met: rank correlations.
fn signal_metrics(observer: &Observer, metrics: &mut BTreeMap<String, Value>) {
    let pairs = observer.simulation.pairs();
    for (name, signal) in [
        (
            "pairs.owd_correlation",
            (|pair| pair.last_owd) as fn(&Pair) -> Span,
        ),
        ("pairs.rtt_correlation", |pair| pair.last_rtt),
    ] {
        let values: Vec<(Span, Span)> = pairs.iter().map(|pair| (signal(pair), pair.owd)).collect();
        if let Some(correlation) = rank_correlation(&values) {
            metrics.insert(name.to_owned(), json!(correlation));
        }
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

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}
