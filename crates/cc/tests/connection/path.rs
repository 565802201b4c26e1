// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A path that answers as paths do: one line, a queue without bound, and the same delay in both directions. Loses and marks
//! nothing.

use super::Connection;
use onramp_cc::tcp::{Acked, Arrival, Device, Pacing, RateSample, Reported, WindowControl};
use onramp_units::{Sim, Span, Time};
use std::collections::VecDeque;

/// Time of a packet on the line: 100 Mbit/s.
const PACKET: Span = Span::from_us(120);
/// Packets that fill the line for a second.
pub const PACKETS_PER_S: f64 = 1e6 / 120.0;
/// Both directions together.
const DELAY: Span = Span::from_us(40);
/// Most packets in flight: the receiver's window.
const RECEIVE_WINDOW: u32 = 1000;

/// A packet on its way, and what was known when it was sent.
#[derive(Clone, Copy)]
struct Sent {
    number: u32,
    at: Time<Sim>,
    arrives: Time<Sim>,
    delivered: u64,
    delivered_at: Time<Sim>,
    first_sent_at: Time<Sim>,
}

/// The path of one connection, which always has data.
pub struct Path {
    sent: VecDeque<Sent>,
    delivered: u64,
    delivered_at: Time<Sim>,
    first_sent_at: Time<Sim>,
    free_at: Time<Sim>,
    /// When pace or gap let the next packet go.
    may_send_at: Time<Sim>,
    smoothed: Span,
}

impl Path {
    /// Nothing that `connection` has sent before is in flight.
    pub fn of(connection: &Connection) -> Path {
        let now = connection.now;
        Path {
            sent: VecDeque::new(),
            delivered: connection.acked.into(),
            delivered_at: now,
            first_sent_at: now,
            free_at: now,
            may_send_at: now,
            smoothed: DELAY + PACKET,
        }
    }

    /// Runs for `span`; returns the number of packets delivered.
    pub fn run(&mut self, connection: &mut Connection, span: Span) -> u64 {
        let (end, before) = (connection.now + span, self.delivered);
        loop {
            let room = connection.window.packets.min(RECEIVE_WINDOW) > self.sent.len() as u32;
            let send_at = room.then_some(self.may_send_at.max(connection.now));
            let ack_at = self.sent.front().map(|sent| sent.arrives + DELAY / 2);
            let at = match (send_at, ack_at) {
                (None, None) => panic!("nothing is in flight, and nothing may be sent"),
                (Some(send), Some(ack)) => send.min(ack),
                (one, other) => one.or(other).expect("one of them"),
            };
            if at > end {
                connection.now = end;
                return self.delivered - before;
            }
            connection.now = at;
            match ack_at == Some(at) {
                true => self.acknowledge(connection),
                false => self.send(connection),
            }
        }
    }

    /// The receiver does not read for `span`: its window is zero, and then open again.
    pub fn close(&mut self, connection: &mut Connection, span: Span) {
        let end = connection.now + span;
        while let Some(sent) = self.sent.front() {
            connection.now = sent.arrives + DELAY / 2;
            self.acknowledge(connection);
        }
        let idle = (end - connection.now).max(Span::ZERO);
        connection.now += idle;
        connection.control.on_idle(idle);
    }

    fn send(&mut self, connection: &mut Connection) {
        let now = connection.now;
        if self.sent.is_empty() {
            (self.delivered_at, self.first_sent_at) = (now, now);
        }
        self.free_at = self.free_at.max(now + DELAY / 2) + PACKET;
        self.sent.push_back(Sent {
            number: connection.next,
            at: now,
            arrives: self.free_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
        });
        connection.next += 1;
        let pace = || {
            let packets_per_s = connection.control.packets_per_s(self.smoothed)?;
            Some(Span::from_ps((1e12 / packets_per_s) as i64))
        };
        let gap = match connection.control.clocks_gaps() {
            true => connection.control.gap(connection.next),
            false => pace(),
        };
        self.may_send_at = now + gap.unwrap_or(Span::ZERO);
    }

    fn acknowledge(&mut self, connection: &mut Connection) {
        let Some(sent) = self.sent.pop_front() else {
            return;
        };
        let now = connection.now;
        let rtt = now - sent.at;
        self.smoothed = self.smoothed + (rtt - self.smoothed) / 8;
        self.delivered += 1;
        let interval = (sent.at - sent.first_sent_at).max(now - sent.delivered_at);
        (self.first_sent_at, self.delivered_at) = (sent.at, now);
        let packets = (self.delivered - sent.delivered) as f64;
        let stamped = sent.arrives + connection.clock;
        let acked = Acked {
            now,
            packets: 1,
            marked: 0,
            cumulative: sent.number + 1,
            next: connection.next,
            rtt,
            min_rtt: connection.least_rtt(rtt),
            may_grow: connection.window.packets < RECEIVE_WINDOW,
            in_flight: self.sent.len() as u32,
            delivered: self.delivered,
            lost: false,
            repairing: false,
            reported: Reported {
                arrival: Some(Arrival {
                    number: sent.number,
                    sent_at: sent.at,
                    arrived_at: stamped,
                    app_limited: false,
                }),
                owd: Some(stamped - sent.at),
            },
            sample: RateSample {
                packets_per_s: Some(packets / interval.as_s_f64()),
                prior_delivered: sent.delivered,
                app_limited: false,
            },
            pacing: Pacing {
                packets_per_s: connection.control.packets_per_s(self.smoothed),
                small_queue: Span::from_us(977),
                device: Device {
                    segment: 45,
                    paces: true,
                },
            },
        };
        connection.control.on_ack(&mut connection.window, &acked);
        connection.acked = acked.cumulative;
    }
}
