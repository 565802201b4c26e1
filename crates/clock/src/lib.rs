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

mod address;
pub mod config;
pub mod coordinator;
mod engine;
pub mod exchange;
pub mod host;
pub mod keys;
pub mod members;
mod own;
mod published;
pub mod registry;
pub mod roster;
pub mod stamps;
pub mod status;
mod system;
pub mod wall;
pub mod window;
pub mod wire;
