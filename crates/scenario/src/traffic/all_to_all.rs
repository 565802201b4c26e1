// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Steps of a collective operation. A host begins its next step `interval` after all data of this step has arrived
//! there. The completion time of a step runs from the start of its first flow to its last byte.

use super::plan::{After, Arrival, Plan, Work};
use super::{Generator, Measured, TrafficKind};
use crate::hosts::HostId;
use crate::key::{both, Scope, HOUR};
use crate::types::Run;
use crate::values::Receivers;
use onramp_keys::Absent::{Is, Required, Without};
use onramp_keys::{choice, section, Section, ANY_NUMBER};
use onramp_units::{Bytes, Span};
use std::sync::Arc;

pub(super) static KIND: TrafficKind = TrafficKind {
    name: "all_to_all",
    about: "the steps of a collective operation, as in training: every host sends to every other host, or all hosts reduce data in a ring",
    keys: AllToAll::KEYS,
    measured: Measured::Steps,
    in_rack: false,
    read: |entry| {
        let all: AllToAll = entry.read()?;
        if let Receivers::Host(host) = all.among {
            entry.refuse(AllToAll::among, format!("host {host}"), "at least two hosts");
        }
        entry.refuse_after_end(AllToAll::start, all.start);
        Some(Arc::new(all))
    },
};

section! {
    /// An entry.
    #[derive(Debug)]
    struct AllToAll in "traffic" with Scope {
        among: Receivers = Is("all"), both(),
            "Hosts that send to each other; at least two.";
        pattern: Pattern = Is("direct"), both(),
            "Communication in a step. `direct`: every host sends `size` bytes to every other host. `ring`: the n hosts reduce `size` bytes each, in 2 (n - 1) rounds. In each round a host sends `size` / n to the next host, as soon as it has received the data of the previous round. It sends all rounds in order on one connection.";
        size: Bytes [Bytes::new(1), Bytes::new(1_000_000_000)] = Required, both(),
            "Size of the data that one host sends to another in a step (`direct`), or of the data that each host reduces (`ring`).";
        interval: Option<Span> [Span::from_ns(1), HOUR] = Without("0 s"), both(),
            "Time from the end of a host's step to the start of its next step.";
        start: Span [Span::ZERO, HOUR] = Is("0 s"), both(),
            "Start of the first step. Must be below `duration`.";
        steps: Option<u64> [1, ANY_NUMBER] = Without("until `duration`"), both(),
            "The traffic stops after this number of steps.";
    }
}

choice! {
    /// The flows of a step.
    enum Pattern {
        /// Every host sends to every other host at once.
        Direct = "direct",
        /// All-reduce: of `n` hosts each passes an n-th of the data to the next one, 2 (n - 1) times.
        Ring = "ring",
    }
}

/// Flows of a round: of its step, after what they wait, and their earliest start.
struct Round {
    step: u64,
    after: Option<Span>,
    at: Span,
}

impl Generator for AllToAll {
    /// Step by step and round by round. A host waits for the data of the previous round.
    fn generate(&self, plan: &mut Plan<'_>) {
        let run = plan.run();
        let hosts = self.among.hosts(run);
        let rounds = self.rounds(hosts.len()) as u64;
        let least = self.least_round(run, &hosts);
        let mut at = self.start;
        for step in 0..self.steps.unwrap_or(u64::MAX) {
            if at >= run.duration {
                break;
            }
            for round in 0..rounds {
                let delay = match round {
                    0 => self.pause(),
                    _ => Span::ZERO,
                };
                let after = (step + round > 0).then_some(delay);
                self.round(&hosts, Round { step, after, at }, plan);
                at += least;
            }
            at += self.pause();
        }
    }

    fn expected_flows(&self, run: &Run) -> f64 {
        let hosts = self.among.hosts(run);
        let steps = run.duration.as_ps() as f64 / self.least_gap_ps(run, &hosts);
        let steps = steps.min(self.steps.unwrap_or(u64::MAX) as f64) + 1.0;
        let flows = self.rounds(hosts.len()) * hosts.len() * self.each_sends_to(hosts.len());
        steps * flows as f64
    }

    fn receiver(&self) -> HostId {
        self.among.first()
    }
}

impl AllToAll {
    /// A round that starts with what waits for the round before.
    fn round(&self, hosts: &[HostId], round: Round, plan: &mut Plan<'_>) {
        let Round { step, after, at } = round;
        let size = Work::Send(self.flow_size(hosts.len()));
        let groups = plan.new_groups(hosts.len() as u32);
        let before = groups.wrapping_sub(hosts.len() as u32);
        for (n, &src) in (0..).zip(hosts) {
            let group = before.wrapping_add(n);
            for away in 1..=self.each_sends_to(hosts.len()) {
                let to = (n as usize + away) % hosts.len();
                plan.add(Arrival {
                    after: after.map(|delay| After { group, delay }),
                    joins: Some(groups + to as u32),
                    request: Some(step),
                    in_order: self.pattern == Pattern::Ring,
                    ..plan.flow(at, src, hosts[to], size)
                });
            }
        }
    }

    /// Time that a host computes between two steps.
    fn pause(&self) -> Span {
        self.interval.unwrap_or(Span::ZERO)
    }

    /// Rounds of a step among `hosts`.
    fn rounds(&self, hosts: usize) -> usize {
        match self.pattern {
            Pattern::Direct => 1,
            Pattern::Ring => 2 * (hosts - 1),
        }
    }

    /// Flows of a host in a round.
    fn each_sends_to(&self, hosts: usize) -> usize {
        match self.pattern {
            Pattern::Direct => hosts - 1,
            Pattern::Ring => 1,
        }
    }

    /// The size of one flow.
    fn flow_size(&self, hosts: usize) -> Bytes {
        match self.pattern {
            Pattern::Direct => self.size,
            Pattern::Ring => Bytes::new(self.size.get().div_ceil(hosts as u64)),
        }
    }

    /// Least time between two rounds.
    fn least_round(&self, run: &Run, hosts: &[HostId]) -> Span {
        let sent = self.flow_size(hosts.len()) * self.each_sends_to(hosts.len()) as u64;
        let round = |&host: &HostId| {
            let link = run.network.link_of(host);
            link.rate.time_to_send(sent) + link.delay
        };
        hosts.iter().map(round).max().unwrap_or(Span::ZERO)
    }

    /// Least time between two steps, in ps.
    fn least_gap_ps(&self, run: &Run, hosts: &[HostId]) -> f64 {
        let rounds = self.rounds(hosts.len()) as i64;
        (self.least_round(run, hosts) * rounds + self.pause()).as_ps() as f64
    }
}
