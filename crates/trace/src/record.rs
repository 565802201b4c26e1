// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The records of a trace, one JSON object a line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the format. Another version is refused.
pub const VERSION: u32 = 1;

/// A line of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// The first line of each file.
    Head(Head),
    /// A flow: bytes that one connection sends without a pause of `gap_ns`.
    Flow(Flow),
    /// A peer in an hour, or in the part of it in which the daemon ran.
    Hour(Hour),
}

/// The first line of each file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// Version of the format.
    pub version: u32,
    /// Version of the daemon.
    pub onramp: String,
    /// `plain`, or `hashed`: by the key that signs OR-ACKs, so that traces of one fleet have the same names.
    pub addresses: String,
    /// True if the daemon only observes: nothing was held.
    pub observes: bool,
    /// Source of the time of flows: `local`, `huygens`, `system` or `phc`. Only traces with `huygens` have a common time.
    pub clock: String,
    /// Time between two looks at the flows.
    pub look_ns: i64,
    /// A longer pause between two sampled segments ends a flow.
    pub gap_ns: i64,
    /// The devices of the daemon.
    pub devices: Vec<Device>,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its line rate; none if it is not known.
    pub line_rate_bits_per_s: Option<u64>,
}

/// A flow: bytes that one connection sends without a pause of `gap_ns`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Address of the sender.
    pub from: String,
    /// TCP port of the sender.
    pub from_port: u16,
    /// Address of the receiver.
    pub to: String,
    /// TCP port of the receiver.
    pub to_port: u16,
    /// When it began, in fleet time.
    pub start_fleet_ns: i64,
    /// From the first to the last segment that is known.
    pub duration_ns: i64,
    /// Payload, without retransmissions.
    pub size_bytes: u64,
    /// Its one-way delays; none if no look saw an OR-ACK.
    pub delays: Option<Delays>,
    /// How long it was held, or with `observes` would have been: the number of looks that saw it held, times `look_ns`.
    pub held_ns: i64,
}

/// One-way delays that the looks saw: at most one a look, the newest OR-ACK's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delays {
    /// Number of delays.
    pub samples: u32,
    /// The least.
    pub min_ns: i64,
    /// The median.
    pub p50_ns: i64,
    /// The 99th percentile.
    pub p99_ns: i64,
}

impl Delays {
    /// Statistics of these delays, which are sorted here; none if there are none. Percentiles by the nearest rank.
    pub fn of(delays_ns: &mut [i64]) -> Option<Delays> {
        delays_ns.sort_unstable();
        let rank = |percent: usize| (delays_ns.len() * percent).div_ceil(100).max(1) - 1;
        Some(Delays {
            samples: u32::try_from(delays_ns.len()).unwrap_or(u32::MAX),
            min_ns: *delays_ns.first()?,
            p50_ns: delays_ns[rank(50)],
            p99_ns: delays_ns[rank(99)],
        })
    }
}

/// A peer in an hour, or in the part of it in which the daemon ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hour {
    /// Begin of the hour, or of the daemon: seconds since 1970, UTC.
    pub from_unix_s: u64,
    /// How long the record lasts.
    pub span_ns: i64,
    /// Address of the peer.
    pub to: String,
    /// Payload sent to it, without retransmissions.
    pub size_bytes: u64,
    /// Delays that the looks saw.
    pub samples: u64,
    /// The least of them; 0 without a sample, as the next two.
    pub owd_min_ns: i64,
    /// Their mean.
    pub owd_mean_ns: i64,
    /// The largest.
    pub owd_max_ns: i64,
    /// Threshold T of the peer when the record was written; 0: none is known.
    pub threshold_ns: i64,
    /// Samples above T.
    pub samples_above: u64,
    /// Mean of all samples' delay above T (0 for those below): what holding can take away at most.
    pub above_mean_ns: i64,
    /// For how long its flows were held together, or with `observes` would have been.
    pub held_ns: i64,
}
