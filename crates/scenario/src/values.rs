// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Types of values that only scenarios have.

use crate::hosts::{number, range, HostId, HostSet};
use crate::workload::BuiltIn;
use onramp_keys::{alternatives, Form, Toml, Value, Wrong};
use std::fmt;
use std::str::FromStr;

/// The title of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Title(pub String);

const LONGEST_TITLE: usize = 200;

impl Value for Title {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "TEXT";

    fn read(text: &str, (): ()) -> Result<Title, Wrong> {
        let fits = (1..=LONGEST_TITLE).contains(&text.chars().count());
        match fits && !text.contains(char::is_control) {
            true => Ok(Title(text.to_owned())),
            false => Err(Wrong::unlike::<Title>(())),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn words((): ()) -> String {
        format!("one line of 1 to {LONGEST_TITLE} characters")
    }
}

/// The path of a file, from the scenario's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePath(pub String);

const LONGEST_PATH: usize = 1000;

impl Value for FilePath {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "FILE";

    fn read(text: &str, (): ()) -> Result<FilePath, Wrong> {
        let fits = (1..=LONGEST_PATH).contains(&text.len());
        match fits && !text.contains(char::is_control) {
            true => Ok(FilePath(text.to_owned())),
            false => Err(Wrong::unlike::<FilePath>(())),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn words((): ()) -> String {
        "a path, from the scenario's directory".to_owned()
    }
}

/// Types that name hosts: the number of one, or a text.
macro_rules! hosts {
    ($($type:ty: $words:literal;)*) => {
        /// Whether it is one of them. That these hosts exist is checked where their number is known.
        pub(crate) fn names_hosts(form: &'static dyn Form) -> bool {
            $( form.is::<$type>() )||*
        }

        $(
        impl Value for $type {
            type Bounds = ();
            const WRITTEN: &'static [Toml] = &[Toml::Integer, Toml::Text];
            const PLACEHOLDER: &'static str = "HOSTS";

            fn read(text: &str, (): ()) -> Result<Self, Wrong> {
                text.parse()
            }

            fn text(&self) -> String {
                self.to_string()
            }

            fn words((): ()) -> String {
                $words.to_owned()
            }
        }
        )*
    };
}

hosts! {
    OneHost: "a host's number";
    Receivers: "a host's number, a range like \"0-3\", or \"all\"";
    Sources: "a host's number, a range like \"0-3\", or \"others\"";
    HostSet: "numbers and ranges of hosts, like \"0-7\" or \"0-3,8\"";
}

/// One host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneHost(pub HostId);

/// Sending hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// One host.
    Host(HostId),
    /// These hosts, first to last, except the receiver.
    Range(HostId, HostId),
    /// All hosts except the receiver.
    Others,
}

/// Receiving hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receivers {
    /// One host.
    Host(HostId),
    /// These hosts, first to last.
    Range(HostId, HostId),
    /// Every host.
    All,
}

impl FromStr for OneHost {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<OneHost, Wrong> {
        number(text)
            .map(OneHost)
            .ok_or_else(|| Wrong::unlike::<OneHost>(()))
    }
}

impl fmt::Display for OneHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Receivers {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Receivers, Wrong> {
        match (text, number(text), range(text)) {
            ("all", ..) => Ok(Receivers::All),
            (_, Some(host), _) => Ok(Receivers::Host(host)),
            (_, _, Some((first, last))) => Ok(Receivers::Range(first, last)),
            _ => Err(Wrong::unlike::<Receivers>(())),
        }
    }
}

impl fmt::Display for Receivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Receivers::Host(host) => host.fmt(f),
            Receivers::Range(first, last) => write!(f, "{first}-{last}"),
            Receivers::All => f.write_str("all"),
        }
    }
}

impl FromStr for Sources {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Sources, Wrong> {
        match (text, number(text), range(text)) {
            ("others", ..) => Ok(Sources::Others),
            (_, Some(host), _) => Ok(Sources::Host(host)),
            (_, _, Some((first, last))) => Ok(Sources::Range(first, last)),
            _ => Err(Wrong::unlike::<Sources>(())),
        }
    }
}

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sources::Host(host) => host.fmt(f),
            Sources::Range(first, last) => write!(f, "{first}-{last}"),
            Sources::Others => f.write_str("others"),
        }
    }
}

/// The greatest host that a text of these types names.
pub(crate) fn last_host(text: &str) -> Option<HostId> {
    text.parse::<HostSet>().ok().map(|hosts| hosts.last())
}

/// A dynamic threshold, a power of two, by its binary logarithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alpha {
    /// From -7 to 3.
    pub log2: i8,
}

/// As switch chips have them: powers of two, 2^-7 first.
const ALPHAS: &[&str] = &[
    "1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8",
];

impl Value for Alpha {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "NAME";

    fn read(text: &str, (): ()) -> Result<Alpha, Wrong> {
        let place = ALPHAS.iter().position(|name| *name == text);
        let alpha = |place| Alpha {
            log2: place as i8 - 7,
        };
        place.map(alpha).ok_or_else(|| Wrong::unlike::<Alpha>(()))
    }

    fn text(&self) -> String {
        ALPHAS[(self.log2 + 7) as usize].to_owned()
    }

    fn words((): ()) -> String {
        alternatives(ALPHAS)
    }

    fn names() -> &'static [&'static str] {
        ALPHAS
    }
}

/// A distribution of flow sizes: a name of workloads/, or the path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkloadName(pub String);

impl Value for WorkloadName {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "NAME|FILE";

    fn read(text: &str, (): ()) -> Result<WorkloadName, Wrong> {
        // A text without these is a misspelt name.
        let is_path = text.contains(['.', '/']) && FilePath::read(text, ()).is_ok();
        match is_path || BuiltIn::names().contains(&text) {
            true => Ok(WorkloadName(text.to_owned())),
            false => Err(Wrong::unlike::<WorkloadName>(())),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn words((): ()) -> String {
        format!("{}, or the path of a file", BuiltIn::words(()))
    }
}

/// A table of nodes and links, which is read as such (document.rs): no text is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nodes;

impl Value for Nodes {
    type Bounds = ();
    const WRITTEN: &'static [Toml] = &[];
    const PLACEHOLDER: &'static str = "TABLE";

    fn read(_: &str, (): ()) -> Result<Nodes, Wrong> {
        Err(Wrong::unlike::<Nodes>(()))
    }

    fn text(&self) -> String {
        "a table".to_owned()
    }

    fn words((): ()) -> String {
        "a table with `switches`, `hosts` and `links`".to_owned()
    }
}

/// Types whose values are the names of a registry, with what these mean. Keys and help list them once, so a
/// registry takes no more names by then.
macro_rules! registered {
    ($($(#[$doc:meta])* $type:ident: $all:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $type(pub &'static str);

        impl $type {
            /// Names and meanings.
            fn all() -> &'static (Vec<&'static str>, String) {
                static ALL: std::sync::LazyLock<(Vec<&'static str>, String)> = std::sync::LazyLock::new(|| {
                    let all: Vec<(&str, &str)> = $all;
                    let meaning = |(name, about): &(&str, &str)| format!(" `{name}`: {about}.");
                    (all.iter().map(|(name, _)| *name).collect(), all.iter().map(meaning).collect())
                });
                &ALL
            }
        }

        impl onramp_keys::Value for $type {
            type Bounds = ();
            const PLACEHOLDER: &'static str = "NAME";

            fn read(text: &str, (): ()) -> Result<$type, onramp_keys::Wrong> {
                let name = <$type as onramp_keys::Value>::names().iter().find(|name| **name == text);
                name.map(|name| $type(name)).ok_or_else(|| onramp_keys::Wrong::unlike::<$type>(()))
            }

            fn text(&self) -> String {
                self.0.to_owned()
            }

            fn words((): ()) -> String {
                onramp_keys::alternatives(<$type as onramp_keys::Value>::names())
            }

            fn names() -> &'static [&'static str] {
                &Self::all().0
            }

            fn meanings() -> String {
                Self::all().1.clone()
            }
        }
    )* };
}
pub(crate) use registered;
