// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A flow of the plan, and what became of it.

use crate::net::ecmp;
use onramp_scenario::{Op, Work};
use onramp_units::{Bytes, Sim, Span, Time};

/// A flow of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// When its data is there, and a read begins to request it.
    pub start: Time<Sim>,
    /// Sending host: the one that has the data, also of a read.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// How much.
    pub work: Work,
    /// How the data moves.
    pub op: Op,
}

impl Flow {
    /// The host that starts it and has its congestion control, and the other one.
    pub(crate) fn opener_and_peer(&self) -> (u32, u32) {
        match self.op {
            Op::Write => (self.src, self.dst),
            Op::Read => (self.dst, self.src),
        }
    }

    /// Source and destination port of its data, if it has this number among those of its hosts.
    pub(crate) fn ports(&self, ordinal: u16) -> (u16, u16) {
        let (opener, peer) = ecmp::flow_ports(ordinal.into());
        match self.op {
            Op::Write => (opener, peer),
            Op::Read => (peer, opener),
        }
    }
}

/// What became of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// From its start to the last acknowledgement at the sender; `None`: it is not over, or had no
    /// size.
    pub acked: Option<Span>,
    /// From its start to the last byte at the receiver; `None`: as above.
    pub arrived: Option<Span>,
    /// Payload that the receiver had in order when the flow was over, or has so far.
    pub received: Bytes,
    /// For how long On-Ramp held its head.
    pub held: Span,
    /// Packets sent again.
    pub retransmissions: u32,
    /// Times that it waited in vain for an acknowledgement.
    pub timeouts: u32,
}
