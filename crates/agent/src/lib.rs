//! The daemon: holds the data path on a device, keeps its clock, and answers who asks for its status.
//! The decisions are in the kernel (`bpf/`, `law/`); nothing here is per packet.
//!
//! Does not: print for people (`onramp status`, `onramp clock`), which crates/onramp does with the types of
//! crates/status and crates/clock.

mod args;
pub mod clock;
mod daemon;
mod datapath;
mod fleet;
mod qdisc;
mod server;
mod source;
mod threshold;

pub use args::Args;
pub use daemon::run;
pub use fleet::metrics;
