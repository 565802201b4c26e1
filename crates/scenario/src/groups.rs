// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Host groups: hosts whose settings differ from those of the other hosts.

use crate::host::Host;
use crate::hosts::HostSet;
use crate::key::{both, Scope};
use crate::on_ramp::OnRamp;
use crate::setting::Setting;
use onramp_cc::Tuning;
use onramp_keys::{section, Absent::Required};
use onramp_units::Rate;

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
    /// Parameters of `onramp.law` that differ from its source's, if it is of another crate.
    pub law_tuning: Tuning,
    /// Rate of their links, if the entry gives it.
    pub link_rate: Option<Rate>,
    /// Keys that the entry gives, or whose values differ from those of the other hosts: what is written.
    pub(crate) own: Vec<Setting>,
    /// Other parameters of `host.cc` and `onramp.law`, which [cc] and [onramp] give.
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
    /// Parameters of `onramp.law` that differ from its source's, if it is of another crate.
    pub law_tuning: &'a Tuning,
}

impl Group {
    /// What each of its hosts has.
    pub fn settings(&self) -> HostSettings<'_> {
        HostSettings {
            host: &self.host,
            tuning: &self.tuning,
            onramp: &self.onramp,
            law_tuning: &self.law_tuning,
        }
    }
}

#[cfg(test)]
mod tests;
