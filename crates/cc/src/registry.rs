// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! All congestion controls by their scenario names, and all keys that set their parameters.

use crate::parameter::{Parameter, ParameterValue, Tuning};
use crate::plug::Names;
use crate::{nic, tcp};
use onramp_keys::{alternatives, Value, Wrong};
use onramp_units::Rate;
use std::fmt;
use std::str::FromStr;

/// A congestion control that a scenario names, for its kind of hosts.
#[derive(Clone, Copy)]
pub enum Cc {
    /// For NICs.
    Nic(&'static nic::Preset),
    /// For kernels.
    Kernel(&'static tcp::Entry),
}

impl Cc {
    /// All, in the order of the documentation. Two for different hosts may share a name.
    pub fn all() -> impl Iterator<Item = Cc> {
        let kernel = tcp::entries().map(Cc::Kernel);
        kernel.chain(nic::presets().map(Cc::Nic))
    }

    /// The first of that name; [`Cc::on`] has the one for a kind of hosts.
    pub fn named(name: &str) -> Option<Cc> {
        Cc::all().find(|cc| cc.name() == name)
    }

    /// That of the same name for NICs, or for kernels, if there is one.
    pub fn on(self, nic: bool) -> Option<Cc> {
        Cc::all().find(|cc| cc.name() == self.name() && cc.is_nic() == nic)
    }

    /// As scenarios have it.
    pub fn name(self) -> &'static str {
        match self {
            Cc::Nic(preset) => preset.name,
            Cc::Kernel(entry) => entry.name,
        }
    }

    /// What it is, with its source.
    pub fn about(self) -> &'static str {
        match self {
            Cc::Nic(preset) => preset.about,
            Cc::Kernel(entry) => entry.about,
        }
    }

    /// Whether it is for NICs.
    pub fn is_nic(self) -> bool {
        matches!(self, Cc::Nic(_))
    }

    /// Whether Linux has it under its scenario name, at least after `onramp cc load`.
    pub fn in_linux(self) -> bool {
        matches!(self, Cc::Kernel(entry) if !matches!(entry.linux, tcp::Linux::Lacks))
    }

    /// Whether `onramp cc load` gives it to Linux.
    pub fn is_loaded_by_us(self) -> bool {
        matches!(self, Cc::Kernel(entry) if matches!(entry.linux, tcp::Linux::Loads(_)))
    }

    /// The configuration that its program for Linux gets, with these parameters, if `onramp cc load` gives it to Linux.
    pub fn in_kernel(self, given: &Tuning) -> Option<Vec<u8>> {
        match self {
            Cc::Kernel(entry) => match entry.linux {
                tcp::Linux::Loads(configuration) => Some(configuration(given)),
                tcp::Linux::Lacks | tcp::Linux::Has => None,
            },
            Cc::Nic(_) => None,
        }
    }

    /// Whether its kernel asks for marks, without which it does not work.
    pub fn needs_marks(self) -> bool {
        matches!(self, Cc::Kernel(entry) if entry.marks)
    }

    /// Whether its hosts need segments of at most 16 kB (`host.gso`).
    pub fn needs_short_segments(self) -> bool {
        matches!(self, Cc::Kernel(entry) if entry.short_segments)
    }

    /// Whether its hosts send bursts, each with a round-trip time: what a read of RDMA needs.
    pub fn sends_bursts(self) -> bool {
        match self {
            Cc::Nic(preset) => preset.sends_bursts(),
            Cc::Kernel(_) => false,
        }
    }

    /// What scenarios can set.
    pub fn parameters(self) -> &'static [Parameter] {
        match self {
            Cc::Nic(preset) => preset.parameters,
            Cc::Kernel(entry) => entry.parameters,
        }
    }

    /// Pairs of parameters of which the first is not above the second.
    pub fn ordered(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Cc::Nic(preset) => preset.ordered,
            Cc::Kernel(entry) => entry.ordered,
        }
    }

    /// Jain's index of two flows that share a link, at least.
    pub fn fairness(self) -> f64 {
        match self {
            Cc::Nic(preset) => preset.fairness,
            Cc::Kernel(entry) => entry.fairness,
        }
    }

    /// Payload of a flow alone on a link, as a part of the line, at least.
    pub fn fills(self) -> f64 {
        match self {
            Cc::Nic(_) => crate::FILLED,
            Cc::Kernel(entry) => entry.fills,
        }
    }

    /// The default of a parameter for hosts of this line rate.
    pub fn default_of(self, parameter: &str, line: Rate) -> Option<ParameterValue> {
        match self {
            Cc::Nic(preset) => (preset.algorithm)(line).get(parameter),
            Cc::Kernel(entry) => (entry.algorithm)().get(parameter),
        }
    }
}

impl PartialEq for Cc {
    fn eq(&self, other: &Cc) -> bool {
        (self.is_nic(), self.name()) == (other.is_nic(), other.name())
    }
}

impl fmt::Debug for Cc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = if self.is_nic() { "Nic" } else { "Kernel" };
        write!(f, "{hosts}({})", self.name())
    }
}

impl fmt::Display for Cc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Cc {
    type Err = Wrong;

    /// The first of that name; [`Cc::on`] has the one for a kind of hosts.
    fn from_str(name: &str) -> Result<Cc, Wrong> {
        Cc::named(name).ok_or_else(|| Wrong::unlike::<Cc>(()))
    }
}

impl Value for Cc {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "NAME";

    fn read(text: &str, (): ()) -> Result<Cc, Wrong> {
        text.parse()
    }

    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn words((): ()) -> String {
        alternatives(names())
    }

    fn names() -> &'static [&'static str] {
        names()
    }
}

/// All names, each once.
pub fn names() -> &'static [&'static str] {
    static NAMES: Names = Names::new();
    NAMES.are(names_of(Cc::all()))
}

/// The names of `all`, each once.
pub fn names_of(all: impl Iterator<Item = Cc>) -> Vec<&'static str> {
    let mut names = Vec::new();
    for cc in all {
        if !names.contains(&cc.name()) {
            names.push(cc.name());
        }
    }
    names
}

/// A key that sets a parameter.
pub struct Key {
    /// What it sets.
    pub parameter: &'static Parameter,
    /// The congestion controls that have it. The documentation shows the default of the first.
    pub of: Vec<Cc>,
}

/// All keys, each once.
pub fn keys() -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for cc in Cc::all() {
        for parameter in cc.parameters() {
            match keys
                .iter_mut()
                .find(|key| key.parameter.key == parameter.key)
            {
                Some(key) => key.of.push(cc),
                None => keys.push(Key {
                    parameter,
                    of: vec![cc],
                }),
            }
        }
    }
    keys
}

/// The line rate of documented defaults.
const DOCUMENTED: u64 = 100_000_000_000;

impl Key {
    /// The documented default: of the first congestion control, for hosts at 100 Gbit/s.
    pub fn default_text(&self) -> String {
        self.default_at(self.of[0], DOCUMENTED)
    }

    /// Its meaning, and the defaults of the other congestion controls that have it.
    pub fn meaning(&self) -> String {
        let mut text = self.parameter.meaning.to_owned();
        let first = self.of[0];
        if self.default_at(first, DOCUMENTED) != self.default_at(first, DOCUMENTED / 10) {
            text += " The default is proportional to the line rate.";
        }
        for &cc in &self.of[1..] {
            let default = self.default_at(cc, DOCUMENTED);
            if default != self.default_text() {
                text += &format!(" Default for {cc}: `{default}`.");
            }
        }
        text
    }

    fn default_at(&self, cc: Cc, bits_per_s: u64) -> String {
        let line = Rate::from_bits_per_s(bits_per_s);
        let default = line.and_then(|line| cc.default_of(self.parameter.name, line));
        default.map_or_else(String::new, |default| default.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_for_the_same_hosts_share_a_name() {
        let all: Vec<Cc> = Cc::all().collect();
        for (n, cc) in all.iter().enumerate() {
            assert!(!all[..n].contains(cc), "{cc:?}");
        }
    }

    #[test]
    fn every_default_is_within_its_bounds() {
        for key in keys() {
            for &cc in &key.of {
                for bits_per_s in [DOCUMENTED, DOCUMENTED / 100, DOCUMENTED * 8] {
                    let line = Rate::from_bits_per_s(bits_per_s).unwrap();
                    let default = cc.default_of(key.parameter.name, line).unwrap();
                    assert!(
                        key.parameter.bounds.contain(default),
                        "{}",
                        key.parameter.key
                    );
                }
            }
        }
    }

    #[test]
    fn a_key_means_the_same_for_all_that_have_it() {
        for key in keys() {
            for cc in &key.of {
                assert!(
                    cc.parameters().contains(key.parameter),
                    "{}",
                    key.parameter.key
                );
            }
        }
    }

    #[test]
    fn pairs_in_order_name_parameters() {
        for cc in Cc::all() {
            for (low, high) in cc.ordered() {
                for name in [low, high] {
                    assert!(
                        cc.parameters().iter().any(|p| p.name == *name),
                        "{cc:?} {name}"
                    );
                }
            }
        }
    }
}
