// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Clock synchronisation between hosts, as Huygens does it: probes with the kernel's time stamps, and
//! messages that carry the estimates of `onramp-sync`. How it works and how accurate it is: docs/clock.md.
//!
//! Does: the wire format ([`wire`]) and its keys ([`keys`]), the mesh of probes ([`members`]), the members of
//! the fleet ([`roster`]) from a list or a registry ([`registry`]), sockets with time stamps ([`stamps`]),
//! pairs of probes ([`exchange`]), the lines of a window ([`window`]), the central step ([`coordinator`]),
//! all of it on a host ([`node`]) and the thread that wakes this ([`host`]). The node
//! takes time, packets and stamps from a [`machine`], so it runs on simulated ones, too. On request it steers the system clock.
//! Does not: load BPF programs, or estimate anything itself.
#![warn(missing_docs)]

mod address;
pub mod config;
pub mod coordinator;
mod engine;
pub mod exchange;
pub mod host;
pub mod keygen;
pub mod keys;
mod lacked;
pub mod machine;
pub mod members;
pub mod node;
mod own;
mod published;
pub mod registration;
pub mod registry;
pub mod roster;
pub mod stamps;
pub mod status;
mod system;
pub mod wall;
pub mod window;
pub mod wire;
