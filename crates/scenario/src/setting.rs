// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A key with its value, wherever it is given.

use crate::key::Key;
use std::collections::BTreeMap;
use std::fmt;

/// An entry of an array of tables, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TableEntry {
    Hosts(usize),
    Traffic(usize),
}

/// Settings by dotted key.
pub(crate) type Layer = BTreeMap<String, Setting>;

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub key: &'static Key,
    /// The entry of an array of tables, for its keys.
    pub entry: Option<TableEntry>,
    /// The value as its type prints it.
    pub text: String,
}

impl PartialEq for Setting {
    fn eq(&self, other: &Setting) -> bool {
        (self.key.path, self.entry, &self.text) == (other.key.path, other.entry, &other.text)
    }
}

impl Setting {
    /// Dotted: "traffic.0.size", "hosts.1.host.cc".
    pub(crate) fn path(&self) -> String {
        let path = self.key.path;
        match self.entry {
            None => path.to_owned(),
            Some(TableEntry::Traffic(number)) => format!("traffic.{number}.{}", self.key.name()),
            Some(TableEntry::Hosts(number)) => format!("hosts.{number}.{}", below_hosts(path)),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The path in an entry of [[hosts]].
pub(crate) fn below_hosts(path: &str) -> &str {
    path.strip_prefix("hosts.").unwrap_or(path)
}
