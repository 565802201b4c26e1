// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One key of a scenario: its form, bounds, default and meaning, and where it applies.

use crate::field::Reader;
use crate::value::{Form, Value};
use crate::{HostKind, Kind, Run};
use onramp_cc::Cc;
use onramp_units::{Rate, Span};

/// One key.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    /// Dotted; entries of `[[traffic]]` share "traffic.NAME".
    pub path: &'static str,
    pub form: Form,
    pub default: Absent,
    pub meaning: &'static str,
    /// Traffic kinds that have it; empty for keys outside of traffic, and for all kinds.
    pub of: &'static [Kind],
    /// The only kind of host that has it; `None` if both have.
    pub on: Option<HostKind>,
    /// Names of the congestion controls that have it; empty for other keys.
    pub of_cc: &'static [&'static str],
    /// Whether it is a key of [host], [onramp] or [cc] that all hosts have with the same value.
    pub everywhere: bool,
    /// Whether it is the same in all runs.
    pub fixed: bool,
    /// Added after results were recorded. The default is not written, so that recorded results still match
    /// their scenarios.
    pub later: bool,
    /// What the rack does with it; the simulator has every key.
    pub rack: Rack,
}

/// The value of a key that is not given.
#[derive(Clone, Copy)]
pub(crate) enum Absent {
    Required,
    /// This text, as if it had been written.
    Is(&'static str),
    /// A value that depends on other keys: in words, and computed.
    By(&'static str, fn(&mut dyn Reader) -> Option<Value>),
    /// No value, with this effect.
    Without(&'static str),
    /// The default of the congestion control's source.
    Source(&'static str),
}
pub(crate) use Absent::{By, Is, Required, Source, Without};

/// What the rack does with a key.
#[derive(Clone, Copy)]
pub(crate) enum Rack {
    /// It has the key with every value.
    Has,
    /// It has these values only.
    Only(&'static [&'static str]),
    /// It does not have the key.
    Never,
    /// It refuses some runs with the key: the supported values in words, and the test for a refused run
    /// (its number is that of the `[[traffic]]` entry).
    If(&'static str, fn(&Run, Option<usize>, &Value) -> bool),
    /// It ignores the key; the words describe the worlds that have it.
    Ignores(&'static str),
}

impl Key {
    /// The default, unless it depends on other keys.
    pub(crate) fn default_value(&self) -> Option<Value> {
        match self.default {
            Is(text) => self.form.read(self.path, text).ok(),
            Required | By(..) | Without(_) | Source(_) => None,
        }
    }

    /// Its first part; empty for keys at the top of the file.
    pub(crate) fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(first, _)| first)
    }

    /// Its last part.
    pub(crate) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// Whether a `[[hosts]]` entry can override it.
    pub(crate) fn is_of_a_host(&self) -> bool {
        match self.section() {
            "host" | "onramp" | "cc" => !self.everywhere,
            _ => self.path == LINK_RATE,
        }
    }

    /// What the rack does with it.
    pub(crate) fn rack(&self) -> Rack {
        let loaded = |name: &&str| Cc::named(name).is_some_and(Cc::is_loaded_by_us);
        match self.of_cc {
            [] => self.rack,
            names if names.iter().any(loaded) => Rack::Has,
            _ => Rack::Never,
        }
    }

    /// The worlds that have it, as text.
    pub(crate) fn worlds(&self) -> String {
        let simulated = |kind: &Kind| !RACK_KINDS.contains(&kind.name());
        let only_simulated = !self.of.is_empty() && self.of.iter().all(simulated);
        if only_simulated || self.on == Some(HostKind::Nic) {
            return "simulator".to_owned();
        }
        match self.rack() {
            Rack::Has => "both".to_owned(),
            Rack::Only(values) => format!("simulator; rack only `{}`", values.join("`, `")),
            Rack::Never => "simulator".to_owned(),
            Rack::If(words, _) => format!("simulator; rack only {words}"),
            Rack::Ignores(words) => words.to_owned(),
        }
    }

    pub(crate) const fn of(mut self, kinds: &'static [Kind]) -> Key {
        self.of = kinds;
        self
    }

    pub(crate) const fn on(mut self, kind: HostKind) -> Key {
        self.on = Some(kind);
        self
    }

    pub(crate) const fn everywhere(mut self) -> Key {
        self.everywhere = true;
        self
    }

    pub(crate) const fn rack_has(mut self, rack: Rack) -> Key {
        self.rack = rack;
        self
    }

    pub(crate) const fn later(mut self) -> Key {
        self.later = true;
        self
    }

    pub(crate) const fn fixed(mut self) -> Key {
        self.fixed = true;
        self
    }
}

/// The only key of another section that a `[[hosts]]` entry can override.
pub(crate) const LINK_RATE: &str = "network.link.rate";

/// Kinds of traffic that the rack has.
pub(crate) const RACK_KINDS: &[&str] = &["incast", "long", "poisson"];

pub(crate) const fn key(
    path: &'static str,
    form: Form,
    default: Absent,
    meaning: &'static str,
) -> Key {
    Key {
        path,
        form,
        default,
        meaning,
        of: &[],
        on: None,
        of_cc: &[],
        everywhere: false,
        fixed: false,
        later: false,
        rack: Rack::Has,
    }
}

/// A key of a [`section`](crate::section::section), which adds path and meaning.
pub(crate) const fn field(form: Form, default: Absent) -> Key {
    key("", form, default, "")
}

pub(crate) const fn mbit_per_s(n: u64) -> Rate {
    match Rate::from_bits_per_s(n * 1_000_000) {
        Some(rate) => rate,
        None => panic!("a bound of zero"),
    }
}

pub(crate) const ANY_NUMBER: u64 = i64::MAX as u64;
/// Bound of long times: a longer one times the largest dilation would not fit a span.
pub(crate) const HOUR: Span = Span::from_s(3600);
