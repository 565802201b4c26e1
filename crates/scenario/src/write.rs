// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Writes scenarios and runs as text: TOML that parses to an equal value, and JSON of the same shape for results.

use crate::field::{Field, Writer};
use crate::key::LINK_RATE;
use crate::keys::{self, Entry};
use crate::scenario::Layer;
use crate::section::Section;
use crate::value::{Form, Value, OFF};
use crate::*;
use serde::{Serialize, Serializer};
use toml::Table;

/// Whether a key is written with that value.
fn is_written(path: &str, value: &Value) -> bool {
    keys::find(path).is_none_or(|(key, entry)| {
        let is_of_group = matches!(entry, Some(Entry::Hosts(_)));
        is_of_group || !key.later || key.default_value().as_ref() != Some(value)
    })
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

    /// Every key with its value in the table's order, optional ones only if they are set. With law off,
    /// the law's parameters are left out, and the threshold is "off".
    pub(crate) fn settings(&self) -> Vec<(String, Value)> {
        let mut all = Settings::new(self.host.kind);
        all.field("title", &self.title);
        all.field("seed", &self.seed);
        all.field("duration", &self.duration);
        all.field("warmup", &self.warmup);
        all.field("time_dilation", &self.time_dilation.get());
        all.network(&self.network);
        all.hosts(&self.others());
        for (path, value) in self.groups.iter().flat_map(Group::inherited) {
            if all.list.iter().all(|(other, _)| *other != path) {
                all.add(path, value);
            }
        }
        self.clock.write("clock", &mut all);
        for (index, traffic) in self.traffic.iter().enumerate() {
            all.traffic(&format!("traffic.{index}"), traffic);
        }
        for (number, group) in self.groups.iter().enumerate() {
            let table = format!("hosts.{number}");
            all.field(&format!("{table}.range"), &group.hosts);
            let own = group.list().into_iter();
            for (path, value) in own.filter(|(path, _)| group.keys.contains(path)) {
                all.add(format!("{table}.{path}"), value);
            }
        }
        all.list.sort_by_cached_key(|(path, _)| position(path));
        all.list
    }

    /// Notes in each group which of its keys are written: those that `given` has for its entry, and those whose
    /// values differ from the other hosts'.
    pub(crate) fn note_keys_of_groups(&mut self, given: impl Fn(&str) -> bool) {
        let mut others = Settings::new(self.host.kind);
        others.hosts(&self.others());
        for (number, group) in self.groups.iter_mut().enumerate() {
            let is_own = |(path, value): &(String, Value)| {
                let same = others.list.iter().any(|(p, v)| p == path && v == value);
                let is_given = given(&format!("hosts.{number}.{path}"));
                is_given || !same && !is_of_cc(path)
            };
            let own = group.list().into_iter().filter(is_own);
            group.keys = own.map(|(path, _)| path).collect();
        }
    }
}

impl Group {
    /// Parameters of its congestion control that [cc] gives.
    fn inherited(&self) -> Vec<(String, Value)> {
        let mut list = self.list();
        list.retain(|(path, _)| is_of_cc(path) && !self.keys.contains(path));
        list
    }

    /// Every key of a host with the group's value.
    fn list(&self) -> Vec<(String, Value)> {
        let mut all = Settings::new(self.host.kind);
        all.hosts(&self.settings());
        let rate = self
            .link_rate
            .map(|rate| (LINK_RATE.to_owned(), Value::Rate(rate)));
        all.list.into_iter().chain(rate).collect()
    }
}

/// Whether it is the key of a parameter of a congestion control.
fn is_of_cc(path: &str) -> bool {
    keys::find(path).is_some_and(|(key, _)| !key.of_cc.is_empty())
}

/// Keys with their values, to be written.
struct Settings {
    /// The kind of the run's hosts: keys of other kinds are left out.
    host: HostKind,
    list: Vec<(String, Value)>,
}

impl Writer for Settings {
    /// Adds the key `path`, if it has a value or a word for none.
    fn put(&mut self, path: &str, value: Option<Value>) {
        let Some((key, _)) = keys::find(path) else {
            return;
        };
        if key.on.is_some_and(|on| on != self.host) {
            return;
        }
        match (value, key.form) {
            (Some(value), _) => self.add(path, value),
            (None, Form::SpanOrOff(..)) => self.add(path, word(OFF)),
            (None, _) => {}
        }
    }
}

impl Settings {
    fn new(host: HostKind) -> Settings {
        let list = Vec::new();
        Settings { host, list }
    }

    /// Keys of [host], [cc] and [onramp].
    fn hosts(&mut self, of: &HostSettings<'_>) {
        of.host.write("host", self);
        let cc = of.host.cc;
        for key in keys::all().filter(|key| key.of_cc.contains(&cc.name())) {
            if let Some(setting) = of.tuning.get(key.name()) {
                self.add(key.path, setting.into());
            }
        }
        match of.onramp.law {
            Law::Off => {
                let to: &mut dyn Writer = self;
                to.field("onramp.law", &Law::Off);
                self.add("onramp.threshold", word(OFF));
            }
            _ => of.onramp.write("onramp", self),
        }
    }

    fn add(&mut self, path: impl Into<String>, value: Value) {
        self.list.push((path.into(), value));
    }

    fn field<T: Field>(&mut self, path: &str, value: &T) {
        self.put(path, value.to_value());
    }

    fn network(&mut self, network: &Network) {
        self.add("network.topology.kind", word(network.topology.kind()));
        match &network.topology {
            Topology::File { path, .. } => self.add("network.topology.path", word(path)),
            Topology::Inline(inline) => self.add("network.graph", Value::Graph(inline.clone())),
            Topology::Shape(shape) => self.shape(shape, network),
        }
        if let Some(log2) = network.alpha_log2 {
            let alpha = keys::ALPHAS.get((log2 + 7) as usize);
            self.add("network.alpha", word(alpha.unwrap_or(&"1")));
        }
        self.add("network.buffer", Value::Bytes(network.buffer));
        self.add("network.sharing", word(network.sharing));
        if let Some(NetworkRule { entry, tuning }) = &network.rule {
            self.add("network.rule", word(entry.name));
            for parameter in entry.parameters {
                if let Some(setting) = tuning.get(parameter.name) {
                    self.add(parameter.key, setting.into());
                }
            }
        }
        if let Some(ecn) = network.ecn {
            self.add("network.ecn.threshold", Value::Bytes(ecn.threshold));
            match ecn.bdp {
                Some(bdp) => self.add("network.ecn.bdp", Value::Bytes(bdp)),
                None => self.add("network.ecn.max", Value::Bytes(ecn.max)),
            }
            let part = Value::Fraction(ecn.max_fraction);
            self.add("network.ecn.max_fraction", part);
            if let Some(steps) = ecn.steps {
                self.add("network.ecn.steps", Value::Count(steps.into()));
            }
            self.add("network.ecn.mark", word(ecn.mark));
        }
        self.add("network.loss", Value::Fraction(network.loss));
    }

    fn shape(&mut self, shape: &Shape, network: &Network) {
        let hosts = ("network.topology.hosts", shape.hosts());
        let keys = shape.kind().counts.iter().map(|count| count.key);
        let counts = keys.zip(shape.counts().iter().copied());
        for (path, count) in std::iter::once(hosts).chain(counts) {
            self.add(path, Value::Count(count.into()));
        }
        self.add(LINK_RATE, Value::Rate(network.link.rate));
        self.add("network.link.delay", Value::Span(network.link.delay));
        self.add("network.fabric.rate", Value::Rate(network.fabric.rate));
        self.add("network.fabric.delay", Value::Span(network.fabric.delay));
    }

    fn traffic(&mut self, table: &str, traffic: &Traffic) {
        let path = |name: &str| format!("{table}.{name}");
        self.field(&path("kind"), &traffic.kind());
        match traffic {
            Traffic::Incast(incast) => incast.write(table, self),
            Traffic::Request(request) => request.write(table, self),
            Traffic::AllToAll(all) => all.write(table, self),
            Traffic::Replay(replay) => self.field(&path("path"), &replay.path),
            Traffic::Long(long) => {
                self.field(&path("to"), &long.to);
                self.field(&path("from"), &long.from);
                self.field(&path("flows"), &long.flows);
                self.field(&path("start"), &long.start);
                self.field(&path("stop"), &long.stop);
                self.field(&path("op"), &long.op);
            }
            Traffic::Poisson(poisson) => {
                self.field(&path("to"), &poisson.to);
                self.field(&path("from"), &poisson.from);
                self.field(&path("workload"), &poisson.workload.name);
                self.field(&path("load"), &poisson.load);
                self.field(&path("op"), &poisson.op);
            }
        }
    }
}

fn word(word: impl ToString) -> Value {
    Value::Text(word.to_string())
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
fn position(path: &str) -> (Option<usize>, Option<Entry>) {
    let (key, entry) = keys::find(path).unzip();
    let row = keys::all().position(|k| key.is_some_and(|key| k.path == key.path));
    (row, entry.flatten())
}

/// Nested tables out of dotted keys; "traffic.N.NAME" and "hosts.N.KEY" become arrays.
fn table_of<'a>(settings: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Table {
    let mut root = Table::new();
    let (mut traffic, mut hosts) = (Vec::new(), Vec::new());
    for (path, value) in settings {
        let (key, entry) = keys::find(path).unzip();
        let (array, number) = match entry.flatten() {
            Some(Entry::Traffic(number)) => (&mut traffic, number),
            Some(Entry::Hosts(number)) => (&mut hosts, number),
            None => {
                insert(&mut root, path, value);
                continue;
            }
        };
        if array.len() <= number {
            array.resize_with(number + 1, Table::new);
        }
        let path = key.map_or(path, |key| key.path);
        let name = path.trim_start_matches("traffic.");
        insert(&mut array[number], name.trim_start_matches("hosts."), value);
    }
    let array = |tables: Vec<Table>| tables.into_iter().map(toml::Value::Table).collect();
    root.insert("traffic".to_owned(), toml::Value::Array(array(traffic)));
    if !hosts.is_empty() {
        root.insert("hosts".to_owned(), toml::Value::Array(array(hosts)));
    }
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
