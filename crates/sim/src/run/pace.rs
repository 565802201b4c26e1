// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Simulates long spans in steps, so that an interrupt ends a run at once, however long it is. Steps change no result.

use super::Progress;
use crate::simulation::Simulation;
use onramp_units::{Sim, Span, Time};

/// Packet-hops of a step, at most about this: some 10 ms.
const HOPS: u64 = 100_000;
const SHORTEST: Span = Span::from_ns(100);
const LONGEST: Span = Span::from_s(1);

/// Length of the next step.
pub(super) struct Pace {
    step: Span,
    /// End of the traffic, to which progress refers.
    end: Time<Sim>,
}

impl Pace {
    /// For a run whose traffic ends at `end`.
    pub fn new(end: Time<Sim>) -> Pace {
        Pace { step: LONGEST, end }
    }

    /// Simulates from `from`, up to which it has been simulated, to `to`. Between its steps it calls `progress`. Returns
    /// whether that did not interrupt it.
    pub fn run_until(
        &mut self,
        simulation: &mut Simulation,
        (from, to): (Time<Sim>, Time<Sim>),
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> bool {
        let mut now = from;
        let mut before = simulation.counters().packet_hops;
        loop {
            now = to.min(now + self.step);
            simulation.run_until(now);
            let report = progress_of(simulation, now, self.end);
            self.adapt(report.packet_hops - before);
            if now >= to {
                return true;
            }
            if !progress(report) {
                return false;
            }
            before = report.packet_hops;
        }
    }

    fn adapt(&mut self, hops: u64) {
        if hops > HOPS {
            self.step = (self.step / 2).max(SHORTEST);
        } else if hops < HOPS / 4 {
            self.step = (self.step * 2).min(LONGEST);
        }
    }
}

/// Progress of a run that has been simulated up to `now`, and whose traffic ends at `end`.
pub(super) fn progress_of(simulation: &Simulation, now: Time<Sim>, end: Time<Sim>) -> Progress {
    let done = (now - Time::ZERO).as_s_f64() / (end - Time::ZERO).as_s_f64();
    Progress {
        now,
        done: done.min(1.0),
        packet_hops: simulation.counters().packet_hops,
    }
}
