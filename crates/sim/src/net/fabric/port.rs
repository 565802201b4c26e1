// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Ports: a line and its two queues.

use super::memory::Ingress;
use super::Fabric;
use crate::engine::events::Rank;
use crate::net::packet::{Fifo, Kind};
use crate::net::what::What;
use onramp_units::{Bytes, Rate, Sim, Span, Time};

/// One end of a link. Port n sends to port n ^ 1. Fields are ordered by frequency of use: a packet that
/// leaves needs only the first cache line, and a packet that comes in also needs the second.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Port {
    /// Time at which the line is free, and the place of that event, which may not be scheduled.
    pub free_at: Time<Sim>,
    pub free_place: u64,
    pub data: Fifo,
    delay: Span,
    /// Bytes sent so far.
    pub sent_bytes: u64,
    /// The domain of the other end.
    leads_to: u16,
    /// Index of its rate among the network's rates.
    pub rate_index: u8,
    pub on_switch: bool,
    /// Whether a line-free event is scheduled.
    pub awaited: bool,
    /// Whether its packets are captured.
    pub captured: bool,
    /// PFC: the other end has paused the data class.
    pub paused: bool,

    /// Strict priority: at a switch PFC frames and acknowledgements with priority, at a host acknowledgements.
    pub control: Fifo,
    /// The node it belongs to.
    pub node: u32,
    /// At a lossless switch: the bytes that came in here.
    pub ingress: Ingress,
    /// The shortest queue at which its rule is asked about a packet.
    pub asks_from: u64,

    pub rate: Rate,
    /// Start of the current pause of the data class, and the total time of earlier pauses.
    paused_since: Time<Sim>,
    paused_before: Span,
    /// Packets for this port that found no room.
    pub drops: u64,
}

impl Port {
    pub fn new(node: u32, on_switch: bool, (rate, delay): (Rate, Span), leads_to: u16) -> Port {
        Port {
            node,
            on_switch,
            awaited: false,
            captured: false,
            paused: false,
            paused_since: Time::ZERO,
            paused_before: Span::ZERO,
            rate_index: 0,
            rate,
            delay,
            free_at: Time::ZERO,
            free_place: 0,
            leads_to,
            control: Fifo::EMPTY,
            data: Fifo::EMPTY,
            sent_bytes: 0,
            drops: 0,
            asks_from: u64::MAX,
            ingress: Ingress::default(),
        }
    }

    /// Bytes in flight on the line.
    pub fn in_flight(&self) -> Bytes {
        self.rate.bytes_in(self.delay)
    }

    /// Pauses or resumes the data class (PFC).
    pub fn set_paused(&mut self, paused: bool, now: Time<Sim>) {
        self.paused_before = self.paused_until(now);
        self.paused_since = now;
        self.paused = paused;
    }

    /// Total time for which the data class has been paused.
    pub fn paused_until(&self, now: Time<Sim>) -> Span {
        match self.paused {
            true => self.paused_before + (now - self.paused_since),
            false => self.paused_before,
        }
    }

    /// Whether a packet could leave if the line were free.
    pub fn has_ready(&self) -> bool {
        !self.control.is_empty() || !self.paused && !self.data.is_empty()
    }
}

/// A port, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortState {
    /// Rate of its line.
    pub rate: Rate,
    /// Bytes sent so far.
    pub sent: Bytes,
    /// Packets dropped.
    pub drops: u64,
    /// Bytes that wait, without the packet in transmission.
    pub queued: Bytes,
    /// Time until the line is free.
    pub wait: Span,
}

impl Fabric {
    pub(crate) fn port_state(&self, port: u32, now: Time<Sim>) -> PortState {
        let port = &self.ports[port as usize];
        let waiting = Bytes::new(port.control.bytes + port.data.bytes);
        let sending = (port.free_at - now).max(Span::ZERO);
        PortState {
            rate: port.rate,
            sent: Bytes::new(port.sent_bytes),
            drops: port.drops,
            queued: waiting,
            wait: sending + port.rate.time_to_send(waiting),
        }
    }

    /// Whether the line is free in the order of events.
    pub(crate) fn line_is_free(&self, port: u32) -> bool {
        let port = &self.ports[port as usize];
        (port.free_at, port.free_place) <= (self.now, self.place)
    }

    /// Ensures that a line-free event is scheduled.
    pub(crate) fn await_line(&mut self, port: u32) {
        let line = &mut self.ports[port as usize];
        if !line.awaited {
            line.awaited = true;
            let what = What::LineFree { port };
            self.events
                .schedule_in_place(line.free_at, line.free_place, what);
        }
    }

    /// Hands a packet to the line, which is free.
    #[inline]
    pub(crate) fn transmit(&mut self, port: u32, id: u32) {
        if self.ports[port as usize].captured {
            self.note_sent(port, id);
        }
        let line = &mut self.ports[port as usize];
        let packet = &mut self.packets[id];
        line.sent_bytes += u64::from(packet.wire_bytes);
        packet.at_port = port as u16 ^ 1;
        let wire_time = self.wire_times[usize::from(line.rate_index)].of(packet.wire_bytes);
        line.free_at = self.now + wire_time;
        line.free_place = self.events.place(line.free_at, Rank::Line(port));
        let (arrival, leads_to) = (line.free_at + line.delay, usize::from(line.leads_to));
        if !matches!(packet.kind, Kind::Pause | Kind::Resume) {
            self.counters.packet_hops += 1;
        }
        self.send_to(leads_to, arrival, id);
    }
}
