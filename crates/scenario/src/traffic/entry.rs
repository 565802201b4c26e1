// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a kind of traffic reads an entry from, and reports its mistakes to.

use super::{KindKeys, Traffic, TrafficKind};
use crate::error::Problem;
use crate::experiment::Experiment;
use crate::files::Files;
use crate::key::{Key, Scope};
use crate::setting::{Setting, TableEntry};
use crate::values::{Receivers, Sources};
use onramp_keys::{Section, Source};
use onramp_units::Span;
use std::fmt::Display;

/// The run that an entry is part of.
pub(crate) trait Context: Source {
    /// The text of `key`, as it is given at `path` or by default; a default may follow from what `from` has.
    fn text_at(&self, key: &Key, path: &str, from: &dyn Source) -> Option<Vec<String>>;

    /// Whether the scenario gives the key.
    fn is_given(&self, path: &str) -> bool;

    /// Reports keys at these paths that must be given and are not, and hosts that do not exist. `None`: a key has no value.
    fn require(&mut self, keys: &[(&'static Key, String)]) -> Option<()>;

    /// Reports a problem of the first of these paths, or of the one that overrides it.
    fn report(&mut self, paths: &[&str], problem: Problem);

    /// Number of hosts, if the network is valid.
    fn hosts(&self) -> Option<u32>;

    /// The files that the scenario names.
    fn files(&self) -> &Files<'_>;
}

/// An entry of `[[traffic]]` that its kind reads. Its keys are named as they are declared: "traffic.size".
pub struct TrafficEntry<'r> {
    run: &'r mut dyn Context,
    number: usize,
    kind: &'static TrafficKind,
}

impl Source for TrafficEntry<'_> {
    fn texts(&self, path: &str) -> Option<Vec<String>> {
        match self.kind.key(path) {
            Some(key) => self.run.text_at(key, &self.path(path), self),
            None => self.run.texts(path),
        }
    }
}

impl TrafficEntry<'_> {
    pub(crate) fn new<'r>(
        run: &'r mut dyn Context,
        number: usize,
        kind: &'static TrafficKind,
    ) -> TrafficEntry<'r> {
        TrafficEntry { run, number, kind }
    }

    /// Reads it. `None`: an error has been reported.
    pub(crate) fn resolve(mut self) -> Option<Traffic> {
        let generator = (self.kind.read)(&mut self)?;
        Some(Traffic {
            kind: self.kind,
            generator,
            settings: self.settings(),
        })
    }

    /// The keys of the kind. `None`: one has no valid value, which has been reported.
    pub fn read<S: Section<More = Scope>>(&mut self) -> Option<S> {
        let keys = S::TABLES.iter().copied().flatten();
        let keys: Vec<_> = keys.map(|key| (key, self.path(key.path))).collect();
        self.run.require(&keys)?;
        S::read(self)
    }

    /// Number of hosts, if the network is valid.
    pub fn hosts(&self) -> Option<u32> {
        self.run.hosts()
    }

    /// The duration of the run, if it is valid.
    pub fn duration(&self) -> Option<Span> {
        self.run.text(Experiment::duration)?.parse().ok()
    }

    /// Whether the scenario gives the key.
    pub fn is_set(&self, key: &str) -> bool {
        self.run.is_given(&self.path(key))
    }

    /// Reports that the value of a key is `found` in place of what is `expected`.
    pub fn refuse(&mut self, key: &str, found: impl Display, expected: &str) {
        let key = self.path(key);
        let problem = Problem::Expected {
            key: key.clone(),
            found: found.to_string(),
            expected: expected.to_owned(),
        };
        self.run.report(&[&key], problem);
    }

    /// Reports a key that is set beside another one.
    pub fn refuse_beside(&mut self, key: &str, other: &str) {
        if self.is_set(key) && self.is_set(other) {
            let (key, other) = (self.path(key), self.path(other));
            let problem = Problem::Beside {
                key: key.clone(),
                other: other.clone(),
            };
            self.run.report(&[&key, &other], problem);
        }
    }

    /// Reports a single sender, the value of `from`, that is also one of the receivers, the value of `to`.
    pub fn refuse_itself(&mut self, from: Sources, to: Receivers) {
        let sender = match from {
            Sources::Host(host) => host,
            Sources::Range(first, last) if first == last => first,
            Sources::Range(..) | Sources::Others => return,
        };
        let receives = match to {
            Receivers::Host(host) => host == sender,
            Receivers::Range(first, last) => (first..=last).contains(&sender),
            Receivers::All => true,
        };
        if receives {
            let (key, to) = (self.path("traffic.from"), self.path("traffic.to"));
            let problem = Problem::ToItself {
                key: key.clone(),
                host: sender,
            };
            self.run.report(&[&key, &to], problem);
        }
    }

    /// Reports a time that is not below the duration.
    pub fn refuse_after_end(&mut self, key: &str, time: Span) {
        if let Some(duration) = self.duration().filter(|duration| time >= *duration) {
            self.not_below(key, time, Experiment::duration, duration);
        }
    }

    /// Reports a time above the duration.
    pub fn refuse_beyond_end(&mut self, key: &str, time: Span) {
        if let Some(duration) = self.duration().filter(|duration| time > *duration) {
            let path = self.path(key);
            let problem = Problem::Above {
                key: path.clone(),
                value: time.to_string(),
                max: format!("{duration} ({})", Experiment::duration),
            };
            self.run.report(&[&path, Experiment::duration], problem);
        }
    }

    /// Reports a time that is not below that of another key.
    pub fn refuse_not_below(&mut self, key: &str, time: Span, other: &str, bound: Span) {
        if time >= bound {
            let other = self.path(other);
            self.not_below(key, time, &other, bound);
        }
    }

    fn not_below(&mut self, key: &str, time: Span, of: &str, bound: Span) {
        let path = self.path(key);
        let problem = Problem::NotBelow {
            key: path.clone(),
            value: time.to_string(),
            bound: format!("{bound} ({of})"),
        };
        self.run.report(&[&path, of], problem);
    }

    /// The content of the file that a key names. `None`: an error has been reported.
    pub(crate) fn file<T>(
        &mut self,
        key: &str,
        read: impl Fn(&Files<'_>, &str) -> Result<T, String>,
    ) -> Option<T> {
        let name = self.text(key)?;
        match read(self.run.files(), &name) {
            Ok(content) => Some(content),
            Err(error) => {
                self.refuse_file(key, error);
                None
            }
        }
    }

    /// Reports what is wrong with the file that a key names.
    pub(crate) fn refuse_file(&mut self, key: &str, error: String) {
        let (path, key) = (self.text(key).unwrap_or_default(), self.path(key));
        let problem = Problem::File {
            key: key.clone(),
            path,
            error,
        };
        self.run.report(&[&key], problem);
    }

    /// "traffic.0.size" of "traffic.size".
    fn path(&self, key: &str) -> String {
        let name = key.strip_prefix("traffic.").unwrap_or(key);
        format!("traffic.{}.{name}", self.number)
    }

    fn settings(&self) -> Vec<Setting> {
        let setting = |key: &'static Key| {
            let text = self.text(key.path)?;
            Some(self.setting(key, text))
        };
        let kind = self.setting(&KindKeys::KEYS[0], self.kind.name.to_owned());
        let own = self.kind.keys.iter().filter_map(setting);
        std::iter::once(kind).chain(own).collect()
    }

    fn setting(&self, key: &'static Key, text: String) -> Setting {
        Setting {
            key,
            entry: Some(TableEntry::Traffic(self.number)),
            text,
        }
    }
}
