// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The trace of a daemon: what flows it saw, when, how long and with which delays. Records, their text, and the list of
//! flows that a replay needs. The daemon writes traces (crates/agent), scenarios and `onramp advise` read them.
//!
//! Does not: open files, look at flows, or simulate.
#![warn(missing_docs)]

mod explain;
mod merge;
mod read;
mod record;

pub use explain::reference;
pub use merge::{merge, merge_flows, Merged, ReplayFlow};
pub use read::{is_trace, read, Trace, TraceError};
pub use record::{Delays, Device, Flow, Head, Hour, Record, VERSION};
