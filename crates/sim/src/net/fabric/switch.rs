// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Switches: admission to the shared buffer ([`super::memory`]), priority flow control, rules, telemetry.

use super::memory::{shifted, RESERVE};
use super::port::Port;
use super::Fabric;
use crate::engine::rounding::Rounding;
use crate::net::config::Buffer;
use crate::net::packet::{Kind, Packet};
use crate::net::topology::MAX_HOPS;
use onramp_cc::switch::{Seen, SwitchRule, Verdict};
use onramp_units::{Bytes, Rate};

/// Threshold of a port at the hosts' rate: 1/8 of the free memory.
const THRESHOLD_SHIFT: i8 = 3;
/// A PFC frame on the wire.
const PFC_BYTES: u16 = 43;

/// What priority flow control depends on, for all ports of a network.
pub(crate) struct Pfc {
    pub rounding: Rounding,
    /// Alpha of a port at `host_rate` is 2 to the power of this; `None`: 1/8.
    pub alpha_log2: Option<i8>,
    pub host_rate: Rate,
    /// Bytes of the largest packet on the wire.
    pub largest_packet: u64,
}

impl Pfc {
    /// Room for what arrives at `port` before a pause takes effect: the bytes in flight on the line when the pause leaves,
    /// those that follow until it is there, and a packet that has begun at each end, before the pause can leave and before
    /// it stops the other. The HPCC authors' three times the bytes in flight are at least that where lines are long.
    fn headroom(&self, port: &Port) -> u64 {
        let in_flight = port.in_flight().get();
        match self.rounding {
            Rounding::Exact => (3 * in_flight).max(2 * in_flight + 4 * self.largest_packet),
            Rounding::Ns3 => 3 * in_flight,
        }
    }

    /// Alpha of `port` is 2 to minus this; it doubles as often as the hosts' rate has to double to be as high as the port's.
    fn threshold_shift(&self, port: &Port) -> i8 {
        let ratio = port.rate.bits_per_s().div_ceil(self.host_rate.bits_per_s());
        let doublings = ratio.next_power_of_two().ilog2() as i8;
        let shift = self.alpha_log2.map_or(THRESHOLD_SHIFT, |log2| -log2);
        // More than the free memory only if the scenario sets it.
        (shift - doublings).max(shift.min(0))
    }
}

impl Port {
    /// Sets headroom and threshold.
    pub fn provision(&mut self, pfc: &Pfc) {
        self.ingress.headroom = pfc.headroom(self);
        self.ingress.threshold_shift = pfc.threshold_shift(self);
    }

    /// Bytes of the switch's memory that only packets from this port use.
    pub fn set_aside(&self) -> u64 {
        self.ingress.headroom + RESERVE
    }
}

impl Fabric {
    /// Handles a packet that has arrived at a switch's port.
    pub(crate) fn switch_receive(&mut self, id: u32) {
        let packet = &mut self.packets[id];
        let ingress = u32::from(packet.at_port);
        match packet.kind {
            Kind::Pause | Kind::Resume => {
                if self.set_paused(ingress, id) {
                    self.switch_send(ingress);
                }
                return;
            }
            Kind::Ack | Kind::Nack if self.switch.config.acks_first => {
                return self.forward_first(id)
            }
            _ => {}
        }
        let egress = u32::from(packet.path[usize::from(packet.hop)]);
        packet.hop += 1;
        if !self.admit(ingress, egress, id) {
            return self.drop_packet(egress, id);
        }
        if self.rule_drops(egress, id, true) {
            return self.drop_admitted(ingress, egress, id);
        }
        self.ports[egress as usize].data.push(&mut self.packets, id);
        self.switch_send(egress);
    }

    #[cold]
    fn drop_admitted(&mut self, ingress: u32, egress: u32, id: u32) {
        self.release(ingress, u64::from(self.packets[id].wire_bytes));
        self.resume_if_room(ingress);
        self.drop_packet(egress, id);
    }

    /// Queues an acknowledgement before the data.
    fn forward_first(&mut self, id: u32) {
        let packet = &mut self.packets[id];
        let egress = u32::from(packet.path[usize::from(packet.hop)]);
        packet.hop += 1;
        self.ports[egress as usize]
            .control
            .push(&mut self.packets, id);
        self.switch_send(egress);
    }

    /// Handles a PFC frame at a port of a switch or a host. Returns whether the port may send again.
    pub(crate) fn set_paused(&mut self, port: u32, frame: u32) -> bool {
        let paused = self.packets[frame].kind == Kind::Pause;
        self.packets.free(frame);
        self.ports[port as usize].set_paused(paused, self.now);
        !paused
    }

    /// Admits a packet to the buffer. Returns whether there was room.
    fn admit(&mut self, ingress: u32, egress: u32, id: u32) -> bool {
        let bytes = u64::from(self.packets[id].wire_bytes);
        let queue = self.ports[egress as usize].data.bytes;
        let memory = &mut self.memories[self.ports[ingress as usize].node as usize];
        match self.switch.config.buffer {
            Buffer::PerPort(most) => queue + bytes <= most.get(),
            Buffer::Shared(_) => {
                let free = memory.shared - memory.used;
                let alpha_log2 = self.switch.config.alpha_log2.unwrap_or(0);
                let fits = bytes <= free && queue + bytes <= shifted(free, -alpha_log2);
                memory.used += if fits { bytes } else { 0 };
                fits
            }
            Buffer::Lossless(_) => {
                let ingress_port = &mut self.ports[ingress as usize].ingress;
                if !ingress_port.admit(memory, bytes) {
                    // A paused host goes on with acknowledgements (`Nic::hold_acks`), which no headroom can foresee. No
                    // data comes after them until the headroom is empty again.
                    let is_data = self.packets[id].kind.carries_data();
                    if is_data || self.rounding == Rounding::Ns3 {
                        return false;
                    }
                    ingress_port.admit_beyond(bytes);
                }
                if ingress_port.must_pause(memory) {
                    ingress_port.pausing = true;
                    self.counters.pauses += 1;
                    self.send_pfc(ingress, Kind::Pause);
                }
                true
            }
        }
    }

    /// Frees the room of a packet that leaves.
    fn release(&mut self, ingress: u32, bytes: u64) {
        let memory = &mut self.memories[self.ports[ingress as usize].node as usize];
        match self.switch.config.buffer {
            Buffer::PerPort(_) => {}
            Buffer::Shared(_) => memory.used -= bytes,
            Buffer::Lossless(_) => {
                let port = &mut self.ports[ingress as usize];
                port.ingress.release(memory, bytes);
            }
        }
    }

    #[inline]
    fn resume_if_room(&mut self, ingress: u32) {
        let port = &mut self.ports[ingress as usize];
        if port.ingress.may_resume(&self.memories[port.node as usize]) {
            port.ingress.pausing = false;
            self.send_pfc(ingress, Kind::Resume);
        }
    }

    #[cold]
    fn send_pfc(&mut self, port: u32, kind: Kind) {
        self.random.pfc_frame();
        let frame = self.packets.add(Packet {
            wire_bytes: PFC_BYTES,
            ..Packet::new(kind, self.now, [0; MAX_HOPS])
        });
        self.ports[port as usize]
            .control
            .push(&mut self.packets, frame);
        self.switch_send(port);
    }

    /// Sends the next packet of a switch's port, if there is one and the line is free.
    pub(crate) fn switch_send(&mut self, egress: u32) {
        if !self.ports[egress as usize].has_ready() {
            return;
        }
        if !self.line_is_free(egress) {
            return self.await_line(egress);
        }
        while !self.send_next(egress) {
            if !self.ports[egress as usize].has_ready() {
                return;
            }
        }
        if self.ports[egress as usize].has_ready() {
            self.await_line(egress);
        }
    }

    /// Takes the next packet out of its queue. Returns false if the port's rule drops it, so that the line is still free.
    #[inline]
    fn send_next(&mut self, egress: u32) -> bool {
        let port = &mut self.ports[egress as usize];
        if let Some(id) = port.control.pop(&self.packets) {
            self.transmit(egress, id);
            return true;
        }
        let next = port.data.pop(&self.packets);
        next.is_none_or(|id| self.leave(egress, id))
    }

    /// Asks the port's rule about a packet that enters the queue or has left it. Returns whether it is dropped.
    #[inline]
    fn rule_drops(&mut self, egress: u32, id: u32, enters: bool) -> bool {
        let port = &self.ports[egress as usize];
        // The common case: a short queue, or no rule.
        port.data.bytes >= port.asks_from && self.ask_rule(egress, id, enters)
    }

    #[cold]
    fn ask_rule(&mut self, egress: u32, id: u32, enters: bool) -> bool {
        let Some(rule) = self.switch.rules.get_mut(egress as usize) else {
            return false;
        };
        let (port, packet) = (&self.ports[egress as usize], &mut self.packets[id]);
        let is_data = packet.kind.carries_data();
        // ns-3 marks acknowledgements too. The mark has no effect, but it draws a random number.
        if !is_data && self.rounding == Rounding::Exact {
            return false;
        }
        if enters {
            packet.queued = self.now;
        }
        let random = &mut self.random;
        let mut seen = Seen {
            now: self.now,
            queue: Bytes::new(port.data.bytes),
            packet: Bytes::new(packet.wire_bytes.into()),
            waited: self.now - packet.queued,
            uniform: &mut || random.uniform(port.node),
        };
        let verdict = match enters {
            true => rule.arrives(&mut seen),
            false => rule.leaves(&mut seen),
        };
        match verdict {
            Verdict::Mark if is_data => {
                packet.marked = true;
                self.counters.marks += 1;
            }
            Verdict::Drop if is_data => return true,
            Verdict::Pass | Verdict::Mark | Verdict::Drop => {}
        }
        false
    }

    /// Drops a packet for the line of `egress`.
    fn drop_packet(&mut self, egress: u32, id: u32) {
        self.counters.drops += 1;
        self.ports[egress as usize].drops += 1;
        self.packets.free(id);
    }

    /// Hands a data packet that has left its queue to the line: room, rule, telemetry. Returns false if the rule drops it.
    fn leave(&mut self, egress: u32, id: u32) -> bool {
        let packet = &self.packets[id];
        let (ingress, bytes) = (u32::from(packet.at_port), u64::from(packet.wire_bytes));
        let is_data = packet.kind.carries_data();
        self.release(ingress, bytes);
        let is_dropped = self.rule_drops(egress, id, false);
        self.resume_if_room(ingress);
        if is_dropped {
            self.drop_packet(egress, id);
            return false;
        }
        if is_data && self.carried.has.int {
            let port = &self.ports[egress as usize];
            let queue = port.data.bytes + port.control.bytes;
            let rate = usize::from(port.rate_index);
            let hop = self.int.hop(self.now, port.sent_bytes, queue, rate);
            self.carried.stacks.of_mut(id).push(hop);
        }
        self.transmit(egress, id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::*;
    use onramp_units::Span;

    fn pfc(gbps: u64, alpha_log2: Option<i8>) -> Pfc {
        Pfc {
            rounding: Rounding::Exact,
            alpha_log2,
            host_rate: Rate::from_bits_per_s(gbps * 1_000_000_000).unwrap(),
            largest_packet: 1600,
        }
    }

    fn port_of(gbps: u64, delay: Span, pfc: &Pfc) -> Port {
        let rate = Rate::from_bits_per_s(gbps * 1_000_000_000).unwrap();
        let mut port = Port::new(0, true, (rate, delay), 0);
        port.provision(pfc);
        port
    }

    fn port() -> (Port, Memory) {
        let port = port_of(100, Span::from_us(1), &pfc(100, None));
        let shared = (32 << 20) - port.set_aside();
        (port, Memory { shared, used: 0 })
    }

    #[test]
    fn headroom_has_room_for_what_a_pause_does_not_stop() {
        let headroom = |gbps, delay, pfc: &Pfc| port_of(gbps, delay, pfc).ingress.headroom;
        let exact = pfc(100, None);
        assert_eq!(headroom(100, Span::from_us(1), &exact), 37_500);
        assert_eq!(headroom(400, Span::from_us(1), &exact), 150_000);
        // On short lines the frames at both ends count.
        let (in_flight, frames) = (1_250, 4 * 1600);
        assert_eq!(
            headroom(100, Span::from_ns(100), &exact),
            2 * in_flight + frames
        );
        let ns3 = Pfc {
            rounding: Rounding::Ns3,
            ..exact
        };
        assert_eq!(headroom(100, Span::from_ns(100), &ns3), 3 * in_flight);
        let (port, _) = port();
        assert_eq!(port.set_aside(), 37_500 + 4096);
    }

    #[test]
    fn no_pause_below_threshold() {
        let (mut port, mut memory) = port();
        while port.ingress.shared_used() + 1000 < port.ingress.threshold(&memory) {
            assert!(!port.ingress.must_pause(&memory));
            assert!(port.ingress.admit(&mut memory, 1000));
        }
        assert!(port.ingress.admit(&mut memory, 1000) && port.ingress.admit(&mut memory, 1000));
        assert!(port.ingress.must_pause(&memory));
    }

    #[test]
    fn a_packet_is_refused_only_when_headroom_is_full_too() {
        let (mut port, mut memory) = port();
        while port.ingress.admit(&mut memory, 1000) {}
        assert_eq!(port.ingress.headroom_used, 37_000);
        assert!(port.ingress.shared_used() + 1000 > port.ingress.threshold(&memory));
    }

    #[test]
    fn what_came_in_goes_out_and_leaves_nothing() {
        let (mut port, mut memory) = port();
        let mut packets = 0;
        while port.ingress.admit(&mut memory, 1500) {
            packets += 1;
        }
        port.ingress.pausing = true;
        for left in (0..packets).rev() {
            port.ingress.release(&mut memory, 1500);
            assert_eq!(left == 0, port.ingress.pool_bytes == 0);
        }
        assert_eq!((memory.used, port.ingress.headroom_used), (0, 0));
        assert!(port.ingress.may_resume(&memory));
    }

    #[test]
    fn alpha_is_what_was_asked_for_and_grows_with_the_rate() {
        let delay = Span::from_us(1);
        let shift = |gbps: u64, alpha_log2| {
            port_of(gbps, delay, &pfc(100, alpha_log2))
                .ingress
                .threshold_shift
        };
        assert_eq!(
            (shift(100, None), shift(400, None), shift(25, None)),
            (3, 1, 3)
        );
        assert_eq!((shift(100, Some(-1)), shift(400, Some(-1))), (1, 0));
        assert_eq!((shift(100, Some(2)), shift(400, Some(2))), (-2, -2));
        assert_eq!((shifted(100, 2), shifted(100, -1)), (25, 200));
        // A fifth more than twice the hosts' rate is two doublings.
        assert_eq!(
            port_of(100, delay, &pfc(40, None)).ingress.threshold_shift,
            1
        );
    }
}
