//! Turns what a run came to into its results: real time, real rates, only what started after the
//! warm-up. Computes nothing the kernel could have measured.

use super::dilation::Dilation;
use super::load::{Flow, Outcome};
use super::observe::Observed;
use crate::measure::Sample;
use onramp_results::{FlowRow, RequestRow, RunResult, SeriesRow, Summary, Tables};
use onramp_scenario::{Kind, Run};
use onramp_sync::synthetic::FleetErrors;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sizes of flows by class: small up to 10 kB, medium up to 1 MB, large above.
const SMALL_BYTES: u64 = 10_000;
const MEDIUM_BYTES: u64 = 1_000_000;

/// The results of run `index`, and its tables. `onramp` are the daemons' counters.
pub fn report(
    run: &Run,
    index: usize,
    outcome: &Outcome,
    observed: &Observed,
    onramp: Option<BTreeMap<String, u64>>,
    clocks: &FleetErrors,
) -> (RunResult, Tables) {
    let scale = Scale {
        dilation: Dilation::new(run.time_dilation),
        warmup_ns: 0,
    }
    .after_warmup(run);
    let mut metrics = BTreeMap::new();
    traffic_metrics(run, scale, outcome, &mut metrics);
    port_metrics(scale, observed, &mut metrics);
    clock_metrics(scale, clocks, &mut metrics);
    for (name, value) in onramp.into_iter().flatten() {
        let (name, value) = match name.strip_suffix("_ns") {
            // Times that daemons counted in the rack's time.
            Some(stem) => (
                format!("onramp.{stem}_us"),
                json!(scale.dilation.real_us(value as f64)),
            ),
            None => (format!("onramp.{name}"), json!(value)),
        };
        metrics.insert(name, value);
    }
    let result = RunResult {
        run: index,
        params: run.params.clone(),
        resolved: json!(run),
        partial: false,
        metrics,
        cost: cost(outcome, observed),
    };
    (result, tables(run, scale, outcome, observed))
}

#[derive(Clone, Copy)]
struct Scale {
    dilation: Dilation,
    /// In the rack's time.
    warmup_ns: i64,
}

impl Scale {
    fn after_warmup(self, run: &Run) -> Scale {
        Scale {
            warmup_ns: self.dilation.slow(run.warmup).as_ns(),
            ..self
        }
    }

    fn measured(self, start_ns: i64) -> bool {
        start_ns >= self.warmup_ns
    }

    fn summary_us(self, rack_ns: impl Iterator<Item = f64>) -> Value {
        json!(Summary::of(
            rack_ns.map(|ns| self.dilation.real_us(ns)).collect()
        ))
    }
}

/// How wrong synchronised clocks were while traffic ran.
fn clock_metrics(scale: Scale, errors: &FleetErrors, metrics: &mut BTreeMap<String, Value>) {
    let real_ns = |rack_ns: &f64| 1e3 * scale.dilation.real_us(rack_ns.abs());
    if let Some(magnitudes) = Summary::of(errors.ns.iter().map(real_ns).collect()) {
        metrics.insert("clock.error_ns".into(), json!(magnitudes));
        let within = errors.within_2_sigma();
        metrics.insert("clock.within_2_sigma".into(), json!(within));
    }
}

fn traffic_metrics(
    run: &Run,
    scale: Scale,
    outcome: &Outcome,
    metrics: &mut BTreeMap<String, Value>,
) {
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    let has = |kind: Kind| run.traffic.iter().any(|traffic| traffic.kind() == kind);
    let window_s = (run.duration - run.warmup).as_s_f64();
    let gbps = |bytes: u64| bytes as f64 * 8.0 / window_s / 1e9;
    let measured = || {
        outcome
            .flows
            .iter()
            .filter(|flow| scale.measured(flow.start_ns))
    };

    if has(Kind::Incast) {
        let requests = || {
            outcome
                .requests
                .iter()
                .filter(|request| scale.measured(request.start_ns))
        };
        let times = requests()
            .filter_map(|request| request.rct_ns)
            .map(|ns| ns as f64);
        put("incast.rct_us", scale.summary_us(times));
        put(
            "incast.unfinished",
            json!(requests()
                .filter(|request| request.rct_ns.is_none())
                .count()),
        );
    }
    if has(Kind::Poisson) {
        let times = |class: Class| {
            let flows =
                measured().filter(move |flow| flow.kind == Kind::Poisson && class.holds(flow));
            scale.summary_us(flows.filter_map(|flow| flow.fct_ns).map(|ns| ns as f64))
        };
        put("background.fct_us.small", times(Class::Small));
        put("background.fct_us.medium", times(Class::Medium));
        put("background.fct_us.large", times(Class::Large));
        let late = measured().filter(|flow| flow.kind == Kind::Poisson && flow.fct_ns.is_none());
        put("background.unfinished", json!(late.count()));
    }
    if has(Kind::Long) {
        let long = outcome.flows.iter().filter(|flow| flow.kind == Kind::Long);
        let each: Vec<f64> = long.map(|flow| gbps(flow.measured_bytes)).collect();
        put("long.goodput_gbps", json!(each));
    }
    let received = run.traffic.iter().zip(&outcome.window);
    let background = received.filter(|(traffic, _)| traffic.kind() != Kind::Incast);
    put(
        "background.goodput_gbps",
        json!(gbps(
            background
                .map(|(_, counters)| counters.received_bytes)
                .sum()
        )),
    );
    let whole = outcome.whole;
    put(
        "retransmitted_fraction",
        json!(whole.repeated_bytes as f64 / whole.sent_bytes.max(1) as f64),
    );
    put("retransmissions", json!(whole.retransmissions));
    put("timeouts", json!(whole.timeouts));
    put("connections", json!(outcome.connections));
    put(
        "load.late_max_us",
        json!(scale.dilation.real_us(outcome.late_ns as f64)),
    );
}

fn port_metrics(scale: Scale, observed: &Observed, metrics: &mut BTreeMap<String, Value>) {
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    let us = |ns: f64| scale.dilation.real_us(ns);
    put("drops", json!(observed.drops));
    put("port.drops", json!(observed.port_drops));
    put("host.drops", json!(observed.host_drops));
    put("utilisation", json!(observed.utilisation));
    put("port.idle_fraction", json!(observed.idle_fraction));
    if let Some(queue) = observed.queue {
        let delays = json!({
            "mean": us(queue.mean), "p50": us(queue.p50), "p99": us(queue.p99), "max": us(queue.max),
        });
        put("queue_us", delays);
    }
    put(
        "owd_us",
        scale.summary_us(observed.one_way_ns.iter().copied()),
    );
    put("probe.lost_events", json!(observed.lost_events));
    put("probe.drops", json!(observed.probed_drops));
    put("switch.unknown_frames", json!(observed.unknown_frames));
}

/// Of the machine that ran the rack, in its own time. In the virtual machine a nanosecond of CPU
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Small,
    Medium,
    Large,
}

impl Class {
    fn holds(self, flow: &Flow) -> bool {
        let class = match flow.size_bytes {
            None => return false,
            Some(0..=SMALL_BYTES) => Class::Small,
            Some(..=MEDIUM_BYTES) => Class::Medium,
            Some(_) => Class::Large,
        };
        class == self
    }
}

fn tables(run: &Run, scale: Scale, outcome: &Outcome, observed: &Observed) -> Tables {
    let real = |ns: i64| scale.dilation.real_ns(ns);
    let flow = |flow: &Flow| FlowRow {
        kind: flow.kind.name(),
        traffic: flow.traffic as i64,
        request: flow.request.map(|number| number as i64),
        src: i64::from(flow.src),
        dst: i64::from(flow.dst),
        size_bytes: flow.size_bytes.map(|size| size as i64),
        start_ns: real(flow.start_ns),
        fct_ns: flow.fct_ns.map(real),
        retransmissions: flow.retransmissions as i64,
        timeouts: flow.timeouts as i64,
        measured: i64::from(scale.measured(flow.start_ns)),
        path: None,
        simulated: None,
    };
    let requests = outcome.requests.iter().map(|request| RequestRow {
        traffic: request.traffic as i64,
        request: request.number as i64,
        start_ns: real(request.start_ns),
        rct_ns: request.rct_ns.map(real),
        missing: i64::from(request.missing),
        measured: i64::from(scale.measured(request.start_ns)),
    });
    let host = super::measured_host(run);
    let port = format!("switch0-host{host}");
    let line_gbps = run.network.link.rate.bits_per_s() as f64 / 1e9;
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
    let (queue, load) = (&observed.queue_series, &observed.load_series);
    let (receiver, owd) = (format!("host{host}"), &observed.one_way_series);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(size_bytes: Option<u64>) -> Flow {
        Flow {
            kind: Kind::Poisson,
            traffic: 0,
            request: None,
            src: 1,
            dst: 0,
            size_bytes,
            start_ns: 0,
            fct_ns: None,
            retransmissions: 0,
            timeouts: 0,
            measured_bytes: 0,
        }
    }

    #[test]
    fn classes_meet_at_10_kb_and_1_mb() {
        let class =
            |size| [Class::Small, Class::Medium, Class::Large].map(|c| c.holds(&flow(size)));
        assert_eq!(class(Some(10_000)), [true, false, false]);
        assert_eq!(class(Some(10_001)), [false, true, false]);
        assert_eq!(class(Some(1_000_000)), [false, true, false]);
        assert_eq!(class(Some(1_000_001)), [false, false, true]);
        assert_eq!(class(None), [false; 3]);
    }
}
