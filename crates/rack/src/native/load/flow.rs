// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The load generator's reports of flows and requests, in the rack's (dilated) time.

use super::connection::Counters;
use crate::native::dilation::Dilation;
use onramp_scenario::{Arrival, HostId, TrafficKind, Work};
use onramp_units::Span;

/// A flow: an answer, a Poisson flow or an endless flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Kind of its traffic entry.
    pub kind: &'static TrafficKind,
    /// Which entry of the scenario's traffic.
    pub traffic: usize,
    /// Number of the request within its entry, if it is an answer.
    pub request: Option<u64>,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Payload; none for an endless flow.
    pub size_bytes: Option<u64>,
    /// Its time in the plan, since the start of the measured time, ns.
    pub start_ns: i64,
    /// From then to its last byte at the receiver, ns; none if it did not finish.
    pub fct_ns: Option<i64>,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Payload received within the measured time (endless flows only).
    pub measured_bytes: u64,
}

/// A request of an incast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Which entry of the scenario's traffic.
    pub traffic: usize,
    /// Its number within the entry.
    pub number: u64,
    /// Time of the aggregator's request, since the start of the measured time, ns.
    pub start_ns: i64,
    /// From the request to the first server to the last byte of the last answer, ns; none if unfinished.
    pub rct_ns: Option<i64>,
    /// Number of missing answers.
    pub missing: u32,
}

/// The state of a flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlowState {
    /// It was due.
    pub started: bool,
    /// It was endless and has been stopped.
    pub stopped: bool,
    /// Its connection.
    pub connection: Option<usize>,
    /// Counters of that connection before it.
    pub before: Counters,
    /// From when it was due to its last byte, ns.
    pub fct_ns: Option<i64>,
    /// What the counters have moved by.
    pub change: Counters,
}

impl Flow {
    /// The report of an arrival.
    pub fn of(arrival: &Arrival, state: &FlowState, dilation: Dilation) -> Flow {
        let size_bytes = match arrival.work {
            Work::Send(size) => Some(size.get()),
            Work::Until(_) => None,
        };
        Flow {
            kind: arrival.kind,
            traffic: arrival.traffic,
            request: arrival.request,
            src: arrival.src,
            dst: arrival.dst,
            size_bytes,
            start_ns: dilation.slow(Span::from_ps(arrival.at.ticks())).as_ns(),
            fct_ns: state.fct_ns,
            retransmissions: state.change.retransmissions,
            timeouts: state.change.timeouts,
            measured_bytes: state.change.received_bytes,
        }
    }
}
