// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What scenarios add to a key: the worlds that have it, and the runs in which it applies.

use crate::fraction::Fraction;
use crate::hosts::HostKind;
use onramp_cc::{Bounds, Cc, Parameter};
use onramp_keys::{Absent, Form, Of, Source, Wrong};
use onramp_units::{Rate, Span};

/// A key of scenarios. Those of traffic have paths like "traffic.size" for "traffic.0.size".
pub(crate) type Key = onramp_keys::Key<Scope>;

/// Where a key applies.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// The only kind of host that has it; `None` if both have.
    pub(crate) on: Option<HostKind>,
    /// Names of the congestion controls that have it; empty for other keys.
    pub(crate) of_cc: &'static [&'static str],
    /// The control law that has it; `None` for other keys.
    pub(crate) of_law: Option<&'static str>,
    /// Whether it is a key of [host], [onramp] or [cc] that all hosts have with the same value.
    pub(crate) everywhere: bool,
    /// Whether it is the same in all runs.
    pub(crate) fixed: bool,
    /// Added after results were recorded. The default is not written, so that recorded results still match
    /// their scenarios.
    pub(crate) later: bool,
    /// What the rack does with it; the simulator has every key.
    pub(crate) rack: Rack,
}

/// What the rack does with a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rack {
    /// It has the key with every value.
    Has,
    /// It has these values only.
    Only(&'static [&'static str]),
    /// It does not have the key.
    Never,
    /// It refuses some runs with the key: the supported values in words, and the test for a refused run.
    If(&'static str, fn(&dyn Source, &str) -> bool),
    /// It ignores the key; the words describe the worlds that have it.
    Ignores(&'static str),
}

/// Simulator and rack have the key.
pub const fn both() -> Scope {
    Scope {
        on: None,
        of_cc: &[],
        of_law: None,
        everywhere: false,
        fixed: false,
        later: false,
        rack: Rack::Has,
    }
}

/// Only the simulator has the key.
pub const fn simulated() -> Scope {
    both().rack(Rack::Never)
}

impl Scope {
    /// The rack has these values only.
    pub const fn rack_only(self, values: &'static [&'static str]) -> Scope {
        self.rack(Rack::Only(values))
    }

    pub(crate) const fn on(mut self, kind: HostKind) -> Scope {
        self.on = Some(kind);
        self
    }

    pub(crate) const fn everywhere(mut self) -> Scope {
        self.everywhere = true;
        self
    }

    pub(crate) const fn rack(mut self, rack: Rack) -> Scope {
        self.rack = rack;
        self
    }

    pub(crate) const fn later(mut self) -> Scope {
        self.later = true;
        self
    }

    pub(crate) const fn fixed(mut self) -> Scope {
        self.fixed = true;
        self
    }

    /// Whether it is a parameter of a congestion control or of a control law, which only hosts with these have.
    pub(crate) fn is_parameter(&self) -> bool {
        !self.of_cc.is_empty() || self.of_law.is_some()
    }

    /// What the rack does with it.
    pub(crate) fn in_rack(&self) -> Rack {
        let loaded = |name: &&str| Cc::named(name).is_some_and(Cc::is_loaded_by_us);
        match self.of_cc {
            [] => self.rack,
            names if names.iter().any(loaded) => Rack::Has,
            _ => Rack::Never,
        }
    }

    /// The worlds that have it, as text.
    pub(crate) fn worlds(&self) -> String {
        if self.on == Some(HostKind::Nic) {
            return "simulator".to_owned();
        }
        match self.in_rack() {
            Rack::Has => "both".to_owned(),
            Rack::Only(values) => format!("simulator; rack only `{}`", values.join("`, `")),
            Rack::Never => "simulator".to_owned(),
            Rack::If(words, _) => format!("simulator; rack only {words}"),
            Rack::Ignores(words) => words.to_owned(),
        }
    }
}

/// Between the texts of a list.
pub(crate) const LIST: &str = ", ";

/// The text of a value, or of a list of them.
pub(crate) trait Texts {
    /// As it is printed.
    ///
    /// # Errors
    /// It is no value of the key.
    fn check(&self, text: &str) -> Result<String, Wrong>;

    /// The texts of a list, or the only one.
    fn texts(&self, text: &str) -> Vec<String>;
}

impl Texts for Key {
    fn check(&self, text: &str) -> Result<String, Wrong> {
        if !self.form.is_list() {
            return self.form.check(text);
        }
        let texts = text.split(',').map(|text| self.form.check(text.trim()));
        Ok(texts.collect::<Result<Vec<_>, _>>()?.join(LIST))
    }

    fn texts(&self, text: &str) -> Vec<String> {
        match self.form.is_list() {
            true => text.split(LIST).map(str::to_owned).collect(),
            false => vec![text.to_owned()],
        }
    }
}

/// Its first part; empty for keys at the top of the file.
pub(crate) fn section(path: &str) -> &str {
    path.split_once('.').map_or("", |(first, _)| first)
}

/// The key of a declared parameter, with its default in words. Keys live as long as the program.
pub(crate) fn of_parameter(parameter: &Parameter, default: String, meaning: String) -> Key {
    Key {
        path: parameter.key,
        form: form_of(parameter.bounds),
        absent: Absent::Without(format!("`{default}`").leak()),
        meaning: meaning.leak(),
        more: simulated(),
    }
}

fn form_of(bounds: Bounds) -> &'static dyn Form {
    match bounds {
        Bounds::Fraction(min, max) => Box::leak(Box::new(Of::<Fraction>((min, max)))),
        Bounds::Count(min, max) => Box::leak(Box::new(Of::<u32>((min, max)))),
        Bounds::Span(min, max) => Box::leak(Box::new(Of::<Span>((min, max)))),
        Bounds::Rate(min, max) => Box::leak(Box::new(Of::<Rate>((min, max)))),
        Bounds::Flag => &Of::<bool>(()),
    }
}

pub(crate) const fn mbit_per_s(n: u64) -> Rate {
    match Rate::from_bits_per_s(n * 1_000_000) {
        Some(rate) => rate,
        None => panic!("a bound of zero"),
    }
}

/// Bound of long times: a longer one times the largest dilation would not fit a span.
pub(crate) const HOUR: Span = Span::from_s(3600);
