// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a host sends to its leader once a window, and what the leader answers.

use std::net::SocketAddr;

use onramp_sync::correction::Correction;

use super::{Central, Engine, OLD_NS};
use crate::{
    machine::Machine,
    wire::{Body, Report, State, Verdict, MOST_EDGES},
};

/// A new coordinator continues the last fleet time only if a verdict is not older than this.
const FORGOTTEN_NS: i64 = 60_000_000_000;

impl Engine {
    /// Sends the reports of the last window to the leader. A host without edges reports too, because a verdict answers
    /// a report.
    pub(super) fn report(&mut self, machine: &mut dyn Machine, now: i64) {
        let Some(leader) = self.roster.leader else {
            return;
        };
        let edges = self.last_edges.clone();
        for part in 0..edges.len().div_ceil(MOST_EDGES).max(1) {
            let some = edges.iter().skip(part * MOST_EDGES).take(MOST_EDGES);
            let report = Report {
                epoch: self.epoch,
                follows: self.follows(now),
                edges: some.copied().collect(),
            };
            self.say(machine, leader, Body::Report(report));
        }
    }

    /// The fleet time that this host follows, with its reference at now; none if it is too old.
    fn follows(&self, now: i64) -> Option<Correction> {
        let course = self.published.course.as_ref()?;
        let own = self.own.read(now);
        let correction = course.at(own);
        (now - course.heard_mono_ns < FORGOTTEN_NS).then_some(Correction {
            reference: own,
            offset_ns: correction.offset_at(own),
            drift: correction.drift_at(own),
            ..*correction
        })
    }

    /// Takes in a member's report. The fleet time that it follows must be the present one by this host's own: somebody
    /// may have recorded the report of a host that is silent now.
    pub(super) fn take_report(&mut self, from: SocketAddr, mut report: Report, now: i64) {
        let own = self.own.read(now);
        let course = self.published.course.as_ref();
        let present = course.map(|course| course.at(own).fleet(own));
        let is_present = |follows: &Correction| {
            let sent = follows.fleet(follows.reference);
            present.is_none_or(|present| (present - sent).as_ns().unsigned_abs() < OLD_NS as u64)
        };
        if !report.follows.as_ref().is_none_or(is_present) {
            self.published.counters.stale += 1;
            report.follows = None;
        }
        self.published.counters.reports_taken += 1;
        if let Some(central) = &mut self.central {
            central.take(from, report);
        }
    }

    /// Sends the verdicts of a central step that has ended.
    pub(super) fn tell_verdicts(&mut self, machine: &mut dyn Machine, now: i64) {
        let Some(verdicts) = self.central.as_mut().and_then(Central::finished) else {
            return;
        };
        let is_excluded = |(_, verdict): &&(_, Verdict)| verdict.state == State::Contradictory;
        let excluded = verdicts.iter().filter(is_excluded);
        self.published.contradictory = excluded.map(|(host, _)| *host).collect();
        let wall = self.wall(now);
        for (to, verdict) in verdicts {
            let answers = self.members.get(&to).map_or(0, |m| m.reports.newest());
            let verdict = Verdict {
                answers,
                wall,
                ..verdict
            };
            self.say(machine, to, Body::Verdict(verdict));
        }
    }
}
