// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The hosts' clocks: how each is wrong, as the simulator's of the same scenario and seed are, and how
//! far apart the daemons' fleet times are while traffic runs. All hosts share a kernel, so the truth is
//! known at every instant.

use super::dilation::Dilation;
use super::load::now_ns;
use onramp_scenario::{ClockSync, Run};
use onramp_sync::synthetic::{oscillators, FleetErrors, Oscillator, Spread};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two looks at all clocks.
const PERIOD: Duration = Duration::from_secs(1);
/// Between two looks whether to stop.
const PAUSE: Duration = Duration::from_millis(100);

/// The clocks of all hosts, in the rack's time.
pub fn wrong(run: &Run) -> Vec<Oscillator> {
    let dilation = Dilation::new(run.time_dilation);
    let spread = Spread {
        offset: run.clock.offset,
        drift: run.clock.drift.get(),
        wander: run.clock.wander.get(),
    };
    let mut clocks = oscillators(&spread, run.seed, run.network.topology.hosts() as usize);
    for clock in &mut clocks {
        clock.offset = dilation.slow(clock.offset);
        clock.period = dilation.slow(clock.period);
    }
    clocks
}

/// Compares the fleet times of all hosts, once a second, until `stop`. Times are the rack's. `fleet_times` has those at a
/// time of CLOCK_MONOTONIC in ns, with their standard deviations; none: the hosts run no daemons.
pub fn watch(
    run: &Run,
    fleet_times: Option<impl Fn(i64) -> Vec<(i64, f64)>>,
    stop: &AtomicBool,
) -> FleetErrors {
    let mut all = FleetErrors::default();
    let Some(fleet_times) = fleet_times.filter(|_| run.clock.sync == ClockSync::Huygens) else {
        return all;
    };
    let mut waited = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
        waited += PAUSE;
        if waited >= PERIOD {
            waited = Duration::ZERO;
            all.extend(FleetErrors::of(&fleet_times(now_ns())));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use onramp_clock::window::{INTERVALS, WINDOW_NS};
    use onramp_scenario::{RACK_CLOCK_WINDOW, RACK_PROBE_INTERVAL};

    #[test]
    fn scenarios_know_what_daemons_do() {
        assert_eq!(RACK_CLOCK_WINDOW.as_ns(), WINDOW_NS);
        assert_eq!(RACK_PROBE_INTERVAL, INTERVALS);
    }
}
