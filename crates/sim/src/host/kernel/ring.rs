// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The NIC of a kernel host: what the queueing discipline has handed down and the wire has not sent, in order.

use crate::net::fabric::Fabric;
use crate::tcp::sender::Segment;
use onramp_law::NicCounts;
use onramp_units::{Mono, Time};
use std::collections::VecDeque;

/// The transmit ring.
#[derive(Default)]
pub(super) struct Ring {
    waiting: VecDeque<Waiting>,
    /// Bytes that the wire has not begun to send.
    pub bytes: u64,
    /// Bytes handed down so far, modulo 2^32, and the size of the last packet sent.
    given: u32,
    last: u32,
    /// What the control law knows of it.
    law: onramp_law::Nic,
}

/// What waits in a ring.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waiting {
    /// An acknowledgement, an OR-ACK or a probe.
    Packet(u32),
    /// A segment.
    Burst(Burst),
}

/// A segment on its way to the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burst {
    pub connection: u32,
    pub segment: Segment,
    /// Packets sent.
    pub sent: u32,
}

impl Ring {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The queueing discipline hands `what` down, of this size.
    pub fn push(&mut self, what: Waiting, bytes: u32) {
        self.waiting.push_back(what);
        self.bytes += u64::from(bytes);
        self.given = self.given.wrapping_add(bytes);
    }

    pub fn front(&mut self) -> Option<&mut Waiting> {
        self.waiting.front_mut()
    }

    /// The wire begins to send `bytes` of the front, and `ends` it.
    pub fn sends(&mut self, bytes: u16, ends: bool) {
        self.bytes -= u64::from(bytes);
        self.last = bytes.into();
        if ends {
            self.waiting.pop_front();
        }
    }

    /// First packet of the segments here of a connection.
    pub fn first_packet_of(&self, connection: u32) -> Option<u32> {
        let segments = self.waiting.iter().filter_map(|what| match what {
            Waiting::Burst(burst) => (burst.connection == connection).then_some(burst.segment),
            Waiting::Packet(_) => None,
        });
        segments.map(|segment| segment.first).min()
    }

    /// When the wire begins to send `bytes` that are about to be handed down, as the law estimates it from what
    /// a driver counts.
    pub fn leaves(
        &mut self,
        law: &onramp_law::Config,
        now: Time<Mono>,
        (net, port): (&Fabric, u32),
        bytes: u32,
    ) -> Time<Mono> {
        let sending = match net.line_is_free(port) {
            true => 0,
            false => self.last,
        };
        let counts = NicCounts {
            given: self.given,
            sent: self.given.wrapping_sub(self.bytes as u32 + sending),
        };
        self.law.leaves(law, now, counts, bytes)
    }
}
