// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A kind of traffic: the shuffle of a MapReduce job, in which each mapper sends a block to each reducer.

use onramp_keys::Absent::{Is, Required};
use onramp_keys::{section, Section};
use onramp_scenario::{
    simulated, Arrival, Generator, HostId, Measured, Plan, Purpose, Receivers, Run, Scope,
    TrafficKind, Work,
};
use onramp_units::{Bytes, Span};
use std::sync::Arc;

pub static KIND: TrafficKind = TrafficKind::new(
    "shuffle",
    "each mapper sends a block to each reducer, again and again",
    Shuffle::KEYS,
    |entry| Some(Arc::new(entry.read::<Shuffle>()?)),
)
.measured(Measured::Steps);

section! {
    #[derive(Debug)]
    struct Shuffle in "traffic" with Scope {
        mappers: Receivers = Required, simulated(), "Hosts that send.";
        reducers: Receivers = Required, simulated(), "Hosts that receive.";
        block: Bytes [Bytes::new(1), Bytes::new(1_000_000_000)] = Required, simulated(),
            "What a mapper sends to a reducer in a step.";
        interval: Span [Span::from_us(1), Span::from_s(3600)] = Required, simulated(),
            "Time between the starts of two steps.";
        spread: Span [Span::ZERO, Span::from_s(1)] = Is("0 s"), simulated(),
            "Upper bound of a random time by which a mapper starts later than its step.";
    }
}

impl Shuffle {
    fn steps(&self, run: &Run) -> i64 {
        (run.duration.as_ps() + self.interval.as_ps() - 1) / self.interval.as_ps()
    }
}

impl Generator for Shuffle {
    fn generate(&self, plan: &mut Plan<'_>) {
        let run = plan.run();
        for mapper in self.mappers.hosts(run) {
            let mut random = plan.random(mapper, Purpose::Jitter);
            for step in 0..self.steps(run) {
                let late = self.spread.as_ps() as f64 * random.uniform();
                let at = self.interval * step + Span::from_ps(late as i64);
                for reducer in self.reducers.hosts(run) {
                    if reducer != mapper {
                        plan.add(Arrival {
                            request: Some(step as u64),
                            ..plan.flow(at, mapper, reducer, Work::Send(self.block))
                        });
                    }
                }
            }
        }
    }

    fn expected_flows(&self, run: &Run) -> f64 {
        let pairs = self.mappers.hosts(run).len() * self.reducers.hosts(run).len();
        self.steps(run) as f64 * pairs as f64
    }

    fn receiver(&self) -> HostId {
        self.reducers.first()
    }
}
