// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Connections of logs into flows.

use crate::error::Reason;
use crate::PIECE_NS;
use onramp_runs::count;
use onramp_trace::Flow;

/// A piece has at least a packet.
const PACKET_BYTES: u64 = 1448;
/// Most flows that all logs have together.
const MOST_FLOWS: usize = 10_000_000;

/// A connection, or one direction of it, as a log has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    pub from: String,
    pub from_port: u16,
    pub to: String,
    pub to_port: u16,
    pub start_ns: i64,
    pub duration_ns: i64,
    pub bytes: u64,
    /// Bytes from `to` to `from`.
    pub back_bytes: u64,
}

/// The flows of logs, so far.
#[derive(Debug, Default)]
pub struct Connections {
    flows: Vec<Flow>,
    not_tcp: usize,
    empty: usize,
}

impl Connections {
    /// Adds both directions of a connection.
    pub fn add(&mut self, connection: &Connection) -> Result<(), Reason> {
        if connection.duration_ns < 0 {
            return Err(Reason::Backwards(connection.duration_ns.saturating_neg()));
        }
        if connection.bytes == 0 && connection.back_bytes == 0 {
            self.empty += 1;
        }
        let there = (&*connection.from, connection.from_port);
        let here = (&*connection.to, connection.to_port);
        self.pieces(connection, there, here, connection.bytes)?;
        self.pieces(connection, here, there, connection.back_bytes)
    }

    /// A direction's bytes, in equal parts over its duration.
    fn pieces(
        &mut self,
        connection: &Connection,
        (from, from_port): (&str, u16),
        (to, to_port): (&str, u16),
        bytes: u64,
    ) -> Result<(), Reason> {
        if bytes == 0 {
            return Ok(());
        }
        let pieces = (connection.duration_ns / PIECE_NS + 1) as u64;
        let pieces = pieces.min(bytes.div_ceil(PACKET_BYTES));
        let apart_ns = connection.duration_ns / pieces as i64;
        if self.flows.len() as u64 + pieces > MOST_FLOWS as u64 {
            return Err(Reason::TooMany(MOST_FLOWS));
        }
        for number in 0..pieces {
            let until =
                |piece: u64| (u128::from(bytes) * u128::from(piece) / u128::from(pieces)) as u64;
            self.flows.push(Flow {
                from: from.to_owned(),
                from_port,
                to: to.to_owned(),
                to_port,
                start_fleet_ns: connection.start_ns.saturating_add(number as i64 * apart_ns),
                duration_ns: apart_ns,
                size_bytes: until(number + 1) - until(number),
                delays: None,
                held_ns: 0,
            });
        }
        Ok(())
    }

    /// Counts a record of another protocol than TCP.
    pub fn leave_out(&mut self) {
        self.not_tcp += 1;
    }

    /// What was left out, as remarks.
    pub fn left_out(&self) -> Vec<String> {
        let of = |number: usize, thing: &str, why: &str| {
            (number > 0).then(|| format!("left out: {} {why}", count(number, thing)))
        };
        let all = [
            of(self.not_tcp, "record", "of other protocols than TCP"),
            of(self.empty, "connection", "without payload"),
        ];
        all.into_iter().flatten().collect()
    }

    /// All flows.
    pub fn finish(self) -> Vec<Flow> {
        self.flows
    }
}
