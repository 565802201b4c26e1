//! What some packets carry beside their headers: telemetry, time stamps of On-Ramp, TCP's acknowledgements.

use super::packet::PerPacket;
use onramp_cc::int::IntStack;
use onramp_law::Record;
use onramp_units::{Mono, Time};

/// What a data packet carries, and its OR-ACK or acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stamp {
    pub record: Record,
    /// When the receiver had the packet, on the sender's clock, if it says so.
    pub received: Option<Time<Mono>>,
}

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

/// Which of these the packets of a network have.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Carries {
    pub int: bool,
    pub stamps: bool,
    pub acknowledgements: bool,
}

/// What the packets of a domain carry, by packet.
pub(crate) struct Carried {
    pub has: Carries,
    pub stacks: PerPacket<IntStack>,
    pub stamps: PerPacket<Stamp>,
    pub acknowledgements: PerPacket<Acknowledgement>,
}

impl Carried {
    pub fn new(has: Carries) -> Carried {
        Carried {
            has,
            stacks: PerPacket::new(),
            stamps: PerPacket::new(),
            acknowledgements: PerPacket::new(),
        }
    }
}
