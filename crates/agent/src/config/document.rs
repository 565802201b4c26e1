// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads the text of a configuration file: values by key, each with its line, and the classes. Relations between keys
//! are checked in `settings`.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::class::Class;
use super::error::{Error, Place};
use super::form::{Form, Value};
use super::key::Key;
use super::keys;

/// Most rules that the classes of a file may need: the data path looks at each for a new flow.
pub const MOST_RULES: usize = onramp_law::abi::ONR_MAX_RULES as usize - 1;

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub value: Value,
    pub place: Place,
}

/// Settings by the path of their key.
pub type Settings = BTreeMap<&'static str, Setting>;

/// The text of a file, key by key, with all of its mistakes.
#[derive(Default)]
pub struct Document {
    pub settings: Settings,
    pub classes: Vec<Class>,
    /// Keys whose value is none: they were set, so they have no default either.
    pub invalid: Vec<&'static str>,
    pub errors: Vec<Error>,
}

impl Document {
    /// Reads `text`.
    pub fn read(text: &str) -> Document {
        let (table, syntax) = DeTable::parse_recoverable(text);
        let mut reader = Reader {
            text,
            out: Document::default(),
        };
        for error in &syntax {
            let place = reader.place(error.span().map_or(0, |span| span.start));
            let what = error.message().replace('\n', ", ");
            reader.report(place, format!("not TOML: {what}"));
        }
        reader.table("", table.get_ref());
        reader.out
    }
}

/// A table of the file.
type Entries<'a> = DeTable<'a>;
type Entry<'a> = Spanned<DeValue<'a>>;

struct Reader<'t> {
    text: &'t str,
    out: Document,
}

impl Reader<'_> {
    fn place(&self, offset: usize) -> Place {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        Place::Line(1 + before.iter().filter(|byte| **byte == b'\n').count())
    }

    fn report(&mut self, place: Place, text: String) {
        self.out.errors.push(Error { place, text });
    }

    fn table(&mut self, prefix: &str, table: &Entries<'_>) {
        for (name, entry) in table {
            let place = self.place(name.span().start);
            let path = match prefix {
                "" => name.get_ref().to_string(),
                _ => format!("{prefix}.{}", name.get_ref()),
            };
            match (path.as_str(), entry.get_ref()) {
                ("class", DeValue::Array(classes)) => {
                    classes.iter().for_each(|class| self.class(class));
                }
                ("class", other) => {
                    let what = format!(
                        "class is {}, not a list of tables; write [[class]]",
                        kind(other)
                    );
                    self.report(place, what);
                }
                (path, DeValue::Table(inner)) if keys::is_table(path) => self.table(path, inner),
                (path, other) if keys::is_table(path) => {
                    let what = format!("{path} is {}, not a table; write [{path}]", kind(other));
                    self.report(place, what);
                }
                (path, _) => self.setting(path, place, entry),
            }
        }
    }

    fn setting(&mut self, path: &str, place: Place, entry: &Entry<'_>) {
        match keys::find_in_file(path).filter(|key| !key.path.starts_with("class.")) {
            None => self.unknown(path, place),
            Some(key) => match self.value(key, place, entry) {
                Some(value) => {
                    self.out.settings.insert(key.path, Setting { value, place });
                }
                None => self.out.invalid.push(key.path),
            },
        }
    }

    fn unknown(&mut self, path: &str, place: Place) {
        let hint = match keys::nearest(path) {
            Some(nearest) if nearest.starts_with("class.") && !path.starts_with("class.") => {
                format!("; do you mean {nearest}, a key of [[class]]?")
            }
            Some(nearest) => format!("; do you mean {nearest}?"),
            None => "; remove it (onramp agent explain lists all keys)".to_owned(),
        };
        self.report(place, format!("{path} is no key{hint}"));
    }

    /// A value of the form that its key has; a mistake is reported.
    fn value(&mut self, key: &Key, place: Place, entry: &Entry<'_>) -> Option<Value> {
        match (key.form.element(), entry.get_ref()) {
            (Some(element), DeValue::Array(entries)) => {
                let read = |reader: &mut Self, entry: &Entry<'_>| {
                    let place = reader.place(entry.span().start);
                    reader.scalar(key, element, place, entry.get_ref())
                };
                let all: Vec<_> = entries.iter().map(|entry| read(self, entry)).collect();
                all.into_iter().collect::<Option<_>>().map(Value::List)
            }
            (Some(_), other) => {
                let found = shown(other);
                let example = match other {
                    DeValue::String(_) | DeValue::Integer(_) => format!("; write [{found}]"),
                    _ => format!("; write {}", key.form.words()),
                };
                self.report(
                    place,
                    format!("{} is {found}, which is not a list{example}", key.path),
                );
                None
            }
            (None, other) => self.scalar(key, key.form, place, other),
        }
    }

    fn scalar(
        &mut self,
        key: &Key,
        form: Form,
        place: Place,
        value: &DeValue<'_>,
    ) -> Option<Value> {
        let read = match text_of(value).filter(|_| fits(form, value)) {
            Some(text) => form.read(&text),
            None => Err(format!("which is {}", kind(value))),
        };
        let complain = |wrong| {
            let (path, found, words) = (key.path, shown(value), form.words());
            self.report(place, format!("{path} is {found}, {wrong}; write {words}"));
        };
        read.map_err(complain).ok()
    }

    fn class(&mut self, entry: &Entry<'_>) {
        let place = self.place(entry.span().start);
        let Some(table) = entry.get_ref().as_table() else {
            return self.report(
                place,
                format!(
                    "class is {}, not a table; write [[class]]",
                    kind(entry.get_ref())
                ),
            );
        };
        let mut settings = Settings::new();
        for (name, entry) in table {
            let at = self.place(name.span().start);
            let path = format!("class.{}", name.get_ref());
            match keys::find_in_file(&path) {
                None => self.unknown(&path, at),
                Some(key) => {
                    if let Some(value) = self.value(key, at, entry) {
                        settings.insert(key.path, Setting { value, place: at });
                    }
                }
            }
        }
        let errors = self.out.errors.len();
        self.check_class(place, &settings);
        if errors == self.out.errors.len() {
            self.out.classes.push(class_of(&settings));
        }
        self.check_rules(place);
    }

    fn check_class(&mut self, place: Place, settings: &Settings) {
        let name = settings
            .get("class.name")
            .map(|name| name.value.to_string());
        match name {
            None => self.report(
                place,
                "class.name is missing; write name = \"NAME\"".to_owned(),
            ),
            Some(name) if self.out.classes.iter().any(|class| class.name == name) => {
                let what = format!(
                    "class.name is \"{name}\", the name of an earlier class; write another"
                );
                self.report(settings["class.name"].place, what);
            }
            Some(_) => {}
        }
        let holds = settings
            .get("class.hold")
            .is_none_or(|hold| hold.value == Value::Flag(true));
        if let (false, Some(threshold)) = (holds, settings.get("class.threshold")) {
            let what = format!(
                "class.threshold is {}, and the class has hold = false; remove one of them",
                threshold.value
            );
            self.report(threshold.place, what);
        }
    }

    fn check_rules(&mut self, place: Place) {
        let rules: usize = self.out.classes.iter().map(Class::rules).sum();
        if rules > MOST_RULES {
            let what = format!(
                "the classes up to this one have {rules} combinations of prefix, ports, device and cgroup, above max {MOST_RULES}; \
                 write fewer, e.g. larger prefixes or ranges of ports"
            );
            self.report(place, what);
        }
    }
}

/// The class of checked settings.
fn class_of(settings: &Settings) -> Class {
    let value = |path: &str| settings.get(path).map(|setting| &setting.value);
    Class {
        name: value("class.name").map(String::from).unwrap_or_default(),
        prefixes: value("class.prefixes").map(Vec::from).unwrap_or_default(),
        ports: value("class.ports").map(Vec::from).unwrap_or_default(),
        devices: value("class.devices").map(Vec::from).unwrap_or_default(),
        cgroups: value("class.cgroups").map(Vec::from).unwrap_or_default(),
        holds: value("class.hold").is_none_or(bool::from),
        threshold: value("class.threshold").map(|value| value.into()),
    }
}

/// Whether TOML's type suits the form: quantities are strings, and a flag is no string.
fn fits(form: Form, value: &DeValue<'_>) -> bool {
    match (form, value) {
        (Form::Ports, DeValue::Integer(_)) => true,
        // A bare number is read as a text, so that the message names the units.
        (
            Form::Span(..) | Form::SpanOr(..) | Form::Rate(..) | Form::Bytes(..),
            DeValue::Integer(_) | DeValue::Float(_),
        ) => true,
        (form, DeValue::String(_)) => form.is_quoted(),
        (Form::Flag, DeValue::Boolean(_)) => true,
        (Form::Count(..), DeValue::Integer(_)) => true,
        (Form::Number(..), DeValue::Integer(_) | DeValue::Float(_)) => true,
        _ => false,
    }
}

/// A scalar as text.
fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => Some(number.to_string()),
            Err(_) => Some(digits.as_str().to_owned()),
        },
        DeValue::Float(digits) => Some(digits.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// A value as it is written in the file.
fn shown(value: &DeValue<'_>) -> String {
    match (value, text_of(value)) {
        (DeValue::String(_), Some(text)) => format!("{text:?}"),
        (_, Some(text)) => text,
        (other, None) => kind(other).to_owned(),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text in quotes",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
