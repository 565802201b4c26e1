// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the synchronisation's thread publishes for readers on other threads.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use onramp_sync::correction::Correction;
use onramp_units::{Mono, Time};

use crate::{
    members::Members,
    own::Scale,
    status::{Cost, Counters, Edge, FleetClock, Follows, OneWayDelays, System},
};

/// A reader may have read its clock so long before the verdict came whose course it reads, ns. Otherwise the clock went back.
const EARLIER_NS: i64 = 1_000_000_000;

/// State of the thread, for its readers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Published {
    pub state: &'static str,
    pub members: Members,
    pub leader: Option<SocketAddr>,
    pub term: u64,
    pub other_versions: BTreeMap<SocketAddr, u8>,
    pub contradictory: Vec<SocketAddr>,
    pub course: Option<Course>,
    pub scale: Scale,
    pub trust: Trust,
    pub system: System,
    pub edges: Vec<Edge>,
    pub ways: Arc<[OneWayDelays]>,
    pub cost: Cost,
    pub counters: Counters,
}

/// What this host thinks of its fleet time between the verdicts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trust {
    /// Part of the last window for which it lacked a processor, if that was much.
    pub starved: Option<f64>,
    /// By how much probes show fleet time to be wrong at least.
    pub doubt_ns: f64,
    /// No neighbour has confirmed fleet time lately, so it is not given out.
    pub is_withheld: bool,
}

impl Published {
    pub fn new(discipline: bool) -> Published {
        let follows = match discipline {
            true => Follows::Leader,
            false => Follows::Nothing,
        };
        Published {
            state: "starting",
            system: System {
                follows,
                ..System::default()
            },
            ..Published::default()
        }
    }
}

/// Fleet time in use: the clock follows `steered` until it meets `target` at `met_at`, then `target`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    pub steered: Correction,
    pub target: Correction,
    pub met_at: Time<Mono>,
    pub heard_mono_ns: i64,
    pub valid_until_mono_ns: i64,
}

impl Course {
    pub fn at(&self, now: Time<Mono>) -> &Correction {
        if now < self.met_at {
            &self.steered
        } else {
            &self.target
        }
    }

    /// Fleet time as a line over CLOCK_MONOTONIC with its reference at `now`; none after the lease.
    /// `doubt_ns`: by how much it is wrong at least, as probes show.
    pub fn clock(&self, scale: &Scale, doubt_ns: f64, now: i64) -> Option<FleetClock> {
        let own = scale.read(now);
        let correction = self.at(own);
        let fast = scale.drift_at(now);
        let since = self.heard_mono_ns.saturating_sub(EARLIER_NS);
        (since..self.valid_until_mono_ns)
            .contains(&now)
            .then_some(FleetClock {
                reference_mono_ns: now,
                offset_ns: (own.ticks() - now).saturating_add(correction.offset_at(own)),
                drift: fast + correction.drift_at(own) * (1.0 + fast),
                sigma_ns: libm::hypot(correction.sigma_at(own), doubt_ns).round() as i64,
                heard_mono_ns: self.heard_mono_ns,
                valid_until_mono_ns: self.valid_until_mono_ns,
            })
    }
}
