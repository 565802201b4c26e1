//! On-Ramp in the NIC: a packet waits while its way is congested, as the control law of `law/` says,
//! which the receiver's OR-ACKs feed.
//!
//! Every data packet is answered with an OR-ACK: a packet of the data class, which waits behind
//! data and takes bandwidth. What the law remembers of a transmission travels with the packet and
//! its OR-ACK instead of waiting in a table. Acknowledgements are never held.

use crate::clock::{mono, sim};
use crate::nic::Turn;
use crate::packet::{Kind, Packet, Path, NONE};
use crate::simulation::Simulation;
use onramp_law::Record;
use onramp_units::{Mono, Sim, Span, Time};

/// An OR-ACK on the wire (On-Ramp, section 4.1).
const OR_ACK_BYTES: u16 = 78;

/// The OR-ACK of `data`, which it takes sequence number and time from.
pub(crate) fn or_ack(data: &Packet, path: Path) -> Packet {
    Packet {
        next: NONE,
        wire_bytes: OR_ACK_BYTES,
        payload: 0,
        at_port: 0,
        hop: 0,
        kind: Kind::OrAck,
        marked: false,
        control: false,
        path,
        ..*data
    }
}

/// Asks the law for the head of a flow: until when it is held, if it is.
pub(crate) fn held_until(
    law: &onramp_law::Config,
    flow: &mut onramp_law::Flow,
    held_since: &mut Option<Time<Sim>>,
    now: Time<Sim>,
) -> Option<Time<Sim>> {
    let again = flow.may_go(law, mono(now))?;
    held_since.get_or_insert(now);
    Some(sim(again))
}

/// The law's state of a flow that starts where the last delay to its receiver was `owd`: as if its
/// OR-ACK had come just now.
pub(crate) fn reuse(
    law: &onramp_law::Config,
    flow: &mut onramp_law::Flow,
    owd: Span,
    now: Time<Mono>,
) {
    let record = flow.sent(law, now, 0, 1);
    flow.orack(law, &record, 0, now, now + owd);
}

/// What a data packet and its OR-ACK carry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    record: Record,
    /// When the receiver had the packet, on the sender's clock.
    pub received: Time<Mono>,
}

impl Simulation {
    /// The last delay from `src` to `dst`, if flows that start use it.
    pub(crate) fn delay_to_reuse(&self, src: u32, dst: u32) -> Option<Span> {
        let &(owd, learned) = self.last_delays.get(&(src, dst))?;
        (self.now - learned <= self.config.reuse?).then_some(owd)
    }

    /// Whether the law lets the head of a flow go, whose turn it is. If not, the turn is put off.
    pub(crate) fn law_lets_go(&mut self, host: u32, place: usize) -> bool {
        let Some(law) = self.laws.get(host as usize) else {
            return true;
        };
        let turn = &mut self.nics[host as usize].flows[place];
        let pair = &mut self.pairs[turn.flow];
        let until = held_until(law, &mut pair.law, &mut pair.held_since, self.now);
        turn.held_until = until.unwrap_or(turn.held_until);
        until.is_none()
    }

    /// A data packet is handed to the line.
    pub(crate) fn law_sent(&mut self, id: u32) {
        let packet = &self.packets[id];
        let pair = &mut self.pairs[packet.flow];
        let Some(law) = self.laws.get(pair.src as usize) else {
            return;
        };
        if let Some(since) = pair.held_since.take() {
            self.outcomes[pair.plan as usize].held += self.now - since;
        }
        // Sequence numbers of the law are modulo 2^32.
        let (seq, len) = (packet.seq as u32, u32::from(packet.payload));
        let stamp = Stamp {
            record: pair.law.sent(law, mono(self.now), seq, len),
            received: Time::ZERO,
        };
        self.keep_stamp(id, stamp);
    }

    fn keep_stamp(&mut self, id: u32, stamp: Stamp) {
        if self.stamps.len() <= id as usize {
            self.stamps.resize(self.packets.capacity(), stamp);
        }
        self.stamps[id as usize] = stamp;
    }

    /// A receiver has a data packet: queues its OR-ACK, if there is a law to feed. Whether it did.
    pub(crate) fn answer_with_or_ack(&mut self, id: u32) -> bool {
        if self.config.law.is_none() {
            return false;
        }
        let data = self.packets[id];
        let pair = &mut self.pairs[data.flow];
        pair.packets += 1;
        let port = u32::from(data.at_port);
        let host = self.ports[port as usize].node;
        let stamp = Stamp {
            received: self.clocks.stamp(self.now, host, pair.src),
            ..self.stamps[id as usize]
        };
        let or_ack = self.packets.add(Packet {
            sent: self.now,
            ..or_ack(&data, pair.back)
        });
        self.keep_stamp(or_ack, stamp);
        self.ports[port as usize]
            .data
            .push(&mut self.packets, or_ack);
        self.counters.or_acks += 1;
        true
    }

    /// An OR-ACK is back at the sender: the law learns, and is asked again.
    pub(crate) fn or_acked(&mut self, id: u32) {
        let packet = &self.packets[id];
        let Some(law) = self.laws.get(self.pairs[packet.flow].src as usize) else {
            return;
        };
        let stamp = &self.stamps[id as usize];
        let pair = &mut self.pairs[packet.flow];
        // What it tells is of use to the next flow, if delays are reused.
        if pair.is_over() && self.config.reuse.is_none() {
            return;
        }
        // The verdict only says whether the sample was of use.
        pair.law.orack(
            law,
            &stamp.record,
            packet.seq as u32,
            mono(self.now),
            stamp.received,
        );
        if let (Some(_), Some(owd)) = (self.config.reuse, pair.law.owd()) {
            let hosts = (pair.src, self.flows[pair.plan as usize].dst);
            self.last_delays.insert(hosts, (owd, self.now));
        }
        if pair.turn != NONE {
            let turn = &mut self.nics[pair.src as usize].flows[pair.turn as usize];
            turn.held_until = Time::ZERO;
        }
    }
}

impl Turn {
    /// When both pace and law let the next packet go, as far as is known.
    pub fn due(&self) -> Time<Sim> {
        self.next_at.max(self.held_until)
    }
}
