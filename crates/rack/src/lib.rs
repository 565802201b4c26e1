//! The virtual rack: a scenario on real Linux TCP, between network namespaces, on this kernel or
//! in a virtual machine.
//!
//! Does: build the network, run the traffic, measure, write results.
//! Does not: compute what the kernel can measure, simulate, or know the control laws.

pub mod error;
pub mod measure;
pub mod native;
mod run;
pub mod vm;

pub use error::{Error, Result};
pub use run::{guest, run, Options, Place};
