// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The registered laws (law/laws.h): names and meanings of [`Law`], also as the value of a key.

use crate::{lists, Law};
use onramp_keys::{Value, Wrong};
use std::{fmt, str::FromStr};

/// A name that no law has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no law {name:?}; there are: {}", Law::NAMES.join(", "))]
pub struct UnknownLaw {
    name: String,
}

impl Law {
    /// The names of the laws in scenarios, options and status, in the order of their numbers.
    pub const NAMES: &'static [&'static str] = lists::LAW_NAMES;

    /// Every law, in the order of its number.
    pub fn all() -> impl Iterator<Item = Law> {
        lists::LAWS.iter().map(|(law, ..)| *law)
    }

    /// Its name in scenarios, options and status.
    pub fn name(self) -> &'static str {
        lists::LAWS[self as usize].1
    }

    /// What it does, in a few words.
    pub fn meaning(self) -> &'static str {
        lists::LAWS[self as usize].2
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Law {
    type Err = UnknownLaw;

    fn from_str(name: &str) -> Result<Law, UnknownLaw> {
        Law::all()
            .find(|law| law.name() == name)
            .ok_or_else(|| UnknownLaw { name: name.into() })
    }
}

impl Value for Law {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "NAME";

    fn read(text: &str, (): ()) -> Result<Law, Wrong> {
        text.parse().map_err(|_| Wrong::unlike::<Law>(()))
    }

    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn words((): ()) -> String {
        onramp_keys::alternatives(Law::NAMES)
    }

    fn names() -> &'static [&'static str] {
        Law::NAMES
    }

    fn meanings() -> String {
        let meaning = |law: Law| format!(" `{}`: {}.", law.name(), law.meaning());
        Law::all().map(meaning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_stands_at_its_number_and_its_name_parses_back() {
        for (number, law) in Law::all().enumerate() {
            assert_eq!(law as usize, number);
            assert_eq!(law.name().parse(), Ok(law));
            assert_eq!(law.name(), Law::NAMES[number]);
        }
        assert_eq!(Law::Off as u32, 0); // what C takes an unknown number for
        let error = "of".parse::<Law>().unwrap_err().to_string();
        assert!(error.starts_with("there is no law \"of\"; there are: off, strawman, "));
    }
}
