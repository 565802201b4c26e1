// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Writes scenarios and runs as text: TOML that parses to an equal value, and JSON of the same shape for results.

use crate::key::{Key, Texts};
use crate::keys::{self, TableEntry};
use crate::network::{GraphKeys, Inline, Topology};
use crate::scenario::Scenario;
use crate::setting::{below_hosts, Layer, Setting};
use crate::traffic::KindKeys;
use crate::types::Run;
use onramp_keys::{Source, Toml};
use serde::{Serialize, Serializer};
use toml::Table;

impl Setting {
    /// Whether it is written: defaults of keys that are newer than recorded results are not.
    fn is_written(&self) -> bool {
        let is_of_group = matches!(self.entry, Some(TableEntry::Hosts(_)));
        is_of_group || !self.key.later || self.key.default().as_ref() != Some(&self.text)
    }

    /// As TOML has it.
    fn value(&self, network: Option<&Table>) -> toml::Value {
        if self.key.path == GraphKeys::graph {
            return toml::Value::Table(network.cloned().unwrap_or_default());
        }
        if self.key.form.is_list() {
            let texts = self.key.texts(&self.text).into_iter();
            return toml::Value::Array(texts.map(toml::Value::from).collect());
        }
        let written = self.key.form.written();
        let text = &self.text;
        let as_type = |toml| match toml {
            Toml::Flag => text.parse().ok().map(toml::Value::Boolean),
            Toml::Float => text.parse().ok().map(toml::Value::Float),
            Toml::Integer if written.contains(&Toml::Float) => None,
            Toml::Integer => text.parse().ok().map(toml::Value::Integer),
            Toml::Text => None,
        };
        let typed = written.iter().find_map(|toml| as_type(*toml));
        typed.unwrap_or_else(|| toml::Value::String(text.clone()))
    }
}

impl Run {
    /// This run alone as a scenario file: parsing it gives one run, equal to this one.
    pub fn to_toml(&self) -> String {
        let mut table = self.to_table();
        if let Some(case) = self.params.get("case") {
            let name = Table::from_iter([("name".to_owned(), case.clone().into())]);
            table.insert("case".to_owned(), vec![toml::Value::Table(name)].into());
        }
        let varied = self
            .settings()
            .filter(|s| self.params.contains_key(&s.path()));
        let list = |s: &Setting| (s.path(), vec![s.value(None)].into());
        let sweep: Table = varied.map(list).collect();
        if !sweep.is_empty() {
            table.insert("sweep".to_owned(), sweep.into());
        }
        table.to_string()
    }

    fn to_table(&self) -> Table {
        let network = match &self.network.topology {
            Topology::Inline(inline) => Some(&inline.table),
            _ => None,
        };
        table_of(self.settings(), network)
    }

    /// Every key that applies, with its value. With law off, the law's parameters are left out, and the threshold is
    /// "off".
    pub(crate) fn settings(&self) -> impl Iterator<Item = &Setting> {
        let of_traffic = self.traffic.iter().flat_map(|traffic| &traffic.settings);
        let of_groups = self.groups.iter().flat_map(|group| &group.own);
        self.settings.iter().chain(of_traffic).chain(of_groups)
    }
}

impl Source for Run {
    /// Those of keys that are none of an entry.
    fn texts(&self, path: &str) -> Option<Vec<String>> {
        let mut settings = self.settings.iter();
        let setting = settings.find(|setting| setting.key.path == path)?;
        Some(setting.key.texts(&setting.text))
    }
}

impl Scenario {
    /// The whole scenario, defaults filled in: parsing it gives an equal one.
    pub fn to_toml(&self) -> String {
        self.to_table().to_string()
    }

    fn to_table(&self) -> Table {
        let network = self.network.as_ref().map(|inline: &Inline| &inline.table);
        let mut base: Vec<&Setting> = self.base.values().collect();
        base.sort_by_cached_key(|setting| position(setting));
        let mut table = table_of(base, network);
        let case = |(name, layer): &(String, Layer)| {
            let mut case = Table::from_iter([("name".to_owned(), name.clone().into())]);
            case.extend(layer.values().map(|s| (s.path(), s.value(None))));
            toml::Value::Table(case)
        };
        if !self.cases.is_empty() {
            let cases: Vec<_> = self.cases.iter().map(case).collect();
            table.insert("case".to_owned(), cases.into());
        }
        if !self.sweep.is_empty() {
            let points = self.sweep.iter().map(|(path, values)| {
                let values: Vec<_> = values.iter().map(|s| s.value(None)).collect();
                (path.clone(), values.into())
            });
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

/// Place in the documentation, entry by entry.
fn position(setting: &Setting) -> (Option<TableEntry>, Option<usize>) {
    let is_it = |key: &Key| key.path == setting.key.path;
    let place = match setting.entry {
        Some(TableEntry::Traffic(_)) if setting.key.path == KindKeys::kind => Some(0),
        Some(TableEntry::Traffic(_)) => {
            keys::of_traffic().position(|key| std::ptr::eq(key, setting.key))
        }
        _ => keys::all().position(is_it),
    };
    (setting.entry, place)
}

/// Nested tables out of settings; entries become arrays. `network`: the table of `network.graph`.
fn table_of<'a>(settings: impl IntoIterator<Item = &'a Setting>, network: Option<&Table>) -> Table {
    let mut root = Table::new();
    let (mut traffic, mut hosts) = (Vec::new(), Vec::new());
    for setting in settings.into_iter().filter(|setting| setting.is_written()) {
        let value = setting.value(network);
        let (array, number, path) = match setting.entry {
            Some(TableEntry::Traffic(number)) => (&mut traffic, number, setting.key.name()),
            Some(TableEntry::Hosts(number)) => (&mut hosts, number, below_hosts(setting.key.path)),
            None => {
                insert(&mut root, setting.key.path, value);
                continue;
            }
        };
        if array.len() <= number {
            array.resize_with(number + 1, Table::new);
        }
        insert(&mut array[number], path, value);
    }
    let array = |tables: Vec<Table>| tables.into_iter().map(toml::Value::Table).collect();
    root.insert("traffic".to_owned(), toml::Value::Array(array(traffic)));
    if !hosts.is_empty() {
        root.insert("hosts".to_owned(), toml::Value::Array(array(hosts)));
    }
    root
}

fn insert(table: &mut Table, path: &str, value: toml::Value) {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return;
    };
    let below = table.entry(first).or_insert_with(|| Table::new().into());
    if let Some(below) = below.as_table_mut() {
        insert(below, rest, value);
    }
}
