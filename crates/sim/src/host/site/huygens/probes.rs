// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Probes as packets, and their time stamps.

use super::Edge;
use crate::engine::events::Rank;
use crate::engine::random::{Purpose, Streams};
use crate::flows::network::Network;
use crate::host::config::Probing;
use crate::host::site::Site;
use crate::net::packet::{Kind, Packet, Path};
use crate::net::what::What;
use onramp_units::{Sim, Span, Time};
use std::sync::Arc;

/// A probe on the wire (facts/huygens.md); the daemon's are 86 B.
const PROBE_BYTES: u16 = 84;
/// UDP ports of edge 0, whose answers use them in reverse. Other edges have the next ports, so that ECMP
/// spreads them.
const PORTS: (u16, u16) = (20_000, 319);
/// Those of an edge's probes.
fn ports(edge: u32) -> (u16, u16) {
    (PORTS.0.wrapping_add(edge as u16), PORTS.1)
}

/// No stamp.
pub(super) const ABSENT: i64 = i64::MIN;

/// Time stamps of one probe and its answer in ns, each on the clock of the host that took it, in order:
/// near sends, far receives, far sends, near receives.
pub(super) type Four = [i64; 4];

/// The time stamps of a domain's hosts.
pub(crate) struct Prober {
    probing: Probing,
    edges: Arc<[Edge]>,
    /// By edge: both directions.
    ways: Vec<(Path, Path)>,
    /// By edge: the next probe's number, and the window's first one.
    next: Vec<u64>,
    first: Vec<u64>,
    /// By edge and number since the window's first.
    stamps: Vec<Vec<Four>>,
    noise: Streams,
}

impl Prober {
    pub fn new(
        probing: Probing,
        edges: Arc<[Edge]>,
        network: &Network,
        seed: u64,
        nodes: usize,
    ) -> Prober {
        let way = |(number, edge): (u32, &Edge)| {
            let (source, destination) = ports(number);
            let there = network.path(edge.near, edge.far, (source, destination));
            let back = network.path(edge.far, edge.near, (destination, source));
            (there, back)
        };
        Prober {
            probing,
            ways: (0..).zip(edges.iter()).map(way).collect(),
            next: vec![0; edges.len()],
            first: vec![0; edges.len()],
            stamps: vec![Vec::new(); edges.len()],
            noise: Streams::new(seed, Purpose::Probes, nodes),
            edges,
        }
    }

    /// Error of a time stamp, ns.
    fn noise_ns(&mut self, host: u32, on_arrival: bool) -> f64 {
        let rng = self.noise.of(host);
        match on_arrival {
            true => self.probing.stamps.received_noise_ns(rng),
            false => self.probing.stamps.sent_noise_ns(rng),
        }
    }

    fn note(&mut self, edge: u32, number: u64, which: usize, stamp: i64) {
        let edge = edge as usize;
        // A stamp of the previous window is too late.
        let Some(place) = number.checked_sub(self.first[edge]) else {
            return;
        };
        let stamps = &mut self.stamps[edge];
        if stamps.len() <= place as usize {
            stamps.resize(place as usize + 1, [ABSENT; 4]);
        }
        stamps[place as usize][which] = stamp;
    }

    /// The next probe's number of each edge that is probed from here.
    pub(super) fn next(&self) -> &[u64] {
        &self.next
    }

    /// Returns the window's stamps. The next window begins with the probes of these numbers.
    pub(super) fn end_window(&mut self, first: &[u64]) -> Vec<Vec<Four>> {
        self.first.copy_from_slice(first);
        let empty = vec![Vec::new(); self.stamps.len()];
        std::mem::replace(&mut self.stamps, empty)
    }
}

impl Site {
    /// The ends of an edge, and its probes' ports.
    pub(crate) fn probed(&self, edge: u32) -> (Edge, (u16, u16)) {
        let prober = self.prober.as_ref().expect("there are probes");
        (prober.edges[edge as usize], ports(edge))
    }

    /// Plans the first probe of each edge that is probed from here: edges begin one after the other,
    /// spread over the interval.
    pub(crate) fn begin_probing(&mut self) {
        let Some(prober) = &self.prober else { return };
        let (interval, count) = (prober.probing.interval, prober.edges.len() as i64);
        let edges = prober.edges.clone();
        for (number, edge) in (0..).zip(edges.iter()) {
            if self.network.partition.of(edge.near) == self.net.me() {
                let at = Time::ZERO + interval * i64::from(number) / count;
                self.plan_probe(number, at);
            }
        }
    }

    fn plan_probe(&mut self, edge: u32, at: Time<Sim>) {
        self.net
            .events
            .schedule(at, Rank::Own, What::Probe { edge });
    }

    /// Queues the next probe of an edge, which is due, and returns its host.
    pub(crate) fn queue_next_probe(&mut self, edge: u32) -> u32 {
        let prober = self.prober.as_mut().expect("a probe is due");
        let (spacing, interval) = (prober.probing.stamps.spacing(), prober.probing.interval);
        let number = prober.next[edge as usize];
        prober.next[edge as usize] += 1;
        let Edge { near, .. } = prober.edges[edge as usize];
        let there = prober.ways[edge as usize].0;
        let until_next = match number % 2 {
            0 => spacing,
            _ => (interval - spacing).max(Span::from_ps(1)),
        };
        self.plan_probe(edge, self.net.now + until_next);
        self.queue_probe(near, edge, number, Kind::Probe, there);
        near
    }

    fn queue_probe(&mut self, host: u32, edge: u32, number: u64, kind: Kind, path: Path) {
        let id = self.net.packets.add(Packet {
            seq: number,
            flow: edge,
            connection: edge,
            wire_bytes: PROBE_BYTES,
            ..Packet::new(kind, self.net.now, path)
        });
        let port = self.network.port_of(host);
        self.net.ports[port as usize]
            .data
            .push(&mut self.net.packets, id);
    }

    /// Stamps a probe that a host sends.
    #[inline]
    pub(crate) fn stamp_probe(&mut self, host: u32, id: u32) {
        match self.net.packets[id].kind {
            Kind::Probe => self.note_probe(host, id, 0),
            Kind::ProbeAnswer => self.note_probe(host, id, 2),
            _ => {}
        }
    }

    /// Handles a probe or an answer at its host. Returns whether there is an answer to send.
    pub(crate) fn probe_arrived(&mut self, host: u32, id: u32) -> bool {
        let packet = self.net.packets[id];
        self.net.packets.free(id);
        if packet.kind == Kind::ProbeAnswer {
            self.note_stamp(host, &packet, 3);
            return false;
        }
        self.note_stamp(host, &packet, 1);
        let Some(prober) = &self.prober else {
            return false;
        };
        let back = prober.ways[packet.flow as usize].1;
        self.queue_probe(host, packet.flow, packet.seq, Kind::ProbeAnswer, back);
        true
    }

    #[cold]
    fn note_probe(&mut self, host: u32, id: u32, which: usize) {
        let packet = self.net.packets[id];
        self.note_stamp(host, &packet, which);
    }

    fn note_stamp(&mut self, host: u32, packet: &Packet, which: usize) {
        let reads_ns = self.clocks.reads(host, self.net.now).ticks();
        let Some(prober) = &mut self.prober else {
            return;
        };
        let noise_ns = prober.noise_ns(host, which % 2 == 1).round() as i64;
        prober.note(packet.flow, packet.seq, which, reads_ns + noise_ns);
    }
}
