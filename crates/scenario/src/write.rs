//! Scenarios and runs back into text: TOML that parses to the same, and JSON of the same shape
//! for results.

use crate::keys::{self, KEYS};
use crate::scenario::Layer;
use crate::value::{Value, OFF};
use crate::*;
use serde::{Serialize, Serializer};
use toml::Table;

/// Keys that results of before they were there do not have. At their defaults they are not written, so
/// that such results are still those of their scenarios.
const LATER: [&str; 3] = ["host.connections", "onramp.pacing", "onramp.piggyback"];

fn is_written(path: &str, value: &Value) -> bool {
    let default = || keys::find(path).and_then(|(key, _)| key.default_value());
    !LATER.contains(&path) || default().as_ref() != Some(value)
}

impl Run {
    /// This run alone as a scenario file: parsing it gives one run, equal to this one.
    pub fn to_toml(&self) -> String {
        let mut table = self.to_table();
        if let Some(case) = self.params.get("case") {
            let name = Table::from_iter([("name".to_owned(), case.clone().into())]);
            table.insert("case".to_owned(), vec![toml::Value::Table(name)].into());
        }
        let settings = self.settings();
        let varied = settings
            .iter()
            .filter(|(path, _)| self.params.contains_key(path));
        let sweep: Table = varied.map(|(path, v)| (path.clone(), list([v]))).collect();
        if !sweep.is_empty() {
            table.insert("sweep".to_owned(), sweep.into());
        }
        table.to_string()
    }

    fn to_table(&self) -> Table {
        table_of(
            self.settings()
                .iter()
                .map(|(path, value)| (path.as_str(), value))
                .filter(|(path, value)| is_written(path, value)),
        )
    }

    /// Every key with its value, optional ones only if they are set. With law off, the law's
    /// parameters are left out, and the threshold is "off".
    pub(crate) fn settings(&self) -> Vec<(String, Value)> {
        let mut all = Settings::default();
        all.add("title", Value::Text(self.title.clone()));
        all.add("seed", Value::Count(self.seed));
        all.add("duration", Value::Span(self.duration));
        all.add("warmup", Value::Span(self.warmup));
        all.add("time_dilation", Value::Count(self.time_dilation.get()));
        all.network(&self.network);
        all.add("host.kind", word(self.host.kind));
        all.add("host.cc", word(self.host.cc));
        all.add("host.qdisc", word(self.host.qdisc));
        all.add("host.gso", Value::Bytes(self.host.gso));
        all.add("host.gro", Value::Flag(self.host.gro));
        all.add("host.coalescing", Value::Span(self.host.coalescing));
        if self.host.kind == HostKind::Kernel {
            all.add("host.connections", word(self.host.connections));
        }
        all.transport(self.host.kind, &self.host.transport);
        let tuned = |key: &&keys::Key| key.of_cc.contains(&self.host.cc);
        for key in KEYS.iter().filter(tuned) {
            if let Some(value) = self.tuning.0.get(key.name()) {
                all.add(key.path, value.clone());
            }
        }
        all.add("clock.offset", Value::Span(self.clock.offset));
        all.add("clock.drift", Value::Fraction(self.clock.drift));
        all.add("clock.noise", Value::Span(self.clock.noise));
        all.add("clock.wander", Value::Fraction(self.clock.wander));
        all.add("clock.sync", word(self.clock.sync));
        all.add("clock.stamps", word(self.clock.stamps));
        all.add("clock.degree", Value::Count(self.clock.degree.into()));
        let interval = Value::Span(self.clock.probe_interval);
        all.add("clock.probe_interval", interval);
        all.add("clock.window", Value::Span(self.clock.window));
        for (index, traffic) in self.traffic.iter().enumerate() {
            all.traffic(&format!("traffic.{index}"), traffic);
        }
        all.onramp(self.host.kind, &self.onramp);
        all.0
    }
}

#[derive(Default)]
struct Settings(Vec<(String, Value)>);

impl Settings {
    fn add(&mut self, path: impl Into<String>, value: Value) {
        self.0.push((path.into(), value));
    }

    fn network(&mut self, network: &Network) {
        self.add("network.topology.kind", word(network.topology.kind()));
        let mut count = |path: &str, count: u32| self.add(path, Value::Count(count.into()));
        match &network.topology {
            Topology::File { path, .. } => self.add("network.topology.path", word(path)),
            Topology::Inline(inline) => self.add("network.graph", Value::Graph(inline.clone())),
            shape => count("network.topology.hosts", shape.hosts()),
        }
        let mut count = |path: &str, count: u32| self.add(path, Value::Count(count.into()));
        match network.topology {
            Topology::Star { .. }
            | Topology::Dumbbell { .. }
            | Topology::File { .. }
            | Topology::Inline(_) => {}
            Topology::LeafSpine { leaves, spines, .. } => {
                count("network.topology.leaves", leaves);
                count("network.topology.spines", spines);
            }
            Topology::FatTree { pods, width, .. } => {
                count("network.topology.pods", pods);
                count("network.topology.width", width);
            }
        }
        if network.host_links.is_empty() {
            self.add("network.link.rate", Value::Rate(network.link.rate));
            self.add("network.link.delay", Value::Span(network.link.delay));
            self.add("network.fabric.rate", Value::Rate(network.fabric.rate));
            self.add("network.fabric.delay", Value::Span(network.fabric.delay));
        }
        if let Some(log2) = network.alpha_log2 {
            let alpha = keys::ALPHAS.get((log2 + 7) as usize);
            self.add("network.alpha", word(alpha.unwrap_or(&"1")));
        }
        self.add("network.buffer", Value::Bytes(network.buffer));
        self.add("network.sharing", word(network.sharing));
        if let Some(ecn) = network.ecn {
            self.add("network.ecn.threshold", Value::Bytes(ecn.threshold));
            self.add("network.ecn.max", Value::Bytes(ecn.max));
            let part = Value::Fraction(ecn.max_fraction);
            self.add("network.ecn.max_fraction", part);
            if let Some(steps) = ecn.steps {
                self.add("network.ecn.steps", Value::Count(steps.into()));
            }
            self.add("network.ecn.mark", word(ecn.mark));
        }
    }

    fn transport(&mut self, kind: HostKind, transport: &Transport) {
        self.add("host.min_rto", Value::Span(transport.min_rto));
        if kind == HostKind::Nic {
            return;
        }
        let window = Value::Count(transport.initial_window.into());
        self.add("host.initial_window", window);
        self.add("host.delayed_ack", Value::Span(transport.delayed_ack));
        self.add("host.small_queue", Value::Span(transport.small_queue));
        self.add("host.reordering", Value::Fraction(transport.reordering));
    }

    fn traffic(&mut self, entry: &str, traffic: &Traffic) {
        let path = |name: &str| format!("{entry}.{name}");
        self.add(path("kind"), word(traffic.kind()));
        match traffic {
            Traffic::Incast(incast) => {
                self.add(path("to"), receivers(incast.to));
                self.add(path("from"), sources(incast.from));
                self.add(path("fanout"), Value::Count(incast.fanout.into()));
                self.add(path("size"), Value::Bytes(incast.size));
                match incast.spacing {
                    Spacing::Load(load) => self.add(path("load"), Value::Fraction(load)),
                    Spacing::Interval(gap) => self.add(path("interval"), Value::Span(gap)),
                }
                self.add(path("arrivals"), word(incast.arrivals));
                if let Some(requests) = incast.requests {
                    self.add(path("requests"), Value::Count(requests));
                }
                self.add(path("stagger"), Value::Span(incast.stagger));
                self.add(path("ask_size"), Value::Bytes(incast.ask_size));
                self.add(path("jitter"), Value::Span(incast.jitter));
            }
            Traffic::Request(request) => {
                self.add(path("to"), receivers(request.to));
                self.add(path("from"), sources(request.from));
                self.add(path("request_size"), Value::Bytes(request.request_size));
                self.add(path("size"), Value::Bytes(request.size));
                match request.asking {
                    Asking::Load(load) => self.add(path("load"), Value::Fraction(load)),
                    Asking::Think { time, concurrency } => {
                        self.add(path("think"), Value::Span(time));
                        self.add(path("concurrency"), Value::Count(concurrency.into()));
                    }
                }
                self.add(path("arrivals"), word(request.arrivals));
                if let Some(requests) = request.requests {
                    self.add(path("requests"), Value::Count(requests));
                }
            }
            Traffic::AllToAll(all) => {
                self.add(path("among"), receivers(all.among));
                self.add(path("pattern"), word(all.pattern));
                self.add(path("size"), Value::Bytes(all.size));
                if all.interval > onramp_units::Span::ZERO {
                    self.add(path("interval"), Value::Span(all.interval));
                }
                self.add(path("start"), Value::Span(all.start));
                if let Some(steps) = all.steps {
                    self.add(path("steps"), Value::Count(steps));
                }
            }
            Traffic::Replay(replay) => self.add(path("path"), word(&replay.path)),
            Traffic::Long(long) => {
                self.add(path("to"), Value::Count(long.to.into()));
                self.add(path("from"), sources(long.from));
                self.add(path("flows"), Value::Count(long.flows.into()));
                self.add(path("start"), Value::Span(long.start));
                self.add(path("stop"), Value::Span(long.stop));
            }
            Traffic::Poisson(poisson) => {
                self.add(path("to"), receivers(poisson.to));
                self.add(path("from"), sources(poisson.from));
                self.add(path("workload"), word(&poisson.workload.name));
                self.add(path("load"), Value::Fraction(poisson.load));
            }
        }
    }

    fn onramp(&mut self, kind: HostKind, onramp: &OnRamp) {
        self.add("onramp.law", word(onramp.law));
        if onramp.law == Law::Off {
            return self.add("onramp.threshold", word(OFF));
        }
        self.add("onramp.hosts", receivers(onramp.hosts));
        self.add("onramp.threshold", Value::Span(onramp.threshold));
        self.add("onramp.gain", Value::Fraction(onramp.gain));
        self.add("onramp.max_pause", Value::Span(onramp.max_pause));
        self.add("onramp.gso", Value::Bytes(onramp.gso));
        self.add("onramp.reuse", onramp.reuse.map_or(word(OFF), Value::Span));
        if let Some(every) = onramp.orack_every {
            self.add("onramp.orack_every", Value::Bytes(every));
        }
        match kind {
            HostKind::Kernel => self.add("onramp.pacing", Value::Flag(onramp.pacing)),
            HostKind::Nic => self.add("onramp.piggyback", Value::Flag(onramp.piggyback)),
        }
    }
}

fn word(word: impl ToString) -> Value {
    Value::Text(word.to_string())
}

fn receivers(to: Receivers) -> Value {
    match to {
        Receivers::Host(host) => Value::Count(host.into()),
        Receivers::Range(first, last) => word(format!("{first}-{last}")),
        Receivers::All => word("all"),
    }
}

fn sources(from: Sources) -> Value {
    match from {
        Sources::Host(host) => Value::Count(host.into()),
        Sources::Range(first, last) => word(format!("{first}-{last}")),
        Sources::Others => word("others"),
    }
}

impl Scenario {
    /// The whole scenario, defaults filled in: parsing it gives an equal one.
    pub fn to_toml(&self) -> String {
        self.to_table().to_string()
    }

    fn to_table(&self) -> Table {
        let mut order: Vec<_> = self
            .base
            .iter()
            .map(|(path, v)| (path.as_str(), v))
            .filter(|(path, value)| is_written(path, value))
            .collect();
        order.sort_by_key(|(path, _)| position(path));
        let mut table = table_of(order);
        let case = |(name, layer): &(String, Layer)| {
            let mut case = Table::from_iter([("name".to_owned(), name.clone().into())]);
            case.extend(
                layer
                    .iter()
                    .map(|(path, value)| (path.clone(), value.into())),
            );
            toml::Value::Table(case)
        };
        if !self.cases.is_empty() {
            let cases: Vec<_> = self.cases.iter().map(case).collect();
            table.insert("case".to_owned(), cases.into());
        }
        if !self.sweep.is_empty() {
            let points = self
                .sweep
                .iter()
                .map(|(path, values)| (path.clone(), list(values)));
            table.insert("sweep".to_owned(), points.collect::<Table>().into());
        }
        table
    }
}

impl Serialize for Scenario {
    /// As the file would be, defaults filled in; quantities are text with units.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_table().serialize(serializer)
    }
}

impl Serialize for Run {
    /// As a file without cases and sweep would be; quantities are text with units.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_table().serialize(serializer)
    }
}

fn list<'a>(values: impl IntoIterator<Item = &'a Value>) -> toml::Value {
    toml::Value::Array(values.into_iter().map(toml::Value::from).collect())
}

/// Place in the table of keys, entries of traffic one after the other.
fn position(path: &str) -> (Option<usize>, Option<usize>) {
    let (key, entry) = keys::find(path).unzip();
    let row = KEYS
        .iter()
        .position(|k| key.is_some_and(|key| k.path == key.path));
    (row, entry.flatten())
}

/// Nested tables out of dotted keys; "traffic.N.NAME" becomes an array.
fn table_of<'a>(settings: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Table {
    let mut root = Table::new();
    let mut traffic: Vec<Table> = Vec::new();
    for (path, value) in settings {
        match keys::find(path) {
            Some((key, Some(entry))) => {
                if traffic.len() <= entry {
                    traffic.resize_with(entry + 1, Table::new);
                }
                let name = key.path.trim_start_matches("traffic.");
                traffic[entry].insert(name.to_owned(), value.into());
            }
            _ => insert(&mut root, path, value),
        }
    }
    let entries: Vec<_> = traffic.into_iter().map(toml::Value::Table).collect();
    root.insert("traffic".to_owned(), entries.into());
    root
}

fn insert(table: &mut Table, path: &str, value: &Value) {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value.into());
        return;
    };
    let below = table.entry(first).or_insert_with(|| Table::new().into());
    if let Some(below) = below.as_table_mut() {
        insert(below, rest, value);
    }
}
