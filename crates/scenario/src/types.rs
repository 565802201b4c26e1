// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The parts of a checked scenario. All values are those of the real network: only the rack applies
//! `time_dilation`.
//!
//! These types only come out of [`Scenario::parse`](crate::Scenario::parse), so whoever holds one
//! need not check it again. Meanings, defaults and bounds of every field: docs/scenario.md.

use crate::setting::Setting;
use crate::{Clock, Group, Host, Measured, Network, OnRamp, Traffic};
use onramp_cc::Tuning;
use onramp_units::Span;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// Number of a host, from 0.
pub type HostId = u32;

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
    /// Hosts with settings of their own, in the file's order. No host is in two groups.
    pub groups: Vec<Group>,
    /// Who sends what, in the file's order.
    pub traffic: Vec<Traffic>,
    /// Every key that applies, with its value, in the order of the documentation.
    pub(crate) settings: Vec<Setting>,
}

impl Run {
    /// The host whose switch port results observe: the first aggregator, else the first receiver.
    pub fn observed_host(&self) -> HostId {
        let is_incast = |traffic: &&Traffic| traffic.measured() == Measured::Incasts;
        let incast = self.traffic.iter().find(is_incast);
        let observed = incast.or(self.traffic.first());
        observed.map_or(0, |traffic| traffic.generator().receiver())
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
