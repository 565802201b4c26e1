// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A checked configuration: the file, the command line above it, and the defaults below; and what a reload changes.

use std::path::{Path, PathBuf};

use onramp_units::Span;

use super::class::Class;
use super::document::{Document, Setting, Settings};
use super::error::{Error, Errors, Place};
use super::form::Value;
use super::given::Given;
use super::key::{Change, Daemons, Key};
use super::keys::{find, AUTO, KEYS, LONGEST_T};

/// The file that is read without `--config`, if it exists.
pub const DEFAULT_FILE: &str = "/etc/onramp/onramp.toml";

/// The clock sources that another program keeps right within `clock.bound`.
const BOUNDED: [&str; 2] = ["system", "phc"];

/// The daemon that a configuration is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Daemon {
    Agent,
    Clock,
}

/// A valid configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    settings: Settings,
    pub classes: Vec<Class>,
}

impl Configuration {
    /// Reads the file, if there is one, and the command line.
    ///
    /// # Errors
    /// All mistakes of both.
    pub fn load(given: &Given, daemon: Daemon) -> Result<Configuration, Errors> {
        match Self::file_of(given) {
            Some(file) => Self::of_file(&file, given, daemon),
            None => Self::of_text("", None, given, daemon),
        }
    }

    /// The file that is read with this command line, if there is one.
    pub fn file_of(given: &Given) -> Option<PathBuf> {
        let usual = Path::new(DEFAULT_FILE);
        let usual = usual.exists().then(|| usual.to_owned());
        given.config.clone().or(usual)
    }

    /// Reads a file alone, for `onramp agent validate`.
    ///
    /// # Errors
    /// All of its mistakes.
    pub fn of_file(file: &Path, given: &Given, daemon: Daemon) -> Result<Configuration, Errors> {
        let unreadable = |error: std::io::Error| {
            let text = format!(
                "cannot read the configuration: {error}; it must be a file of UTF-8 text that belongs to the user \
                 that runs the daemon, or is readable by all"
            );
            let place = Place::File;
            Errors::check(&file.display().to_string(), vec![Error { place, text }])
        };
        match std::fs::read_to_string(file) {
            Ok(text) => Self::of_text(&text, Some(file), given, daemon),
            Err(error) => Err(unreadable(error).expect_err("it is one mistake")),
        }
    }

    /// Reads a text, without a command line. Errors name it `file`.
    ///
    /// # Errors
    /// All of its mistakes.
    pub fn parse(text: &str, file: &Path, daemon: Daemon) -> Result<Configuration, Errors> {
        Self::of_text(text, Some(file), &Given::default(), daemon)
    }

    fn of_text(
        text: &str,
        file: Option<&Path>,
        given: &Given,
        daemon: Daemon,
    ) -> Result<Configuration, Errors> {
        let Document {
            settings: mut all,
            classes,
            mut invalid,
            mut errors,
        } = Document::read(text);
        read_options(given, &mut all, &mut invalid, &mut errors);
        for key in KEYS.iter().filter(|key| !invalid.contains(&key.path)) {
            let text = key.default_text().filter(|_| !all.contains_key(key.path));
            if let Some(value) = text.and_then(|text| key.form.read(&text).ok()) {
                let place = Place::Default;
                all.insert(key.path, Setting { value, place });
            }
        }
        let configuration = Configuration {
            file: file.map(Into::into),
            settings: all,
            classes,
        };
        errors.extend(configuration.mistakes(daemon, &invalid));
        let name = file.map_or(String::new(), |file| file.display().to_string());
        Errors::check(&name, errors)?;
        Ok(configuration)
    }

    /// The value of a key; none if it has no default and is not set.
    pub fn get<'s, T: From<&'s Value>>(&'s self, path: &str) -> Option<T> {
        assert!(find(path).is_some(), "{path} is no key");
        self.settings
            .get(path)
            .map(|setting| T::from(&setting.value))
    }

    /// The value of a key that has a default.
    pub fn of<'s, T: From<&'s Value>>(&'s self, path: &str) -> T {
        self.get(path)
            .unwrap_or_else(|| panic!("{path} has no default"))
    }

    /// A span; none in place of the word that its form has.
    pub fn span_or_word(&self, path: &str) -> Option<Span> {
        match &self.settings[path].value {
            Value::Span(span) => Some(*span),
            _ => None,
        }
    }

    /// The keys that have no effect with `observe`.
    pub fn without_effect(&self) -> Vec<String> {
        if !self.of::<bool>("observe") {
            return vec![];
        }
        let set = |path: &&str| self.set(path).is_some();
        let names = ["path", "link.gso_max", "link.pace"]
            .into_iter()
            .filter(set);
        names.map(str::to_owned).collect()
    }

    /// A key that is set to something else than its default, with its setting.
    fn set(&self, path: &str) -> Option<(&'static Key, &Setting)> {
        let (key, setting) = (find(path)?, self.settings.get(path)?);
        let is_usual = key
            .default_text()
            .is_some_and(|text| key.form.read(&text).as_ref() == Ok(&setting.value));
        (!is_usual).then_some((key, setting))
    }

    /// Relations between keys that do not hold.
    fn mistakes(&self, daemon: Daemon, invalid: &[&str]) -> Vec<Error> {
        let of_daemon = |key: &&Key| daemon == Daemon::Agent || key.is_of_clock();
        let mut errors: Vec<Error> = KEYS
            .iter()
            .filter(of_daemon)
            .filter_map(|key| self.set(key.path))
            .flat_map(|(key, setting)| self.relations(key, setting, daemon, invalid))
            .collect();
        if daemon == Daemon::Agent {
            errors.extend(self.check_threshold());
            errors.extend(self.check_classes());
        }
        errors
    }

    fn relations(
        &self,
        key: &'static Key,
        setting: &Setting,
        daemon: Daemon,
        invalid: &[&str],
    ) -> Vec<Error> {
        let place = setting.place;
        let found = format!("{} is {}", place.name(key), setting.value);
        let error = |text: String| Error { place, text };
        let lacks = |path: &&&str| self.set(path).is_none() && !invalid.contains(*path);
        let needs = key.needs.iter().filter(lacks).map(|path| {
            let other = place.name(find(path).expect("the table names keys"));
            error(format!(
                "{found}, which needs {other}; set it, or remove {}",
                place.name(key)
            ))
        });
        let excluded = key.excludes.iter().filter_map(|path| {
            let (other, setting) = self.set(path)?;
            let other = setting.place.name(other);
            Some(error(format!(
                "{found}, and {other} is set too; remove one of them"
            )))
        });
        let mut errors: Vec<Error> = needs.chain(excluded).collect();
        let source = self.get::<String>("clock.source").unwrap_or_default();
        let wanted: &[&str] = match key.path {
            "clock.bound" => &BOUNDED,
            "clock.device" => &["phc"],
            _ if daemon == Daemon::Agent && key.of == Daemons::Fleet => &["huygens"],
            _ => &[],
        };
        if !source.is_empty() && !wanted.is_empty() && !wanted.contains(&source.as_str()) {
            let key = find("clock.source").expect("it is a key");
            let wanted: Vec<String> = wanted.iter().map(|name| place.set(key, name)).collect();
            errors.push(error(format!(
                "{found}, which {} does not use; write {}, or remove it",
                place.set(key, &source),
                wanted.join(" or ")
            )));
        }
        let is_bounded = key.path == "clock.source" && BOUNDED.contains(&source.as_str());
        if is_bounded && lacks(&&"clock.bound") {
            let bound = place.name(find("clock.bound").expect("it is a key"));
            errors.push(error(format!(
                "{found}, which needs {bound}, the largest error of that clock, e.g. 5 us"
            )));
        }
        errors
    }

    /// Longer delays than the longest that is believed are ignored, so no flow would ever be held.
    fn check_threshold(&self) -> Option<Error> {
        let value = |path: &str| Some((find(path)?, self.settings.get(path)?));
        let (key, setting) = match &self.settings.get("law.threshold")?.value {
            Value::Span(_) => value("law.threshold")?,
            _ => value("law.headroom")?,
        };
        let (most_key, most) = value("law.max_owd")?;
        let (Value::Span(t), Value::Span(most_owd)) = (&setting.value, &most.value) else {
            return None;
        };
        // Of the two, blame the one that was written.
        let place = match setting.place {
            Place::Default => most.place,
            place => place,
        };
        let (name, most_name) = (place.name(key), place.name(most_key));
        (t > most_owd).then(|| Error {
            place,
            text: format!(
                "{name} is {t}, above {most_name} {most_owd}: longer delays are ignored, so no flow would ever be held; \
                 lower {name} or raise {most_name}"
            ),
        })
    }

    fn check_classes(&self) -> Vec<Error> {
        let (Some(max_owd), Some(others)) = (
            self.settings.get("law.max_owd"),
            self.settings.get("others"),
        ) else {
            return vec![];
        };
        let mut errors = vec![];
        let passes = others.value == Value::Text("pass".to_owned());
        if passes && self.classes.iter().all(|class| !class.holds) {
            let text = format!(
                "{} is pass, and no [[class]] is held, so no flow is; add a class, or write observe = true",
                others.place.name(find("others").expect("it is a key"))
            );
            errors.push(Error {
                place: others.place,
                text,
            });
        }
        let has_pass = passes || self.classes.iter().any(|class| !class.holds);
        let Value::Span(most) = max_owd.value else {
            return errors;
        };
        let name = max_owd
            .place
            .name(find("law.max_owd").expect("it is a key"));
        if has_pass && most > LONGEST_T {
            let text = format!(
                "{name} is {most}, above max {LONGEST_T} where some flows are never held; lower it"
            );
            errors.push(Error {
                place: max_owd.place,
                text,
            });
        }
        for class in self
            .classes
            .iter()
            .filter(|class| class.threshold > Some(most))
        {
            let text = format!(
                "{name} is {most}, below the threshold of class \"{}\", so its flows would never be held; raise it, or \
                 write hold = false in the class",
                class.name
            );
            errors.push(Error {
                place: max_owd.place,
                text,
            });
        }
        errors
    }

    /// What a reload that replaces this configuration changes, in words.
    ///
    /// # Errors
    /// A key has changed that a reload cannot change.
    pub fn changes(&self, new: &Configuration) -> Result<Vec<String>, Errors> {
        let file = new
            .file
            .as_deref()
            .map_or(String::new(), |file| file.display().to_string());
        let text =
            |configuration: &Configuration, key: &Key| match configuration.settings.get(key.path) {
                Some(setting) => setting.value.to_string(),
                None => format!("not set ({})", key.default_words()),
            };
        let changed: Vec<&Key> = KEYS
            .iter()
            .filter(|key| text(self, key) != text(new, key))
            .collect();
        let refuse = |key: &&Key| {
            Error {
            place: match new.settings.get(key.path).map(|setting| setting.place) {
                Some(place @ Place::Line(_)) => place,
                _ => Place::File,
            },
            text: format!(
                "{} is {}, and the daemon runs with {}; it cannot change while the daemon runs: restart the daemon, or \
                 write the former value",
                key.path,
                text(new, key),
                text(self, key)
            ),
        }
        };
        let fixed = changed
            .iter()
            .filter(|key| key.change == Change::Restart)
            .copied();
        Errors::check(&file, fixed.map(|key| refuse(&key)).collect())?;
        let mut words: Vec<String> = changed
            .iter()
            .map(|key| format!("{}: {}, was {}", key.path, text(new, key), text(self, key)))
            .collect();
        if self.classes != new.classes {
            words.push(format!(
                "[[class]]: {}, was {}",
                new.classes.len(),
                self.classes.len()
            ));
        }
        Ok(words)
    }

    /// Whether T is chosen for each peer.
    pub fn is_auto(&self) -> bool {
        self.settings["law.threshold"].value == Value::Text(AUTO.to_owned())
    }
}

/// Adds the command line, whose values replace those of the file.
fn read_options(
    given: &Given,
    all: &mut Settings,
    invalid: &mut Vec<&'static str>,
    errors: &mut Vec<Error>,
) {
    let place = Place::Option;
    for (path, texts) in &given.options {
        let key = find(path).expect("options are keys");
        let read = |text: &String| {
            key.form.read(text).map_err(|wrong| {
                let words = key.form.element().unwrap_or(key.form).words();
                let text = format!("--{} is {text}, {wrong}; write {words}", key.option);
                errors.push(Error { place, text });
            })
        };
        let values: Vec<Result<Value, ()>> = texts.iter().map(read).collect();
        let values: Result<Vec<Value>, ()> = values.into_iter().collect();
        let value = match values {
            Ok(values) if key.is_list() => Some(Value::List(values)),
            Ok(values) => values.into_iter().next_back(),
            Err(()) => None,
        };
        match value {
            Some(value) => drop(all.insert(key.path, Setting { value, place })),
            None => invalid.push(key.path),
        }
    }
}

#[cfg(test)]
mod tests;
