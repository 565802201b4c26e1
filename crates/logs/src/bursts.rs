// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Segments of captures into flows: what a direction of a connection sends without a pause, by its sequence numbers, so
//! that a segment that is sent again, or that two captures have, counts once.

use crate::packet::{Ends, Segment};
use crate::GAP_NS;
use onramp_trace::{Delays, Flow};
use std::collections::HashMap;
use std::net::IpAddr;

/// A larger hole in the sequence numbers is a new start, not a part that the capture has lost.
const MOST_LOST: u32 = 1 << 20;
/// A handshake that takes longer met a lost packet.
const LONGEST_HANDSHAKE_NS: i64 = 500_000_000;

/// The flows of captures, so far.
#[derive(Debug, Default)]
pub struct Bursts {
    directions: HashMap<Ends, Direction>,
    /// When the SYN of a direction was sent.
    begun: HashMap<Ends, i64>,
    /// The least time of a handshake between two hosts, the lesser address first: a round trip.
    round_trips: HashMap<(IpAddr, IpAddr), i64>,
    flows: Vec<Flow>,
    other_packets: u64,
    other_bytes: u64,
    bytes: u64,
}

/// What is known of a direction.
#[derive(Debug, Default)]
struct Direction {
    /// The sequence number of the first byte, if the SYN was seen.
    first: Option<u32>,
    /// The sequence number after the last byte that was seen.
    next: Option<u32>,
    open: Option<Burst>,
}

#[derive(Debug, Clone, Copy)]
struct Burst {
    start_ns: i64,
    last_ns: i64,
    bytes: u64,
}

impl Bursts {
    /// Adds a segment; those of one capture come in the order of time.
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
                "left out: {} packets that are not TCP, {:.1} % of the captured bytes",
                self.other_packets,
                100.0 * self.other_bytes as f64 / all.max(1) as f64
            )
        })
    }

    /// A handshake lasts a round trip between its SYN and the client's ACK, wherever the capture is.
    fn shake(&mut self, at_ns: i64, segment: &Segment) {
        match (segment.syn, segment.ack) {
            (true, false) => drop(self.begun.insert(segment.ends, at_ns)),
            (false, true) => {
                let Some(begun) = self.begun.remove(&segment.ends) else {
                    return;
                };
                let took_ns = at_ns - begun;
                if (1..LONGEST_HANDSHAKE_NS).contains(&took_ns) {
                    let least = self
                        .round_trips
                        .entry(hosts(segment.ends))
                        .or_insert(took_ns);
                    *least = took_ns.min(*least);
                }
            }
            _ => {}
        }
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
        if let Some(open) = &mut self.open {
            if (open.last_ns..=open.last_ns + GAP_NS).contains(&at_ns) {
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
