// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The configuration of a host's synchronisation.

use std::{
    net::SocketAddr,
    sync::{atomic::AtomicBool, Arc},
};

use onramp_sync::synthetic::Synthetic;
use onramp_units::Span;

use crate::keys::Keys;

/// How long fleet time may be used after the last verdict, if nobody says otherwise. The death of a leader is bridged: its next verdict
/// was due 2 s after the last one at most, etcd removes it within 2.9 s, and the next leader's first verdict comes 0.5 s later.
pub const USUAL_LEASE: Span = Span::from_s(6);

/// How a host takes part in its fleet. The caller checks that spans are above 0.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address of this host.
    pub own: SocketAddr,
    /// Keys that sign and check messages.
    pub keys: Keys,
    /// False with the well-known key.
    pub authenticated: bool,
    /// Neighbours of a host in the mesh.
    pub degree: usize,
    /// Time between two pairs of probes of an edge.
    pub interval: Span,
    /// How long fleet time may be used after the last verdict.
    pub lease: Span,
    /// Whether the system clock follows the leader's.
    pub discipline: bool,
    /// Set while this host lacks a processor for too long to lead, for whoever registers it.
    pub unfit: Arc<AtomicBool>,
    /// Errors that tests add to the clock; none otherwise.
    pub synthetic: Synthetic,
}
