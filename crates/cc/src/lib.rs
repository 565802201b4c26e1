//! Congestion controls: how fast and how much a flow may send, from what its acknowledgements say.
//!
//! Does: the decisions of each congestion control, for NICs ([`nic`]) and for kernels ([`tcp`]), one
//! file each. Does not: know clocks, queues, packets or the network. Every input is an argument,
//! time included.

pub mod int;
pub mod nic;
pub mod tcp;
