// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The RDMA-like host: a NIC that paces packets and acknowledges each, with go-back-N.
//!
//! Acknowledgements leave first, then OR-ACKs, then data. A round-robin scheduler serves the queue pairs with
//! an open window whose send time has come, one packet each. Does not queue data: a packet is made when the
//! line is free. Rates are decided by the congestion control, and On-Ramp (edge.rs) holds packets.

mod edge;
mod reads;
mod receiver;
mod scheduler;
mod segments;
mod sender;
mod timers;

use crate::engine::rounding::Rounding;
use crate::flows::outcomes::Outcomes;
use crate::flows::table::FlowTable;
use crate::host::config::{self, Config, Hosts, DATA_HEADER};
use crate::host::per_host::PerHost;
use crate::host::rtts::Stamper;
use crate::host::site::Site;
use crate::net::packet::Kind;
use crate::net::what::What;
use onramp_cc::int::IntStack;
use onramp_cc::nic::{Algorithm, Feedback};
use onramp_units::{Sim, Span, Time};
use reads::Response;
use scheduler::Turn;
use std::collections::VecDeque;

pub(crate) use receiver::Receiver;
pub(crate) use scheduler::Scheduled;
pub(crate) use sender::Sender;

/// Smallest frame.
const ACK_BYTES: u16 = 60;
/// Ethernet 14, IPv4 20, UDP 8, and of RoCE v2 the base header 12, the header of a read request 16 and the checksum 4
/// (InfiniBand specification 1, 9.2, 9.3 and annex A17).
const READ_REQUEST_BYTES: u16 = 74;
/// Telemetry: five hops of 8 B and a count.
const INT_BYTES: u16 = 42;
const TIME_STAMP_BYTES: u16 = 8;

/// Bytes of a data packet's headers on the wire.
#[inline]
pub(crate) fn data_header(feedback: Feedback) -> u16 {
    DATA_HEADER
        + match feedback {
            Feedback::Marks => 0,
            Feedback::TimeStamp => TIME_STAMP_BYTES,
            Feedback::Int => INT_BYTES,
        }
}

/// Bytes of an acknowledgement on the wire. With `piggyback` it also carries the arrival time, which fits
/// into the smallest frame; telemetry does not fit.
#[inline]
fn ack_bytes(feedback: Feedback, piggyback: bool) -> u16 {
    match feedback {
        Feedback::Marks | Feedback::TimeStamp => ACK_BYTES,
        Feedback::Int => 46 + INT_BYTES + u16::from(piggyback) * TIME_STAMP_BYTES,
    }
}

/// Begins the telemetry of a packet with payload, and counts it.
#[inline]
fn begin_data(site: &mut Site, id: u32) {
    if site.net.carried.has.int {
        site.net.carried.stacks.set(id, IntStack::default());
    }
    site.net.counters.data_packets += 1;
}

/// A host's NIC.
pub(crate) struct Nic {
    /// Its only port.
    pub port: u32,
    /// Flows that this host paces, in the round robin; and an entry for `responses`, unless there are none.
    pub flows: Vec<Scheduled>,
    /// What other hosts read here, in the order of their requests.
    responses: VecDeque<Response>,
    /// The entry that sent last.
    pub last: usize,
    /// Time of its next wake, and the place of that event.
    pub wake: Option<(Time<Sim>, u64)>,
}

impl Nic {
    fn new(port: u32) -> Nic {
        Nic {
            port,
            flows: Vec::new(),
            responses: VecDeque::new(),
            last: 0,
            wake: None,
        }
    }
}

/// What all NICs of a network have, because packets have one form.
struct Common {
    payload: u16,
    nack_interval: Span,
    piggyback: bool,
    feedback: Feedback,
    /// Whether windows of some hosts depend on time alone: no event changes them.
    windows_follow_time: bool,
    /// Whether packets of some hosts move when the rate changes.
    move_next_packet: bool,
    /// Whether timers of congestion controls are events, as in ns-3.
    timers_are_events: bool,
}

/// The NIC hosts of a domain.
pub(crate) struct Nics {
    own: PerHost<config::Nic>,
    /// What all of them have.
    common: Common,
    /// By node.
    nics: Vec<Nic>,
    /// Ends of connections, by the flow that opened them.
    pub senders: FlowTable<Sender>,
    receivers: FlowTable<Receiver>,
    stamper: Stamper,
}

impl Nics {
    /// At the ports `ports`, by node.
    pub fn new(config: &Config, ports: impl Iterator<Item = u32>) -> Nics {
        let nics: Vec<Nic> = ports.map(Nic::new).collect();
        let nic = |hosts: &Hosts| match hosts {
            Hosts::Nic(nic) => nic.clone(),
            Hosts::Kernel(_) => unreachable!("all hosts are of one kind"),
        };
        let own = PerHost::new(config, nics.len(), config.each_hosts().map(nic));
        let (first, algorithms) = (
            &own.values()[0],
            own.values().iter().map(|nic| &nic.algorithm),
        );
        Nics {
            common: Common {
                payload: first.payload,
                nack_interval: first.nack_interval,
                piggyback: first.piggyback,
                feedback: config.feedback(),
                windows_follow_time: config.rounding == Rounding::Exact
                    && algorithms.clone().any(Algorithm::window_follows_time),
                move_next_packet: algorithms.clone().any(Algorithm::moves_next_packet),
                timers_are_events: config.rounding == Rounding::Ns3,
            },
            own,
            stamper: Stamper::new(config.seed, nics.len()),
            nics,
            senders: FlowTable::new(),
            receivers: FlowTable::new(),
        }
    }

    /// Updates `outcomes` of flows in progress.
    pub fn note_outcomes(&self, outcomes: &Outcomes) {
        for (_, sender) in self.senders.iter() {
            outcomes.sent(sender.current.flow, sender.sent);
        }
        for (_, receiver) in self.receivers.iter() {
            outcomes.received(receiver.current.flow, receiver.received());
        }
    }
}

impl Nics {
    /// Handles an event of NIC hosts.
    pub fn handle(&mut self, site: &mut Site, what: What) {
        match what {
            What::Wake { host } => self.woken(site, host),
            What::CcTimer { connection, timer } => self.expire(site, connection, timer.into()),
            What::Timeout { connection } => self.look_for_timeout(site, connection),
            What::Stop { flow } => self.stop_flow(site, flow),
            What::FlowStart { flow } => self.start(site, flow),
            _ => unreachable!("not an event of NIC hosts: {what:?}"),
        }
    }

    /// Handles a packet that has arrived at a host.
    pub(crate) fn receive(&mut self, site: &mut Site, id: u32) {
        let port = u32::from(site.net.packets[id].at_port);
        let host = site.net.ports[port as usize].node;
        site.count_arrival(host, id);
        match site.net.packets[id].kind {
            Kind::Pause | Kind::Resume => {
                if site.net.set_paused(port, id) {
                    self.send(site, host);
                }
            }
            Kind::OrAck => {
                self.or_acked(site, id);
                site.net.packets.free(id);
                self.send(site, host);
            }
            Kind::Data => {
                let (receiver, back) = self.receiver_of(site, id);
                let or_ack = self.answer_with_or_ack(site, id, back);
                let answered = self.answer(site, id, receiver, back);
                if answered {
                    site.net.ports[port as usize]
                        .control
                        .push(&mut site.net.packets, id);
                } else {
                    site.net.packets.free(id);
                }
                if or_ack || answered {
                    self.send(site, host);
                }
            }
            Kind::ReadRequest => {
                self.requested(site, host, id);
                site.net.packets.free(id);
                self.send(site, host);
            }
            Kind::ReadResponse => {
                self.read(site, id);
                site.net.packets.free(id);
                self.send(site, host);
            }
            Kind::Ack | Kind::Nack => {
                if self.common.piggyback {
                    self.or_acked(site, id);
                }
                self.acknowledged(site, id);
                site.net.packets.free(id);
                self.send(site, host);
            }
            Kind::Probe | Kind::ProbeAnswer => {
                if site.probe_arrived(host, id) {
                    self.send(site, host);
                }
            }
            Kind::Request => site.net.packets.free(id),
        }
    }

    /// Sends the next packet of a host, if its line is free and a packet may leave.
    pub(crate) fn send(&mut self, site: &mut Site, host: u32) {
        let port = self.nics[host as usize].port;
        if !site.net.line_is_free(port) {
            return site.net.await_line(port);
        }
        let line = &mut site.net.ports[port as usize];
        let paused = line.paused;
        let acknowledgement = match paused && self.own[host].hold_acks {
            true => None,
            false => line.control.pop(&site.net.packets),
        };
        let or_ack = || match paused {
            true => None,
            false => line.data.pop(&site.net.packets),
        };
        if let Some(id) = acknowledgement.or_else(or_ack) {
            site.stamp_probe(host, id);
            site.net.transmit(port, id);
            return self.await_line_if_busy_host(site, host);
        }
        match self.choose(site, host, paused) {
            Some(place) => {
                match self.nics[host as usize].flows[place].turn {
                    Turn::Data => self.send_data(site, host, place),
                    Turn::Request => self.send_request(site, host, place),
                    Turn::Responses => self.send_response(site, host, place),
                }
                self.await_line_if_busy_host(site, host);
            }
            None => self.sleep(site, host),
        }
    }

    /// Whether a host has flows or acknowledgements; otherwise a line-free event has no effect.
    fn await_line_if_busy_host(&mut self, site: &mut Site, host: u32) {
        let nic = &self.nics[host as usize];
        let (port, line) = (nic.port, &site.net.ports[nic.port as usize]);
        if !nic.flows.is_empty() || !line.control.is_empty() || !line.data.is_empty() {
            site.net.await_line(port);
        }
    }
}
