// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One key: its path, form, default and meaning.

use std::{fmt, ops::Deref};

use crate::{field::Form, source::Source};

/// One key. `M`: what a program adds, whose fields and methods are the key's too.
pub struct Key<M> {
    /// Dotted, as in the file.
    pub path: &'static str,
    /// Its type and bounds.
    pub form: &'static dyn Form,
    /// What holds if it is not set.
    pub absent: Absent,
    /// A sentence or more, each with a full stop.
    pub meaning: &'static str,
    /// What its program adds.
    pub more: M,
}

/// The value of a key that is not set.
#[derive(Clone, Copy)]
pub enum Absent {
    /// There is none: it must be set.
    Required,
    /// This text, as if it had been written.
    Is(&'static str),
    /// The text that a constant gives.
    From(fn() -> String),
    /// What follows from other keys: in words, and its text, if there is one.
    By(&'static str, fn(&dyn Source) -> Option<String>),
    /// No value, with this effect.
    Without(&'static str),
}

impl<M> Key<M> {
    /// The table of its path; empty at the top of the file.
    pub fn table(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(table, _)| table)
    }

    /// The last part of its path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The text of its default, if it has one that no other key changes.
    pub fn default_text(&self) -> Option<String> {
        match self.absent {
            Absent::Is(text) => Some(text.to_owned()),
            Absent::From(text) => Some(text()),
            Absent::Required | Absent::By(..) | Absent::Without(_) => None,
        }
    }

    /// The same as it is printed.
    pub fn default(&self) -> Option<String> {
        self.form.check(&self.default_text()?).ok()
    }

    /// Its default for people.
    pub fn default_words(&self) -> String {
        match self.absent {
            Absent::Required => "required".to_owned(),
            Absent::By(words, _) | Absent::Without(words) => words.to_owned(),
            Absent::Is(_) | Absent::From(_) => self.default_text().unwrap_or_default(),
        }
    }

    /// What to write: "a time, 1 us to 1 h".
    pub fn words(&self) -> String {
        match self.form.is_list() {
            true => format!("a list of: {}", self.form.words()),
            false => self.form.words(),
        }
    }

    /// What it means, with the meanings of the names that it takes.
    pub fn explanation(&self) -> String {
        format!("{}{}", self.meaning, self.form.meanings())
    }
}

impl<M> Deref for Key<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.more
    }
}

impl<M> fmt::Debug for Key<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)
    }
}
