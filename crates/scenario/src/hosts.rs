// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Hosts: their numbers, sets of them, and their kinds.

use onramp_keys::{choice, Wrong};
use std::fmt;
use std::str::FromStr;

/// Number of a host, from 0.
pub type HostId = u32;

choice! {
    /// The transport of a host.
    pub enum HostKind {
        /// Linux TCP.
        Kernel = "kernel",
        /// An RDMA-like NIC, in the simulator only.
        Nic = "nic",
    }
}

/// Some hosts of a network, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSet(
    /// First and last of each range, ascending.
    Vec<(HostId, HostId)>,
);

impl HostSet {
    /// Whether `host` is one of them.
    pub fn contains(&self, host: HostId) -> bool {
        let has = |&(first, last): &(HostId, HostId)| (first..=last).contains(&host);
        self.0.iter().any(has)
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = HostId> + '_ {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }

    /// The one with the greatest number.
    pub(crate) fn last(&self) -> HostId {
        self.0.last().map_or(0, |&(_, last)| last)
    }

    /// The first host that is in both.
    pub(crate) fn common(&self, other: &HostSet) -> Option<HostId> {
        let both = |&(first, last): &(HostId, HostId)| {
            let starts = other.0.iter().map(|&(start, _)| start.max(first));
            let inside = |at: &HostId| *at <= last && other.contains(*at);
            starts.filter(inside).min()
        };
        self.0.iter().find_map(both)
    }
}

impl FromStr for HostSet {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<HostSet, Wrong> {
        let part = |part: &str| {
            let part = part.trim();
            range(part).or_else(|| range(&format!("{part}-{part}")))
        };
        let ranges: Option<Vec<_>> = text.split(',').map(part).collect();
        let mut ranges = ranges.ok_or_else(|| Wrong::unlike::<HostSet>(()))?;
        ranges.sort_unstable();
        match ranges.windows(2).find(|two| two[1].0 <= two[0].1) {
            Some(two) => Err(Wrong::Other(format!("which has host {} twice", two[1].0))),
            None => Ok(HostSet(ranges)),
        }
    }
}

impl fmt::Display for HostSet {
    /// As in a scenario: `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// "3-7" as 3 and 7.
pub(crate) fn range(text: &str) -> Option<(HostId, HostId)> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some((first, last))
}

/// A number that is written in one way only.
pub(crate) fn number(text: &str) -> Option<HostId> {
    let number: HostId = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
