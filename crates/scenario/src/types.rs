// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The parts of a checked scenario. All values are those of the real network: only the rack applies
//! `time_dilation`.
//!
//! These types only come out of [`Scenario::parse`](crate::Scenario::parse), so whoever holds one
//! need not check it again. Meanings, defaults and bounds of every field: docs/scenario.md.

use crate::clock::Clock;
use crate::groups::{Group, HostSettings};
use crate::host::{Host, Qdisc};
use crate::hosts::HostId;
use crate::measure::Measure;
use crate::network::Network;
use crate::on_ramp::OnRamp;
use crate::setting::Setting;
use crate::traffic::{Measured, Traffic};
use onramp_cc::Tuning;
use onramp_keys::Section;
use onramp_law::Law;
use onramp_units::Span;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// One fully resolved experiment: a case at a sweep point.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The difference between this run and others of its scenario: "case" and every key that a case or
    /// the sweep sets, with its value and unit.
    pub params: BTreeMap<String, String>,
    /// One line for people.
    pub title: String,
    /// Seed of the traffic plan and of all other random numbers.
    pub seed: u64,
    /// Traffic starts within [0, duration).
    pub duration: Span,
    /// Measures leave out traffic that starts before it.
    pub warmup: Span,
    /// The rack runs slower by this factor and scales its results back.
    pub time_dilation: NonZeroU64,
    /// Links and switches.
    pub network: Network,
    /// Properties of the hosts without a group.
    pub host: Host,
    /// Parameters of `host.cc` that differ from its source's.
    pub tuning: Tuning,
    /// Errors of the hosts' clocks.
    pub clock: Clock,
    /// The control law of the hosts without a group.
    pub onramp: OnRamp,
    /// Parameters of `onramp.law` that differ from its source's, if it is of another crate.
    pub law_tuning: Tuning,
    /// Hosts with settings of their own, in the file's order. No host is in two groups.
    pub groups: Vec<Group>,
    /// Who sends what, in the file's order.
    pub traffic: Vec<Traffic>,
    /// Every key that applies, with its value, in the order of the documentation.
    pub(crate) settings: Vec<Setting>,
}

impl Run {
    /// The settings of the hosts without a group.
    pub fn others(&self) -> HostSettings<'_> {
        HostSettings {
            host: &self.host,
            tuning: &self.tuning,
            onramp: &self.onramp,
            law_tuning: &self.law_tuning,
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

impl Run {
    /// The host whose switch port results observe: the first aggregator, else the first receiver.
    pub fn observed_host(&self) -> HostId {
        let is_incast = |traffic: &&Traffic| traffic.measured() == Measured::Incasts;
        let incast = self.traffic.iter().find(is_incast);
        let observed = incast.or(self.traffic.first());
        observed.map_or(0, |traffic| traffic.generator().receiver())
    }

    /// The ports that results measure, if the scenario names some.
    pub fn measure(&self) -> Measure {
        Measure::read(self).expect("its texts have been checked")
    }

    /// The time that measures look at: from the warm-up to the end of the traffic.
    pub fn window(&self) -> Span {
        self.duration - self.warmup
    }

    /// The same with a duration and a warm-up that are so many times shorter.
    pub fn shortened(&self, times: i64) -> Run {
        Run {
            duration: self.duration / times,
            warmup: self.warmup / times,
            ..self.clone()
        }
    }
}
