//! Ports: the two queues in front of a line, and the line itself.

use crate::events::What;
use crate::packet::{Fifo, Kind};
use crate::simulation::Simulation;
use onramp_units::{Bytes, Rate, Sim, Span, Time};

/// One end of a link. Port n sends to port n ^ 1.
pub(crate) struct Port {
    /// The node it belongs to.
    pub node: u32,
    pub on_switch: bool,
    /// A line-free event is scheduled.
    pub awaited: bool,
    /// Somebody wants to see what it sends.
    pub captured: bool,
    /// PFC: the other end has paused the data class; since when, and for how long it had before.
    pub paused: bool,
    paused_since: Time<Sim>,
    paused_before: Span,
    /// Which of the network's rates it has.
    pub rate_index: u8,
    /// PFC: this end has paused the other's data class.
    pub pausing: bool,
    /// Alpha of the dynamic threshold is 2^-shift.
    pub threshold_shift: i8,
    pub rate: Rate,
    pub delay: Span,
    /// When the line is free, and the number that event has, scheduled or not.
    pub free_at: Time<Sim>,
    pub free_number: u64,
    /// Strict priority: PFC frames, and acknowledgements if so configured.
    pub control: Fifo,
    pub data: Fifo,
    /// Ever handed to the line.
    pub sent_bytes: u64,
    /// Packets for this port that found no room.
    pub drops: u64,
    /// Marks start above this, and are certain above that.
    pub ecn_bytes: (u64, u64),
    /// Bytes that came in here and are in the switch: in reserve and shared pool, in headroom.
    pub pool_bytes: u64,
    pub headroom_used: u64,
    pub headroom: u64,
}

impl Port {
    pub fn new(node: u32, on_switch: bool, rate: Rate, delay: Span) -> Port {
        Port {
            node,
            on_switch,
            awaited: false,
            captured: false,
            paused: false,
            paused_since: Time::ZERO,
            paused_before: Span::ZERO,
            rate_index: 0,
            pausing: false,
            threshold_shift: 0,
            rate,
            delay,
            free_at: Time::ZERO,
            free_number: 0,
            control: Fifo::EMPTY,
            data: Fifo::EMPTY,
            sent_bytes: 0,
            drops: 0,
            ecn_bytes: (u64::MAX, u64::MAX),
            pool_bytes: 0,
            headroom_used: 0,
            headroom: 0,
        }
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

impl Simulation {
    /// The switch port that leads to `host`, now.
    pub fn port_to(&self, host: u32, now: Time<Sim>) -> PortState {
        self.port_state(self.nics[host as usize].port ^ 1, now)
    }

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
        (port.free_at, port.free_number) <= (self.now, self.number)
    }

    /// Sees to it that the port's node is told when the line is free.
    pub(crate) fn await_line(&mut self, port: u32) {
        let line = &mut self.ports[port as usize];
        if !line.awaited {
            line.awaited = true;
            let what = What::LineFree { port };
            self.events
                .schedule_reserved(line.free_at, line.free_number, what);
        }
    }

    /// Hands a packet to the line, which is free.
    pub(crate) fn transmit(&mut self, port: u32, id: u32) {
        if self.ports[port as usize].captured {
            self.capture(port, id);
        }
        let line = &mut self.ports[port as usize];
        let packet = &mut self.packets[id];
        line.sent_bytes += u64::from(packet.wire_bytes);
        packet.at_port = port as u16 ^ 1;
        let wire_time = self.wire_times[usize::from(line.rate_index)].of(packet.wire_bytes);
        line.free_at = self.now + wire_time;
        line.free_number = self.events.reserve();
        let arrival = line.free_at + line.delay;
        self.events.schedule(arrival, What::Arrival { packet: id });
        if !matches!(packet.kind, Kind::Pause | Kind::Resume) {
            self.counters.packet_hops += 1;
        }
    }
}
