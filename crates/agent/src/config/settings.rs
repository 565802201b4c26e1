// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The texts of keys, each with its place. The typed values are read from them (`keys`).

use std::{collections::BTreeMap, fmt};

use onramp_keys::Source;

use super::error::Origin;
use super::key::Key;

/// The text of a key as it is printed, or the texts of a list, with their place.
#[derive(Clone, Debug)]
pub struct Setting {
    pub key: &'static Key,
    pub texts: Vec<String>,
    pub place: Origin,
}

impl Setting {
    /// The name of its key at its place.
    pub fn name(&self) -> String {
        self.place.name(self.key)
    }
}

impl fmt::Display for Setting {
    /// As in a file, without quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.form.is_list() {
            true => write!(f, "[{}]", self.texts.join(", ")),
            false => f.write_str(&self.texts.concat()),
        }
    }
}

/// Settings by the path of their key.
#[derive(Clone, Debug, Default)]
pub struct Settings(BTreeMap<&'static str, Setting>);

impl Settings {
    pub fn insert(&mut self, setting: Setting) {
        self.0.insert(setting.key.path, setting);
    }

    /// Adds the defaults of the other keys.
    pub fn add_defaults(&mut self, keys: impl Iterator<Item = &'static Key>) {
        for key in keys {
            if let Some(text) = key.default() {
                self.0.entry(key.path).or_insert(Setting {
                    key,
                    texts: vec![text],
                    place: Origin::Default,
                });
            }
        }
    }

    pub fn get(&self, path: &str) -> Option<&Setting> {
        self.0.get(path)
    }

    /// The place of a key.
    pub fn place(&self, path: &str) -> Origin {
        self.get(path)
            .map_or(Origin::Default, |setting| setting.place)
    }

    /// The setting of a key that is something else than its default.
    pub fn set(&self, path: &str) -> Option<&Setting> {
        let setting = self.get(path)?;
        (Some(setting.to_string()) != setting.key.default()).then_some(setting)
    }
}

impl Source for Settings {
    fn texts(&self, path: &str) -> Option<Vec<String>> {
        Some(self.get(path)?.texts.clone())
    }
}
