//! Clock sources of the data path. A source fills the parameters and grants a lease; when nobody
//! renews it, the kernel side stops holding. Does not measure anything.
use std::sync::Arc;

use clap::ValueEnum;
use onramp_clock::{stamps::now_mono_ns, status::FleetClock};
use onramp_law::{abi::onr_clock_params, FleetLine};
use onramp_sync::synthetic::Oscillator;
use onramp_units::Time;

use crate::fleet::Part;

/// Renewals in one lease: this many may be missed less one.
const RENEWALS_PER_LEASE: i64 = 5;
/// The data path follows Huygens' steering this closely.
const STEERING_NS: i64 = 250_000_000;

/// `--clock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Right for hosts on one kernel only: fleet time is CLOCK_MONOTONIC
    Local,
    /// Synchronised with the fleet's other hosts, in software
    Huygens,
}

/// Where fleet time comes from.
pub enum Source {
    /// The clock of a fleet that lives on one kernel, good for a lease (ns) after each renewal; right
    /// but in tests.
    Local {
        lease_ns: i64,
        oscillator: Oscillator,
    },
    /// What this host's part in the synchronisation has found.
    Huygens { part: Arc<Part>, lease_ns: i64 },
}

impl Source {
    /// For status.
    pub fn name(&self) -> &'static str {
        match self {
            Source::Local { .. } => "local",
            Source::Huygens { .. } => "huygens",
        }
    }

    /// The synchronisation, if there is one.
    pub fn part(&self) -> Option<&Part> {
        match self {
            Source::Local { .. } => None,
            Source::Huygens { part, .. } => Some(part),
        }
    }

    /// Time between renewals, ns.
    pub fn period_ns(&self) -> i64 {
        match self {
            Source::Local { lease_ns, .. } => lease_ns / RENEWALS_PER_LEASE,
            Source::Huygens { lease_ns, .. } => (lease_ns / RENEWALS_PER_LEASE).min(STEERING_NS),
        }
    }

    /// The parameters from now on. Without fleet time their lease is over.
    pub fn renew(&self) -> onr_clock_params {
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
                    valid_until_mono_ns: now + lease_ns,
                })
            }
            Source::Huygens { part, .. } => {
                part.clock().map_or(onr_clock_params::default(), params)
            }
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
