// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Measures what the data path costs: guest instructions a frame at the sender and at the receiver.
//!
//! Does: boot the rack's machine, move bytes over a link, count every instruction from outside (a
//! QEMU plugin), compare set-ups that differ in one thing, write docs/cost.md. Only the baseline's
//! split between the two ends comes from probes inside the guest.
//! Does not: judge. Bounds stand beside the numbers; nobody fails.

pub mod bed;
pub mod compare;
pub mod congestion;
pub mod guest;
pub mod host;
pub mod laws;
pub mod probes;
pub mod profile;
pub mod several;
pub mod table;
pub mod transfer;
