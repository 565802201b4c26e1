// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What all parts of a simulation share: ways through the network, the plan of flows, and what became
//! of them. Nothing here changes while events are handled, except outcomes, each by its one writer.

use super::flow::{Flow, Outcome};
use crate::engine::rounding::Rounding;
use crate::flows::chains::Chains;
use crate::flows::outcomes::Outcomes;
use crate::flows::streams::Part;
use crate::net::idle_path::{IdlePath, IdlePaths};
use crate::net::packet::Path;
use crate::net::partition::Partition;
use crate::net::topology::{Routes, Topology, MAX_HOPS};
use onramp_cc::nic::PathFacts;
use onramp_cc::path::{Fork, Paths};
use onramp_scenario::Work;
use onramp_units::{Sim, Span, Time};
use std::sync::Arc;

/// Shared by all domains.
pub(crate) struct Network {
    pub flows: Vec<Flow>,
    /// Which of them wait for others.
    pub chains: Option<Arc<Chains>>,
    pub outcomes: Outcomes,
    pub partition: Partition,
    /// Node of each port.
    port_nodes: Vec<u32>,
    /// A host's only port, by node.
    host_ports: Vec<u32>,
    routes: Routes,
    paths: Paths,
    ways: IdlePaths,
    longest: IdlePath,
    rounding: Rounding,
}

impl Network {
    /// A network for packets with `payload` bytes behind `header` bytes.
    pub fn new(
        (payload, header): (u16, u16),
        rounding: Rounding,
        topology: &Topology,
        (flows, chains): (Vec<Flow>, Option<Arc<Chains>>),
        partition: Partition,
        paths: Paths,
    ) -> Arc<Network> {
        let port_nodes: Vec<u32> = topology.links().iter().flat_map(|l| [l.a, l.b]).collect();
        let mut host_ports = vec![0; topology.nodes()];
        for (port, &node) in (0..).zip(&port_nodes) {
            host_ports[node as usize] = port;
        }
        let waiting = chains
            .as_ref()
            .map_or(0, |chains| flows.len() - chains.first);
        let routes = Routes::new(topology);
        let ways = IdlePaths::new(rounding, payload, header, topology);
        let longest = ways.longest(topology, &routes, &host_ports);
        Arc::new(Network {
            outcomes: Outcomes::new(flows.len(), waiting),
            chains,
            flows,
            partition,
            port_nodes,
            host_ports,
            routes,
            paths,
            ways,
            longest,
            rounding,
        })
    }

    /// The only port of `host`.
    pub fn port_of(&self, host: u32) -> u32 {
        self.host_ports[host as usize]
    }

    /// The domain of a port's node.
    pub fn domain_of(&self, port: u32) -> usize {
        self.partition.of(self.port_nodes[port as usize])
    }

    /// Round-trip time of an idle network between the hosts that are furthest apart.
    pub fn base_rtt(&self) -> Span {
        self.longest.rtt
    }

    /// Switches on the longest path between any two hosts.
    pub fn switches_passed(&self) -> usize {
        self.longest.switches
    }

    /// What a flow from `src` knows before it starts, whose packets carry `payload` bytes.
    pub fn path_facts(&self, src: u32, payload: u16) -> PathFacts {
        let line_rate = self.ways.rate(self.port_of(src));
        let longest = self.longest.bdp_bytes;
        PathFacts {
            line_rate,
            base_rtt: self.base_rtt(),
            bdp_bytes: match self.rounding {
                // Of this line, where hosts' lines differ.
                Rounding::Exact => longest.min(line_rate.bytes_in(self.base_rtt()).get()),
                Rounding::Ns3 => longest,
            },
            payload_bytes: u64::from(payload),
        }
    }

    /// Completion time of flow `plan` in an otherwise empty network.
    pub fn ideal_fct(&self, plan: usize) -> Option<Span> {
        let flow = &self.flows[plan];
        let Work::Send(size) = flow.work else {
            return None;
        };
        let way = self
            .ways
            .between(flow.src, flow.dst, &self.routes, &self.host_ports);
        Some(self.ways.ideal_fct(&way, size.get()))
    }

    /// When flow `plan` started, by its plan or when what it waited for was there; `None`: it has
    /// waited in vain.
    pub fn started(&self, plan: usize) -> Option<Time<Sim>> {
        self.outcomes.start_of(plan, self.flows[plan].start)
    }

    /// What became of flow `plan`.
    pub fn outcome(&self, plan: usize) -> Outcome {
        self.outcomes.of(plan, &self.flows[plan])
    }

    /// Whether flow `plan` waits for others.
    pub fn waits(&self, plan: u32) -> bool {
        plan as usize >= self.in_time()
    }

    /// Flows of the plan that wait for nothing but their time.
    pub fn in_time(&self) -> usize {
        let chains = self.chains.as_ref();
        chains.map_or(self.flows.len(), |chains| chains.first)
    }

    /// Since the start of flow `plan`.
    pub fn age(&self, plan: u32, now: Time<Sim>) -> Span {
        now - self.flows[plan as usize].start
    }

    /// The way of the data of flow `plan`, which is its hosts' flow number `ordinal`.
    pub fn there(&self, plan: u32, ordinal: u16) -> Path {
        let flow = &self.flows[plan as usize];
        self.path(flow.src, flow.dst, flow.ports(ordinal))
    }

    /// The way of its acknowledgements, or of the requests of a read.
    pub fn back(&self, plan: u32, ordinal: u16) -> Path {
        let flow = &self.flows[plan as usize];
        let (source, destination) = flow.ports(ordinal);
        self.path(flow.dst, flow.src, (destination, source))
    }

    /// Ports that a flow's data passes, its host's first; `None`: it has not started.
    pub fn ports_of(&self, plan: usize) -> Option<Vec<u32>> {
        let flow = &self.flows[plan];
        let ordinal = self.outcomes.path_of(plan)?;
        let mut ports = vec![self.port_of(flow.src)];
        for port in self.there(plan as u32, ordinal) {
            ports.push(port.into());
            if self.port_nodes[usize::from(port ^ 1)] == flow.dst {
                break;
            }
        }
        Some(ports)
    }

    /// From host to host, for packets with these source and destination ports.
    pub fn path(&self, src: u32, dst: u32, ports: (u16, u16)) -> Path {
        let mut path = [0; MAX_HOPS];
        let mut switch = self.routes.edge(src);
        for hop in &mut path {
            let ways = self.routes.next(switch, dst);
            let choice = match ways {
                [_] => 0,
                _ => self.paths.choose(&Fork {
                    src,
                    dst,
                    ports,
                    switch,
                    ways: ways.len(),
                }),
            };
            *hop = ways[choice];
            switch = self.port_nodes[usize::from(*hop ^ 1)];
            if switch == dst {
                break;
            }
        }
        path
    }
}

impl Network {
    /// The bytes of `flow` where those of the flow before it end. One without size has no end.
    pub fn part(&self, flow: u32, first: u64) -> Part {
        let end = match self.flows[flow as usize].work {
            Work::Send(size) => first + size.get(),
            Work::Until(_) => u64::MAX,
        };
        Part { flow, first, end }
    }

    /// The flow behind `flow` on its connection.
    pub fn next_in_stream(&self, flow: u32) -> Option<u32> {
        self.chains.as_ref()?.streams.next(flow)
    }

    /// The flow that opens the connection of `flow`: of flows that share none, itself.
    pub fn opener(&self, flow: u32) -> u32 {
        let chains = self.chains.as_ref();
        chains.map_or(flow, |chains| chains.streams.opener(flow))
    }

    /// Where the bytes of the last flow on the connection that `opener` opened end.
    pub fn end_of_stream(&self, opener: u32) -> u64 {
        let parts = std::iter::successors(Some(self.part(opener, 0)), |part| self.next_part(*part));
        parts.last().map_or(0, |part| part.end)
    }

    /// The bytes behind `part` on its connection.
    pub fn next_part(&self, part: Part) -> Option<Part> {
        let next = self.next_in_stream(part.flow)?;
        Some(self.part(next, part.end))
    }
}
