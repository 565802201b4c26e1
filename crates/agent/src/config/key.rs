// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the daemons add to a key: its option, the daemons that have it, what a reload does, and its relations.

use onramp_units::Span;

/// The shortest time above zero.
pub const NS: Span = Span::from_ns(1);

/// A key of the daemons.
pub type Key = onramp_keys::Key<Handling>;

/// What the daemons do with a key.
pub struct Handling {
    /// Its option, without dashes.
    pub option: &'static str,
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

/// What a reload does with a key that has another value than before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It takes effect.
    Live,
    /// The reload is refused, because the daemon must start again.
    Restart,
}

/// The daemon that a configuration is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Daemon {
    Agent,
    Clock,
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

/// A key of `onramp agent run` with this option, which a reload changes.
pub const fn option(option: &'static str) -> Handling {
    Handling {
        option,
        change: Change::Live,
        of: Daemons::Agent,
        needs: &[],
        excludes: &[],
        hidden: false,
    }
}

impl Handling {
    pub const fn restart(mut self) -> Handling {
        self.change = Change::Restart;
        self
    }

    pub const fn of(mut self, daemons: Daemons) -> Handling {
        self.of = daemons;
        self
    }

    pub const fn needs(mut self, keys: &'static [&'static str]) -> Handling {
        self.needs = keys;
        self
    }

    pub const fn excludes(mut self, keys: &'static [&'static str]) -> Handling {
        self.excludes = keys;
        self
    }

    pub const fn hidden(mut self) -> Handling {
        self.hidden = true;
        self
    }

    /// Whether `onramp clock run` has it.
    pub fn is_of_clock(&self) -> bool {
        self.of != Daemons::Agent
    }
}
