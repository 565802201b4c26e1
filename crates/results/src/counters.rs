//! What a world counted and sampled in a run, in the real network's units: with the rows of flows and
//! requests all that [`crate::Measures`] needs.

use crate::Summary;
use onramp_units::{Rate, Span};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a world counted. The window is from the end of the warm-up to the end of the traffic.
#[derive(Debug, Clone)]
pub struct Counters {
    /// What receivers got.
    pub received: Received,
    /// What senders sent again.
    pub resent: Resent,
    /// Drops at all switch ports, from the warm-up's end to the very end.
    pub drops: u64,
    /// The port to the measured host.
    pub port: PortCounters,
    /// How wrong clocks were.
    pub clocks: ClockCounters,
    /// What only this world counts.
    pub world: WorldCounters,
}

/// Payload that receivers had in order within the window.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// Of Poisson, replayed and long flows, all receivers together.
    pub background_bytes: u64,
    /// Of each long flow.
    pub long_bytes: Vec<u64>,
}

/// What senders sent again, from the warm-up's end to the very end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resent {
    /// Segments.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Bytes sent again (rack), or packets (simulator).
    pub again: u64,
    /// All that were sent, in the same unit.
    pub sent: u64,
}

/// The port whose queue is measured: the last one before the measured host.
#[derive(Debug, Clone)]
pub struct PortCounters {
    /// `switch0-host3`.
    pub name: String,
    /// Of its line.
    pub rate: Rate,
    /// Bytes that its line took within the window.
    pub sent_bytes: u64,
    /// From the warm-up's end to the very end.
    pub drops: u64,
    /// Time until its line is free, within the window.
    pub queue_us: Option<Summary>,
    /// One-way delays to its host, within the window.
    pub owd_us: Option<Summary>,
}

/// How wrong synchronised clocks were while traffic ran.
#[derive(Debug, Clone, Default)]
pub struct ClockCounters {
    /// Errors of all hosts at all looks, ns.
    pub errors_ns: Vec<f64>,
    /// The part of them within two of the sigmas that hosts claim.
    pub within_2_sigma: Option<f64>,
    /// What the central steps found, where that is known.
    pub windows: Vec<ClockWindow>,
}

/// One window of clock synchronisation: an element of `clock.windows`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockWindow {
    /// When it ended.
    pub end_ms: f64,
    /// Magnitudes of the hosts' errors at its end; none before the first correction.
    pub error_ns: Option<Summary>,
    /// The part of the errors within two of the sigmas that hosts claim.
    pub within_2_sigma: Option<f64>,
    /// Estimated standard deviation of the error between two hosts.
    pub edge_sigma_ns: f64,
    /// Hosts without a correction.
    pub lost_hosts: usize,
    /// Pairs of probes whose stamps are all there.
    pub pairs: usize,
    /// Those among them that met no queue.
    pub pure: usize,
}

/// What only one world counts.
#[derive(Debug, Clone)]
pub enum WorldCounters {
    /// The simulator.
    Sim(SimCounters),
    /// The rack.
    Rack(RackCounters),
}

/// What only the simulator counts, from the warm-up's end to the very end unless said otherwise.
#[derive(Debug, Clone, Default)]
pub struct SimCounters {
    /// Packets marked CE.
    pub marks: u64,
    /// OR-ACKs sent.
    pub or_acks: u64,
    /// Bytes of those within the window.
    pub or_ack_bytes: u64,
    /// PFC pauses sent.
    pub pfc_pauses: u64,
    /// Drops by CoDel at hosts in the whole run; none without CoDel.
    pub host_drops: Option<u64>,
    /// Delays that packets met and what their senders knew, if somebody asked for pairs.
    pub pairs: Vec<PairSample>,
}

/// The delay that a packet met, and what its sender knew when it sent it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairSample {
    /// That it met.
    pub owd: Span,
    /// One-way delay of the last packet that was acknowledged.
    pub last_owd: Span,
    /// Round-trip time of that.
    pub last_rtt: Span,
}

/// What only the rack counts.
#[derive(Debug, Clone, Default)]
pub struct RackCounters {
    /// Connections opened.
    pub connections: usize,
    /// Most by which the load generator started a flow after it was due.
    pub late_us: f64,
    /// Drops by the hosts' stock qdiscs, in the whole run.
    pub host_drops: u64,
    /// Part of the window in which the measured port's line had nothing to send.
    pub idle_fraction: f64,
    /// Drops at the measured port within the window, as its probe infers them.
    pub probed_drops: u64,
    /// Events of the probes that were lost.
    pub lost_events: u64,
    /// Frames for no host of the rack.
    pub unknown_frames: u64,
    /// The daemons' counters; those whose names end in `_ns` in ns of the real network.
    pub onramp: BTreeMap<String, f64>,
}
