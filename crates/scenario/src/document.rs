// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Parses TOML text into checked values by dotted key, each with its line. `resolve` checks the
//! relations between keys.

mod cases;

use crate::error::{Error, Origin, Problem};
use crate::graph::{Graph, GraphError};
use crate::key::{Key, Texts, LIST};
use crate::keys::{self, Entries, TableEntry};
use crate::network::{GraphKeys, Inline};
use crate::setting::Setting;
use crate::traffic;
use cases::OfEvery;
use onramp_keys::{kind, text_of};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::Spanned;

/// A setting as given, with its line or option.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// `None`: invalid, and an error was reported.
    pub setting: Option<Setting>,
    pub place: Origin,
    /// The layer of the setting; a greater one overrides.
    pub rank: Rank,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Base,
    Case,
    Sweep,
    Set,
}

/// Settings by dotted key.
pub(crate) type Layer = BTreeMap<String, Given>;

/// A scenario's text, key by key.
#[derive(Default)]
pub(crate) struct Document {
    pub base: Layer,
    /// Line of each table, by dotted name; entries of traffic as "traffic.0".
    pub tables: BTreeMap<String, usize>,
    pub entries: Entries,
    pub cases: Vec<(String, Layer)>,
    /// In the file's order.
    pub sweep: Vec<(String, Vec<Given>)>,
    /// The value of `network.graph`, which is a table.
    pub network: Option<Inline>,
    pub errors: Vec<Error>,
    /// If not, `errors` has the syntax errors and the rest is empty.
    pub is_toml: bool,
}

impl Document {
    /// Reads `text`. If it is not TOML, the syntax errors are the only ones.
    pub(crate) fn read(text: &str) -> Document {
        let (table, syntax) = DeTable::parse_recoverable(text);
        let mut reader = Reader {
            lines: Lines::of(text),
            out: Document::default(),
            of_every: Vec::new(),
        };
        for error in syntax {
            let place = reader.lines.place(error.span().map_or(0, |s| s.start));
            let message = error.message().replace('\n', ", ");
            reader.report(place, Problem::Syntax { message });
        }
        reader.out.is_toml = reader.out.errors.is_empty();
        if reader.out.is_toml {
            reader.top(table.get_ref());
        }
        reader.out
    }

    /// Whether the file, a case or the sweep gives `key` that value, to all hosts or to a group.
    pub(crate) fn says(&self, key: &str, value: &str) -> bool {
        let of_groups = (0..self.entries.hosts).map(|group| format!("hosts.{group}.{key}"));
        let mut paths = std::iter::once(key.to_owned()).chain(of_groups);
        paths.any(|path| self.gives(&path, value))
    }

    fn gives(&self, key: &str, value: &str) -> bool {
        let layers = std::iter::once(&self.base).chain(self.cases.iter().map(|(_, layer)| layer));
        let swept = self.sweep.iter().filter(|(swept, _)| swept == key);
        let mut all = layers
            .filter_map(|layer| layer.get(key))
            .chain(swept.flat_map(|(_, values)| values));
        all.any(|given| given.text() == Some(value))
    }

    /// Applies command-line settings: each replaces the key in the file, its cases and its sweep.
    /// A list of values, `[1, 2]`, becomes the last key of the sweep.
    pub(crate) fn set(&mut self, settings: &[(&str, &str)]) {
        let kinds = settings.iter().filter(|(key, _)| key.ends_with(".kind"));
        for (key, text) in kinds {
            self.entries.set_kind(key, text);
        }
        for (key, text) in settings {
            let texts = list(text);
            let read = |text: &String| scalar(key, text, &self.entries).map(of_command_line);
            let one = texts.is_none();
            let values = texts.unwrap_or_else(|| vec![(*text).to_owned()]);
            match values.iter().map(read).collect::<Result<Vec<_>, _>>() {
                Ok(given) => self.replace(key, given, one),
                Err(problem) => self.errors.push(Error {
                    place: Origin::Set,
                    problem,
                }),
            }
        }
    }

    fn replace(&mut self, key: &str, mut all: Vec<Given>, one: bool) {
        for (_, layer) in &mut self.cases {
            layer.remove(key);
        }
        self.sweep.retain(|(swept, _)| swept != key);
        match one {
            true => drop(all.pop().map(|only| self.base.insert(key.to_owned(), only))),
            false => self.sweep.push((key.to_owned(), all)),
        }
    }
}

impl Entries {
    /// Notes the kind of an entry of [[traffic]].
    fn set_kind(&mut self, path: &str, kind: &str) {
        let number = path
            .strip_prefix("traffic.")
            .and_then(|p| p.strip_suffix(".kind"));
        let number = number.and_then(|number| number.parse::<usize>().ok());
        if let Some(entry) = number.and_then(|number| self.traffic.get_mut(number)) {
            *entry = traffic::kind(kind);
        }
    }
}

impl Given {
    /// The text of a valid value.
    pub fn text(&self) -> Option<&str> {
        Some(&self.setting.as_ref()?.text)
    }
}

fn of_command_line(setting: Setting) -> Given {
    Given {
        setting: Some(setting),
        place: Origin::Set,
        rank: Rank::Set,
    }
}

/// The scalars of a list such as `[1, "50 us"]`; `None` if `text` is no list or an empty list.
fn list(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if !text.starts_with('[') {
        return None;
    }
    let document = format!("list = {text}");
    let table = DeTable::parse(&document).ok()?;
    let values = table.get_ref().get("list")?.get_ref().as_array()?;
    let texts: Option<Vec<String>> = values.iter().map(|v| text_of(v.get_ref())).collect();
    texts.filter(|texts| !texts.is_empty())
}

/// Reads the value of `path`, a known key of a scenario with these entries.
fn scalar(path: &str, text: &str, entries: &Entries) -> Result<Setting, Problem> {
    let Some((key, entry)) = entries.find(path) else {
        return Err(unknown(path, entries));
    };
    let (table, number, count) = match entry {
        Some(TableEntry::Hosts(number)) => ("hosts", number, entries.hosts),
        Some(TableEntry::Traffic(number)) => ("traffic", number, entries.traffic.len()),
        None => return checked(key, entry, path, text),
    };
    if number < count {
        return checked(key, entry, path, text);
    }
    Err(Problem::Expected {
        key: path.to_owned(),
        found: format!("a key of [[{table}]] entry {number}"),
        expected: match count.checked_sub(1) {
            Some(last) => format!("an entry from 0 to {last}"),
            None => format!("a file with [[{table}]] entries"),
        },
    })
}

fn checked(
    key: &'static Key,
    entry: Option<TableEntry>,
    path: &str,
    text: &str,
) -> Result<Setting, Problem> {
    match key.check(text) {
        Ok(text) => Ok(Setting { key, entry, text }),
        Err(wrong) => Err(Problem::wrong(path, text, wrong)),
    }
}

/// The text of a list of scalars.
fn text_of_list(values: &[Spanned<DeValue<'_>>]) -> Option<String> {
    let texts = values.iter().map(|value| text_of(value.get_ref()));
    Some(texts.collect::<Option<Vec<_>>>()?.join(LIST))
}

/// Keys of earlier versions, and what has replaced them.
const REPLACED: [(&str, &str); 3] = [
    (
        "host.cc_hosts",
        "the `range` of a [[hosts]] entry that has `host.cc`",
    ),
    (
        "host.other_cc",
        "`host.cc` of a [[hosts]] entry, whose `range` has those hosts",
    ),
    (
        "onramp.hosts",
        "`onramp.law = \"off\"` of a [[hosts]] entry, whose `range` has the other hosts",
    ),
];

fn unknown(path: &str, entries: &Entries) -> Problem {
    let key = path.to_owned();
    if let Some((_, new)) = REPLACED.iter().find(|(old, _)| *old == path) {
        let new = (*new).to_owned();
        return Problem::Replaced { key, new };
    }
    let below = path.strip_prefix("hosts.").and_then(|p| p.split_once('.'));
    if let Some((of_all, _)) = below.and_then(|(_, name)| entries.find(name)) {
        let of_all = of_all.path.to_owned();
        return Problem::OfAllHosts { key, of_all };
    }
    let hint = match keys::nearest(path) {
        Some(key) if key.starts_with("traffic.") && !path.starts_with("traffic.") => {
            format!(
                ", did you mean {} of a [[traffic]] entry?",
                &key["traffic.".len()..]
            )
        }
        Some(key) => format!(", did you mean {key}?"),
        None => String::new(),
    };
    Problem::UnknownKey { key, hint }
}

struct Reader {
    lines: Lines,
    out: Document,
    /// Cases of several congestion controls, in the file's order.
    of_every: Vec<OfEvery>,
}

impl Reader {
    fn report(&mut self, place: Origin, problem: Problem) {
        self.out.errors.push(Error { place, problem });
    }

    fn expected(&mut self, place: Origin, key: &str, found: &DeValue<'_>, expected: &str) {
        let (key, expected) = (key.to_owned(), expected.to_owned());
        let found = match text_of(found) {
            Some(text) => format!("{text:?}"),
            None => kind(found).to_owned(),
        };
        self.report(
            place,
            Problem::Expected {
                key,
                found,
                expected,
            },
        );
    }

    fn top(&mut self, table: &DeTable<'_>) {
        // First, because entries and their kinds determine the keys of cases and sweep.
        let entries = |name: &str| table.get(name).and_then(|value| value.get_ref().as_array());
        let kind_of = |entry: &Spanned<DeValue<'_>>| {
            traffic::kind(
                entry
                    .get_ref()
                    .as_table()?
                    .get("kind")?
                    .get_ref()
                    .as_str()?,
            )
        };
        self.out.entries = Entries {
            hosts: entries("hosts").map_or(0, |all| all.len()),
            traffic: entries("traffic")
                .map_or_else(Vec::new, |all| all.iter().map(kind_of).collect()),
        };
        let mut base = Layer::new();
        for (key, value) in table {
            let place = self.lines.place(key.span().start);
            match key.get_ref().as_ref() {
                name @ ("hosts" | "traffic") => self.entries(name, place, value, &mut base),
                "case" => self.cases(place, value),
                "sweep" => self.sweep(place, value),
                name => self.entry(name, place, value, Rank::Base, &mut base),
            }
        }
        self.out.base.extend(base);
        self.insert_of_every();
    }

    /// The entries of an array of tables.
    fn entries(&mut self, name: &str, place: Origin, value: &Spanned<DeValue<'_>>, to: &mut Layer) {
        let Some(entries) = value.get_ref().as_array() else {
            let expected = format!("[[{name}]] entries");
            return self.expected(place, name, value.get_ref(), &expected);
        };
        for (index, entry) in entries.iter().enumerate() {
            let path = format!("{name}.{index}");
            let place = self.lines.place(entry.span().start);
            match entry.get_ref().as_table() {
                Some(table) => self.table(&path, place, table, Rank::Base, to),
                None => self.expected(place, &path, entry.get_ref(), "a table"),
            }
        }
    }

    /// All of `table`, whose dotted name is `path`.
    fn table(
        &mut self,
        path: &str,
        place: Origin,
        table: &DeTable<'_>,
        rank: Rank,
        to: &mut Layer,
    ) {
        if let (Rank::Base, Origin::Line(line)) = (rank, place) {
            self.out.tables.insert(path.to_owned(), line);
        }
        for (key, value) in table {
            let place = self.lines.place(key.span().start);
            let path = join(path, key.get_ref());
            self.entry(&path, place, value, rank, to);
        }
    }

    /// One key with its value, which may be a table of further keys.
    fn entry(
        &mut self,
        path: &str,
        place: Origin,
        value: &Spanned<DeValue<'_>>,
        rank: Rank,
        to: &mut Layer,
    ) {
        if self.out.entries.find(path).is_none() && keys::is_table(path) {
            return match value.get_ref().as_table() {
                Some(table) => self.table(path, place, table, rank, to),
                // "cc" alone may mean the key "host.cc" rather than the table.
                None if path.starts_with("hosts.") => {
                    self.report(place, unknown(path, &self.out.entries))
                }
                None => self.expected(place, path, value.get_ref(), "a table"),
            };
        }
        let given = self.given(path, place, value, rank);
        if to.insert(path.to_owned(), given).is_some() {
            let key = path.to_owned();
            self.report(place, Problem::Twice { key });
        }
    }

    fn given(
        &mut self,
        path: &str,
        place: Origin,
        value: &Spanned<DeValue<'_>>,
        rank: Rank,
    ) -> Given {
        let key = self.out.entries.find(path).map(|(key, _)| key);
        let is_list = key.is_some_and(|key| key.form.is_list());
        let text = match value.get_ref().as_array() {
            Some(values) if is_list => text_of_list(values),
            _ => text_of(value.get_ref()),
        };
        let read = match (key, text) {
            (Some(key), _) if key.fixed && rank != Rank::Base => Err(Problem::Fixed {
                key: path.to_owned(),
            }),
            (Some(key), _) if key.path == GraphKeys::graph && value.get_ref().is_table() => {
                return self.graph(key, place, value);
            }
            (Some(key), None) => Err(Problem::Expected {
                key: path.to_owned(),
                found: kind(value.get_ref()).to_owned(),
                expected: key.words(),
            }),
            (_, text) => scalar(path, &text.unwrap_or_default(), &self.out.entries),
        };
        let setting = read.map_err(|problem| self.report(place, problem)).ok();
        Given {
            setting,
            place,
            rank,
        }
    }

    /// Nodes and links. Errors are reported at their own lines.
    fn graph(&mut self, key: &'static Key, place: Origin, value: &Spanned<DeValue<'_>>) -> Given {
        let line_at = |offset| self.lines.line(offset);
        let table = toml::Table::deserialize(ValueDeserializer::from(value.clone()));
        let read = Graph::from_table(value.clone(), &line_at).map(|graph| Inline {
            table: table.unwrap_or_default(),
            graph: Arc::new(graph),
        });
        let complain = |error: GraphError| {
            let (place, error) = match error {
                GraphError::At { line, error } => (Origin::Line(line), *error),
                error => (place, error),
            };
            let key = key.path.to_owned();
            self.report(place, Problem::Graph { key, error });
        };
        self.out.network = read.map_err(complain).ok();
        let setting = self.out.network.is_some().then(|| Setting {
            key,
            entry: None,
            text: kind(value.get_ref()).to_owned(),
        });
        Given {
            setting,
            place,
            rank: Rank::Base,
        }
    }

    fn sweep(&mut self, place: Origin, value: &Spanned<DeValue<'_>>) {
        match value.get_ref().as_table() {
            Some(table) => self.sweep_table("", table),
            None => self.expected(place, "sweep", value.get_ref(), "a table"),
        }
    }

    fn sweep_table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let place = self.lines.place(key.span().start);
            let path = join(prefix, key.get_ref());
            if self.out.entries.find(&path).is_none() && keys::is_table(&path) {
                if let Some(table) = value.get_ref().as_table() {
                    self.sweep_table(&path, table);
                    continue;
                }
            }
            self.sweep_key(&path, place, value.get_ref());
        }
    }

    fn sweep_key(&mut self, path: &str, place: Origin, value: &DeValue<'_>) {
        if self.out.entries.find(path).is_none() {
            return self.report(place, unknown(path, &self.out.entries));
        }
        let swept = format!("sweep.{path}");
        let Some(values) = value.as_array() else {
            return self.expected(place, &swept, value, "a list of values");
        };
        if values.is_empty() {
            let (found, expected) = ("an empty list".to_owned(), "at least one value".to_owned());
            let problem = Problem::Expected {
                key: swept,
                found,
                expected,
            };
            return self.report(place, problem);
        }
        let mut all = Vec::new();
        for value in values {
            let place = self.lines.place(value.span().start);
            all.push(self.given(path, place, value, Rank::Sweep));
        }
        if self.out.sweep.iter().any(|(other, _)| other == path) {
            self.report(place, Problem::Twice { key: swept });
        }
        self.out.sweep.push((path.to_owned(), all));
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}.{name}")
    }
}

/// Where the lines of a text start.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Lines {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines {
            starts: std::iter::once(0).chain(after_newlines).collect(),
        }
    }

    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }

    fn place(&self, offset: usize) -> Origin {
        Origin::Line(self.line(offset))
    }
}
