// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Rows of the tables of a run. Times in ns of the real network, since the start of the traffic.

use std::sync::Arc;

/// One flow, answer or endless flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRow {
    /// "incast", "long", "poisson", "request" (both ways), "all_to_all" or "replay".
    pub kind: &'static str,
    /// Entry of the scenario's traffic.
    pub traffic: i64,
    /// Request that it answers or is, or step.
    pub request: Option<i64>,
    /// Sending host.
    pub src: i64,
    /// Group of the sending host, if it has one.
    pub group: Option<i64>,
    /// Receiving host.
    pub dst: i64,
    /// Payload; none: endless.
    pub size_bytes: Option<i64>,
    /// When it was due.
    pub start_ns: i64,
    /// Until its last byte arrived; none: it did not.
    pub fct_ns: Option<i64>,
    /// Segments sent again.
    pub retransmissions: i64,
    /// Retransmission timeouts.
    pub timeouts: i64,
    /// Whether it started after the warm-up and so counts.
    pub measured: bool,
    /// Names of the ports that its data passes, the sender's first; none: not known.
    pub path: Option<Arc<str>>,
    /// What only a simulator knows.
    pub simulated: Option<Simulated>,
}

/// What only a simulator knows of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simulated {
    /// Until the sender had the last acknowledgement; none: it did not.
    pub acked_ns: Option<i64>,
    /// The same in an otherwise empty network; none: endless.
    pub ideal_fct_ns: Option<i64>,
    /// How much longer it took: `acked_ns / ideal_fct_ns`. Below 1 where fewer bytes were on a link than
    /// the ideal counts, which has full packets everywhere.
    pub slowdown: Option<f64>,
    /// For how long On-Ramp held it.
    pub held_ns: i64,
}

/// One request, or one step of all_to_all.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestRow {
    /// Entry of the scenario's traffic.
    pub traffic: i64,
    /// Its number within the entry.
    pub request: i64,
    /// When the aggregator asked.
    pub start_ns: i64,
    /// Until the last byte of the last answer arrived; none: it did not.
    pub rct_ns: Option<i64>,
    /// Until the sender of the last answer had its last acknowledgement; none: it did not, or not known.
    pub acked_ns: Option<i64>,
    /// Answers that are missing.
    pub missing: i64,
    /// Whether it started after the warm-up and so counts.
    pub measured: bool,
}

/// A value of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesRow {
    /// When.
    pub time_ns: i64,
    /// What, with its unit: "queue_us", "owd_us".
    pub name: &'static str,
    /// The port or flow: "switch0-host0", "host0", "flow7".
    pub place: Arc<str>,
    /// How much.
    pub value: f64,
}

/// Names of series: name, place, worlds, meaning.
#[rustfmt::skip]
pub(crate) const SERIES_NAMES: [(&str, &str, &str, &str); 15] = [
    ("queue_us", "port", "both", "Queueing delay of the port: largest time until its line is free in the interval"),
    ("queue_bytes", "port", "sim", "Queue of the port: most bytes that wait in the interval"),
    ("rate_gbps", "port", "both", "Rate at which the port sends, mean over the interval"),
    ("pfc_paused_fraction", "port", "sim", "Fraction of the interval in which PFC pauses the port"),
    ("owd_us", "host", "both", "Largest one-way delay to the host in the interval"),
    ("estimate_gbps", "flow", "sim", "Last estimate of the available bandwidth, payload, if the flow's congestion control makes any (`rapid`; `bbr`: the best rate of the last rounds)"),
    ("rate_limit_gbps", "flow", "sim", "Pacing rate of the flow at the end of the interval, if it has one"),
    ("window_bytes", "flow", "sim", "Window of the flow at the end of the interval, if it has one"),
    ("held_fraction", "flow", "sim", "Fraction of the interval in which On-Ramp held the flow's first packet"),
    ("rtt_us", "flow", "sim", "With `--series rtts`: a round-trip time that the congestion control got, for flows 0 to 3"),
    ("pair_owd_us", "flow", "sim", "With `--series pairs`: one-way delay of a sampled packet"),
    ("pair_last_owd_us", "flow", "sim", "With `--series pairs`: the last one-way delay that the sender knew when it sent the packet, by the hosts' clocks"),
    ("pair_last_rtt_us", "flow", "sim", "With `--series pairs`: the last round-trip time that the sender knew when it sent the packet"),
    ("round_marked_fraction", "flow", "sim", "With `--series rounds`: fraction of the packets of a round of the flow's connection that were marked; at the end of the round"),
    ("round_rtt_us", "flow", "sim", "With `--series rounds`: least round-trip time of the same round"),
];
