//! What traffic a checked scenario has: its `[[traffic]]` entries. As of the other [types](crate::types),
//! whoever holds one need not check it again.

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
    /// An aggregator asks many servers at once.
    Incast(Incast),
    /// Flows that never run out of data.
    Long(Long),
    /// Independent flows of random sizes.
    Poisson(Poisson),
    /// Clients that ask and are answered.
    Request(Request),
    /// Hosts that all send to each other, step by step.
    AllToAll(AllToAll),
    /// Flows of a list.
    Replay(Replay),
}

section! {
    /// Aggregators each ask `fanout` servers, every one answers `size` bytes at once, or one after the other. The
    /// request completion time runs from the first answer's start to the last byte of the last to come.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Incast in "traffic" {
        /// The aggregators: each asks on its own.
        to: Receivers;
        /// Servers.
        from: Sources;
        /// Answers to a request. Beyond the number of servers, some answer more than once, on
        /// separate connections.
        fanout: u32;
        /// Of one answer.
        size: Bytes;
        /// Of what a server is asked with; 0: it knows without being asked.
        ask_size: Bytes;
        /// How regular requests are.
        arrivals: Arrivals;
        /// Stop after so many.
        requests: Option<u64>;
        /// Each answer starts so much later than the one before.
        stagger: Span;
        /// And at random up to this much later still.
        jitter: Span;
    } and {
        /// How far apart requests are.
        spacing: Spacing;
    }
}

/// How far apart requests are on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spacing {
    /// Such that the answers take this fraction of the aggregator's link (payload bytes).
    Load(Fraction),
    /// This far.
    Interval(Span),
}

/// How regular requests are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Arrivals {
    /// Exponential gaps.
    Poisson,
    /// Equal gaps; the first request after one gap.
    Periodic,
}

/// Flows that always have data to send between `start` and `stop`.
#[derive(Debug, Clone, PartialEq)]
pub struct Long {
    /// Where flows come from; several hosts take turns, the lowest number first.
    pub from: Sources,
    /// Where they go.
    pub to: HostId,
    /// How many.
    pub flows: u32,
    /// First byte, since the run's start.
    pub start: Span,
    /// Last byte, since the run's start; at most the duration.
    pub stop: Span,
}

/// Flows that start at random, with sizes from a workload, at a load (payload bytes) of each
/// receiver's link.
#[derive(Debug, Clone, PartialEq)]
pub struct Poisson {
    /// Distribution of flow sizes.
    pub workload: Workload,
    /// Of each receiver's link.
    pub load: Fraction,
    /// Where flows come from; of several hosts, each flow picks one at random.
    pub from: Sources,
    /// Where they go.
    pub to: Receivers,
}

section! {
    /// Clients that send a server a request, which it answers when it has all of it. A request is over
    /// when the client has the answer.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Request in "traffic" {
        /// The clients.
        to: Receivers;
        /// Servers; each request picks one at random.
        from: Sources;
        /// Of a request.
        request_size: Bytes;
        /// Of an answer.
        size: Bytes;
        /// How regular its gaps are.
        arrivals: Arrivals;
        /// Each client stops after so many.
        requests: Option<u64>;
    } and {
        /// When a client asks.
        asking: Asking;
    }
}

/// When a client asks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asking {
    /// Such that the answers take this fraction of its link, whatever is not answered yet.
    Load(Fraction),
    /// This long after an answer, with so many requests under way.
    Think {
        /// On average.
        time: Span,
        /// At most under way.
        concurrency: u32,
    },
}

section! {
    /// Steps of a collective operation. A host begins its next step `interval` after it has everything
    /// that it is sent in this one. A step's completion time runs from its first flow's start to its last
    /// byte.
    #[derive(Debug, Clone, PartialEq)]
    pub struct AllToAll in "traffic" {
        /// Which hosts.
        among: Receivers;
        /// Who sends to whom.
        pattern: Pattern;
        /// Of each flow; with [`Pattern::Ring`], of what is reduced.
        size: Bytes;
        /// What a host does between two steps.
        interval: Option<Span>;
        /// When the first step starts.
        start: Span;
        /// Stop after so many.
        steps: Option<u64>;
    }
}

impl AllToAll {
    /// What a host does between two steps takes this long.
    pub fn pause(&self) -> Span {
        self.interval.unwrap_or(Span::ZERO)
    }
}

/// What a step of [`AllToAll`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Pattern {
    /// Every host sends to every other at once.
    Direct,
    /// All-reduce: of `n` hosts each passes an n-th of the data to the next one, 2 (n - 1) times.
    Ring,
}

/// The flows of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// As the scenario gives it.
    pub path: String,
    /// In the order of their starts.
    pub flows: Arc<Vec<ListedFlow>>,
}

/// Sending hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sources {
    /// This one.
    Host(HostId),
    /// These, first to last, but for the receiver.
    Range(HostId, HostId),
    /// All but the receiver.
    Others,
}

/// Receiving hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receivers {
    /// This one.
    Host(HostId),
    /// These, first to last.
    Range(HostId, HostId),
    /// Every host.
    All,
}

/// A distribution of flow sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Of workloads/, or the path of a file.
    pub name: String,
    /// Of its flows.
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
    /// As scenarios have it.
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
}
