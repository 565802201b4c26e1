// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The daemon renews the lease of the data path's clock, if the clock is good enough for the thresholds.
use anyhow::Result;
use onramp_clock::stamps::now_mono_ns;
use onramp_law::abi::onr_clock_params;
use onramp_units::Span;

use super::Daemon;
use crate::config::Configuration;
use crate::floor::{Floors, Limit, Of};
use crate::source::Source;

impl Daemon {
    /// Gives the data path the clock as it is now. The rules of classes follow with the next look.
    pub(super) fn renew(&mut self) -> Result<()> {
        self.params = params(&mut self.clock, &self.config, &mut self.floors);
        self.health.thresholds_below_error = self.floors.list();
        self.health.times_below_error = self.floors.times();
        self.datapath.set_clock(&self.params)
    }
}

/// The parameters from now on. Their lease has ended without fleet time, and while the clock is not good enough for
/// `law.threshold`.
pub(super) fn params(
    clock: &mut Source,
    config: &Configuration,
    floors: &mut Floors,
) -> onr_clock_params {
    let mut params = clock.renew();
    let now = now_mono_ns();
    if params.lease_expires_mono_ns <= now {
        floors.forget();
        return params;
    }
    let sigma = Span::from_ns(params.sigma_ns);
    let error = Span::from_ns(clock.delay_error_ns(params.sigma_ns));
    floors.compare(&Limit::all(config), error, sigma, config.clock.lease, now);
    if floors.is_below(&Of::Law) {
        params.lease_expires_mono_ns = 0;
    }
    params
}
