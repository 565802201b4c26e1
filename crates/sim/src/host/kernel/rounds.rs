// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Rounds of connections for `--series rounds`: in each, the fraction of packets that were marked and the least round-trip
//! time (TIMELY, figure 3). A round ends when the packet is acknowledged that was the next one to send at its start
//! (SND_UNA). Only for kernel hosts.

use onramp_units::{Sim, Span, Time};
use std::collections::HashMap;

/// A round of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Round {
    /// When it ended.
    pub at: Time<Sim>,
    /// Flow of the plan.
    pub plan: u32,
    /// Packets that were acknowledged, and how many of them were marked.
    pub packets: u32,
    pub marked: u32,
    pub least_rtt: Span,
}

impl Round {
    /// The part of its packets that were marked.
    pub fn marked_fraction(&self) -> f64 {
        f64::from(self.marked) / f64::from(self.packets)
    }
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    pub at: Time<Sim>,
    pub plan: u32,
    pub packets: u32,
    pub marked: u32,
    pub rtt: Option<Span>,
    /// The first packet that is not acknowledged, and the one to be sent next.
    pub unacked: u32,
    pub next: u32,
}

/// A round in progress.
struct Open {
    end: u32,
    packets: u32,
    marked: u32,
    least_rtt: Option<Span>,
}

/// Rounds of the connections of a domain's hosts.
pub(crate) struct Rounds {
    /// End of the window.
    end: Time<Sim>,
    /// By connection.
    open: HashMap<u32, Open>,
    pub ended: Vec<Round>,
}

impl Rounds {
    pub fn new(end: Time<Sim>) -> Rounds {
        Rounds {
            end,
            open: HashMap::new(),
            ended: Vec::new(),
        }
    }

    /// `connection` gets an acknowledgement. Its first round begins with the first one.
    pub fn note(&mut self, connection: u32, heard: &Heard) {
        if heard.at >= self.end {
            return;
        }
        let Some(open) = self.open.get_mut(&connection) else {
            self.open.insert(connection, Open::new(heard.next));
            return;
        };
        open.packets += heard.packets;
        open.marked += heard.marked;
        open.least_rtt = open.least_rtt.into_iter().chain(heard.rtt).min();
        if heard.unacked < open.end {
            return;
        }
        let whole = std::mem::replace(open, Open::new(heard.next));
        if let (Some(least_rtt), 1..) = (whole.least_rtt, whole.packets) {
            self.ended.push(Round {
                at: heard.at,
                plan: heard.plan,
                packets: whole.packets,
                marked: whole.marked.min(whole.packets),
                least_rtt,
            });
        }
    }
}

impl Open {
    fn new(end: u32) -> Open {
        Open {
            end,
            packets: 0,
            marked: 0,
            least_rtt: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(at_us: i64, (packets, marked): (u32, u32), rtt_us: i64, unacked: u32) -> Heard {
        Heard {
            at: Time::ZERO + Span::from_us(at_us),
            plan: 3,
            packets,
            marked,
            rtt: Some(Span::from_us(rtt_us)),
            unacked,
            next: unacked + 10,
        }
    }

    #[test]
    fn a_round_ends_with_the_packet_that_was_next_at_its_start() {
        let mut rounds = Rounds::new(Time::ZERO + Span::from_us(100));
        rounds.note(7, &heard(1, (5, 5), 10, 0)); // up to packet 10
        rounds.note(7, &heard(2, (6, 0), 40, 6));
        assert!(rounds.ended.is_empty());
        rounds.note(7, &heard(3, (2, 1), 30, 8));
        rounds.note(7, &heard(4, (2, 1), 50, 10));
        let first = Round {
            at: Time::ZERO + Span::from_us(4),
            plan: 3,
            packets: 10,
            marked: 2,
            least_rtt: Span::from_us(30),
        };
        assert_eq!(rounds.ended, [first]);
        assert_eq!(first.marked_fraction(), 0.2);
        // Up to packet 20; then the window is over.
        rounds.note(7, &heard(99, (10, 0), 20, 20));
        rounds.note(7, &heard(100, (10, 0), 20, 30));
        assert_eq!(rounds.ended.len(), 2);
    }
}
