// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Kinds of traffic: who sends what to whom, and when.
//!
//! Each has one file: its keys, their relations, and its flows. A new one needs a file and a line in the list below
//! (docs/extend.md). Kinds from outside this crate come by [`register_traffic`].

mod all_to_all;
mod entry;
mod incast;
mod long;
pub mod plan;
mod poisson;
mod replay;
mod request;

use crate::hosts::HostId;
use crate::key::{both, Key, Scope};
use crate::setting::Setting;
use crate::types::Run;
use crate::values::registered;
use onramp_cc::Plugs;
use onramp_keys::{choice, section, Absent::Required};
use plan::Plan;
use std::fmt::Debug;
use std::sync::Arc;

pub(crate) use entry::Context;
pub use entry::TrafficEntry;

/// The kinds of this crate, in the order of the documentation.
const BUILT_IN: &[&TrafficKind] = &[
    &incast::KIND,
    &long::KIND,
    &poisson::KIND,
    &request::KIND,
    &all_to_all::KIND,
    &replay::KIND,
];

registered! {
    /// A kind of traffic.
    TrafficName: kinds().map(|kind| (kind.name, kind.about)).collect();
}

section! {
    /// The key that all entries have.
    pub(crate) struct KindKeys in "traffic" with Scope {
        kind: TrafficName = Required, both().fixed(), "Kind of the traffic.";
    }
}

/// A kind of traffic.
#[non_exhaustive]
pub struct TrafficKind {
    /// As scenarios have it: `traffic.kind`.
    pub name: &'static str,
    /// What it is, for the documentation: one sentence without a full stop.
    pub about: &'static str,
    /// Its keys, "traffic.size": those of the [`Section`](onramp_keys::Section) that `read` reads.
    pub keys: &'static [onramp_keys::Key<Scope>],
    /// What results count.
    pub measured: Measured,
    /// Whether the rack has it too.
    pub in_rack: bool,
    /// Reads an entry. `None`: an error has been reported.
    pub read: fn(&mut TrafficEntry<'_>) -> Option<Arc<dyn Generator>>,
}

impl TrafficKind {
    /// A kind that the rack lacks, whose flows count one by one.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        keys: &'static [onramp_keys::Key<Scope>],
        read: fn(&mut TrafficEntry<'_>) -> Option<Arc<dyn Generator>>,
    ) -> TrafficKind {
        TrafficKind {
            name,
            about,
            keys,
            measured: Measured::Flows,
            in_rack: false,
            read,
        }
    }
}

onramp_cc::setters!(TrafficKind {
    /// What results count.
    measured: Measured;
});

onramp_cc::named!(TrafficKind, "traffic kind");

impl Eq for TrafficKind {}

/// What results count of a kind of traffic (docs/metrics.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// The completion time of each flow.
    Flows,
    /// What flows without end achieve.
    Goodput,
    /// Completion times of requests, whose answers arrive at one host.
    Incasts,
    /// Completion times and number of requests, of clients.
    Requests,
    /// Durations of steps.
    Steps,
}

impl Measured {
    /// Whether flows with the same [`request`](plan::Arrival::request) are measured together.
    pub fn is_together(self) -> bool {
        matches!(
            self,
            Measured::Incasts | Measured::Requests | Measured::Steps
        )
    }
}

/// Makes the flows of an entry.
pub trait Generator: Debug + Send + Sync {
    /// Adds all flows of a run. Called once for a run; a function of the entry, the run, and the random numbers that
    /// `plan` gives.
    fn generate(&self, plan: &mut Plan<'_>);

    /// Mean number of flows that [`generate`](Generator::generate) adds to a plan of `run`, computed without adding them.
    fn expected_flows(&self, run: &Run) -> f64;

    /// A receiver; results show the queue in front of the first one.
    fn receiver(&self) -> HostId;

    /// How the data of its flows moves.
    fn op(&self) -> Op {
        Op::Write
    }

    /// Number of connections that the rack keeps open for it.
    fn connections(&self, _run: &Run) -> u64 {
        0
    }
}

/// One `[[traffic]]` entry.
#[derive(Debug, Clone)]
pub struct Traffic {
    pub(crate) kind: &'static TrafficKind,
    pub(crate) generator: Arc<dyn Generator>,
    /// Its keys, which determine the generator.
    pub(crate) settings: Vec<Setting>,
}

impl PartialEq for Traffic {
    fn eq(&self, other: &Traffic) -> bool {
        self.kind == other.kind && self.settings == other.settings
    }
}

impl Traffic {
    /// Its kind.
    pub fn kind(&self) -> &'static TrafficKind {
        self.kind
    }

    /// What results count of it.
    pub fn measured(&self) -> Measured {
        self.kind.measured
    }

    /// What makes its flows.
    pub fn generator(&self) -> &dyn Generator {
        &*self.generator
    }
}

choice! {
    /// The operation (verb) of RDMA by which a NIC moves the data of a flow from its source to its destination.
    pub enum Op {
        /// The source starts the flow and has its congestion control.
        Write = "write",
        /// The destination starts the flow, has its congestion control, and requests the data from the source.
        Read = "read",
    }
}

choice! {
    /// Distribution of the times between requests.
    pub enum Arrivals {
        /// Exponential times.
        Poisson = "poisson",
        /// Constant times; the first request comes after one of them.
        Periodic = "periodic",
    }
}

static PLUGS: Plugs<TrafficKind> = Plugs::new();

/// Adds a kind of traffic of another crate.
///
/// # Panics
/// A kind has this name, or a scenario has been read already.
pub fn register_traffic(kind: &'static TrafficKind) {
    PLUGS.add(kind, BUILT_IN.iter().copied());
}

/// All kinds of traffic, in the order of the documentation.
pub fn kinds() -> impl Iterator<Item = &'static TrafficKind> {
    BUILT_IN.iter().copied().chain(PLUGS.all().iter().copied())
}

/// Names of the kinds that the rack has too.
pub(crate) fn in_rack() -> Vec<&'static str> {
    let in_rack = kinds().filter(|kind| kind.in_rack);
    in_rack.map(|kind| kind.name).collect()
}

/// The kind of that name.
pub fn kind(name: &str) -> Option<&'static TrafficKind> {
    kinds().find(|kind| kind.name == name)
}

impl TrafficKind {
    /// Its key of that name.
    pub(crate) fn key(&self, path: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.path == path)
    }
}
