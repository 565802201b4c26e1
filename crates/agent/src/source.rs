//! Clock sources of the data path. A source gives the clock parameters and a lease. When the lease ends
//! without renewal, the kernel programs hold nothing. Does not measure anything.
mod system;

use std::sync::Arc;

use onramp_clock::{stamps::now_mono_ns, status::FleetClock};
use onramp_law::{abi::onr_clock_params, FleetLine};
use onramp_sync::synthetic::Oscillator;
use onramp_units::Time;

use crate::fleet::Part;
pub use system::System;

/// Renewals per lease; one less may be missed.
const RENEWALS_PER_LEASE: i64 = 5;
/// Longest time between two renewals with Huygens, whose clock is steered continuously, and with the system clock, which
/// may be stepped, ns.
const STEERING_NS: i64 = 250_000_000;

/// `clock.source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CLOCK_MONOTONIC; correct only if all hosts share one kernel
    Local,
    /// Synchronise with the other hosts of the fleet, in software
    Huygens,
    /// CLOCK_REALTIME, which another program keeps right within a bound
    System,
}

/// The source of fleet time.
pub enum Source {
    /// CLOCK_MONOTONIC, valid for `lease_ns` after each renewal. `oscillator` adds an error in tests.
    Local {
        lease_ns: i64,
        oscillator: Oscillator,
    },
    /// The fleet time of this host's synchronisation.
    Huygens { part: Arc<Part>, lease_ns: i64 },
    /// The system clock.
    System(System),
}

impl Source {
    /// The name in the status.
    pub fn name(&self) -> &'static str {
        match self {
            Source::Local { .. } => "local",
            Source::Huygens { .. } => "huygens",
            Source::System(_) => "system",
        }
    }

    /// The synchronisation, if there is one.
    pub fn part(&self) -> Option<&Part> {
        match self {
            Source::Local { .. } | Source::System(_) => None,
            Source::Huygens { part, .. } => Some(part),
        }
    }

    /// The same, for a thread that outlives the borrow.
    pub fn shared_part(&self) -> Option<Arc<Part>> {
        match self {
            Source::Local { .. } | Source::System(_) => None,
            Source::Huygens { part, .. } => Some(part.clone()),
        }
    }

    /// Times that the system clock was doubted.
    pub fn doubts(&self) -> u64 {
        match self {
            Source::System(system) => system.doubts(),
            Source::Local { .. } | Source::Huygens { .. } => 0,
        }
    }

    /// Why it is doubted now.
    pub fn doubt(&self) -> Option<String> {
        match self {
            Source::System(system) => system.doubt(),
            Source::Local { .. } | Source::Huygens { .. } => None,
        }
    }

    /// Time between renewals, ns.
    pub fn period_ns(&self) -> i64 {
        match self {
            Source::Local { lease_ns, .. } => lease_ns / RENEWALS_PER_LEASE,
            Source::Huygens { lease_ns, .. } => (lease_ns / RENEWALS_PER_LEASE).min(STEERING_NS),
            Source::System(system) => (system.lease_ns() / RENEWALS_PER_LEASE).min(STEERING_NS),
        }
    }

    /// The parameters from now on. Without fleet time, their lease has ended.
    pub fn renew(&mut self) -> onr_clock_params {
        match self {
            Source::Local {
                lease_ns,
                oscillator,
            } => {
                let now = now_mono_ns();
                params(FleetClock {
                    reference_mono_ns: now,
                    offset_ns: oscillator.read(now) - now,
                    drift: oscillator.drift_at(now),
                    sigma_ns: 0,
                    heard_mono_ns: now,
                    valid_until_mono_ns: now + *lease_ns,
                })
            }
            Source::Huygens { part, .. } => {
                part.clock().map_or(onr_clock_params::default(), params)
            }
            Source::System(system) => system.clock().map_or(onr_clock_params::default(), params),
        }
    }
}

fn params(clock: FleetClock) -> onr_clock_params {
    let reference = Time::from_ticks(clock.reference_mono_ns);
    let line = FleetLine::new(reference, clock.offset_ns, clock.drift);
    onr_clock_params {
        offset_ns: line.offset_ns,
        drift_q32: line.drift_q32(),
        reference_mono_ns: clock.reference_mono_ns,
        sigma_ns: clock.sigma_ns,
        lease_expires_mono_ns: clock.valid_until_mono_ns,
    }
}
