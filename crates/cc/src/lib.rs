// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls: the rate and window of a flow, from its acknowledgements; rules of switches, and their choice of paths;
//! the names of control laws.
//!
//! Has one file for each congestion control, for NICs ([`nic`]) or for kernels ([`tcp`]), which also declares
//! its names and parameters; and the registry of all ([`Cc`]). Rules of switches ([`switch`]) and their choice of paths
//! ([`path`]) are built alike. Other crates add their own ([`tcp::register`], [`nic::register`], [`switch::register`],
//! [`path::register`]), and control laws of On-Ramp ([`law::register`]). Does not know clocks, queues, packets or the
//! network. Every input is an argument, time included.

mod curve;
mod custom;
pub mod int;
pub mod law;
mod mistake;
pub mod nic;
mod parameter;
pub mod path;
mod plug;
mod registry;
pub mod switch;
pub mod tcp;

pub use curve::{Curve, Fit, Target};
pub use custom::Custom;
pub use mistake::{without_panic, Mistake, Mistakes, Watched};
pub use onramp_units::Rate; // for parameters!
pub use parameter::{
    kbit, Bounds, Field, InLaw, Parameter, ParameterValue, Parameters, Tuning, LONG, PART, SHORT,
    STEP, TIMES,
};
pub use plug::{Named, Plugs};
pub use registry::{keys, names, names_of, Cc, Key};

/// Jain's index of two flows of a congestion control that is fair: at most twice as much for one.
pub const FAIR: f64 = 0.9;
/// Payload of a flow alone on a link, as a part of the line: headers take up to 8 % of it, and the least that most sources aim at
/// is 95 % of the rest.
pub const FILLED: f64 = 0.85;
