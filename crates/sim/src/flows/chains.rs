// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Flows that wait for others: answers for requests, steps for the steps before.
//!
//! All flows of a group arrive at one host, from which those start that wait for the group. So nobody
//! needs to know what happens elsewhere.

use crate::flows::streams::Streams;
use crate::net::packet::NONE;
use onramp_scenario::Arrival;
use onramp_units::{Sim, Span, Time};

/// Which flows of a plan wait for which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chains {
    /// Flows of the plan from this one on wait.
    pub(crate) first: usize,
    /// By flow: the group that it joins, or `NONE`.
    pub(super) joins: Vec<u32>,
    /// By group: its flows; and where the flows that wait for it end among `waiting`.
    pub(super) sizes: Vec<u32>,
    ends: Vec<u32>,
    /// Flows that wait, by the group that they wait for.
    waiting: Vec<u32>,
    /// By flow from `first` on: how long it waits longer; whether it goes on with the request, or the step, of
    /// what it waits for.
    pub(super) delays: Vec<Span>,
    pub(super) goes_on: Vec<bool>,
    /// Nothing begins later. What has begun goes on.
    pub(super) end: Time<Sim>,
    pub(crate) streams: Streams,
}

impl Chains {
    /// Those of `arrivals`, in which what waits comes last; `None`: nothing waits.
    pub fn of(arrivals: &[Arrival], end: Time<Sim>) -> Option<Chains> {
        let first = arrivals
            .iter()
            .position(|arrival| arrival.after.is_some())?;
        let groups = arrivals.iter().filter_map(|arrival| arrival.joins);
        let count = groups.max().map_or(0, |last| last as usize + 1);
        let mut sizes = vec![0; count];
        for group in arrivals.iter().filter_map(|arrival| arrival.joins) {
            sizes[group as usize] += 1;
        }
        let of = |arrival: &Arrival| (arrival.traffic, arrival.request);
        let mut groups_of = vec![None; count];
        for arrival in arrivals {
            if let Some(group) = arrival.joins {
                groups_of[group as usize] = Some(of(arrival));
            }
        }
        let goes_on = |arrival: &Arrival| {
            let group = arrival.after?.group;
            Some(groups_of[group as usize] == Some(of(arrival)))
        };
        let (ends, waiting) = by_group(arrivals, count);
        let delays = arrivals[first..].iter().filter_map(|arrival| arrival.after);
        Some(Chains {
            first,
            joins: arrivals.iter().map(|a| a.joins.unwrap_or(NONE)).collect(),
            sizes,
            ends,
            waiting,
            delays: delays.map(|after| after.delay).collect(),
            goes_on: arrivals[first..].iter().filter_map(goes_on).collect(),
            end,
            streams: Streams::of(arrivals),
        })
    }

    /// Flows that wait for `group`.
    pub(super) fn waiting_for(&self, group: usize) -> &[u32] {
        let begin = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.waiting[begin as usize..self.ends[group] as usize]
    }
}

/// Flows that wait for one of `count` groups, sorted by it; and where each group's end.
fn by_group(arrivals: &[Arrival], count: usize) -> (Vec<u32>, Vec<u32>) {
    let waits = || {
        let flows = (0..).zip(arrivals);
        flows.filter_map(|(flow, arrival)| Some((arrival.after?.group as usize, flow)))
    };
    // Counting sort: first where each group begins, which each flow that is put there moves.
    let mut ends = vec![0; count + 1];
    for (group, _) in waits() {
        ends[group + 1] += 1;
    }
    for group in 1..=count {
        ends[group] += ends[group - 1];
    }
    let mut waiting = vec![NONE; waits().count()];
    for (group, flow) in waits() {
        waiting[ends[group] as usize] = flow;
        ends[group] += 1;
    }
    (ends, waiting)
}
