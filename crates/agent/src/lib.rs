// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The daemon: attaches the data path to devices, keeps its clock, and answers status requests. The
//! kernel programs (`bpf/`, `law/`) decide; nothing here runs per packet.
//!
//! Does not: print status for people. crates/onramp does, with the types of crates/status and crates/clock.

mod capabilities;
mod cgroup;
pub mod clock;
pub mod config;
mod daemon;
pub mod datapath;
mod derived;
mod detach;
mod devices;
pub mod doctor;
pub mod etcd;
mod fleet;
mod floor;
pub mod metrics;
mod notify;
mod peers;
mod port;
mod prefix;
mod rules;
mod server;
mod silence;
mod source;
mod threshold;
mod trace;
mod trouble;

pub use daemon::run;
pub use detach::detach;
