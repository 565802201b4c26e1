// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Segments of captures into flows: what a direction of a connection sends until the other side sends data, as a client its next
//! request, or until a long silence. A short pause ends no flow: at a full port the segments of a flow are milliseconds apart, and
//! a lost one comes after a retransmission timeout. Sequence numbers tell what is sent again, or is in two captures, and counts
//! once.

use crate::packet::{Ends, Segment};
use onramp_runs::count;
use onramp_trace::{Delays, Flow};
use std::collections::HashMap;
use std::net::IpAddr;

/// A pause that ends a flow after the other side has sent data.
const TURN_NS: i64 = 100_000;
/// A silence that ends a flow of a connection on which only one side sends.
const SILENCE_NS: i64 = 50_000_000;
/// A silence that ends a flow of another connection: longer than retransmission timeouts.
const LONG_SILENCE_NS: i64 = 1_000_000_000;
/// A larger hole in the sequence numbers is a new start, not a part that the capture has lost.
const MOST_LOST: u32 = 1 << 20;
/// A handshake that takes longer met a lost packet.
const LONGEST_HANDSHAKE_NS: i64 = 500_000_000;

/// The flows of captures, so far.
#[derive(Debug, Default)]
pub struct Bursts {
    directions: HashMap<Ends, Direction>,
    /// By direction of the client, handshakes under way.
    begun: HashMap<Ends, Handshake>,
    /// Handshakes that ended, and those of them that were captured near the client.
    handshakes: (u64, u64),
    /// The least time of a handshake between two hosts, the lesser address first: a round trip.
    round_trips: HashMap<(IpAddr, IpAddr), i64>,
    flows: Vec<Flow>,
    other_packets: usize,
    other_bytes: u64,
    bytes: u64,
}

/// When its packets were seen.
#[derive(Debug, Clone, Copy)]
struct Handshake {
    syn_ns: i64,
    syn_ack_ns: Option<i64>,
}

/// What is known of a direction.
#[derive(Debug, Default)]
struct Direction {
    /// The sequence number of the first byte, if the SYN was seen.
    first: Option<u32>,
    /// The sequence number after the last byte that was seen.
    next: Option<u32>,
    open: Option<Burst>,
    /// Whether the other side has sent data since the last segment, and ever.
    turned: bool,
    has_turned: bool,
}

#[derive(Debug, Clone, Copy)]
struct Burst {
    start_ns: i64,
    last_ns: i64,
    bytes: u64,
}

impl Bursts {
    /// Adds a segment; they come in the order of time. The second of two captures of a segment is one that is sent again.
    pub fn add(&mut self, at_ns: i64, segment: Segment) {
        self.shake(at_ns, &segment);
        let ends = segment.ends;
        let direction = self.directions.entry(ends).or_default();
        let first = segment.sequence.wrapping_add(u32::from(segment.syn));
        // A SYN that another capture has, or that is sent again, begins nothing new.
        if segment.syn && direction.first != Some(first) {
            (direction.first, direction.next) = (Some(first), Some(first));
        }
        if segment.payload == 0 {
            return;
        }
        let fresh = direction.fresh(first, segment.payload);
        if fresh == 0 {
            return;
        }
        self.bytes += u64::from(fresh);
        let ended = direction.send(at_ns, fresh);
        self.flows.extend(ended.map(|burst| burst.flow(ends)));
        if let Some(other) = self.directions.get_mut(&ends.back()) {
            (other.turned, other.has_turned) = (true, true);
        }
    }

    /// Counts a packet that is no segment.
    pub fn leave_out(&mut self, bytes: u32) {
        self.other_packets += 1;
        self.other_bytes += u64::from(bytes);
    }

    /// What was left out, as a remark; none if it is nothing.
    pub fn left_out(&self) -> Option<String> {
        let all = self.other_bytes + self.bytes;
        (self.other_packets > 0).then(|| {
            format!(
                "left out: {} of other protocols than TCP, {:.1} % of the captured bytes",
                count(self.other_packets, "packet"),
                100.0 * self.other_bytes as f64 / all.max(1) as f64
            )
        })
    }

    /// A handshake lasts a round trip between its SYN and the client's ACK, wherever the capture is. Near the client, nearly all of it
    /// is before the server's SYN-ACK.
    fn shake(&mut self, at_ns: i64, segment: &Segment) {
        match (segment.syn, segment.ack) {
            (true, false) => {
                let new = Handshake {
                    syn_ns: at_ns,
                    syn_ack_ns: None,
                };
                // Of two captures of a SYN the first counts.
                let known = self.begun.entry(segment.ends).or_insert(new);
                if at_ns - known.syn_ns >= LONGEST_HANDSHAKE_NS {
                    *known = new;
                }
            }
            (true, true) => {
                if let Some(handshake) = self.begun.get_mut(&segment.ends.back()) {
                    handshake.syn_ack_ns.get_or_insert(at_ns);
                }
            }
            (false, true) => {
                let Some(Handshake { syn_ns, syn_ack_ns }) = self.begun.remove(&segment.ends)
                else {
                    return;
                };
                let took_ns = at_ns - syn_ns;
                if (1..LONGEST_HANDSHAKE_NS).contains(&took_ns) {
                    let hosts = hosts(segment.ends);
                    let least = self.round_trips.entry(hosts).or_insert(took_ns);
                    *least = took_ns.min(*least);
                    let to_server_ns = syn_ack_ns.map_or(0, |ns| ns - syn_ns);
                    let is_near_client = to_server_ns > took_ns / 4 * 3;
                    self.handshakes.0 += 1;
                    self.handshakes.1 += u64::from(is_near_client);
                }
            }
            (false, false) => {}
        }
    }

    /// Where the capture was, as a remark, if that hides something.
    pub fn place(&self) -> Option<String> {
        let (all, near_client) = self.handshakes;
        (near_client * 2 > all).then(|| {
            format!(
                "{near_client} of {all} handshakes look as if they were captured near the client; answers that waited in a queue on the \
                 way there seem to start later, so the congestion is underestimated: capture at the hosts that send most"
            )
        })
    }

    /// All flows; those of hosts whose handshake was seen have half its time as a delay.
    pub fn finish(mut self) -> Vec<Flow> {
        let open = self.directions.into_iter();
        let open = open.filter_map(|(ends, direction)| Some(direction.open?.flow(ends)));
        self.flows.extend(open);
        for flow in &mut self.flows {
            let (from, to) = (flow.from.parse(), flow.to.parse());
            let (Ok(from), Ok(to)) = (from, to) else {
                continue;
            };
            let round_trip = self.round_trips.get(&pair(from, to));
            flow.delays = round_trip.and_then(|ns| Delays::of(&mut [ns / 2]));
        }
        self.flows
    }
}

fn hosts(ends: Ends) -> (IpAddr, IpAddr) {
    pair(ends.from, ends.to)
}

fn pair(a: IpAddr, b: IpAddr) -> (IpAddr, IpAddr) {
    (a.min(b), a.max(b))
}

impl Direction {
    /// Bytes from `first` on that were not seen before.
    fn fresh(&mut self, first: u32, payload: u32) -> u32 {
        let end = first.wrapping_add(payload);
        let next = *self.next.get_or_insert(first);
        let ahead = end.wrapping_sub(next);
        if ahead > u32::MAX / 2 {
            return 0;
        }
        self.next = Some(end);
        match ahead > payload.saturating_add(MOST_LOST) {
            true => payload,
            false => ahead,
        }
    }

    /// Sends bytes; answers with the burst before, if they begin a new one.
    fn send(&mut self, at_ns: i64, bytes: u32) -> Option<Burst> {
        let bytes = u64::from(bytes);
        let longest_ns = match (self.turned, self.has_turned) {
            (true, _) => TURN_NS,
            (false, true) => LONG_SILENCE_NS,
            (false, false) => SILENCE_NS,
        };
        self.turned = false;
        if let Some(open) = &mut self.open {
            if (open.last_ns..=open.last_ns + longest_ns).contains(&at_ns) {
                open.last_ns = at_ns;
                open.bytes += bytes;
                return None;
            }
        }
        self.open.replace(Burst {
            start_ns: at_ns,
            last_ns: at_ns,
            bytes,
        })
    }
}

impl Burst {
    fn flow(self, ends: Ends) -> Flow {
        Flow {
            from: ends.from.to_string(),
            from_port: ends.from_port,
            to: ends.to.to_string(),
            to_port: ends.to_port,
            start_fleet_ns: self.start_ns,
            duration_ns: self.last_ns - self.start_ns,
            size_bytes: self.bytes,
            delays: None,
            held_ns: 0,
        }
    }
}
