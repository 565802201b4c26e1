//! The engine: events in their total order, times on a line, random numbers, threads.
//!
//! Does not: know what an event means, or what hosts and switches are.

pub(crate) mod barrier;
pub(crate) mod events;
pub(crate) mod random;
pub(crate) mod rounding;
pub(crate) mod slab;
pub(crate) mod team;
