// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Rows of `flows.parquet` and `requests.parquet`. A row is made when it is needed, so that a plan of millions
//! of flows needs only a few bytes for each.

use crate::flows::flow::Outcome;
use crate::net::packet::NONE;
use crate::simulation::Simulation;
use onramp_results::{FlowRow, RequestRow, Simulated};
use onramp_scenario::{Arrival, Measured, Run, TrafficKind, Work};
use onramp_units::{Sim, Span, Time};

/// The labels of a plan's flows.
pub(super) struct Labels {
    /// By entry of the scenario's traffic.
    kinds: Vec<&'static TrafficKind>,
    /// By host; empty: no host has a group.
    groups: Vec<Option<u16>>,
    /// By flow.
    flows: Vec<Label>,
}

/// The labels of a flow, in few bytes.
struct Label {
    traffic: u32,
    /// Or `NONE`.
    request: u32,
}

impl Labels {
    pub fn of(run: &Run, arrivals: &[Arrival]) -> Labels {
        let label = |arrival: &Arrival| Label {
            traffic: arrival.traffic as u32,
            request: arrival.request.map_or(NONE, |request| request as u32),
        };
        let hosts = 0..run.network.topology.hosts();
        let group = |host| run.group_of(host).map(|group| group as u16);
        Labels {
            groups: match run.groups.is_empty() {
                true => Vec::new(),
                false => hosts.map(group).collect(),
            },
            kinds: run.traffic.iter().map(|traffic| traffic.kind()).collect(),
            flows: arrivals.iter().map(label).collect(),
        }
    }

    /// Flows of the plan.
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// That of a host.
    fn group(&self, host: u32) -> Option<i64> {
        self.groups.get(host as usize)?.map(i64::from)
    }

    /// What results measure of each flow.
    pub fn measured(&self) -> impl Iterator<Item = Measured> + '_ {
        let measured = |label: &Label| self.kinds[label.traffic as usize].measured;
        self.flows.iter().map(measured)
    }
}

/// Makes rows of flows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub simulation: &'a Simulation,
    pub labels: &'a Labels,
    pub warmup: Time<Sim>,
    /// Current time: flows that have not started have no rows.
    pub now: Time<Sim>,
}

impl<'a> Rows<'a> {
    /// Rows of flows that have started, without their paths; and their numbers in the plan.
    pub fn each(self) -> impl Iterator<Item = (usize, FlowRow)> + 'a {
        let outcomes = self.simulation.each_outcome().enumerate();
        outcomes.filter_map(move |(plan, outcome)| Some((plan, self.row(plan, &outcome)?)))
    }

    /// Entry and request number of each flow of a request that has not started.
    pub fn missing(self) -> impl Iterator<Item = (usize, usize)> + 'a {
        let network = self.simulation.network();
        let flows = self.labels.flows.iter().enumerate();
        flows.filter_map(move |(plan, label)| {
            let start = network.started(plan).filter(|start| *start <= self.now);
            let is_missing = label.request != NONE && start.is_none();
            is_missing.then_some((label.traffic as usize, label.request as usize))
        })
    }

    fn row(&self, plan: usize, outcome: &Outcome) -> Option<FlowRow> {
        let network = self.simulation.network();
        let (flow, label) = (&network.flows[plan], &self.labels.flows[plan]);
        let start = network.started(plan).filter(|start| *start <= self.now)?;
        let outcome = since(outcome, start - flow.start);
        Some(FlowRow {
            kind: self.labels.kinds[label.traffic as usize].name,
            traffic: label.traffic.into(),
            request: Some(label.request.into()).filter(|_| label.request != NONE),
            src: flow.src.into(),
            group: self.labels.group(flow.src),
            dst: flow.dst.into(),
            size_bytes: match flow.work {
                Work::Send(size) => Some(size.get() as i64),
                Work::Until(_) => None,
            },
            start_ns: (start - Time::ZERO).as_ns(),
            fct_ns: outcome.arrived.map(Span::as_ns),
            retransmissions: i64::from(outcome.retransmissions),
            timeouts: i64::from(outcome.timeouts),
            measured: start >= self.warmup,
            path: None,
            simulated: Some(simulated(&outcome, network.ideal_fct(plan))),
        })
    }

    /// Names of the ports that the data of flow `plan` passes, of ports called `names`.
    pub fn path(&self, plan: usize, names: &[String]) -> Option<String> {
        let ports = self.simulation.network().ports_of(plan)?;
        let name = |port: &u32| names[*port as usize].as_str();
        Some(ports.iter().map(name).collect::<Vec<_>>().join(" "))
    }
}

/// `outcome` of a flow that started `late` after its time in the plan, relative to the real start.
fn since(outcome: &Outcome, late: Span) -> Outcome {
    Outcome {
        acked: outcome.acked.map(|acked| acked - late),
        arrived: outcome.arrived.map(|arrived| arrived - late),
        ..*outcome
    }
}

fn simulated(outcome: &Outcome, ideal: Option<Span>) -> Simulated {
    let slowdown = |(acked, ideal): (Span, Span)| acked.as_s_f64() / ideal.as_s_f64();
    Simulated {
        acked_ns: outcome.acked.map(Span::as_ns),
        ideal_fct_ns: ideal.map(Span::as_ns),
        slowdown: outcome.acked.zip(ideal).map(slowdown),
        held_ns: outcome.held.as_ns(),
    }
}

/// Requests, and steps of all_to_all: each from the first start to the last arrival of its flows.
#[derive(Default)]
pub(super) struct Requests {
    /// By entry of the scenario's traffic and number, which count from zero; `None`: not started.
    entries: Vec<Vec<Option<Ends>>>,
}

#[derive(Clone, Copy)]
struct Ends {
    start_ns: i64,
    /// Arrival of the last flow.
    end_ns: i64,
    /// Last acknowledgement; none if a flow is not completely acknowledged.
    acked_ns: Option<i64>,
    missing: u32,
}

impl Requests {
    /// Adds a flow, if it belongs to a request.
    pub fn add(&mut self, flow: &FlowRow) {
        let Some(request) = flow.request else {
            return;
        };
        let (traffic, request) = (flow.traffic as usize, request as usize);
        grow(&mut self.entries, traffic);
        let entry = &mut self.entries[traffic];
        grow(entry, request);
        let ends = entry[request].get_or_insert(Ends {
            start_ns: flow.start_ns,
            end_ns: flow.start_ns,
            acked_ns: Some(flow.start_ns),
            missing: 0,
        });
        let end_ns = flow.start_ns + flow.fct_ns.unwrap_or(0);
        ends.start_ns = ends.start_ns.min(flow.start_ns);
        ends.end_ns = ends.end_ns.max(end_ns);
        let acked_ns = flow.simulated.and_then(|simulated| simulated.acked_ns);
        let acked_ns = acked_ns.map(|acked_ns| flow.start_ns + acked_ns);
        ends.acked_ns = ends.acked_ns.zip(acked_ns).map(|(a, b)| a.max(b));
        ends.missing += u32::from(flow.fct_ns.is_none());
    }

    /// Adds a flow that has not started. Call it after all flows that have started.
    pub fn miss(&mut self, traffic: usize, request: usize) {
        let entry = self.entries.get_mut(traffic);
        if let Some(Some(ends)) = entry.and_then(|entry| entry.get_mut(request)) {
            ends.missing += 1;
            ends.acked_ns = None;
        }
    }

    /// Their rows, by entry and number.
    pub fn rows(&self, warmup: Time<Sim>) -> impl Iterator<Item = RequestRow> + '_ {
        let entries = (0..).zip(&self.entries);
        entries.flat_map(move |(traffic, entry)| {
            let requests = (0..).zip(entry);
            requests.filter_map(move |(request, ends)| {
                Some(ends.as_ref()?.row(traffic, request, warmup))
            })
        })
    }
}

impl Ends {
    fn row(&self, traffic: i64, request: i64, warmup: Time<Sim>) -> RequestRow {
        let rct_ns = self.end_ns - self.start_ns;
        RequestRow {
            traffic,
            request,
            start_ns: self.start_ns,
            rct_ns: (self.missing == 0).then_some(rct_ns),
            acked_ns: self.acked_ns.map(|acked_ns| acked_ns - self.start_ns),
            missing: self.missing.into(),
            measured: self.start_ns >= (warmup - Time::ZERO).as_ns(),
        }
    }
}

/// Extends the list to `index`.
fn grow<T: Default>(values: &mut Vec<T>, index: usize) {
    if index >= values.len() {
        values.resize_with(index + 1, T::default);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_faster_than_the_ideal_has_a_slowdown_below_1() {
        let outcome = Outcome {
            acked: Some(Span::from_ns(900)),
            ..Outcome::default()
        };
        let simulated = simulated(&outcome, Some(Span::from_ns(1000)));
        assert_eq!(simulated.slowdown, Some(0.9));
    }

    #[test]
    fn a_request_is_acknowledged_when_the_last_of_its_senders_knows_it() {
        let flow = |start_ns, acked_ns| FlowRow {
            kind: "incast",
            traffic: 0,
            request: Some(0),
            src: 1,
            group: None,
            dst: 0,
            size_bytes: Some(1),
            start_ns,
            fct_ns: Some(10),
            retransmissions: 0,
            timeouts: 0,
            measured: true,
            path: None,
            simulated: Some(Simulated {
                acked_ns,
                ideal_fct_ns: None,
                slowdown: None,
                held_ns: 0,
            }),
        };
        let mut requests = Requests::default();
        let acked_ns = |requests: &Requests| requests.rows(Time::ZERO).next().unwrap().acked_ns;
        requests.add(&flow(100, Some(50)));
        requests.add(&flow(120, Some(20)));
        assert_eq!(acked_ns(&requests), Some(50));
        requests.add(&flow(130, None));
        assert_eq!(acked_ns(&requests), None);
    }
}
