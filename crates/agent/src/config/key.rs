// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One key of the configuration: its name in the file and on the command line, its form, default and meaning.

use onramp_law::Law;

use super::form::Form;

/// One key.
pub struct Key {
    /// Dotted, as in the file.
    pub path: &'static str,
    /// Its option, without dashes.
    pub option: &'static str,
    pub form: Form,
    pub absent: Absent,
    /// A sentence or more, each with a full stop.
    pub meaning: &'static str,
    /// What a reload does with another value.
    pub change: Change,
    /// The daemons that have it.
    pub of: Daemons,
    /// Keys that must be set when this one is.
    pub needs: &'static [&'static str],
    /// Keys that must not be set when this one is.
    pub excludes: &'static [&'static str],
    /// For tests and the virtual rack: an option alone, in no file and no document.
    pub hidden: bool,
}

/// The value of a key that is not set.
#[derive(Clone, Copy)]
pub enum Absent {
    /// This text, as if it had been written.
    Is(&'static str),
    /// The text that a constant of another crate gives.
    From(fn() -> String),
    /// No value, with this effect.
    Without(&'static str),
}

/// What a reload does with a key that has another value than before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It takes effect.
    Live,
    /// The reload is refused, because the daemon must start again.
    Restart,
}

/// The daemons that have a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Daemons {
    /// `onramp agent run` alone.
    Agent,
    /// The same, and only with `clock.source = "huygens"` there; `onramp clock run` too.
    Fleet,
    /// Both daemons.
    Both,
}

/// A key of `onramp agent run` that a reload changes.
pub const fn key(
    path: &'static str,
    option: &'static str,
    form: Form,
    absent: Absent,
    meaning: &'static str,
) -> Key {
    Key {
        path,
        option,
        form,
        absent,
        meaning,
        change: Change::Live,
        of: Daemons::Agent,
        needs: &[],
        excludes: &[],
        hidden: false,
    }
}

impl Key {
    pub const fn restart(mut self) -> Key {
        self.change = Change::Restart;
        self
    }

    pub const fn of(mut self, daemons: Daemons) -> Key {
        self.of = daemons;
        self
    }

    pub const fn needs(mut self, keys: &'static [&'static str]) -> Key {
        self.needs = keys;
        self
    }

    pub const fn excludes(mut self, keys: &'static [&'static str]) -> Key {
        self.excludes = keys;
        self
    }

    pub const fn hidden(mut self) -> Key {
        self.hidden = true;
        self
    }

    /// The text of its default, if it has one.
    pub fn default_text(&self) -> Option<String> {
        match self.absent {
            Absent::Is(text) => Some(text.to_owned()),
            Absent::From(text) => Some(text()),
            Absent::Without(_) => None,
        }
    }

    /// What it means, with the meanings of the names that it takes.
    pub fn explanation(&self) -> String {
        let laws = match self.form {
            Form::Law => Law::all()
                .map(|law| format!(" `{}`: {}.", law.name(), law.meaning()))
                .collect(),
            _ => String::new(),
        };
        format!("{}{laws}", self.meaning)
    }

    /// Its default for people.
    pub fn default_words(&self) -> String {
        match self.absent {
            Absent::Without(effect) => effect.to_owned(),
            _ => self.default_text().unwrap_or_default(),
        }
    }
}
