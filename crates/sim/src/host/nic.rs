//! The RDMA-like host: a NIC that paces packets and acknowledges each, with go-back-N.
//!
//! Acknowledgements go first, then OR-ACKs; then queue pairs take turns, a packet each, if their window is open
//! and their time has come. Does not: queue data (a packet is made when the line is free), or
//! decide rates or hold packets: that is the congestion control's affair, and On-Ramp's (edge.rs).

mod receiver;
mod sender;
mod turns;

use crate::domain::Domain;
use crate::net::packet::Kind;
use crate::watch::delays::Delays;
use onramp_cc::nic::Feedback;
use onramp_units::{Sim, Span, Time};

pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;
pub(crate) use turns::Turn;

/// Ethernet (here PPP), IPv4, UDP, sequence number.
pub(crate) const DATA_HEADER: u16 = 48;
/// Smallest frame.
const ACK_BYTES: u16 = 60;
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

/// Bytes of an acknowledgement on the wire. With `piggyback` it carries the time of arrival too,
/// which fits the smallest frame; telemetry does not.
#[inline]
fn ack_bytes(feedback: Feedback, piggyback: bool) -> u16 {
    match feedback {
        Feedback::Marks | Feedback::TimeStamp => ACK_BYTES,
        Feedback::Int => 46 + INT_BYTES + u16::from(piggyback) * TIME_STAMP_BYTES,
    }
}

/// A host's NIC.
pub(crate) struct Nic {
    /// Its only port.
    pub port: u32,
    /// Of data packets that came here since somebody looked.
    pub longest_delay: Span,
    /// Of all of them, if somebody wants to know.
    pub delays: Option<Delays>,
    /// Flows from here that take turns.
    pub flows: Vec<Turn>,
    /// Who had the last turn.
    pub last: usize,
    /// When it wakes by itself, and the place of that event.
    pub wake: Option<(Time<Sim>, u64)>,
}

impl Nic {
    pub fn new(port: u32) -> Nic {
        Nic {
            port,
            longest_delay: Span::ZERO,
            delays: None,
            flows: Vec::new(),
            last: 0,
            wake: None,
        }
    }

    /// A data packet came here after `delay`.
    pub fn note_delay(&mut self, delay: Span) {
        self.longest_delay = self.longest_delay.max(delay);
        if let Some(delays) = &mut self.delays {
            delays.note(delay);
        }
    }
}

impl Domain {
    /// A packet is at a host.
    pub(crate) fn nic_receive(&mut self, id: u32) {
        let port = u32::from(self.packets[id].at_port);
        let host = self.ports[port as usize].node;
        match self.packets[id].kind {
            Kind::Pause | Kind::Resume => self.set_paused(port, id),
            Kind::OrAck => {
                self.or_acked(id);
                self.packets.free(id);
                self.nic_send(host);
            }
            Kind::Data => {
                let (receiver, back) = self.receiver_of(id);
                let or_ack = self.answer_with_or_ack(id, back);
                let answered = self.answer(id, receiver, back);
                if answered {
                    self.ports[port as usize]
                        .control
                        .push(&mut self.packets, id);
                } else {
                    self.packets.free(id);
                }
                if or_ack || answered {
                    self.nic_send(host);
                }
            }
            Kind::Ack | Kind::Nack => {
                if self.config.hosts.nic().piggyback {
                    self.or_acked(id);
                }
                self.acknowledged(id);
                self.packets.free(id);
                self.nic_send(host);
            }
            Kind::Probe | Kind::ProbeAnswer => self.probe_arrived(host, id),
            Kind::Request => self.packets.free(id),
        }
    }

    /// Sends what is next at a host, if its line is free and anything may go.
    pub(crate) fn nic_send(&mut self, host: u32) {
        let port = self.nics[host as usize].port;
        if !self.line_is_free(port) {
            return self.await_line(port);
        }
        let line = &mut self.ports[port as usize];
        let hold_acks = self.config.hosts.nic().hold_acks;
        let paused = line.paused;
        let acknowledgement = match paused && hold_acks {
            true => None,
            false => line.control.pop(&self.packets),
        };
        let or_ack = || match paused {
            true => None,
            false => line.data.pop(&self.packets),
        };
        if let Some(id) = acknowledgement.or_else(or_ack) {
            self.stamp_probe(host, id);
            self.transmit(port, id);
            return self.await_line_if_busy_host(host);
        }
        match self.choose(host, paused) {
            Some(place) => {
                self.send_data(host, place);
                self.await_line_if_busy_host(host);
            }
            None => self.sleep(host),
        }
    }

    /// A line-free event does nothing at a host without flows and acknowledgements.
    fn await_line_if_busy_host(&mut self, host: u32) {
        let nic = &self.nics[host as usize];
        let (port, line) = (nic.port, &self.ports[nic.port as usize]);
        if !nic.flows.is_empty() || !line.control.is_empty() || !line.data.is_empty() {
            self.await_line(port);
        }
    }
}
