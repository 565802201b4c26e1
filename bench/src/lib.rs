//! Measures what the data path costs: guest instructions a frame at the sender and at the receiver.
//!
//! Does: boot the rack's machine in virtual time (an instruction is a nanosecond), move bytes over
//! an unlimited link, split the time between the two ends with BPF programs, write docs/cost.md.
//! Does not: judge. Bounds stand beside the numbers; nobody fails.

pub mod bed;
pub mod guest;
pub mod host;
pub mod probes;
pub mod stats;
pub mod table;
pub mod transfer;
