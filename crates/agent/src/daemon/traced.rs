// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The daemon looks at its flows for the trace, and with `--observe` for what would be held to each peer.
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use onramp_clock::stamps::now_mono_ns;
use onramp_law::abi::onr_clock_params;
use onramp_law::FleetLine;
use onramp_trace::Device;
use onramp_units::Time;

use super::Daemon;
use crate::config::{Addresses, Config, Threshold};
use crate::devices::{self, Link};
use crate::trace::{head, File, Names, Now, Trace, MOST_SEEN};

/// A trace if one is wanted, or the daemon observes.
pub(super) fn begin(config: &Config, clock: &str) -> Result<Option<Trace>> {
    if config.trace.path.is_none() && !config.observe {
        return Ok(None);
    }
    let device = |name: &String| Device {
        name: name.clone(),
        line_rate_bits_per_s: config
            .line_rate(&Link::of(name))
            .map(|rate| rate.bits_per_s()),
    };
    let devices = devices::present(&config.devices)
        .iter()
        .map(device)
        .collect();
    let head = head(&config.trace, config.observe, clock, devices);
    let begin = |path: &std::path::PathBuf| File::begin(path, &config.trace, &head);
    let file = config.trace.path.as_ref().map(begin).transpose()?;
    let names = match config.trace.addresses {
        Addresses::Hashed => Names::Hashed(config.keys()?.signing()),
        Addresses::Plain => Names::Plain,
    };
    Ok(Some(Trace::new(&config.trace, names, file)))
}

impl Daemon {
    /// Time between two looks.
    pub(super) fn trace_period(&self) -> Duration {
        Duration::from_nanos(self.config.trace.look.as_ns().max(1) as u64)
    }

    /// One look.
    pub(super) fn trace(&mut self) {
        let Some(mut trace) = self.trace.take() else {
            return;
        };
        let looked = self.datapath.look(trace.next, MOST_SEEN);
        let outcome = looked.map(|(seen, next, all)| {
            trace.next = next;
            self.with_now(|now| trace.look(&seen, all == seen.len(), now));
        });
        self.trace_trouble.note(outcome);
        self.trace = Some(trace);
    }

    /// Writes what is left.
    pub(super) fn end_trace(&mut self) {
        if let Some(trace) = self.trace.take() {
            self.with_now(|now| trace.end(now));
        }
    }

    fn with_now<T>(&self, run: impl FnOnce(&Now<'_>) -> T) -> T {
        let mono_ns = now_mono_ns();
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let threshold_ns = |peer: IpAddr| match self.config.law.threshold {
            Threshold::Fixed(span) => Some(span.as_ns()),
            Threshold::Auto => Some(self.thresholds.get(&peer)?.threshold_ns),
        };
        run(&Now {
            mono_ns,
            offset_ns: offset_ns(&self.params, mono_ns),
            unix_s: unix.map_or(0, |since| since.as_secs()),
            threshold_ns: &threshold_ns,
        })
    }
}

/// Fleet time minus CLOCK_MONOTONIC.
fn offset_ns(params: &onr_clock_params, mono_ns: i64) -> i64 {
    let reference = Time::from_ticks(params.reference_mono_ns);
    let drift = params.drift_q32 as f64 / 2f64.powi(32);
    FleetLine::new(reference, params.offset_ns, drift).offset_at(Time::from_ticks(mono_ns))
}
