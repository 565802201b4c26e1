// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What starts flows: their time, the request of their receiver, or the arrival of those that they wait for.

use super::chains::Chains;
use super::network::Network;
use crate::engine::events::Rank;
use crate::engine::rounding::Rounding;
use crate::net::fabric::Fabric;
use crate::net::packet::NONE;
use crate::net::what::What;
use onramp_units::{Sim, Span, Time};
use std::collections::HashMap;
use std::sync::Arc;

/// The starts of flows whose hosts are in one domain.
pub(crate) struct Starts {
    network: Arc<Network>,
    /// Number of the domain.
    me: usize,
    rounding: Rounding,
    /// Receivers ask for flows so long before their starts; `None`: they do not.
    request_time: Option<Span>,
    /// Flows of the plan that are not due yet.
    next_start: usize,
    next_request: usize,
    /// Flows so far that hosts here have started, by the host and its peer.
    pair_flows: HashMap<(u32, u32), u16>,
    /// By group: flows that have arrived.
    arrived: Vec<u32>,
    /// Flows that had waited for others and have started.
    pub started: usize,
    /// Flows whose end is known here.
    pub ended: usize,
}

impl Starts {
    /// The starts of domain `me`, in which nothing has started. `asks`: receivers ask for their flows.
    pub fn new(network: Arc<Network>, me: usize, rounding: Rounding, asks: bool) -> Starts {
        Starts {
            rounding,
            request_time: asks.then(|| network.base_rtt() / 2),
            network,
            me,
            next_start: 0,
            next_request: 0,
            pair_flows: HashMap::new(),
            arrived: Vec::new(),
            started: 0,
            ended: 0,
        }
    }

    /// Schedules the first flow.
    pub fn begin(&mut self, net: &mut Fabric) {
        match self.rounding {
            Rounding::Exact => self.await_next_flow(net),
            Rounding::Ns3 => self.await_due_flows(net),
        }
    }

    /// In ns-3's order: schedules what starts the next flows. The script of the HPCC authors has one event for all flows
    /// of an instant. That event makes each of them in an event without delay, which starts it in another one.
    fn await_due_flows(&mut self, net: &mut Fabric) {
        if let Some(flow) = self.network.flows.get(self.next_start) {
            net.events.schedule(flow.start, Rank::Own, What::FlowsDue);
        }
    }

    /// Makes the flows that are due now.
    pub fn make_due_flows(&mut self, net: &mut Fabric) {
        let due = &self.network.flows[self.next_start..];
        let due = due.iter().take_while(|flow| flow.start == net.now).count();
        for flow in (self.next_start..).take(due) {
            let what = What::FlowMade { flow: flow as u32 };
            net.events.schedule(net.now, Rank::Own, what);
        }
        self.next_start += due;
        self.await_due_flows(net);
    }

    /// Starts a flow that has been made.
    pub fn start_made(&self, net: &mut Fabric, flow: u32) {
        let what = What::FlowStart { flow };
        net.events.schedule(net.now, Rank::Own, what);
    }

    /// Schedules the next flow that a host here starts and that waits for nothing.
    pub fn await_next_flow(&mut self, net: &mut Fabric) {
        if self.rounding == Rounding::Ns3 {
            return;
        }
        let in_time = &self.network.flows[..self.network.in_time()];
        while let Some(flow) = in_time.get(self.next_start) {
            let plan = self.next_start as u32;
            self.next_start += 1;
            let (opener, _) = flow.opener_and_peer();
            let is_here = self.network.partition.of(opener) == self.me;
            if is_here && self.asked_at(flow.start).is_none() {
                let what = What::FlowStart { flow: plan };
                net.events.schedule(flow.start, Rank::Flow(plan), what);
                return;
            }
        }
    }

    /// Schedules the request for the next flow that a host here asks for.
    pub fn await_next_request(&mut self, net: &mut Fabric) {
        let in_time = &self.network.flows[..self.network.in_time()];
        while let Some(flow) = in_time.get(self.next_request) {
            let plan = self.next_request as u32;
            self.next_request += 1;
            if self.network.partition.of(flow.dst) != self.me {
                continue;
            }
            if let Some(at) = self.asked_at(flow.start) {
                let what = What::Ask { flow: plan };
                net.events.schedule(at, Rank::Flow(plan), what);
                return;
            }
        }
    }

    /// When a flow that starts at `start` is asked for; `None`: nobody asks, or it is too late for that.
    fn asked_at(&self, start: Time<Sim>) -> Option<Time<Sim>> {
        let before = self.request_time?;
        (start >= Time::ZERO + before).then(|| start - before)
    }

    /// How many flows the opener of flow `plan` had with its peer before it; called once for each, in order.
    pub fn next_ordinal(&mut self, plan: u32) -> u16 {
        let flow = &self.network.flows[plan as usize];
        let next = self.pair_flows.entry(flow.opener_and_peer()).or_insert(0);
        *next = next.wrapping_add(1);
        next.wrapping_sub(1)
    }

    /// All of flow `plan` is at its receiver: what has waited for that and nothing else starts.
    pub(crate) fn flow_arrived(&mut self, net: &mut Fabric, plan: u32) {
        let network = self.network.clone();
        let Some(chains) = &network.chains else {
            return;
        };
        let group = chains.joins[plan as usize];
        if group == NONE {
            return;
        }
        let group = group as usize;
        let arrived = &mut self.arrived;
        arrived.resize(chains.sizes.len(), 0);
        arrived[group] += 1;
        if arrived[group] < chains.sizes[group] {
            return;
        }
        for &flow in chains.waiting_for(group) {
            let waits = flow as usize - chains.first;
            let start = net.now + chains.delays[waits];
            if start < chains.end || chains.goes_on[waits] {
                self.start_waiting(net, chains, flow, start);
            }
        }
    }

    /// Flow `flow` has waited; it starts at `start`, or with the one that goes before it on its connection if
    /// that is later. If that one was not to begin any more, it does: its step has begun elsewhere.
    fn start_waiting(
        &mut self,
        net: &mut Fabric,
        chains: &Chains,
        flow: u32,
        mut start: Time<Sim>,
    ) {
        if let Some(before) = chains.streams.before(flow) {
            if self.network.started(before as usize).is_none() {
                self.start_waiting(net, chains, before, start);
            }
            let started = self.network.started(before as usize);
            start = started.map_or(start, |started| start.max(started));
        }
        self.started += 1;
        self.network.outcomes.started(flow, start);
        let what = What::FlowStart { flow };
        net.events.schedule(start, Rank::Flow(flow), what);
    }
}
