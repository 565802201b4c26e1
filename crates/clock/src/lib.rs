//! Huygens between machines: probes with the kernel's time stamps, and messages that carry what
//! `onramp-sync` makes of them. What it does and what to expect: docs/clock.md.
//!
//! Does: the wire format ([`wire`]) and its keys ([`keys`]), who probes whom ([`members`]), who the
//! fleet is ([`roster`]) by what a registry holds ([`registry`]), sockets
//! that stamp ([`stamps`]), pairs of probes ([`exchange`]), a window's lines ([`window`]), the central
//! step ([`coordinator`]), the system's clock if it shall follow ([`system`]), and the thread that runs
//! all of it on a host ([`host`]).
//! Does not: load BPF programs, or estimate anything itself.
#![warn(missing_docs)]

pub mod coordinator;
mod engine;
pub mod exchange;
pub mod host;
pub mod keys;
pub mod members;
mod own;
pub mod registry;
pub mod roster;
pub mod stamps;
pub mod status;
pub mod system;
pub mod window;
pub mod wire;
