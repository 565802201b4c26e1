// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The engine: events in total order, transmission times, random numbers, threads.
//!
//! Does not know the meaning of events, hosts or switches.

pub(crate) mod barrier;
pub(crate) mod events;
pub(crate) mod random;
pub(crate) mod rounding;
pub(crate) mod slab;
pub(crate) mod team;
