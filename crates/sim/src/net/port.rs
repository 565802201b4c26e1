//! Ports: the two queues in front of a line, and the line itself.

use super::fabric::Fabric;
use super::switch::Ingress;
use super::what::What;
use crate::engine::events::Rank;
use crate::net::packet::{Fifo, Kind};
use onramp_units::{Bytes, Rate, Sim, Span, Time};

/// One end of a link. Port n sends to port n ^ 1. Fields stand in the order of how often they are used:
/// the first cache line does for a packet that leaves, with the second for one that comes in.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Port {
    /// When the line is free, and the place of that event, scheduled or not.
    pub free_at: Time<Sim>,
    pub free_place: u64,
    pub data: Fifo,
    delay: Span,
    /// Ever handed to the line.
    pub sent_bytes: u64,
    /// The domain of the other end.
    leads_to: u16,
    /// Which of the network's rates it has.
    pub rate_index: u8,
    pub on_switch: bool,
    /// A line-free event is scheduled.
    pub awaited: bool,
    /// Somebody wants to see what it sends.
    pub captured: bool,
    /// PFC: the other end has paused the data class.
    pub paused: bool,

    /// Strict priority: at a switch PFC frames, at a host acknowledgements.
    pub control: Fifo,
    /// The node it belongs to.
    pub node: u32,
    /// Of a lossless switch: what came in here.
    pub ingress: Ingress,
    /// Marks start above this, and are certain above that.
    pub ecn_bytes: (u64, u64),

    pub rate: Rate,
    /// Since when the data class has been paused, and for how long it had before.
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
            ecn_bytes: (u64::MAX, u64::MAX),
            ingress: Ingress::default(),
        }
    }

    /// What the line holds.
    pub fn in_flight(&self) -> Bytes {
        self.rate.bytes_in(self.delay)
    }

    /// PFC has paused the data class, or lets it go on.
    pub fn set_paused(&mut self, paused: bool, now: Time<Sim>) {
        self.paused_before = self.paused_until(now);
        self.paused_since = now;
        self.paused = paused;
    }

    /// For how long the data class has been paused, all in all.
    pub fn paused_until(&self, now: Time<Sim>) -> Span {
        match self.paused {
            true => self.paused_before + (now - self.paused_since),
            false => self.paused_before,
        }
    }

    /// Whether something could leave if the line were free.
    pub fn has_ready(&self) -> bool {
        !self.control.is_empty() || !self.paused && !self.data.is_empty()
    }
}

/// A port, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortState {
    /// Of its line.
    pub rate: Rate,
    /// Bytes ever handed to the line.
    pub sent: Bytes,
    /// Packets dropped.
    pub drops: u64,
    /// Bytes that wait, the packet under way not counted.
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

    /// Sees to it that the port's node is told when the line is free.
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
