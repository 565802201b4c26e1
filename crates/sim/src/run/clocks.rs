// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of synchronised clocks.

use super::observe::Observer;
use crate::host::site::huygens::ClockWindow as Window;
use onramp_results::{ClockCounters, ClockWindow, Summary};
use onramp_sync::synthetic::FleetErrors;
use onramp_units::Time;

/// Errors of synchronised clocks, in the windows that ended during the measured traffic.
pub(super) fn clock_counters(observer: &Observer) -> ClockCounters {
    let ended = observer.simulation.clock_windows();
    let counts = |w: &&Window| w.end > observer.warmup && w.end <= observer.end;
    let windows: Vec<&Window> = ended.iter().filter(counts).collect();
    let mut all = FleetErrors::default();
    windows
        .iter()
        .for_each(|window| all.extend(window.errors.clone()));
    ClockCounters {
        within_2_sigma: all.within_2_sigma(),
        most_sigmas: all.most_sigmas(),
        errors_ns: all.ns,
        windows: windows.into_iter().map(clock_window).collect(),
    }
}

fn clock_window(window: &Window) -> ClockWindow {
    let magnitudes = window.errors.ns.iter().map(|error| error.abs());
    ClockWindow {
        end_ms: (window.end - Time::ZERO).as_s_f64() * 1e3,
        error_ns: Summary::of(magnitudes.collect()),
        within_2_sigma: window.errors.within_2_sigma(),
        most_sigmas: window.errors.most_sigmas(),
        edge_sigma_ns: window.edge_sigma_ns,
        lost_hosts: window.lost,
        pairs: window.pairs,
        pure: window.pure,
    }
}
