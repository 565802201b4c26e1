// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Chooses the number of domains of a run.

use crate::net::partition::Partition;
use crate::net::topology::Topology;
use crate::simulation::Simulation;
use onramp_scenario::{Arrival, Run, Work};

/// Packets that a thread should move between two barriers, so that the cost of a barrier is negligible:
/// about 20 us of work.
const WORTH_A_WINDOW: f64 = 200.0;
/// Approximate number of lines and ends of a packet and its acknowledgement.
const HOPS: f64 = 8.0;

const PACKET_BYTES: f64 = 1_000.0;

/// The number of domains of a run, each with a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// As many as make the run faster, up to this.
    AtMost(usize),
    /// As many as the network has racks, up to this, even if the run is not faster.
    Forced(usize),
}

impl Parts {
    /// Largest number of threads.
    fn most(self) -> usize {
        match self {
            Parts::AtMost(most) | Parts::Forced(most) => most,
        }
    }
}

/// Why a run uses one thread although several are available, if it does.
pub(super) fn why_one(
    topology: &Topology,
    parts: Parts,
    simulation: &Simulation,
) -> Option<&'static str> {
    if simulation.domains() > 1 || parts.most() < 2 {
        return None;
    }
    Some(match Partition::of_racks(topology, 2).count() {
        1 => "the hosts are one rack, or no line between racks has a delay",
        _ if simulation.waits_in_kernels() => "kernel hosts' flows wait for others",
        _ => "there is too little to do while a packet crosses a line",
    })
}

/// The parts of `run`, whose plan is `arrivals`.
pub(super) fn partition(
    run: &Run,
    arrivals: &[Arrival],
    topology: &Topology,
    parts: Parts,
) -> Partition {
    let forced = matches!(parts, Parts::Forced(_));
    for count in (2..=parts.most()).rev() {
        let partition = Partition::of_racks(topology, count);
        let hops = hops_per_s(run, arrivals) * partition.lookahead().as_s_f64();
        if partition.count() > 1 && (forced || hops >= WORTH_A_WINDOW * count as f64) {
            return partition;
        }
    }
    Partition::whole(topology)
}

/// Approximate number of packet-hops in a simulated second.
fn hops_per_s(run: &Run, arrivals: &[Arrival]) -> f64 {
    let line = run.network.link.rate;
    let bytes = |arrival: &Arrival| match arrival.work {
        Work::Send(size) => size.get(),
        Work::Until(stop) => line.bytes_in(stop - arrival.at).get(),
    };
    let offered: f64 = arrivals.iter().map(|arrival| bytes(arrival) as f64).sum();
    let hosts = f64::from(run.network.topology.hosts());
    let most = line.bytes_in(run.duration).get() as f64 * hosts;
    offered.min(most) / PACKET_BYTES * HOPS / run.duration.as_s_f64()
}
