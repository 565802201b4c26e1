// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Host groups: hosts whose settings differ from those of the other hosts.

use crate::key::{both, Scope};
use crate::setting::Setting;
use crate::values::range;
use crate::{Host, HostId, Law, OnRamp, Qdisc, Run, Tuning};
use onramp_keys::{section, Absent::Required, Wrong};
use onramp_units::Rate;
use std::fmt;
use std::str::FromStr;

section! {
    /// Keys of a `[[hosts]]` entry beside those that it overrides.
    pub(crate) struct GroupKeys in "hosts" with Scope {
        range: HostSet = Required, both(), "Hosts of the group. A host is in one group at most.";
    }
}

/// Hosts with settings of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its hosts.
    pub hosts: HostSet,
    /// Their settings.
    pub host: Host,
    /// Parameters of `host.cc` that differ from its source's.
    pub tuning: Tuning,
    /// Their control law.
    pub onramp: OnRamp,
    /// Rate of their links, if the entry gives it.
    pub link_rate: Option<Rate>,
    /// Keys that the entry gives, or whose values differ from those of the other hosts: what is written.
    pub(crate) own: Vec<Setting>,
    /// Other parameters of `host.cc`, which [cc] gives.
    pub(crate) inherited: Vec<Setting>,
}

/// The settings of a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostSettings<'a> {
    /// Keys of [host].
    pub host: &'a Host,
    /// Parameters of `host.cc` that differ from its source's.
    pub tuning: &'a Tuning,
    /// Keys of [onramp].
    pub onramp: &'a OnRamp,
}

impl Group {
    /// What each of its hosts has.
    pub fn settings(&self) -> HostSettings<'_> {
        HostSettings {
            host: &self.host,
            tuning: &self.tuning,
            onramp: &self.onramp,
        }
    }
}

impl Run {
    /// The settings of the hosts without a group.
    pub fn others(&self) -> HostSettings<'_> {
        HostSettings {
            host: &self.host,
            tuning: &self.tuning,
            onramp: &self.onramp,
        }
    }

    /// The settings of hosts without a group, then those of each group.
    pub fn each_settings(&self) -> impl Iterator<Item = HostSettings<'_>> {
        std::iter::once(self.others()).chain(self.groups.iter().map(Group::settings))
    }

    /// Keys of [onramp] that all hosts share: those of the first hosts with a law. Hosts without a law have the
    /// defaults.
    pub fn shared_onramp(&self) -> &OnRamp {
        let mut all = self.each_settings().map(|of| of.onramp);
        all.find(|of| of.law != Law::Off).unwrap_or(&self.onramp)
    }

    /// Hosts with On-Ramp's queueing discipline, which have a daemon in the rack.
    pub fn edge_hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        let has_edge = |host: &HostId| self.settings_of(*host).host.qdisc == Qdisc::Edge;
        (0..self.network.topology.hosts()).filter(has_edge)
    }

    /// The number of a host's group, if it has one.
    pub fn group_of(&self, host: HostId) -> Option<usize> {
        self.groups.iter().position(|g| g.hosts.contains(host))
    }

    /// The settings of one host.
    pub fn settings_of(&self, host: HostId) -> HostSettings<'_> {
        let place = self.group_of(host).map_or(0, |group| group + 1);
        let mut all = self.each_settings();
        all.nth(place).expect("every group has settings")
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

#[cfg(test)]
mod tests;
