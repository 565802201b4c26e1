// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A checked configuration: the file, the command line above it, and the defaults below; and what a reload changes.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use onramp_keys::Section;

use super::class::Class;
use super::document::Document;
use super::error::{Error, Errors, Origin};
use super::given::Given;
use super::key::{Change, Daemon, Key};
use super::keys::{self, Config, LinkKeys};
use super::relations::Relations;
use super::settings::{Setting, Settings};

/// The file that is read without `--config`, if it exists.
pub const DEFAULT_FILE: &str = "/etc/onramp/onramp.toml";

/// A valid configuration. The values of its keys are its fields: `configuration.law.threshold`.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    pub classes: Vec<Class>,
    values: Config,
    settings: Settings,
}

impl Deref for Configuration {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.values
    }
}

/// A daemon follows its devices as they come, go and are renamed.
impl DerefMut for Configuration {
    fn deref_mut(&mut self) -> &mut Config {
        &mut self.values
    }
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
            let place = Origin::File;
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
        let mut document = Document::read(text);
        read_options(given, &mut document);
        let Document {
            mut settings,
            classes,
            invalid,
            mut errors,
        } = document;
        settings.add_defaults(keys::all());
        let values = Config::read(&settings).expect("no key outside of [[class]] is required");
        let relations = Relations {
            daemon,
            settings: &settings,
            values: &values,
            classes: &classes,
            invalid: &invalid,
        };
        errors.extend(relations.mistakes());
        let name = file.map_or(String::new(), |file| file.display().to_string());
        Errors::check(&name, errors)?;
        Ok(Configuration {
            file: file.map(Into::into),
            classes,
            values,
            settings,
        })
    }

    /// The keys that have no effect with `observe`.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let ineffective = [Config::path, LinkKeys::gso_max, LinkKeys::pace].into_iter();
        let is_set = |path: &&str| self.observe && self.settings.set(path).is_some();
        ineffective.filter(is_set).collect()
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
        let changed: Vec<&Key> = keys::all()
            .filter(|key| self.text(key) != new.text(key))
            .collect();
        let refuse = |key: &&Key| {
            Error {
            place: match new.settings.place(key.path) {
                place @ Origin::Line(_) => place,
                _ => Origin::File,
            },
            text: format!(
                "{} is {}, and the daemon runs with {}; it cannot change while the daemon runs: restart the daemon, or \
                 write the former value",
                key.path,
                new.text(key),
                self.text(key)
            ),
        }
        };
        let fixed = changed.iter().filter(|key| key.change == Change::Restart);
        Errors::check(&file, fixed.map(refuse).collect())?;
        let words = |key: &&Key| format!("{}: {}, was {}", key.path, new.text(key), self.text(key));
        let mut words: Vec<String> = changed.iter().map(words).collect();
        if self.classes != new.classes {
            words.push(format!(
                "[[class]]: {}, was {}",
                new.classes.len(),
                self.classes.len()
            ));
        }
        Ok(words)
    }

    /// The setting of a key, in words.
    fn text(&self, key: &Key) -> String {
        match self.settings.get(key.path) {
            Some(setting) => setting.to_string(),
            None => format!("not set ({})", key.default_words()),
        }
    }
}

/// Adds the command line, whose values replace those of the file.
fn read_options(given: &Given, to: &mut Document) {
    let place = Origin::Option;
    for (path, texts) in &given.options {
        let key = keys::find(path);
        let read = |text: &String| {
            key.form.check(text).map_err(|wrong| {
                let (option, words) = (key.option, key.form.words());
                let text = format!("--{option} is {text}, {wrong}; write {words}");
                to.errors.push(Error { place, text });
            })
        };
        let texts: Vec<Result<String, ()>> = texts.iter().map(read).collect();
        let texts: Result<Vec<String>, ()> = texts.into_iter().collect();
        match texts {
            Ok(mut texts) => {
                // The last one of several counts.
                if !key.form.is_list() {
                    texts.drain(..texts.len().saturating_sub(1));
                }
                to.settings.insert(Setting { key, texts, place });
            }
            Err(()) => to.invalid.push(key.path),
        }
    }
}

#[cfg(test)]
mod tests;
