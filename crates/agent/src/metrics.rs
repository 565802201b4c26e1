// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Prometheus metrics of the data path and of the clock. The served text and docs/metrics.md come from one table.
//!
//! Does not: read maps or clocks of its own; a snapshot has the statuses that `onramp status` and `onramp clock
//! status` show.
mod clock;
mod datapath;
mod serve;

use std::fmt::Write as _;

use onramp_clock::status as clock_status;
use onramp_law::abi::COUNTERS;
use onramp_status::Status;

pub use datapath::MOST_PEERS;
pub use serve::serve;

/// What the metrics are made of. A clock without data path has no status of one, a local clock none of a clock.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The status of the data path.
    pub datapath: Option<Status>,
    /// The status of the synchronisation.
    pub clock: Option<clock_status::Status>,
}

/// A metric: its name, its meaning and its values.
struct Metric {
    name: &'static str,
    kind: Kind,
    labels: &'static str,
    help: &'static str,
    of: Of,
}

/// As Prometheus names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
    Histogram,
}

/// Where the values come from.
enum Of {
    /// The status of the clock.
    Clock(fn(&clock_status::Status) -> Vec<Sample>),
    /// The status of the data path.
    Datapath(fn(&Status) -> Vec<Sample>),
    /// A counter of the data path, by device: its name, and how much one count is.
    Counter(&'static str, f64),
    /// Several counters of the data path, by device: the name of a further label, and for each of its values the
    /// counter.
    Counters(&'static str, &'static [(&'static str, &'static str)]),
}

type Labels = Vec<(&'static str, String)>;

/// A value of a metric.
struct Sample {
    /// Behind the metric's name, for the parts of a histogram.
    suffix: &'static str,
    labels: Labels,
    value: f64,
}

impl Sample {
    fn new(labels: Labels, value: f64) -> Self {
        Self {
            suffix: "",
            labels,
            value,
        }
    }
}

fn one(value: f64) -> Vec<Sample> {
    vec![Sample::new(vec![], value)]
}

fn all() -> impl Iterator<Item = &'static Metric> {
    datapath::METRICS.iter().chain(clock::METRICS)
}

/// The names of all metrics, without the suffixes of histograms.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|metric| metric.name)
}

impl Metric {
    fn samples(&self, snapshot: &Snapshot) -> Vec<Sample> {
        match (&self.of, &snapshot.datapath, &snapshot.clock) {
            (Of::Clock(of), _, Some(status)) => of(status),
            (Of::Datapath(of), Some(status), _) => of(status),
            (Of::Counter(counter, unit), Some(status), _) => {
                datapath::by_device(status, counter, None, *unit)
            }
            (Of::Counters(label, list), Some(status), _) => {
                let of = |(value, counter): &(&str, &str)| {
                    datapath::by_device(status, counter, Some((*label, value)), 1.0)
                };
                list.iter().flat_map(of).collect()
            }
            _ => vec![],
        }
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        }
    }
}

/// The metrics in Prometheus' text format, version 0.0.4. A metric without values is left out.
pub fn text(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    for metric in all() {
        let samples = metric.samples(snapshot);
        if samples.is_empty() {
            continue;
        }
        let (name, kind) = (metric.name, metric.kind.name());
        let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", metric.help);
        for sample in samples {
            let labels = labels_text(&sample.labels);
            let _ = writeln!(out, "{name}{}{labels} {}", sample.suffix, sample.value);
        }
    }
    out
}

fn labels_text(labels: &Labels) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let pair = |(name, value): &(&str, String)| format!("{name}=\"{}\"", escaped(value));
    let pairs: Vec<String> = labels.iter().map(pair).collect();
    format!("{{{}}}", pairs.join(","))
}

/// As the format wants the values of labels.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The whole of docs/metrics.md.
pub fn markdown() -> String {
    let mut out = format!(
        "<!-- Generated, a test compares it: onramp clock reference > docs/metrics.md -->\n\
         # Metrics\n\
         The Prometheus metrics of a daemon, for operators who monitor it. `onramp agent run --metrics \
         ADDRESS:PORT` serves all of them at `/metrics`, those of clock synchronisation only with `--clock huygens`. \
         `onramp clock run --metrics ADDRESS:PORT` serves those of clock synchronisation. A dashboard and alerts are in \
         [deploy/](observe.md#prometheus-and-grafana).\n\n\
         Times are in seconds. Counters begin at 0 when the daemon starts. The label `device` is a device of the \
         daemon. The label `peer` is an address: the {MOST_PEERS} peers whose flows were paused for the longest total \
         time have values, and `onramp_peers` counts all. A peer that was silent for a minute is forgotten; its counters \
         begin at 0 when it is heard again.\n",
    );
    table(&mut out, "Data path", datapath::METRICS);
    for metric in datapath::METRICS {
        let Of::Counters(label, list) = &metric.of else {
            continue;
        };
        let head = format!("Values of `{label}` of `{}`", metric.name);
        let rows = list
            .iter()
            .map(|(value, counter)| (*value, meaning(counter)));
        values(&mut out, &head, label, rows);
    }
    table(&mut out, "Clock synchronisation", clock::METRICS);
    let head = "Values of `event` of `onramp_clock_events_total`";
    let events = clock_status::COUNTERS.iter().copied();
    values(&mut out, head, "event", events);
    out
}

fn table(out: &mut String, head: &str, metrics: &[Metric]) {
    let _ = writeln!(
        out,
        "\n## {head}\n| metric | type | labels | meaning |\n|---|---|---|---|"
    );
    for metric in metrics {
        let Metric {
            name, labels, help, ..
        } = metric;
        let _ = writeln!(
            out,
            "| `{name}` | {} | {labels} | {help} |",
            metric.kind.name()
        );
    }
}

fn values<'a>(
    out: &mut String,
    head: &str,
    label: &str,
    rows: impl Iterator<Item = (&'a str, &'a str)>,
) {
    let _ = writeln!(out, "\n{head}:\n\n| {label} | meaning |\n|---|---|");
    for (value, meaning) in rows {
        let _ = writeln!(out, "| `{value}` | {meaning} |");
    }
}

/// What a counter of the data path counts.
fn meaning(counter: &str) -> &'static str {
    let found = COUNTERS.iter().find(|(name, _)| *name == counter);
    found.map_or("", |(_, meaning)| meaning)
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
