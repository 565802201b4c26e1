// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The configuration of the daemons: one table of keys, from which the parser of the file, the command line and the
//! documentation follow. Does not: act on values.
mod class;
mod configuration;
mod document;
mod error;
mod explain;
mod given;
mod key;
mod keys;
mod relations;
mod settings;
mod values;

pub use class::{Class, Ports};
pub use configuration::{Configuration, DEFAULT_FILE};
pub use error::Errors;
pub use explain::{explain, explain_markdown};
pub use given::{AgentOptions, ClockOptions, DoctorOptions, Given, Offered};
pub use key::Daemon;
pub use keys::{Config, EtcdKeys, FleetKeys, LawKeys, LinkKeys, TraceKeys, BPFFS};
pub use values::{
    Addresses, CgroupPath, ClockError, ClockSource, Others, Pace, Path, Stamp, Threshold,
};
