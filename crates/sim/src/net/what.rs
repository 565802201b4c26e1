//! What the events of a simulation are. Lines have two kinds; hosts have the others, of which the network
//! knows the name alone.

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A packet is at the port that it was sent to.
    Arrival { packet: u32 },
    /// A port's line is free.
    LineFree { port: u32 },
    /// A host wanted to be asked again.
    Wake { host: u32 },
    /// A NIC's connection may have waited too long.
    Timeout { connection: u32 },
    /// A timer of a TCP sender may be due.
    TcpTimer { connection: u32 },
    /// A TCP receiver has put off an acknowledgement until now.
    Acknowledge { connection: u32 },
    /// A host's NIC interrupts.
    Interrupt { host: u32 },
    /// A flow without size stops.
    Stop { flow: u32 },
    /// An edge's next probe is due.
    Probe { edge: u32 },
    /// A flow of the plan starts.
    FlowStart { flow: u32 },
    /// A kernel host asks another for a flow of the plan.
    Ask { flow: u32 },
    /// The question has come.
    Asked { packet: u32 },
}
