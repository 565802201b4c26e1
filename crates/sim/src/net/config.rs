// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The configuration of switches: buffers, marks, thresholds.

use onramp_cc::nic::Marks;
use onramp_cc::Curve;
use onramp_units::{Bytes, Rate};

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Switch {
    /// The buffer.
    pub buffer: Buffer,
    /// Congestion marks, if any.
    pub ecn: Option<Ecn>,
    /// Dynamic threshold: alpha is 2 to the power of this; `None`: 1 if shared, 1/8 at the hosts' rate if
    /// lossless.
    pub alpha_log2: Option<i8>,
    /// Acknowledgements of NIC hosts have a class of their own, which leaves first, is never paused and has its own room.
    pub acks_first: bool,
}

/// How packets share a switch's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// Each egress port has its own; packets that do not fit are dropped.
    PerPort(Bytes),
    /// All ports share it; a queue may use alpha times the free memory (dynamic threshold), and packets
    /// above that are dropped.
    Shared(Bytes),
    /// All ports share it; priority flow control stops the sender before it is full.
    Lossless(Bytes),
}

/// Marks by the length of the egress queue. Lengths apply to ports at the hosts' rate, and are proportional
/// to the rate at others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ecn {
    /// No packet is marked at or below this length.
    pub min: Bytes,
    /// All packets are marked above this length, unless the curve says otherwise.
    pub max: Bytes,
    /// How the fraction of marked packets grows from zero at `min`. Above `max` a hyperbola stays as it is there.
    pub curve: Curve,
    /// Scales the curve.
    pub max_fraction: f64,
    /// Whether the queue on arrival decides; if not, the queue on departure does.
    pub at_enqueue: bool,
}

impl Ecn {
    /// Scales `length`, which applies at the hosts' rate `line`, to a port of `rate`.
    pub(crate) fn at_rate(length: Bytes, line: Rate, rate: Rate) -> u64 {
        let bytes = u128::from(length.get()) * u128::from(rate.bits_per_s());
        (bytes / u128::from(line.bits_per_s())) as u64
    }
}

impl From<Marks> for Ecn {
    fn from(marks: Marks) -> Ecn {
        Ecn {
            min: marks.min,
            max: marks.max,
            max_fraction: marks.max_fraction,
            curve: Curve::Line,
            at_enqueue: false,
        }
    }
}
