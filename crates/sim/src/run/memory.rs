// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Estimates the memory of a run before it is made.

use super::build::topology;
use super::observe::SAMPLES;
use super::BuildError;
use crate::host::kernel::{Incoming, Outgoing};
use onramp_scenario::{expected_flows, Connections, HostSettings, PortName, Run, BUSIEST};
use onramp_units::{Bytes, Span};

/// What any run needs: tables, packets, the wheel of events, series.
const FIXED: f64 = 100e6;
/// What a flow of the plan needs: 130 to 152 B by kind of traffic with 2 to 9.5 million flows (docs/simulator.md),
/// plus a margin while tables grow. Few flows are in progress at the same time.
const OF_A_FLOW: f64 = 200.0;
/// Both ends of a finished connection.
const OF_A_CONNECTION: f64 = (size_of::<Outgoing>() + size_of::<Incoming>()) as f64;
/// What a port needs in each domain: queues, and packets that wait.
const OF_A_PORT: f64 = 10_000.0;
/// The queueing delays of a port.
const OF_SAMPLES: f64 = (SAMPLES as usize * size_of::<Span>()) as f64;

/// Approximate upper bound of the memory of a run in `parts` domains.
///
/// # Errors
/// An invalid network.
pub fn memory_needed(run: &Run, parts: usize) -> Result<Bytes, BuildError> {
    let ports = 2 * topology(&run.network)?.links().len() * parts.max(1);
    let opens_new = |of: HostSettings<'_>| of.host.connections == Connections::New;
    let connection = match run.each_settings().any(opens_new) {
        false => 0.0, // few
        true => OF_A_CONNECTION,
    };
    let is_busiest = |port: &PortName| port.0 == BUSIEST;
    let of_port = match run.measure().ports.iter().any(is_busiest) {
        true => OF_A_PORT + OF_SAMPLES,
        false => OF_A_PORT,
    };
    let flows = expected_flows(run) * (OF_A_FLOW + connection);
    Ok(Bytes::new((FIXED + flows + ports as f64 * of_port) as u64))
}
