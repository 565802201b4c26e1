// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Additional content of some packets: telemetry, time stamps of On-Ramp, TCP's acknowledgements.

use super::packet::PerPacket;
use onramp_cc::int::IntStack;
use onramp_law::{Hint, Record};
use onramp_units::{Mono, Sim, Time};

/// Content of a data packet, which its OR-ACK or acknowledgement returns; of a kernel host's OR-ACK only the hint.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stamp {
    pub record: Record,
    /// Arrival time at the receiver, on the sender's clock, if known.
    pub received: Option<Time<Mono>>,
    /// What the receiver says about its port.
    pub hint: Hint,
}

/// Content of an acknowledgement: RFC 9293 and the newest blocks of RFC 2018.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Acknowledgement {
    /// All packets below this have arrived.
    pub cumulative: u32,
    /// Ranges of packets above it that have arrived, the newest first; an empty range is unused.
    pub blocks: [(u32, u32); 3],
    /// Number of packets that it acknowledges and that were marked CE.
    pub marked: u32,
    /// Bytes by which the payload of the packet before `cumulative` is less than full.
    pub short: u16,
    /// The packet that arrived last, and when.
    pub last: Option<(u32, Time<Sim>)>,
}

/// The kinds of content that packets of a network have.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Carries {
    pub int: bool,
    pub stamps: bool,
    pub acknowledgements: bool,
}

/// The content of the packets of a domain, by packet.
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
