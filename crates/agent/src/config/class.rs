// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `[[class]]`: flows that are held in another manner than the rest, or not at all. A flow belongs to the first class
//! that it matches; the data path decides that once, when the flow enters its table.

use std::{fmt, str::FromStr};

use onramp_units::Span;

use crate::prefix::Prefix;

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

/// A class. An empty list matches everything.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    pub name: String,
    pub prefixes: Vec<Prefix>,
    pub ports: Vec<Ports>,
    pub devices: Vec<String>,
    /// Paths below the root of cgroups.
    pub cgroups: Vec<String>,
    pub holds: bool,
    /// None: that of the configuration.
    pub threshold: Option<Span>,
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
