// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Simulates in steps so short that an interrupt ends a run at once, however long it is. Steps change no result.

use super::Progress;
use crate::simulation::Simulation;
use onramp_units::{Sim, Span, Time};

/// Packet-hops in a step, at most about this: some 10 ms.
const HOPS: u64 = 100_000;
const FIRST: Span = Span::from_us(10);
const SHORTEST: Span = Span::from_ns(100);
const LONGEST: Span = Span::from_s(1);

/// Length of the next step.
pub(super) struct Pace {
    step: Span,
    /// Of the traffic: what progress refers to.
    end: Time<Sim>,
}

impl Pace {
    /// For a run whose traffic ends at `end`.
    pub fn new(end: Time<Sim>) -> Pace {
        Pace { step: FIRST, end }
    }

    /// Simulates from `from`, where the simulation is, up to `to`. Returns whether it was not interrupted: `progress` is
    /// called after each step.
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
            let packet_hops = simulation.counters().packet_hops;
            let done = (now - Time::ZERO).as_s_f64() / (self.end - Time::ZERO).as_s_f64();
            let is_wanted = progress(Progress {
                now,
                done: done.min(1.0),
                packet_hops,
            });
            if !is_wanted || now == to {
                return is_wanted;
            }
            self.adapt(packet_hops - before);
            before = packet_hops;
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
