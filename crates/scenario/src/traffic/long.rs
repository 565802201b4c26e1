// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Flows that always have data to send between `start` and `stop`.

use super::plan::{Arrival, Plan, Work};
use super::{Generator, Measured, Op, TrafficKind};
use crate::experiment::Experiment;
use crate::hosts::HostId;
use crate::key::{both, Scope, HOUR};
use crate::types::Run;
use crate::values::{OneHost, Receivers, Sources};
use onramp_keys::Absent::{By, Is};
use onramp_keys::{section, Section};
use onramp_units::{Span, Time};
use std::sync::Arc;

pub(super) static KIND: TrafficKind = TrafficKind {
    name: "long",
    about: "flows that never run out of data",
    keys: Long::KEYS,
    measured: Measured::Goodput,
    in_rack: true,
    read: |entry| {
        let long: Long = entry.read()?;
        entry.refuse_itself(long.from, Receivers::Host(long.to.0));
        entry.refuse_after_end(Long::start, long.start);
        entry.refuse_beyond_end(Long::stop, long.stop);
        if entry.is_set(Long::stop) {
            entry.refuse_not_below(Long::start, long.start, Long::stop, long.stop);
        }
        Some(Arc::new(long))
    },
};

section! {
    /// An entry.
    #[derive(Debug)]
    struct Long in "traffic" with Scope {
        to: OneHost = Is("0"), both(),
            "The receiver.";
        from: Sources = Is("others"), both(),
            "The sender. A range or `others` (all hosts but the receiver): flows use these hosts in round robin, the lowest number first.";
        op: Op = Is("write"), both().later().rack_only(&["write"]),
            "As for incast.";
        flows: u32 [0, 10_000] = Is("1"), both(),
            "Number of flows.";
        start: Span [Span::ZERO, HOUR] = Is("0 s"), both(),
            "Start of the flows. Must be below `duration`.";
        stop: Span [Span::ZERO, HOUR] = By("`duration`", |entry| entry.text(Experiment::duration)), both(),
            "End of the flows. Must be after `start` and at most `duration`.";
    }
}

impl Generator for Long {
    fn generate(&self, plan: &mut Plan<'_>) {
        let sources = match self.from {
            Sources::Host(host) => vec![host],
            Sources::Range(..) | Sources::Others => self.from.servers(plan.run(), self.to.0),
        };
        let stop = Work::Until(Time::ZERO + self.stop);
        for flow in 0..self.flows {
            let src = sources[flow as usize % sources.len()];
            plan.add(Arrival {
                slot: flow / sources.len() as u32,
                ..plan.flow(self.start, src, self.to.0, stop)
            });
        }
    }

    fn expected_flows(&self, _run: &Run) -> f64 {
        f64::from(self.flows)
    }

    fn receiver(&self) -> HostId {
        self.to.0
    }

    fn op(&self) -> Op {
        self.op
    }

    fn connections(&self, _run: &Run) -> u64 {
        u64::from(self.flows)
    }
}
