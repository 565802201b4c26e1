// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Base round-trip times of an idle network, as the HPCC authors' simulator computes them.

use crate::engine::rounding::Rounding;
use crate::net::topology::{Link, Routes, Topology};
use onramp_units::{Bytes, Rate, Span};

/// A path through an idle network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdlePath {
    /// Propagation in both directions, and the transmission of a full packet on each line.
    pub rtt: Span,
    /// Rate of the slowest line.
    pub rate: Rate,
    /// Bandwidth-delay product.
    pub bdp_bytes: u64,
    /// Switches on it.
    pub switches: usize,
}

/// Computes paths.
pub(crate) struct IdlePaths {
    rounding: Rounding,
    payload: u32,
    header: u32,
    /// Link n has the ports 2n and 2n + 1.
    links: Vec<Link>,
}

impl IdlePaths {
    /// For full packets of `payload` bytes behind `header` bytes.
    pub fn new(rounding: Rounding, payload: u16, header: u16, topology: &Topology) -> IdlePaths {
        IdlePaths {
            rounding,
            payload: payload.into(),
            header: header.into(),
            links: topology.links().to_vec(),
        }
    }

    /// Rate of the line at `port`.
    pub fn rate(&self, port: u32) -> Rate {
        self.links[port as usize / 2].rate
    }

    /// The node that `port` leads to.
    fn other_end(&self, port: usize) -> u32 {
        let link = &self.links[port / 2];
        if port.is_multiple_of(2) {
            link.b
        } else {
            link.a
        }
    }

    /// One shortest path from `src` to `dst`, whose ports are in `host_ports`.
    pub fn between(&self, src: u32, dst: u32, routes: &Routes, host_ports: &[u32]) -> IdlePath {
        let mut port = host_ports[src as usize] as usize;
        let (mut rtt, mut rate) = (Span::ZERO, self.links[port / 2].rate);
        let mut switches = 0;
        loop {
            let line = &self.links[port / 2];
            rtt += line.delay * 2 + self.whole_ns(self.wire_time(self.payload.into(), line.rate));
            rate = rate.min(line.rate);
            let node = self.other_end(port);
            if node == dst {
                break;
            }
            switches += 1;
            port = usize::from(routes.next(node, dst)[0]);
        }
        let bdp_bytes = rate.bytes_in(rtt).get();
        IdlePath {
            rtt,
            rate,
            bdp_bytes,
            switches,
        }
    }

    /// The longest path between any two hosts. Hosts at the same switch with the same line are equal, so
    /// two of each are enough.
    pub fn longest(&self, topology: &Topology, routes: &Routes, host_ports: &[u32]) -> IdlePath {
        let alike = |host: &u32| {
            let link = &self.links[host_ports[*host as usize] as usize / 2];
            (routes.edge(*host), link.rate, link.delay)
        };
        let mut hosts: Vec<u32> = topology.hosts().collect();
        hosts.sort_by_key(|host| (alike(host), *host));
        let mut some: Vec<u32> = Vec::new();
        for host in hosts {
            if some.len() < 2 || alike(&some[some.len() - 2]) != alike(&host) {
                some.push(host);
            }
        }
        let pairs = some.iter().flat_map(|&a| some.iter().map(move |&b| (a, b)));
        let ways = pairs
            .filter(|(a, b)| a != b)
            .map(|(a, b)| self.between(a, b, routes, host_ports));
        ways.reduce(|a, b| IdlePath {
            rtt: a.rtt.max(b.rtt),
            bdp_bytes: a.bdp_bytes.max(b.bdp_bytes),
            switches: a.switches.max(b.switches),
            ..a
        })
        .expect("a topology has two hosts")
    }

    /// [`crate::Simulation::ideal_fct`].
    pub fn ideal_fct(&self, way: &IdlePath, size: u64) -> Span {
        let packets = size.div_ceil(u64::from(self.payload));
        let bytes = size + packets * u64::from(self.header);
        way.rtt + self.whole_ns(self.wire_time(bytes, way.rate))
    }

    fn wire_time(&self, bytes: u64, rate: Rate) -> Span {
        rate.time_to_send(Bytes::new(bytes))
    }

    /// The reference computes these in whole ns, without going through floating point.
    fn whole_ns(&self, span: Span) -> Span {
        match self.rounding {
            Rounding::Exact => span,
            Rounding::Ns3 => Span::from_ns(span.as_ns()),
        }
    }
}
