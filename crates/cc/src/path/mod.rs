// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! How switches choose among equal-cost paths.
//!
//! Each way to choose has one file. A new one needs a file and a line in the list below (docs/extend.md). Those of other
//! crates come by [`register`].

pub mod hash;
mod modulo;

use crate::parameter::{Parameter, ParameterValue, Tuning};
use crate::plug::{Named, Plugs};
use crate::{Mistakes, Watched};
use std::fmt;
use std::sync::Arc;

/// A switch with several equal-cost ways to a host. Hosts and switches have the numbers of the network's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fork {
    pub src: u32,
    pub dst: u32,
    /// Source and destination port of the flow.
    pub ports: (u16, u16),
    pub switch: u32,
    /// At least two.
    pub ways: usize,
}

/// Chooses for the packets of a flow.
pub trait PathChoice: fmt::Debug + Send + Sync {
    /// One of `0..fork.ways`, which are in the order of the network's links. A function of its argument alone: the
    /// packets of a flow keep their order.
    fn choose(&self, fork: &Fork) -> usize;
    /// The parameter `name`, if it has any.
    fn get(&self, _name: &str) -> Option<ParameterValue> {
        None
    }
}

/// A way to choose, as a scenario names it.
#[non_exhaustive]
pub struct Entry {
    /// Name in scenarios: `network.paths`.
    pub name: &'static str,
    /// What it is, with its source.
    pub about: &'static str,
    /// Parameters that scenarios can set.
    pub parameters: &'static [Parameter],
    /// With its source's parameters, except those that are set.
    pub choice: fn(&Tuning) -> Box<dyn PathChoice>,
}

impl Entry {
    /// A choice without parameters.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        choice: fn(&Tuning) -> Box<dyn PathChoice>,
    ) -> Entry {
        Entry {
            name,
            about,
            parameters: &[],
            choice,
        }
    }
}

crate::setters!(Entry {
    /// Parameters that scenarios can set.
    parameters: &'static [Parameter];
});

crate::named!(Entry, "path choice");

/// The ways to choose of this crate, the default first.
const BUILT_IN: &[&Entry] = &[&hash::ENTRY, &modulo::ENTRY];

static PLUGS: Plugs<Entry> = Plugs::new();

/// Adds a way to choose of another crate.
///
/// # Panics
/// One has this name, or a scenario has been read already.
pub fn register(entry: &'static Entry) {
    PLUGS.add(entry, BUILT_IN.iter().copied());
}

/// All, the default first.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    BUILT_IN.iter().copied().chain(PLUGS.all().iter().copied())
}

/// The one of that name.
pub fn entry(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}

/// A way to choose with its parameters.
#[derive(Clone)]
pub struct Paths {
    name: &'static str,
    choice: Arc<Watched<dyn PathChoice>>,
    mistakes: Mistakes,
}

impl Paths {
    /// That of `entry`.
    pub fn new(entry: &'static Entry, given: &Tuning) -> Paths {
        let (choice, mistakes) = ((entry.choice)(given), Mistakes::default());
        let watched = Watched::new(choice, Entry::KIND, entry.name, mistakes.clone());
        Paths {
            name: entry.name,
            choice: Arc::new(watched),
            mistakes,
        }
    }

    /// One of `0..fork.ways`.
    pub fn choose(&self, fork: &Fork) -> usize {
        let way = self.choice.ask("choose", 0, |choice| choice.choose(fork));
        if way < fork.ways {
            return way;
        }
        let last = fork.ways - 1;
        self.choice.note(
            "choose",
            format!("answered {way} for {fork:?}, where there are 0 to {last}"),
        );
        0
    }

    /// Its mistakes.
    pub fn mistakes(&self) -> &Mistakes {
        &self.mistakes
    }
}

impl Default for Paths {
    fn default() -> Paths {
        Paths::new(&hash::ENTRY, &Tuning::default())
    }
}

impl fmt::Debug for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choice.fmt(f)
    }
}

impl PartialEq for Paths {
    /// The same way to choose with the same parameters, which its text for programmers has.
    fn eq(&self, other: &Paths) -> bool {
        (self.name, format!("{self:?}")) == (other.name, format!("{other:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_chooses_a_way_that_there_is_and_always_the_same(
            (src, dst, switch) in (0u32..4096, 0u32..4096, 0u32..8192),
            ports: (u16, u16),
            ways in 2usize..256,
        ) {
            let fork = Fork { src, dst, ports, switch, ways };
            for entry in entries() {
                let paths = Paths::new(entry, &Tuning::default());
                prop_assert_eq!(paths.choose(&fork), paths.choose(&fork));
            }
        }
    }
}
