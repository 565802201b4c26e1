// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The virtual rack: a scenario on real Linux TCP, between network namespaces, on this kernel or
//! in a virtual machine.
//!
//! Builds the network, runs the traffic, measures and writes results. Does not compute anything that the
//! kernel can measure, does not simulate, and does not know the control laws.

pub mod error;
pub mod measure;
pub mod native;
mod run;
pub mod vm;

pub use error::{Error, Result};
pub use run::{guest, run, Backend, Options};
