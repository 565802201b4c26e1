//! On-Ramp in the NIC: a packet waits while its way is congested, as the control law of `law/` says,
//! which the receiver's OR-ACKs feed.
//!
//! Every data packet, unless the scenario spaces them, is answered with an OR-ACK: a packet of the
//! data class, which waits behind data and takes bandwidth; or its acknowledgement says the same
//! (`onramp.piggyback`). What the law remembers of a transmission travels with the packet and its
//! answer instead of waiting in a table. Acknowledgements are never held.

use crate::domain::Domain;
use crate::host::clock::{mono, sim};
use crate::host::nic::Turn;
use crate::net::packet::{Kind, Packet, Path, NONE};
use onramp_law::{sampled_byte, Record};
use onramp_units::{Mono, Sim, Span, Time};

/// An OR-ACK on the wire (On-Ramp, section 4.1).
pub(crate) const OR_ACK_BYTES: u16 = 78;

/// The OR-ACK of `data`, which it takes sequence number, length and time from.
pub(crate) fn or_ack(data: &Packet, path: Path) -> Packet {
    Packet {
        next: NONE,
        wire_bytes: OR_ACK_BYTES,
        at_port: 0,
        hop: 0,
        kind: Kind::OrAck,
        marked: false,
        path,
        ..*data
    }
}

/// The law of a host's own line, if it has one.
pub(crate) fn law_of(
    laws: &[Option<onramp_law::Config>],
    host: u32,
) -> Option<&onramp_law::Config> {
    laws.get(host as usize)?.as_ref()
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

/// What a data packet carries, and its OR-ACK or acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stamp {
    record: Record,
    /// When the receiver had the packet, on the sender's clock, if it says so.
    pub received: Option<Time<Mono>>,
}

impl Domain {
    /// The last delay from `src` to `dst`, if flows that start use it.
    pub(crate) fn delay_to_reuse(&self, src: u32, dst: u32) -> Option<Span> {
        let &(owd, learned) = self.last_delays.get(&(src, dst))?;
        (self.now - learned <= self.config.reuse?).then_some(owd)
    }

    /// The law has learned a delay of flow `plan`, which the next flow of its hosts may use.
    pub(crate) fn keep_delay(&mut self, plan: u32, owd: Option<Span>) {
        if let (Some(_), Some(owd)) = (self.config.reuse, owd) {
            let flow = &self.network.flows[plan as usize];
            self.last_delays
                .insert((flow.src, flow.dst), (owd, self.now));
        }
    }

    /// Whether the law lets the head of a flow go, whose turn it is. If not, the turn is put off.
    pub(crate) fn law_lets_go(&mut self, host: u32, place: usize) -> bool {
        let Some(law) = law_of(&self.laws, host) else {
            return true;
        };
        let turn = &mut self.nics[host as usize].flows[place];
        let sender = &mut self.senders[turn.sender];
        let until = held_until(law, &mut sender.law, &mut sender.held_since, self.now);
        turn.held_until = until.unwrap_or(turn.held_until);
        until.is_none()
    }

    /// A data packet of `sender` is handed to the line.
    pub(crate) fn law_sent(&mut self, sender: u32, id: u32) {
        let packet = &self.packets[id];
        let sender = &mut self.senders[sender];
        let Some(law) = law_of(&self.laws, sender.src) else {
            return;
        };
        if let Some(since) = sender.held_since.take() {
            sender.sent.held += self.now - since;
        }
        // Sequence numbers of the law are modulo 2^32.
        let (seq, len) = (packet.seq as u32, u32::from(packet.payload));
        let stamp = Stamp {
            record: sender.law.sent(law, mono(self.now), seq, len),
            received: None,
        };
        self.stamps.set(id, stamp);
    }

    /// A receiver has a data packet: queues its OR-ACK, which goes `back`, or has its acknowledgement
    /// carry the time, if there is a law to feed. Whether there is an OR-ACK.
    pub(crate) fn answer_with_or_ack(&mut self, id: u32, back: Path) -> bool {
        let data = self.packets[id];
        let port = u32::from(data.at_port);
        let host = self.ports[port as usize].node;
        let src = self.network.flows[data.flow as usize].src;
        if law_of(&self.laws, src).is_none() {
            return false;
        }
        let (seq, bytes) = (data.seq as u32, u32::from(data.payload));
        let every = self.config.or_ack_every;
        if every > 1 && sampled_byte(seq, bytes, every).is_none() {
            return false;
        }
        let received = self.clocks.stamp(self.now, host, src);
        if received.is_none() {
            return false;
        }
        let stamp = Stamp {
            received,
            ..*self.stamps.of(id)
        };
        if self.config.hosts.nic().piggyback {
            self.stamps.set(id, stamp);
            return false;
        }
        let or_ack = self.packets.add(Packet {
            sent: self.now,
            ..or_ack(&data, back)
        });
        self.stamps.set(or_ack, stamp);
        self.ports[port as usize]
            .data
            .push(&mut self.packets, or_ack);
        self.counters.or_acks += 1;
        true
    }

    /// An OR-ACK, or an acknowledgement that may say the same, is back at the sender: the law learns,
    /// and is asked again.
    pub(crate) fn or_acked(&mut self, id: u32) {
        let Packet {
            flow, connection, ..
        } = self.packets[id];
        let src = self.network.flows[flow as usize].src;
        let Some(law) = law_of(&self.laws, src) else {
            return;
        };
        let stamp = *self.stamps.of(id);
        let Some(received) = stamp.received else {
            return;
        };
        let (record, now) = (&stamp.record, mono(self.now));
        let seq = record.first_byte();
        let place = self.senders.place(connection);
        let sender = place.map(|place| &mut self.senders[place]);
        // The verdict only says whether the sample was of use.
        let owd = match sender.filter(|sender| !sender.is_over()) {
            Some(sender) => {
                sender.law.orack(law, record, seq, now, received);
                if sender.turn != NONE {
                    let turns = &mut self.nics[src as usize].flows;
                    turns[sender.turn as usize].held_until = Time::ZERO;
                }
                sender.law.owd()
            }
            // What it tells is of use to the next flow, if delays are reused.
            None => {
                let mut over = onramp_law::Flow::default();
                over.orack(law, record, seq, now, received);
                over.owd()
            }
        };
        self.keep_delay(flow, owd);
    }
}

impl Turn {
    /// When both pace and law let the next packet go, as far as is known.
    pub fn due(&self) -> Time<Sim> {
        self.next_at.max(self.held_until)
    }
}
