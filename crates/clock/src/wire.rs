// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Messages between hosts, one a UDP datagram, in network order. A tag ends each of them; it covers
//! the addresses too, which the text does not repeat. Of every version the first byte is the version,
//! the third the key, the last eight the tag: so a message of another version is known for what it is.
//!
//! ```text
//! every message   version u8, kind u8, key id u8, index u8, seq u64, term u64  ..  tag u64
//! probe, ack      received i64, sent i64, both in fleet time, before u32, id u32, epoch u32  (72 B: both ways take as long)
//! report          epoch u32, state u8, correction of 56 B (what the host follows), count u16, edges of 114 B
//! verdict         answers u64, state u8, correction of 56 B, wall of 25 B, count u16, delays of 50 B
//! notice          answers u64; its term is what it says
//! ```
//!
//! `seq` grows with everything that a host sends of a kind, over restarts too: it starts at the wall
//! clock, in units of 1024 ns. Who receives a message believes it only if its `seq` is above the last. A verdict and a
//! notice name the `seq` of a message of the receiver (`answers`), which must be of its last 10 s.

use std::net::{Ipv6Addr, SocketAddr};

use onramp_sync::{
    correction::{Correction, Error},
    line::Line,
};
use onramp_units::Time;

use crate::{address::address_bytes, keys::Keys, wall::Wall};

/// Where members listen unless the list says otherwise; OR-ACKs use the next one.
pub const PORT: u16 = 5198;
/// The version of every message.
pub const VERSION: u8 = 5;
/// The longest message: with IPv6 and UDP headers it fits into 1500 B.
pub const LONGEST: usize = 1452;
/// Edges of a report; what is more goes into another one.
pub const MOST_EDGES: usize = 11;
/// Neighbours of a verdict.
pub const MOST_NEIGHBOURS: usize = 26;

const HEADER: usize = 20;
const TAG: usize = 8;
/// Bytes of a probe and of an ack.
pub const PROBE: usize = HEADER + 44 + TAG;

/// A probe, or the ack of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probe {
    /// Place in its pair, 0 or 1.
    pub index: u8,
    /// The pair; an ack repeats the probe's.
    pub seq: u64,
    /// Ack: when the probe arrived, by its sender's monotonic clock, ns; 0: not known.
    pub received_mono_ns: i64,
    /// Ack: when the ack of this index of pair `before` left, ns; 0: not known.
    pub sent_mono_ns: i64,
    /// Ack: `received_mono_ns` in its sender's fleet time, ns; 0: it has none. Probe: the same of when the ack of this index of
    /// pair `before` arrived.
    pub received_fleet_ns: i64,
    /// Ack: `sent_mono_ns` in its sender's fleet time, ns; 0: it has none. Probe: the same of when the probe of this index of pair
    /// `before` left.
    pub sent_fleet_ns: i64,
    /// Low half of the seq of an earlier pair.
    pub before: u32,
    /// The sender's own number of this pair, by which it knows its transmit stamp.
    pub id: u32,
    /// The epoch of the sender's clock.
    pub epoch: u32,
}

/// What a host found out about an edge in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EdgeReport {
    /// The other end.
    pub far: SocketAddr,
    /// The epoch of its clock.
    pub far_epoch: u32,
    /// Its clock relative to the reporter's.
    pub line: Line,
    /// One-way delays if the line were right, ns.
    pub delays: Delays,
}

/// One-way delays over a window, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delays {
    /// The shortest from near to far.
    pub out_min_ns: i64,
    /// The shortest from far to near.
    pub back_min_ns: i64,
    /// The median of the last window, out.
    pub out_now_ns: i64,
    /// Back.
    pub back_now_ns: i64,
}

/// A window of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The epoch of its clock: it changes when the clock is another one, e.g. after the host was suspended.
    pub epoch: u32,
    /// What it follows, from the last verdict, for a coordinator that has begun anew.
    pub follows: Option<Correction>,
    /// Its edges.
    pub edges: Vec<EdgeReport>,
}

/// What the coordinator makes of a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum State {
    /// In time with the fleet.
    Synchronised(Correction),
    /// No edge leads to the fleet.
    Apart,
    /// Its edges contradict everybody else's.
    Contradictory,
}

/// The coordinator's answer to a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The host's report: its newest that the coordinator has.
    pub answers: u64,
    /// The host's clock.
    pub state: State,
    /// The leader's system clock, if it has a fleet time.
    pub wall: Option<Wall>,
    /// Delays to (out) and from (back) its neighbours.
    pub delays: Vec<(SocketAddr, Delays)>,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Asks for an ack.
    Probe(Probe),
    /// Answers a probe.
    Ack(Probe),
    /// To the coordinator: a window's edges.
    Report(Report),
    /// From the coordinator.
    Verdict(Verdict),
    /// To a host of an older term, which may not know that its leader has been replaced.
    Notice {
        /// A probe or a report of that host.
        answers: u64,
    },
}

/// A message as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Grows from message to message.
    pub seq: u64,
    /// The term of the leader that the sender knows.
    pub term: u64,
    /// The rest.
    pub body: Body,
}

/// Why a datagram says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Not one of our messages.
    Malformed,
    /// From the fleet, but of this version of the protocol.
    Version(u8),
    /// Its tag is wrong, or we have no such key.
    BadTag,
}

impl Message {
    /// The datagram, signed for the way from `from` to `to`.
    pub fn encode(&self, keys: &Keys, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
        let key = keys.signing().id;
        let (kind, index) = match &self.body {
            Body::Probe(probe) => (1, probe.index),
            Body::Ack(ack) => (2, ack.index),
            Body::Report(_) => (3, 0),
            Body::Verdict(_) => (4, 0),
            Body::Notice { .. } => (5, 0),
        };
        let mut text = Vec::with_capacity(PROBE);
        text.extend([VERSION, kind, key as u8, index]);
        text.extend(self.seq.to_be_bytes());
        text.extend(self.term.to_be_bytes());
        match &self.body {
            Body::Probe(probe) | Body::Ack(probe) => put_probe(&mut text, probe),
            Body::Report(report) => put_report(&mut text, report),
            Body::Verdict(verdict) => put_verdict(&mut text, verdict),
            Body::Notice { answers } => text.extend(answers.to_be_bytes()),
        }
        let tag = keys
            .tag(key, from, to, &text)
            .expect("it is the signing key's id");
        text.extend(tag.to_be_bytes());
        text
    }

    /// The message in a datagram that came from `from` to `to`.
    ///
    /// # Errors
    /// It is none, or not from the fleet. Any bytes are survived.
    pub fn decode(
        datagram: &[u8],
        keys: &Keys,
        from: SocketAddr,
        to: SocketAddr,
    ) -> Result<Message, Refused> {
        let (text, tag) = datagram
            .split_last_chunk::<TAG>()
            .ok_or(Refused::Malformed)?;
        let [version, _, key, ..] = *text else {
            return Err(Refused::Malformed);
        };
        let right = keys.tag(key.into(), from, to, text);
        let authentic = right == Some(u64::from_be_bytes(*tag));
        match parse(text) {
            Some(message) if authentic => Ok(message),
            Some(_) => Err(Refused::BadTag),
            None if authentic && version != VERSION => Err(Refused::Version(version)),
            None => Err(Refused::Malformed),
        }
    }
}

/// The sender's number and the index of a probe or an ack that it sent itself, from the end of the
/// frame that the kernel loops back with its transmit stamp.
pub fn sent_probe(frame: &[u8]) -> Option<(u32, u8)> {
    let text = &frame[frame.len().checked_sub(PROBE)?..PROBE.max(frame.len()) - TAG];
    match parse(text)?.body {
        Body::Probe(probe) | Body::Ack(probe) => Some((probe.id, probe.index)),
        _ => None,
    }
}

fn put_probe(text: &mut Vec<u8>, probe: &Probe) {
    text.extend(probe.received_mono_ns.to_be_bytes());
    text.extend(probe.sent_mono_ns.to_be_bytes());
    text.extend(probe.received_fleet_ns.to_be_bytes());
    text.extend(probe.sent_fleet_ns.to_be_bytes());
    text.extend(probe.before.to_be_bytes());
    text.extend(probe.id.to_be_bytes());
    text.extend(probe.epoch.to_be_bytes());
}

fn put_report(text: &mut Vec<u8>, report: &Report) {
    text.extend(report.epoch.to_be_bytes());
    put_state(
        text,
        report.follows.map_or(State::Apart, State::Synchronised),
    );
    text.extend((report.edges.len() as u16).to_be_bytes());
    for edge in &report.edges {
        let line = &edge.line;
        text.extend(address_bytes(edge.far));
        text.extend(edge.far_epoch.to_be_bytes());
        text.extend(line.at.ticks().to_be_bytes());
        text.extend(line.about_ns.to_be_bytes());
        for number in [
            line.ahead_ns,
            line.drift,
            line.delay_ns,
            line.sigma_ns,
            line.drift_sigma,
        ] {
            text.extend(number.to_be_bytes());
        }
        text.extend((line.points as u32).to_be_bytes());
        put_delays(text, &edge.delays);
    }
}

fn put_delays(text: &mut Vec<u8>, delays: &Delays) {
    for ns in [
        delays.out_min_ns,
        delays.back_min_ns,
        delays.out_now_ns,
        delays.back_now_ns,
    ] {
        text.extend(ns.to_be_bytes());
    }
}

fn put_state(text: &mut Vec<u8>, state: State) {
    let nothing = Correction {
        reference: Time::ZERO,
        offset_ns: 0,
        drift: 0.0,
        bend: 0.0,
        error: Error::default(),
    };
    let (state, correction) = match state {
        State::Synchronised(correction) => (0u8, correction),
        State::Apart => (1, nothing),
        State::Contradictory => (2, nothing),
    };
    text.push(state);
    text.extend(correction.reference.ticks().to_be_bytes());
    text.extend(correction.offset_ns.to_be_bytes());
    let error = correction.error;
    for number in [
        correction.drift,
        correction.bend,
        error.sigma_ns,
        error.drift_sigma,
        error.wander_per_s,
    ] {
        text.extend(number.to_be_bytes());
    }
}

fn put_wall(text: &mut Vec<u8>, wall: Option<Wall>) {
    let nothing = Wall {
        at: Time::ZERO,
        ahead_ns: 0,
        drift: 0.0,
    };
    text.push(wall.is_some().into());
    let wall = wall.unwrap_or(nothing);
    text.extend(wall.at.ticks().to_be_bytes());
    text.extend(wall.ahead_ns.to_be_bytes());
    text.extend(wall.drift.to_be_bytes());
}

fn put_verdict(text: &mut Vec<u8>, verdict: &Verdict) {
    text.extend(verdict.answers.to_be_bytes());
    put_state(text, verdict.state);
    put_wall(text, verdict.wall);
    text.extend((verdict.delays.len() as u16).to_be_bytes());
    for (neighbour, delays) in &verdict.delays {
        text.extend(address_bytes(*neighbour));
        put_delays(text, delays);
    }
}

/// Takes fields off the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn int(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    /// A number; infinities and what is none are malformed.
    fn number(&mut self) -> Option<f64> {
        self.take()
            .map(f64::from_be_bytes)
            .filter(|n| n.is_finite())
    }

    fn count(&mut self, most: usize) -> Option<usize> {
        let count = usize::from(u16::from_be_bytes(self.take()?));
        (count <= most).then_some(count)
    }

    fn address(&mut self) -> Option<SocketAddr> {
        let ip = Ipv6Addr::from(self.take::<16>()?).to_canonical();
        Some(SocketAddr::new(ip, u16::from_be_bytes(self.take()?)))
    }

    fn delays(&mut self) -> Option<Delays> {
        Some(Delays {
            out_min_ns: self.int()?,
            back_min_ns: self.int()?,
            out_now_ns: self.int()?,
            back_now_ns: self.int()?,
        })
    }
}

/// A message without its tag.
fn parse(text: &[u8]) -> Option<Message> {
    let mut from = Reader(text);
    let [version, kind, _key, index] = from.take()?;
    let seq = u64::from_be_bytes(from.take()?);
    let term = u64::from_be_bytes(from.take()?);
    if version != VERSION || index > 1 || index == 1 && kind > 2 {
        return None;
    }
    let body = match kind {
        1 => Body::Probe(parse_probe(&mut from, index, seq)?),
        2 => Body::Ack(parse_probe(&mut from, index, seq)?),
        3 => Body::Report(parse_report(&mut from)?),
        4 => Body::Verdict(parse_verdict(&mut from)?),
        5 => Body::Notice {
            answers: u64::from_be_bytes(from.take()?),
        },
        _ => return None,
    };
    from.0.is_empty().then_some(Message { seq, term, body })
}

fn parse_probe(from: &mut Reader<'_>, index: u8, seq: u64) -> Option<Probe> {
    Some(Probe {
        index,
        seq,
        received_mono_ns: from.int()?,
        sent_mono_ns: from.int()?,
        received_fleet_ns: from.int()?,
        sent_fleet_ns: from.int()?,
        before: u32::from_be_bytes(from.take()?),
        id: u32::from_be_bytes(from.take()?),
        epoch: u32::from_be_bytes(from.take()?),
    })
}

fn parse_report(from: &mut Reader<'_>) -> Option<Report> {
    let epoch = u32::from_be_bytes(from.take()?);
    let follows = match parse_state(from)? {
        State::Synchronised(correction) => Some(correction),
        State::Apart => None,
        State::Contradictory => return None,
    };
    let edge = |from: &mut Reader<'_>| {
        let far = from.address()?;
        let far_epoch = u32::from_be_bytes(from.take()?);
        let line = Line {
            at: Time::from_ticks(from.int()?),
            about_ns: from.int()?,
            ahead_ns: from.number()?,
            drift: from.number()?,
            delay_ns: from.number()?,
            sigma_ns: from.number()?,
            drift_sigma: from.number()?,
            points: u32::from_be_bytes(from.take()?) as usize,
        };
        let delays = from.delays()?;
        Some(EdgeReport {
            far,
            far_epoch,
            line,
            delays,
        })
    };
    let edges = (0..from.count(MOST_EDGES)?)
        .map(|_| edge(from))
        .collect::<Option<_>>()?;
    Some(Report {
        epoch,
        follows,
        edges,
    })
}

fn parse_state(from: &mut Reader<'_>) -> Option<State> {
    let [state] = from.take()?;
    let correction = Correction {
        reference: Time::from_ticks(from.int()?),
        offset_ns: from.int()?,
        drift: from.number()?,
        bend: from.number()?,
        error: Error {
            sigma_ns: from.number()?,
            drift_sigma: from.number()?,
            wander_per_s: from.number()?,
        },
    };
    match state {
        0 => Some(State::Synchronised(correction)),
        1 => Some(State::Apart),
        2 => Some(State::Contradictory),
        _ => None,
    }
}

fn parse_wall(from: &mut Reader<'_>) -> Option<Option<Wall>> {
    let [is_told] = from.take()?;
    let wall = Wall {
        at: Time::from_ticks(from.int()?),
        ahead_ns: from.int()?,
        drift: from.number()?,
    };
    match is_told {
        0 => Some(None),
        1 => Some(Some(wall)),
        _ => None,
    }
}

fn parse_verdict(from: &mut Reader<'_>) -> Option<Verdict> {
    let answers = u64::from_be_bytes(from.take()?);
    let state = parse_state(from)?;
    let wall = parse_wall(from)?;
    let delays = |from: &mut Reader<'_>| Some((from.address()?, from.delays()?));
    let delays = (0..from.count(MOST_NEIGHBOURS)?)
        .map(|_| delays(from))
        .collect::<Option<_>>()?;
    Some(Verdict {
        answers,
        state,
        wall,
        delays,
    })
}

#[cfg(test)]
pub(crate) mod tests;
