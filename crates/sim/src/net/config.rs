// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The configuration of switches: buffers, rules, thresholds.

use onramp_cc::path::Paths;
use onramp_cc::switch::Rule;
use onramp_units::Bytes;

/// A switch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Switch {
    /// The buffer.
    pub buffer: Buffer,
    /// Which packets it marks or drops beyond what has no room, if any.
    pub rule: Option<Rule>,
    /// How it chooses among equal-cost paths.
    pub paths: Paths,
    /// Dynamic threshold: alpha is 2 to the power of this; `None`: 1 if shared, 1/8 at the hosts' rate if
    /// lossless.
    pub alpha_log2: Option<i8>,
    /// Acknowledgements of NIC hosts have a class of their own, which leaves first, is never paused and has its own room.
    pub acks_first: bool,
}

impl Switch {
    /// One that drops what has no room, without a rule, with the default choice of paths.
    pub fn new(buffer: Buffer) -> Switch {
        Switch {
            buffer,
            rule: None,
            paths: Paths::default(),
            alpha_log2: None,
            acks_first: false,
        }
    }
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
