//! Flows that wait for others: answers for requests, steps for the steps before.
//!
//! All flows of a group arrive at one host, from which those start that wait for the group. So nobody
//! needs to know what happens elsewhere.

use crate::domain::Domain;
use crate::engine::events::{Rank, What};
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
    joins: Vec<u32>,
    /// By group: its flows; and where the flows that wait for it end among `waiting`.
    sizes: Vec<u32>,
    ends: Vec<u32>,
    /// Flows that wait, by the group that they wait for.
    waiting: Vec<u32>,
    /// By flow from `first` on: how long it waits longer; whether it goes on with the request, or the step, of
    /// what it waits for.
    delays: Vec<Span>,
    goes_on: Vec<bool>,
    /// Nothing begins later. What has begun goes on.
    end: Time<Sim>,
    pub(crate) streams: Streams,
}

/// How far chains are.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// By group: flows that have arrived.
    arrived: Vec<u32>,
    /// Flows that had waited and have started.
    pub started: usize,
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
    fn waiting_for(&self, group: usize) -> &[u32] {
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

impl Domain {
    /// All of flow `plan` is at its receiver: what has waited for that and nothing else starts.
    pub(crate) fn flow_arrived(&mut self, plan: u32) {
        let network = self.network.clone();
        let Some(chains) = &network.chains else {
            return;
        };
        let group = chains.joins[plan as usize];
        if group == NONE {
            return;
        }
        let group = group as usize;
        let arrived = &mut self.chains.arrived;
        arrived.resize(chains.sizes.len(), 0);
        arrived[group] += 1;
        if arrived[group] < chains.sizes[group] {
            return;
        }
        for &flow in chains.waiting_for(group) {
            let waits = flow as usize - chains.first;
            let start = self.now + chains.delays[waits];
            if start < chains.end || chains.goes_on[waits] {
                self.start_waiting(chains, flow, start);
            }
        }
    }

    /// Flow `flow` has waited; it starts at `start`, or with the one that goes before it on its connection if
    /// that is later. If that one was not to begin any more, it does: its step has begun elsewhere.
    fn start_waiting(&mut self, chains: &Chains, flow: u32, mut start: Time<Sim>) {
        if let Some(before) = chains.streams.before(flow) {
            if self.network.started(before as usize).is_none() {
                self.start_waiting(chains, before, start);
            }
            let started = self.network.started(before as usize);
            start = started.map_or(start, |started| start.max(started));
        }
        self.chains.started += 1;
        self.network.outcomes.started(flow, start);
        let what = What::FlowStart { flow };
        self.events.schedule(start, Rank::Flow(flow), what);
    }

    /// Whether flow `plan` had to wait for others.
    pub(crate) fn has_waited(&self, plan: u32) -> bool {
        plan as usize >= self.in_time()
    }

    /// Flows of the plan that wait for nothing but their time.
    pub(crate) fn in_time(&self) -> usize {
        let chains = self.network.chains.as_ref();
        chains.map_or(self.network.flows.len(), |chains| chains.first)
    }
}
