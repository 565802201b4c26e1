// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Counters and samples of a run, in the real network's units. [`crate::Measures`] needs these and the
//! rows of flows and requests.

use crate::summary::Summary;
use onramp_units::{Rate, Span};
use serde::Serialize;
use std::collections::BTreeMap;

/// Counters of a world. The window is from the end of the warm-up to the end of the traffic.
#[derive(Debug, Clone)]
pub struct Counters {
    /// Received payload.
    pub received: Received,
    /// Retransmissions.
    pub resent: Resent,
    /// Drops at all switch ports, from the end of the warm-up to the end of the run.
    pub drops: u64,
    /// The port to the measured host.
    pub port: PortCounters,
    /// Ports that `measure.ports` names.
    pub ports: Vec<PortCounters>,
    /// Errors of the clocks.
    pub clocks: ClockCounters,
    /// Counters of this world only.
    pub world: WorldCounters,
}

/// Payload that receivers received in order within the window.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// Bytes of Poisson, replayed and long flows, all receivers together.
    pub background_bytes: u64,
    /// Bytes of each long flow.
    pub long_bytes: Vec<u64>,
}

/// Retransmissions, from the end of the warm-up to the end of the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resent {
    /// Segments.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Retransmitted bytes (rack) or packets (simulator).
    pub again: u64,
    /// All sent bytes or packets, in the same unit.
    pub sent: u64,
}

/// The port whose queue is measured: the last one before the measured host.
#[derive(Debug, Clone)]
pub struct PortCounters {
    /// `switch0-host3`.
    pub name: String,
    /// Rate of its line.
    pub rate: Rate,
    /// Bytes that the port accepted within the window.
    pub sent_bytes: u64,
    /// From the end of the warm-up to the end of the run.
    pub drops: u64,
    /// Time until its line is free, within the window.
    pub queue_us: Option<Summary>,
    /// One-way delays to its host, within the window.
    pub owd_us: Option<Summary>,
}

/// Errors of synchronised clocks while traffic ran.
#[derive(Debug, Clone, Default)]
pub struct ClockCounters {
    /// Errors of all hosts at all samples, ns.
    pub errors_ns: Vec<f64>,
    /// The fraction of them within two of the standard deviations that the hosts estimate.
    pub within_2_sigma: Option<f64>,
    /// The largest of them in these standard deviations.
    pub most_sigmas: Option<f64>,
    /// Results of the central steps, if known.
    pub windows: Vec<ClockWindow>,
}

/// One window of clock synchronisation: an element of `clock.windows`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockWindow {
    /// When it ended.
    pub end_ms: f64,
    /// Absolute errors of the hosts at its end; none before the first correction.
    pub error_ns: Option<Summary>,
    /// The fraction of the errors within two of the standard deviations that the hosts estimate.
    pub within_2_sigma: Option<f64>,
    /// The largest error in these standard deviations.
    pub most_sigmas: Option<f64>,
    /// Estimated standard deviation of the error between two hosts.
    pub edge_sigma_ns: f64,
    /// Hosts without a correction.
    pub lost_hosts: usize,
    /// Pairs of probes with all time stamps.
    pub pairs: usize,
    /// Pairs among them that met no queue.
    pub pure: usize,
}

/// Counters that only one world has.
#[derive(Debug, Clone)]
pub enum WorldCounters {
    /// The simulator.
    Sim(SimCounters),
    /// The rack.
    Rack(RackCounters),
}

/// Counters of the simulator, from the end of the warm-up to the end of the run unless stated otherwise.
#[derive(Debug, Clone, Default)]
pub struct SimCounters {
    /// Packets marked CE.
    pub marks: u64,
    /// OR-ACKs sent.
    pub or_acks: u64,
    /// Bytes of the OR-ACKs within the window.
    pub or_ack_bytes: u64,
    /// PFC pauses sent.
    pub pfc_pauses: u64,
    /// Drops by CoDel at hosts in the whole run; none without CoDel.
    pub host_drops: Option<u64>,
    /// By long flow: the fraction of its packets within the window that were sent again.
    pub long_resent: Vec<f64>,
    /// Round-trip times that congestion controls got within the window, with `--series rtts`.
    pub rtt_us: Option<Summary>,
    /// Delays of packets and the last measurements of their senders, with `--series pairs`.
    pub pairs: Vec<PairSample>,
    /// Rounds of connections that ended within the window, with `--series rounds`.
    pub rounds: Vec<RoundSample>,
}

/// A round of a connection: from an acknowledgement to that of the packet that was to be sent next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundSample {
    /// Packets that were acknowledged, at least one.
    pub packets: u32,
    /// Those of them that were marked CE.
    pub marked: u32,
    /// Its least round-trip time.
    pub least_rtt: Span,
}

/// The one-way delay of a packet, and the last measurements of its sender when it sent the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairSample {
    /// One-way delay of the packet.
    pub owd: Span,
    /// One-way delay of the last packet that was acknowledged.
    pub last_owd: Span,
    /// Round-trip time of the same packet.
    pub last_rtt: Span,
}

/// Counters of the rack.
#[derive(Debug, Clone, Default)]
pub struct RackCounters {
    /// Connections opened.
    pub connections: usize,
    /// Longest delay of the load generator between a flow's start time and its start.
    pub late_us: f64,
    /// Drops by the hosts' stock qdiscs, in the whole run.
    pub host_drops: u64,
    /// Fraction of the window in which the measured port had nothing to send.
    pub idle_fraction: f64,
    /// Drops at the measured port within the window, inferred by its probe.
    pub probed_drops: u64,
    /// Lost events of the probes.
    pub lost_events: u64,
    /// Frames for no host of the rack.
    pub unknown_frames: u64,
    /// The daemons' counters; those whose names end in `_ns` in ns of the real network.
    pub onramp: BTreeMap<String, f64>,
}
