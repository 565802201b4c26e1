//! TCP as Linux has it, without sockets, clocks and packets: what to send, and what arrives means.
//!
//! Sequence numbers count packets: every packet but a flow's last is full, so the n-th has a fixed
//! place. Connections exist from the start: no handshakes. Does not: know queues or the network.

pub mod receiver;
mod rtt;
pub mod sender;

/// What an acknowledgement says: RFC 9293 and the newest blocks of RFC 2018.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Acknowledgement {
    /// All packets below this have arrived.
    pub cumulative: u32,
    /// Runs of packets above it that have arrived, the newest first; an empty run is none.
    pub blocks: [(u32, u32); 3],
    /// Packets that it acknowledges and that were marked CE.
    pub marked: u32,
    /// Payload that the packet before `cumulative` lacks to be full.
    pub short: u16,
}
