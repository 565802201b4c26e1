// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One flow as a daemon knows it, and the names of flows. For `onramp trace`.

use std::{fmt, net::SocketAddr, str::FromStr};

use serde::{Deserialize, Serialize};

/// The ends of a flow: data goes `from` this host `to` its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ends {
    /// Where the data comes from.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.from, self.to)
    }
}

impl FromStr for Ends {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Ends, Self::Err> {
        let (from, to) = text.split_once(' ').unwrap_or((text, ""));
        Ok(Ends {
            from: from.parse()?,
            to: to.trim().parse()?,
        })
    }
}

impl Ends {
    /// How many of the two addresses and two ports are those of `other`.
    pub fn likeness(&self, other: &Ends) -> usize {
        let of = |a: SocketAddr, b: SocketAddr| {
            usize::from(a.ip() == b.ip()) + usize::from(a.port() == b.port())
        };
        of(self.from, other.from) + of(self.to, other.to)
    }
}

/// What a daemon answers when it is asked for a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// None: it is not in the flow table.
    pub flow: Option<Flow>,
    /// If it is not: flows that are, most alike first.
    pub candidates: Vec<Ends>,
}

/// A flow now. Times are in ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Its ends.
    pub ends: Ends,
    /// CLOCK_MONOTONIC of this look.
    pub mono_ns: i64,
    /// Payload that has left, retransmissions included.
    pub sent_bytes: u64,
    /// Time since its last segment left; negative if it leaves later, with `--path edt`.
    pub idle_ns: i64,
    /// One-way delay of the newest OR-ACK.
    pub owd_ns: Option<i64>,
    /// Age of the segment that this OR-ACK acknowledges.
    pub sample_age_ns: Option<i64>,
    /// Its threshold T; none if it has none yet, or is never held.
    pub threshold_ns: Option<i64>,
    /// True if the guard has raised T.
    pub is_raised: bool,
    /// Time that the law has asked for pauses, up to the beginning of the newest one. The laws `gate` and `off` ask for none.
    pub paused_ns: u64,
    /// Time until the packet that waits may leave; 0 if none waits.
    pub held_left_ns: i64,
    /// OR-ACKs of all flows to its peer.
    pub peer_oracks: u64,
    /// Pauses of all flows to its peer.
    pub peer_holds: u64,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// Whether a flow is held, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A packet of it waits.
    Held,
    /// With `--observe`: a packet of it would wait.
    WouldBeHeld,
    /// It may send.
    Free,
    /// A class excludes it.
    Excluded,
    /// The lease of the clock has expired.
    NoLease,
    /// The threshold of its class is below what the error of the clocks allows.
    BelowError,
    /// Its peer sends no OR-ACKs.
    SilentPeer,
    /// No OR-ACK came for it yet.
    NoSample,
    /// Its peer has no threshold yet, with `--threshold auto`.
    NoThreshold,
}

impl Verdict {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Held => "held",
            Verdict::WouldBeHeld => "would be held",
            Verdict::Free => "free",
            Verdict::Excluded => "never held: excluded by a class",
            Verdict::NoLease => "not held: the lease of the clock has expired",
            Verdict::BelowError => {
                "not held: the threshold of its class is below the error of the clocks"
            }
            Verdict::SilentPeer => "not held: the peer sends no OR-ACKs",
            Verdict::NoSample => "not held: no OR-ACK of this flow yet",
            Verdict::NoThreshold => "not held: the peer has no threshold yet",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_read_as_they_are_written() {
        for text in ["10.0.0.1:4000 10.0.0.2:80", "[fd00::1]:4000 [fd00::2]:80"] {
            assert_eq!(text.parse::<Ends>().unwrap().to_string(), text);
        }
        for text in ["", "10.0.0.1:4000", "10.0.0.1:4000 10.0.0.2"] {
            assert!(text.parse::<Ends>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn likeness_counts_equal_addresses_and_ports() {
        let ends = |text: &str| text.parse::<Ends>().unwrap();
        let wanted = ends("10.0.0.1:4000 10.0.0.2:80");
        assert_eq!(wanted.likeness(&wanted), 4);
        assert_eq!(wanted.likeness(&ends("10.0.0.1:4001 10.0.0.2:80")), 3);
        assert_eq!(wanted.likeness(&ends("10.0.0.2:80 10.0.0.1:4000")), 0);
    }
}
