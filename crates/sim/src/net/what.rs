// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Kinds of events. Lines have two kinds. The others belong to hosts; the network only knows their names.

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A packet arrives at a port.
    Arrival { packet: u32 },
    /// A port's line is free.
    LineFree { port: u32 },
    /// A host wakes to send.
    Wake { host: u32 },
    /// A timer of the congestion control of a NIC's connection expires, in ns-3's order of events.
    CcTimer { connection: u32, timer: u8 },
    /// The retransmission timer of a NIC's connection expires.
    Timeout { connection: u32 },
    /// A timer of a TCP sender may expire.
    TcpTimer { connection: u32 },
    /// A delayed acknowledgement of a TCP receiver is due.
    Acknowledge { connection: u32 },
    /// A host's NIC interrupts.
    Interrupt { host: u32 },
    /// A flow without size stops.
    Stop { flow: u32 },
    /// An edge's next probe is due.
    Probe { edge: u32 },
    /// Flows of the plan are due, in ns-3's order of events: each is made, and then starts.
    FlowsDue,
    /// A flow of the plan is made, in ns-3's order of events.
    FlowMade { flow: u32 },
    /// A flow of the plan starts.
    FlowStart { flow: u32 },
    /// A kernel host sends a request for a flow of the plan.
    Ask { flow: u32 },
    /// The request arrives.
    Asked { packet: u32 },
}
