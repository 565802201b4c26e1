// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! On-Ramp in the NIC: decisions of the law, and its samples.

use super::{Nics, Scheduled};
use crate::host::clock::mono;
use crate::host::edge::{law_of, or_ack};
use crate::host::site::Site;
use crate::net::carried::Stamp;
use crate::net::packet::{Packet, Path, NONE};
use onramp_law::sampled_byte;
use onramp_units::{Sim, Time};

impl Nics {
    /// Whether the law allows the head of the scheduled flow to leave. If not, the flow waits.
    pub(crate) fn law_lets_go(&mut self, site: &mut Site, host: u32, place: usize) -> bool {
        let Some(law) = law_of(&site.laws, host) else {
            return true;
        };
        let entry = &mut self.nics[host as usize].flows[place];
        let sender = &mut self.senders[entry.sender];
        let until = sender.law.until(law, &mut sender.held_since, site.net.now);
        entry.held_until = until.unwrap_or(entry.held_until);
        until.is_none()
    }

    /// Records a data packet that `sender` sends.
    pub(crate) fn law_sent(&mut self, site: &mut Site, sender: u32, id: u32) {
        let packet = &site.net.packets[id];
        let sender = &mut self.senders[sender];
        let Some(law) = law_of(&site.laws, sender.host) else {
            return;
        };
        if let Some(since) = sender.held_since.take() {
            sender.sent.held += site.net.now - since;
        }
        // Sequence numbers of the law are modulo 2^32.
        let (seq, len) = (packet.seq as u32, u32::from(packet.payload));
        let now = site.net.now;
        let stamp = Stamp {
            record: sender.law.flow.sent(&law.config, mono(now), seq, len),
            ..Stamp::default()
        };
        sender.law.departed(now, len);
        site.net.carried.stamps.set(id, stamp);
    }

    /// Handles a received data packet: queues its OR-ACK on path `back`, or adds the time to its
    /// acknowledgement, if the sender has a law. Returns whether there is an OR-ACK.
    pub(crate) fn answer_with_or_ack(&mut self, site: &mut Site, id: u32, back: Path) -> bool {
        let data = site.net.packets[id];
        let port = u32::from(data.at_port);
        let host = site.net.ports[port as usize].node;
        let src = site.network.flows[data.flow as usize].src;
        if law_of(&site.laws, src).is_none() {
            return false;
        }
        let (seq, bytes) = (data.seq as u32, u32::from(data.payload));
        let every = site.config.or_ack_every;
        if every > 1 && sampled_byte(seq, bytes, every).is_none() {
            return false;
        }
        let received = site.clocks.stamp(site.net.now, host, src);
        if received.is_none() {
            return false;
        }
        let stamp = Stamp {
            received,
            hint: site.hint(host, data.connection),
            ..*site.net.carried.stamps.of(id)
        };
        if self.common.piggyback {
            site.net.carried.stamps.set(id, stamp);
            return false;
        }
        let or_ack = site.net.packets.add(Packet {
            sent: site.net.now,
            ..or_ack(&data, back)
        });
        site.net.carried.stamps.set(or_ack, stamp);
        site.net.ports[port as usize]
            .data
            .push(&mut site.net.packets, or_ack);
        site.net.counters.or_acks += 1;
        true
    }

    /// Handles an OR-ACK, or an acknowledgement with an arrival time, at the sender: gives the sample to the
    /// law, which then decides again.
    pub(crate) fn or_acked(&mut self, site: &mut Site, id: u32) {
        let Packet {
            flow, connection, ..
        } = site.net.packets[id];
        let plan = &site.network.flows[flow as usize];
        let (src, dst) = (plan.src, plan.dst);
        let Some(law) = law_of(&site.laws, src) else {
            return;
        };
        let stamp = *site.net.carried.stamps.of(id);
        let Some(received) = stamp.received else {
            return;
        };
        let (record, now) = (&stamp.record, mono(site.net.now));
        let seq = record.first_byte();
        let place = self.senders.place(connection);
        let sender = place.map(|place| &mut self.senders[place]);
        let owd = match sender.filter(|sender| !sender.is_over()) {
            Some(sender) => {
                let flow = &mut sender.law.flow;
                site.set_path((src, dst), flow, stamp.hint);
                let verdict = flow.orack(&law.config, record, seq, now, received);
                sender.law.sampled(site.net.now, verdict);
                if sender.entry != NONE {
                    let entries = &mut self.nics[src as usize].flows;
                    entries[sender.entry as usize].held_until = Time::ZERO;
                }
                sender.law.flow.owd()
            }
            // The next flow may use this delay, if delays are reused.
            None => {
                let mut over = onramp_law::Flow::default();
                over.orack(&law.config, record, seq, now, received);
                over.owd()
            }
        };
        site.keep_delay(flow, owd);
        site.note_least((src, dst), owd);
    }
}

impl Scheduled {
    /// Earliest time at which both pacing and law allow the next packet, as far as is known.
    pub fn due(&self) -> Time<Sim> {
        self.next_at.max(self.held_until)
    }
}
