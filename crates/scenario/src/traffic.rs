// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The traffic of a checked scenario: its `[[traffic]]` entries. Like the other [types](crate::types) they need
//! no further check.

use crate::section::section;
use crate::types::HostId;
use crate::{Distribution, Fraction, ListedFlow};
use onramp_units::{Bytes, Span};
use std::sync::Arc;
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

/// Kind of a `[[traffic]]` entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// [`Incast`].
    Incast,
    /// [`Long`].
    Long,
    /// [`Poisson`].
    Poisson,
    /// [`Request`].
    Request,
    /// [`AllToAll`].
    AllToAll,
    /// [`Replay`].
    Replay,
}

/// One `[[traffic]]` entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    /// An aggregator sends a request to many servers at once.
    Incast(Incast),
    /// Flows that never run out of data.
    Long(Long),
    /// Independent flows of random sizes.
    Poisson(Poisson),
    /// Clients that send requests, and servers that answer.
    Request(Request),
    /// Hosts that all send to each other, step by step.
    AllToAll(AllToAll),
    /// Flows of a list.
    Replay(Replay),
}

/// The operation (verb) of RDMA by which a NIC moves the data of a flow from its source to its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Op {
    /// The source starts the flow and has its congestion control.
    Write,
    /// The destination starts the flow, has its congestion control, and requests the data from the source.
    Read,
}

section! {
    /// Each aggregator requests `size` bytes from each of `fanout` servers, which answer at once or one after the
    /// other. The request completion time runs from the start of the first answer to the last byte that arrives.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Incast in "traffic" {
        /// The aggregators, which are independent.
        to: Receivers;
        /// Servers.
        from: Sources;
        /// Number of answers to a request. If there are more than servers, some servers answer more than once, on
        /// separate connections.
        fanout: u32;
        /// Size of one answer.
        size: Bytes;
        /// Size of the request to a server; 0: servers answer without a request.
        ask_size: Bytes;
        /// Distribution of the times between requests.
        arrivals: Arrivals;
        /// Stop after this number.
        requests: Option<u64>;
        /// Delay between the starts of two successive answers.
        stagger: Span;
        /// Largest random delay in addition.
        jitter: Span;
        /// Of the answers.
        op: Op;
    } and {
        /// Mean time between requests.
        spacing: Spacing;
    }
}

/// Mean time between requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spacing {
    /// The answers take this fraction of the aggregator's link (payload bytes).
    Load(Fraction),
    /// This time.
    Interval(Span),
}

/// Distribution of the times between requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Arrivals {
    /// Exponential times.
    Poisson,
    /// Constant times; the first request comes after one of them.
    Periodic,
}

/// Flows that always have data to send between `start` and `stop`.
#[derive(Debug, Clone, PartialEq)]
pub struct Long {
    /// The senders: several hosts send in round robin, the lowest number first.
    pub from: Sources,
    /// The receivers.
    pub to: HostId,
    /// Number of flows.
    pub flows: u32,
    /// Time of the first byte since the start of the run.
    pub start: Span,
    /// Time of the last byte since the start of the run; at most the duration.
    pub stop: Span,
    /// How the data moves.
    pub op: Op,
}

/// Flows that start at random, with sizes from a workload, at a load (payload bytes) of each
/// receiver's link.
#[derive(Debug, Clone, PartialEq)]
pub struct Poisson {
    /// Distribution of flow sizes.
    pub workload: Workload,
    /// Fraction of each receiver's link.
    pub load: Fraction,
    /// The senders: each flow has a random one.
    pub from: Sources,
    /// The receivers.
    pub to: Receivers,
    /// How the data moves.
    pub op: Op,
}

section! {
    /// Clients that send a request to a server. The server answers when the request has arrived. The request is
    /// complete when the client has the answer.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Request in "traffic" {
        /// The clients.
        to: Receivers;
        /// The servers: each request has a random one.
        from: Sources;
        /// Size of a request.
        request_size: Bytes;
        /// Size of an answer.
        size: Bytes;
        /// Distribution of the times between requests.
        arrivals: Arrivals;
        /// Each client stops after this number.
        requests: Option<u64>;
    } and {
        /// When a client sends a request.
        asking: Asking;
    }
}

/// When a client sends a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asking {
    /// Independent of answers: the answers take this fraction of the client's link.
    Load(Fraction),
    /// A time after an answer, with a limited number of requests in progress.
    Think {
        /// Mean of that time.
        time: Span,
        /// Largest number of requests in progress.
        concurrency: u32,
    },
}

section! {
    /// Steps of a collective operation. A host begins its next step `interval` after all data of this step has
    /// arrived there. The completion time of a step runs from the start of its first flow to its last byte.
    #[derive(Debug, Clone, PartialEq)]
    pub struct AllToAll in "traffic" {
        /// The hosts.
        among: Receivers;
        /// Who sends to whom.
        pattern: Pattern;
        /// Size of each flow; with [`Pattern::Ring`], of the data that is reduced.
        size: Bytes;
        /// Time that a host computes between two steps.
        interval: Option<Span>;
        /// When the first step starts.
        start: Span;
        /// Stop after this number.
        steps: Option<u64>;
    }
}

impl AllToAll {
    /// Time that a host computes between two steps.
    pub fn pause(&self) -> Span {
        self.interval.unwrap_or(Span::ZERO)
    }
}

/// The flows of a step of [`AllToAll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Pattern {
    /// Every host sends to every other host at once.
    Direct,
    /// All-reduce: of `n` hosts each passes an n-th of the data to the next one, 2 (n - 1) times.
    Ring,
}

/// Flows from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Path as the scenario gives it.
    pub path: String,
    /// Flows in the order of their starts.
    pub flows: Arc<Vec<ListedFlow>>,
}

/// Sending hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// One host.
    Host(HostId),
    /// These hosts, first to last, except the receiver.
    Range(HostId, HostId),
    /// All hosts except the receiver.
    Others,
}

/// Receiving hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receivers {
    /// One host.
    Host(HostId),
    /// These hosts, first to last.
    Range(HostId, HostId),
    /// Every host.
    All,
}

/// A distribution of flow sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// A name of workloads/, or the path of a file.
    pub name: String,
    /// Distribution of flow sizes.
    pub distribution: Arc<Distribution>,
}

/// The distributions of workloads/.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum BuiltIn {
    /// The DCTCP paper's web search.
    Websearch,
    /// Facebook's Hadoop cluster.
    FbHadoop,
    /// Google search RPCs: Homa's W2.
    GoogleSearchRpc,
}

impl Kind {
    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Traffic {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Traffic::Incast(_) => Kind::Incast,
            Traffic::Long(_) => Kind::Long,
            Traffic::Poisson(_) => Kind::Poisson,
            Traffic::Request(_) => Kind::Request,
            Traffic::AllToAll(_) => Kind::AllToAll,
            Traffic::Replay(_) => Kind::Replay,
        }
    }

    /// How the data of its flows moves.
    pub fn op(&self) -> Op {
        match self {
            Traffic::Incast(incast) => incast.op,
            Traffic::Long(long) => long.op,
            Traffic::Poisson(poisson) => poisson.op,
            Traffic::Request(_) | Traffic::AllToAll(_) | Traffic::Replay(_) => Op::Write,
        }
    }
}
