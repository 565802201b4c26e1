//! Flows that wait for others: answers for requests, steps for the steps before.
//!
//! All flows of a group arrive at one host, from which those start that wait for the group. So nobody
//! needs to know what happens elsewhere.

use crate::domain::Domain;
use crate::events::{Rank, What};
use crate::packet::NONE;
use onramp_scenario::Arrival;
use onramp_units::{Sim, Span, Time};
use std::collections::BTreeMap;

/// Which flows of a plan wait for which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chains {
    /// Flows of the plan from this one on wait.
    pub(crate) first: usize,
    /// By flow: the group that it joins, or `NONE`.
    joins: Vec<u32>,
    /// By group: its flows; and those that wait for it, with their delays.
    sizes: Vec<u32>,
    waiting: Vec<Vec<(u32, Span)>>,
    /// What would start later does not start.
    end: Time<Sim>,
}

/// How far chains are.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// By group: flows that have arrived.
    arrived: Vec<u32>,
    /// When flows that had waited started.
    pub started: BTreeMap<u32, Time<Sim>>,
}

impl Chains {
    /// Those of `arrivals`, in which what waits comes last; `None`: nothing waits.
    pub fn of(arrivals: &[Arrival], end: Time<Sim>) -> Option<Chains> {
        let first = arrivals
            .iter()
            .position(|arrival| arrival.after.is_some())?;
        let groups = arrivals.iter().filter_map(|arrival| arrival.joins);
        let count = groups.max().map_or(0, |last| last as usize + 1);
        let mut chains = Chains {
            first,
            joins: vec![NONE; arrivals.len()],
            sizes: vec![0; count],
            waiting: vec![Vec::new(); count],
            end,
        };
        for (flow, arrival) in arrivals.iter().enumerate() {
            if let Some(group) = arrival.joins {
                chains.joins[flow] = group;
                chains.sizes[group as usize] += 1;
            }
            if let Some(after) = arrival.after {
                chains.waiting[after.group as usize].push((flow as u32, after.delay));
            }
        }
        Some(chains)
    }
}

impl Domain {
    /// All of flow `plan` is at its receiver: what has waited for that and nothing else starts.
    pub(crate) fn flow_arrived(&mut self, plan: u32) {
        let Some(chains) = &self.config.chains else {
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
        for &(flow, delay) in &chains.waiting[group] {
            let start = self.now + delay;
            if start < chains.end {
                self.chains.started.insert(flow, start);
                let what = What::FlowStart { flow };
                self.events.schedule(start, Rank::Flow(flow), what);
            }
        }
    }

    /// Whether flow `plan` had to wait for others.
    pub(crate) fn has_waited(&self, plan: u32) -> bool {
        plan as usize >= self.in_time()
    }

    /// Flows of the plan that wait for nothing but their time.
    pub(crate) fn in_time(&self) -> usize {
        let chains = self.config.chains.as_ref();
        chains.map_or(self.network.flows.len(), |chains| chains.first)
    }
}
