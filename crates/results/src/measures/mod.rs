// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The metrics of a run: its flows, requests and counters in, `metrics` of `summary.json` out, by the same formulas for
//! both worlds.
//!
//! Each file has the metrics of one subject: their rows in docs/results.md, and what computes them. A new one needs a
//! file and a line in the list below (docs/extend.md). Those of other crates come by [`register_measure`].

mod clocks;
mod flows;
mod goodput;
mod losses;
mod offered;
mod on_ramp;
mod port;
mod rack;
mod requests;
mod signals;
mod times;

pub(crate) use offered::Offered;

use crate::counters::Counters;
use crate::row::{FlowRow, RequestRow};
use onramp_cc::Plugs;
use onramp_scenario::Run;
use serde::Serialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// The subjects of this crate, in the order of docs/results.md.
const BUILT_IN: &[&MeasureKind] = &[
    &requests::KIND,
    &flows::KIND,
    &goodput::KIND,
    &offered::KIND,
    &losses::KIND,
    &port::KIND,
    &signals::KIND,
    &clocks::KIND,
    &on_ramp::KIND,
    &rack::KIND,
];

/// Metrics of one subject.
#[non_exhaustive]
pub struct MeasureKind {
    /// Its name, for programs.
    pub name: &'static str,
    /// What it adds to `metrics`.
    pub metrics: &'static [Metric],
    /// Begins to measure a run.
    pub of: for<'r> fn(&'r Run) -> Box<dyn Measure + 'r>,
}

impl MeasureKind {
    /// A measure with its metrics; `of` begins to measure a run.
    pub const fn new(
        name: &'static str,
        metrics: &'static [Metric],
        of: for<'r> fn(&'r Run) -> Box<dyn Measure + 'r>,
    ) -> MeasureKind {
        MeasureKind { name, metrics, of }
    }
}

impl Metric {
    /// A number that simulations measure, whatever their hosts.
    pub const fn new(name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
        metric((name, unit, "number", SIM, ALL, meaning))
    }
}

onramp_cc::setters!(Metric {
    /// `distribution`, `list` or `text`, in place of a number.
    form: &'static str;
});

onramp_cc::named!(MeasureKind, "measure");

/// Measures one run.
pub trait Measure {
    /// Takes a flow, in any order.
    fn add_flow(&mut self, _flow: &FlowRow) {}

    /// Takes a request or a step, in any order.
    fn add_request(&mut self, _request: &RequestRow) {}

    /// Adds the metrics of all of them and `counters`.
    fn finish(self: Box<Self>, counters: &Counters, metrics: &mut Metrics);
}

/// A measure in `metrics` of `summary.json`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Metric {
    /// Its name. `CLASS` stands for small, medium or large, `N` for the number of a traffic entry, `KIND` for a kind of
    /// traffic, `COUNTER` for a counter of the daemon, `PORT` for a port.
    pub name: &'static str,
    /// Unit of the value, or of each value of a distribution or list.
    pub unit: &'static str,
    /// `distribution`, `number`, `list` or `text`.
    pub form: &'static str,
    /// The worlds that measure it.
    pub worlds: &'static str,
    /// The kind of hosts that have it.
    pub hosts: &'static str,
    /// Its definition.
    pub meaning: &'static str,
}

const BOTH: &str = "both";
const SIM: &str = "sim";
const RACK: &str = "rack";
const ALL: &str = "all";
const NIC: &str = "nic";
const KERNEL: &str = "kernel";

/// Name, unit, form, worlds, hosts, meaning.
type Line = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const fn metric(line: Line) -> Metric {
    let (name, unit, form, worlds, hosts, meaning) = line;
    Metric {
        name,
        unit,
        form,
        worlds,
        hosts,
        meaning,
    }
}

static PLUGS: Plugs<MeasureKind> = Plugs::new();

/// Adds metrics of another crate.
///
/// # Panics
/// A measure has this name, or a run has been measured already.
pub fn register_measure(kind: &'static MeasureKind) {
    PLUGS.add(kind, BUILT_IN.iter().copied());
}

fn kinds() -> impl Iterator<Item = &'static MeasureKind> {
    BUILT_IN.iter().copied().chain(PLUGS.all().iter().copied())
}

/// All metrics, in the order of docs/results.md.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    kinds().flat_map(|kind| kind.metrics)
}

/// The metric of a `name` in `summary.json`.
pub fn metric_of(name: &str) -> Option<&'static Metric> {
    metrics().find(|metric| fits(metric.name, name))
}

/// Members of a distribution.
const MEMBERS: [&str; 7] = ["n", "mean", "p50", "p90", "p95", "p99", "max"];

/// The unit of the number at `path`, as [`crate::RunResult::number`] reads it: `us` of `incast.rct_us.p99`. Numbers of
/// the cost of a run have none.
///
/// # Errors
/// No metric has such a number; says what there is.
pub fn unit_of(path: &str) -> Result<&'static str, String> {
    if path.starts_with("cost.") {
        return Ok("");
    }
    let of_member = |(name, member)| Some((metric_of(name)?, Some(member)));
    let whole = metric_of(path).map(|metric| (metric, None));
    let Some((metric, member)) = whole.or_else(|| of_member(path.rsplit_once('.')?)) else {
        return Err(format!("no metric, {}", known(path)));
    };
    let is_place =
        |member: &str| ["sum", "jain"].contains(&member) || member.parse::<usize>().is_ok();
    let expected = match (metric.form, member) {
        ("number", None) => return Ok(metric.unit),
        ("distribution", Some("n")) | ("list", Some("jain")) => return Ok("1"),
        ("distribution", Some(member)) if MEMBERS.contains(&member) => return Ok(metric.unit),
        ("list", Some(member)) if is_place(member) => return Ok(metric.unit),
        ("distribution", _) => format!("{} and one of {}", metric.name, MEMBERS.join(", ")),
        ("list", _) => format!("{} and sum, jain or a place from 0", metric.name),
        ("number", _) => format!("{} alone", metric.name),
        _ => return Err("no number".to_owned()),
    };
    Err(format!("no number of a metric, expected {expected}"))
}

/// The metrics that begin with the same word.
fn known(path: &str) -> String {
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let like = |name: &&str| first(name) == first(path);
    let names: Vec<&str> = metrics().map(|metric| metric.name).filter(like).collect();
    match names.is_empty() {
        true => "expected one of docs/results.md".to_owned(),
        false => format!("expected one of {}", names.join(", ")),
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split('.'), name.split('.'));
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return true,
            (Some("COUNTER" | "PORT"), Some(_)) => {}
            (Some("CLASS"), Some("small" | "medium" | "large")) => {}
            (Some("KIND"), Some(name)) if onramp_scenario::traffic_kind(name).is_some() => {}
            (Some("N"), Some(number)) if number.parse::<usize>().is_ok() => {}
            (Some(pattern), Some(part)) if pattern == part => {}
            _ => return false,
        }
    }
}

/// Takes the rows of a run, in any order, and computes its metrics.
pub struct Measures<'a>(Vec<Box<dyn Measure + 'a>>);

impl<'a> Measures<'a> {
    /// The measures of `run`, without rows so far.
    pub fn new(run: &'a Run) -> Measures<'a> {
        Measures(kinds().map(|kind| (kind.of)(run)).collect())
    }

    /// Adds a flow.
    pub fn add_flow(&mut self, flow: &FlowRow) {
        self.0.iter_mut().for_each(|measure| measure.add_flow(flow));
    }

    /// Adds a request or a step.
    pub fn add_request(&mut self, request: &RequestRow) {
        let all = self.0.iter_mut();
        all.for_each(|measure| measure.add_request(request));
    }

    /// The metrics of all rows and `counters`.
    pub fn finish(self, counters: &Counters) -> BTreeMap<String, Value> {
        let mut metrics = Metrics::default();
        for measure in self.0 {
            measure.finish(counters, &mut metrics);
        }
        metrics.0
    }
}

/// Metrics by name; all are in the table of metrics.
#[derive(Default)]
pub struct Metrics(BTreeMap<String, Value>);

impl Metrics {
    /// Sets a metric.
    pub fn put(&mut self, name: &str, value: impl Serialize) {
        debug_assert!(metric_of(name).is_some(), "no measure has {name}");
        self.0.insert(name.to_owned(), json!(value));
    }

    /// Sets a metric that is left out if there is nothing to measure.
    pub fn put_some(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }
}

/// Entries of the traffic of some kinds.
fn entries(run: &Run, is_one: impl Fn(&onramp_scenario::Traffic) -> bool) -> Vec<usize> {
    let traffic = run.traffic.iter().enumerate();
    let of_kinds = traffic.filter(|(_, traffic)| is_one(traffic));
    of_kinds.map(|(entry, _)| entry).collect()
}

/// `entries` if there are several; with one entry, its metrics equal those of all.
fn several(entries: &[usize]) -> &[usize] {
    match entries {
        [_] => &[],
        several => several,
    }
}

#[cfg(test)]
mod tests;
