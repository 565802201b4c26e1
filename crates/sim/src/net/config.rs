//! The configuration of switches: buffers, marks, thresholds.

use onramp_cc::nic::Marks;
use onramp_units::{Bytes, Rate};

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Switch {
    /// Where packets wait.
    pub buffer: Buffer,
    /// Congestion marks, if any.
    pub ecn: Option<Ecn>,
    /// Dynamic threshold: alpha is 2 to this; `None`: 1 if shared, 1/8 at the hosts' rate if lossless.
    pub alpha_log2: Option<i8>,
}

/// How packets share a switch's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// Each egress port has its own; what does not fit is dropped.
    PerPort(Bytes),
    /// All ports share it; a queue may take alpha times what is free (dynamic threshold), the rest is
    /// dropped.
    Shared(Bytes),
    /// All ports share it; priority flow control stops the sender before it is full.
    Lossless(Bytes),
}

/// Marks by the length of the egress queue. Lengths are for ports at the hosts' rate, and in
/// proportion at others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ecn {
    /// None at or below this.
    pub min: Bytes,
    /// All above this.
    pub max: Bytes,
    /// Part of the packets marked just below `max`; it grows from zero at `min`.
    pub max_fraction: f64,
    /// It grows in so many equal steps; `None`: steadily.
    pub steps: Option<u32>,
    /// Marked is what finds such a queue, else what leaves one behind.
    pub at_enqueue: bool,
}

impl Ecn {
    /// `length` of a port at the hosts' rate `line`, at a port of `rate`.
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
            steps: None,
            at_enqueue: false,
        }
    }
}
