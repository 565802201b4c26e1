// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Clock sources of the data path. A source gives the clock parameters and a lease. When the lease ends
//! without renewal, the kernel programs hold nothing. Does not measure anything.
mod phc;
mod ptp;
mod system;
mod trust;

use std::sync::Arc;

use onramp_clock::{stamps::now_mono_ns, status::FleetClock};
use onramp_law::{abi::onr_clock_params, FleetLine};
use onramp_sync::synthetic::Oscillator;
use onramp_units::Time;

use crate::fleet::Part;
pub use phc::Phc;
pub use ptp::PhcDevice;
pub use system::System;
pub use trust::Trust;

/// Renewals per lease; one less may be missed.
const RENEWALS_PER_LEASE: i64 = 5;
/// Longest time between two renewals with Huygens, whose clock is steered continuously, and with a clock that another program
/// keeps right, which may be stepped or slewed, ns.
const STEERING_NS: i64 = 250_000_000;

/// An estimated clock is off by no more than so many sigma.
const SIGMAS: i64 = 3;
/// A delay has the errors of two clocks.
const CLOCKS: i64 = 2;

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
    /// A PTP hardware clock.
    Phc(Phc),
}

impl Source {
    /// The name in the status.
    pub fn name(&self) -> &'static str {
        match self {
            Source::Local { .. } => "local",
            Source::Huygens { .. } => "huygens",
            Source::System(_) => "system",
            Source::Phc(_) => "phc",
        }
    }

    /// The synchronisation, if there is one.
    pub fn part(&self) -> Option<&Part> {
        match self {
            Source::Huygens { part, .. } => Some(part),
            _ => None,
        }
    }

    /// The same, for a thread that outlives the borrow.
    pub fn shared_part(&self) -> Option<Arc<Part>> {
        match self {
            Source::Huygens { part, .. } => Some(part.clone()),
            _ => None,
        }
    }

    /// What is thought of a clock that another program keeps right.
    fn trust(&self) -> Option<&Trust> {
        match self {
            Source::System(system) => Some(&system.trust),
            Source::Phc(phc) => Some(&phc.trust),
            Source::Local { .. } | Source::Huygens { .. } => None,
        }
    }

    /// The same, to compare it with delays.
    pub fn trust_mut(&mut self) -> Option<&mut Trust> {
        match self {
            Source::System(system) => Some(&mut system.trust),
            Source::Phc(phc) => Some(&mut phc.trust),
            Source::Local { .. } | Source::Huygens { .. } => None,
        }
    }

    /// Times that this clock was doubted.
    pub fn doubts(&self) -> u64 {
        self.trust().map_or(0, Trust::doubts)
    }

    /// Why it is doubted now.
    pub fn doubt(&self) -> Option<String> {
        self.trust()?.doubt()
    }

    /// The most that two clocks like this one make a delay wrong by, if this one has this sigma. That of a clock that another
    /// program keeps right is its bound.
    pub fn delay_error_ns(&self, sigma_ns: i64) -> i64 {
        let most_ns = match self {
            Source::Huygens { .. } => sigma_ns.saturating_mul(SIGMAS),
            Source::Local { .. } | Source::System(_) | Source::Phc(_) => sigma_ns,
        };
        most_ns.saturating_mul(CLOCKS)
    }

    /// Time between renewals, ns.
    pub fn period_ns(&self) -> i64 {
        let (lease_ns, most_ns) = match self {
            Source::Local { lease_ns, .. } => (*lease_ns, i64::MAX),
            Source::Huygens { lease_ns, .. } => (*lease_ns, STEERING_NS),
            Source::System(system) => (system.trust.lease_ns(), STEERING_NS),
            Source::Phc(phc) => (phc.trust.lease_ns(), STEERING_NS),
        };
        (lease_ns / RENEWALS_PER_LEASE).min(most_ns)
    }

    /// The parameters from now on. Without fleet time, their lease has ended.
    pub fn renew(&mut self) -> onr_clock_params {
        let clock = match self {
            Source::Local {
                lease_ns,
                oscillator,
            } => {
                let now = now_mono_ns();
                Some(FleetClock {
                    reference_mono_ns: now,
                    offset_ns: oscillator.read(now) - now,
                    drift: oscillator.drift_at(now),
                    sigma_ns: 0,
                    heard_mono_ns: now,
                    valid_until_mono_ns: now + *lease_ns,
                })
            }
            Source::Huygens { part, .. } => part.clock(),
            Source::System(system) => system.clock(),
            Source::Phc(phc) => phc.clock(),
        };
        clock.map_or(onr_clock_params::default(), params)
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
