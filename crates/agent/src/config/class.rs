// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `[[class]]`: flows that are held in another manner than the rest, or not at all. A flow belongs to the first class
//! that it matches; the data path decides that once, when the flow enters its table.

use std::{fmt, str::FromStr};

use onramp_keys::Absent::{Is, Required, Without};
use onramp_keys::{section, Toml, Value, Wrong};
use onramp_units::Span;

use super::key::{option, Handling, NS};
use super::values::CgroupPath;
use crate::prefix::Prefix;

/// The largest T that the data path stores is 2^32 ns.
pub const LONGEST_T: Span = Span::from_s(4);

section! {
    /// A class. An empty list matches everything.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Class in "class" with Handling {
        name: String ["a name"] = Required, option(""), "Its name in messages.";
        prefixes: Vec<Prefix> = Without("any host"), option(""), "The other end of the flow is one of these hosts.";
        ports: Vec<Ports> = Without("any port"), option(""), "One end of the flow has one of these TCP ports.";
        devices: Vec<String> ["a name"] = Without("any device"), option(""), "The flow leaves by one of these devices.";
        cgroups: Vec<CgroupPath> = Without("any cgroup"), option(""), "The socket that sends was made in one of these cgroups (version 2) or below it: `/system.slice/backup.service`. Of a connection that was accepted, it is the listener's. Flows of pods that this host serves have none.";
        hold: bool = Is("true"), option(""), "`false`: its flows are measured and never held.";
        threshold: Option<Span> [NS, LONGEST_T] = Without("law.threshold"), option(""), "Threshold T of its flows. While it is below the error of a delay (`law.threshold`), they pass.";
    }
}

impl Class {
    /// How many rules of the data path it takes: one for each combination.
    pub fn rules(&self) -> usize {
        let of = |length: usize| length.max(1);
        of(self.prefixes.len())
            * of(self.ports.len())
            * of(self.devices.len())
            * of(self.cgroups.len())
    }
}

/// The TCP ports from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    pub first: u16,
    pub last: u16,
}

impl Ports {
    pub const ALL: Ports = Ports {
        first: 0,
        last: u16::MAX,
    };
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Ports, String> {
        let port = |text: &str| match text.trim().parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err("outside 1 to 65535".to_owned()),
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (port(first)?, port(last)?);
        match first <= last {
            true => Ok(Ports { first, last }),
            false => Err("a range that ends before it begins".to_owned()),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(f),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

impl Value for Ports {
    type Bounds = ();
    const WRITTEN: &'static [Toml] = &[Toml::Text, Toml::Integer];
    const PLACEHOLDER: &'static str = "PORTS";

    fn read(text: &str, (): ()) -> Result<Ports, Wrong> {
        text.parse().map_err(Wrong::Other)
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn words((): ()) -> String {
        "a port or a range such as \"8000-8100\"".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_one_or_a_range() {
        let ports = |text: &str| text.parse::<Ports>();
        assert_eq!(
            ports("22"),
            Ok(Ports {
                first: 22,
                last: 22
            })
        );
        assert_eq!(ports("80-90").unwrap().to_string(), "80-90");
        for wrong in ["0", "65536", "90-80", "ssh", "", "1-2-3", "-5"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }
}
