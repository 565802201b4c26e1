// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The control laws of `law/*.h`, for Rust: the same lines that the kernel runs; and the
//! structures that the kernel's programs and Rust share (`bpf/abi.h`). Generated bindings with a safe interface; no
//! logic, no clock, no I/O. Equations of the laws: docs/law.md.
//!
//! ```
//! use onramp_law::{Config, Flow, Law, Records, Verdict};
//! use onramp_units::{Span, Time};
//!
//! let config = Config::new(Law::Strawman, Span::from_us(50));
//! let (mut flow, mut records) = (Flow::default(), Records::default());
//! let at = |us: i64| Time::from_ticks(us * 1_000);
//!
//! records.sent(&config, &mut flow, at(0), 14_480, 1_448);
//! let verdict = records.orack(&config, &mut flow, 14_480, at(100), at(80));
//! assert_eq!(verdict, Verdict::Used);
//! assert_eq!(flow.may_go(&config, at(100)), Some(at(130))); // eq. 2: now + 80 us - 50 us
//! ```

pub mod abi;
#[allow(missing_docs, clippy::all)]
pub mod cc;
mod clock;
mod config;
pub mod defaults;
mod flow;
mod histogram;
mod laws;
mod least;
mod nic;
mod receiver;
mod records;
#[cfg(test)]
mod wire;

#[allow(dead_code, missing_docs, non_camel_case_types, clippy::all)]
mod raw {
    include!("../generated/raw.rs");
}
mod lists {
    use crate::Law;
    include!("../generated/lists.rs");
}

pub use clock::FleetLine;
pub use config::{ns_per_byte_q16, Config};
pub use flow::{Flow, PathState, Record};
pub use histogram::{histogram_bound_ns, histogram_bucket, HISTOGRAM_BUCKETS};
pub use laws::UnknownLaw;
pub use least::Least;
pub use nic::{Nic, NicCounts};
pub use raw::{onr_law as Law, onr_verdict as Verdict};
pub use receiver::{Hint, Receiver};
pub use records::{next_sampled_byte, sampled_byte, Records};

/// Default distance of two sampled bytes in sequence space (law/sample.h).
pub const SAMPLE_BYTES: u32 = raw::ONR_SAMPLE_BYTES;
