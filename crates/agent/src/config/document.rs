// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads the text of a configuration file: values by key, each with its line, and the classes. Relations between keys
//! are checked in `relations`.

use onramp_keys::{kind, shown, Form, Section};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::class::Class;
use super::error::{Error, Origin};
use super::key::Key;
use super::keys;
use super::settings::{Setting, Settings};

/// Most rules that the classes of a file may need: the data path looks at each for a new flow.
pub const MOST_RULES: usize = onramp_law::abi::ONR_MAX_RULES as usize - 1;

/// The text of a file, key by key, with all of its mistakes.
#[derive(Default)]
pub struct Document {
    pub settings: Settings,
    pub classes: Vec<Class>,
    /// Keys whose value was refused.
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
    fn place(&self, offset: usize) -> Origin {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        Origin::Line(1 + before.iter().filter(|byte| **byte == b'\n').count())
    }

    fn report(&mut self, place: Origin, text: String) {
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

    fn setting(&mut self, path: &str, place: Origin, entry: &Entry<'_>) {
        match keys::find_in_file(path).filter(|key| key.table() != "class") {
            None => self.unknown(path, place),
            Some(key) => match self.texts(key, place, entry) {
                Some(texts) => self.out.settings.insert(Setting { key, texts, place }),
                None => self.out.invalid.push(key.path),
            },
        }
    }

    fn unknown(&mut self, path: &str, place: Origin) {
        let hint = match keys::nearest(path) {
            Some(nearest) if nearest.starts_with("class.") && !path.starts_with("class.") => {
                format!("; do you mean {nearest}, a key of [[class]]?")
            }
            Some(nearest) => format!("; do you mean {nearest}?"),
            None => "; remove it (onramp agent explain lists all keys)".to_owned(),
        };
        self.report(place, format!("{path} is no key{hint}"));
    }

    /// The value of a key, or those of a list; mistakes are reported.
    fn texts(&mut self, key: &Key, place: Origin, entry: &Entry<'_>) -> Option<Vec<String>> {
        match (key.form.is_list(), entry.get_ref()) {
            (true, DeValue::Array(entries)) => {
                let read = |entry: &Entry<'_>| {
                    let place = self.place(entry.span().start);
                    self.scalar(key, place, entry.get_ref())
                };
                let all: Vec<Option<String>> = entries.iter().map(read).collect();
                all.into_iter().collect()
            }
            (true, other) => {
                let found = shown(other);
                let example = match other {
                    DeValue::String(_) | DeValue::Integer(_) => format!("[{found}]"),
                    _ => key.words(),
                };
                let path = key.path;
                self.report(
                    place,
                    format!("{path} is {found}, which is not a list; write {example}"),
                );
                None
            }
            (false, other) => self.scalar(key, place, other).map(|text| vec![text]),
        }
    }

    fn scalar(&mut self, key: &Key, place: Origin, value: &DeValue<'_>) -> Option<String> {
        let form: &dyn Form = key.form;
        let complain = |wrong| {
            let (path, found, words) = (key.path, shown(value), form.words());
            self.report(place, format!("{path} is {found}, {wrong}; write {words}"));
        };
        form.read(value).map_err(complain).ok()
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
        let mut settings = Settings::default();
        for (name, entry) in table {
            let place = self.place(name.span().start);
            let path = format!("class.{}", name.get_ref());
            match keys::find_in_file(&path) {
                None => self.unknown(&path, place),
                Some(key) => {
                    if let Some(texts) = self.texts(key, place, entry) {
                        settings.insert(Setting { key, texts, place });
                    }
                }
            }
        }
        let errors = self.out.errors.len();
        if settings.get(Class::name).is_none() {
            self.report(
                place,
                "class.name is missing; write name = \"NAME\"".to_owned(),
            );
            let (key, texts) = (&Class::KEYS[0], vec!["?".to_owned()]);
            settings.insert(Setting { key, texts, place });
        }
        settings.add_defaults(Class::KEYS.iter());
        let class = Class::read(&settings).expect("only the name is required");
        self.check_class(&class, &settings);
        if errors == self.out.errors.len() {
            self.out.classes.push(class);
        }
        self.check_rules(place);
    }

    fn check_class(&mut self, class: &Class, settings: &Settings) {
        let name = &class.name;
        if self.out.classes.iter().any(|other| other.name == *name) {
            let what =
                format!("class.name is \"{name}\", the name of an earlier class; write another");
            self.report(settings.place(Class::name), what);
        }
        if let (false, Some(threshold)) = (class.hold, class.threshold) {
            let what = format!(
                "class.threshold is {threshold}, and the class has hold = false; remove one of them"
            );
            self.report(settings.place(Class::threshold), what);
        }
    }

    fn check_rules(&mut self, place: Origin) {
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
