//! A flow of the plan, and what became of it.

use onramp_scenario::Work;
use onramp_units::{Bytes, Sim, Span, Time};

/// A flow of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// When its data is there.
    pub start: Time<Sim>,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// How much.
    pub work: Work,
}

/// What became of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// From its start to the last acknowledgement at the sender; `None`: it is not over, or had no
    /// size.
    pub acked: Option<Span>,
    /// From its start to the last byte at the receiver; `None`: as above.
    pub arrived: Option<Span>,
    /// Payload that the receiver had in order when the flow was over; until then zero.
    pub received: Bytes,
    /// For how long On-Ramp held its head.
    pub held: Span,
    /// Packets sent again.
    pub retransmissions: u32,
    /// Times that it waited in vain for an acknowledgement.
    pub timeouts: u32,
}
