//! The control laws of `law/*.h`, for Rust: the same lines that the kernel runs. Generated bindings
//! and a safe face over them; no logic, no clock, no I/O. What the laws compute: docs/law.md.
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

mod clock;
mod config;
pub mod defaults;
mod flow;
mod records;

#[allow(dead_code, missing_docs, non_camel_case_types)]
mod raw {
    include!(concat!(env!("OUT_DIR"), "/law.rs"));
}

pub use clock::FleetLine;
pub use config::Config;
pub use flow::{Flow, Record};
pub use raw::{onr_law as Law, onr_verdict as Verdict};
pub use records::{sampled_byte, Records};

/// The structures as the kernel has them, for maps and for replaying vectors.
pub mod abi {
    pub use crate::raw::{onr_cfg, onr_flow, onr_record, onr_records, ONR_ABI};
}

/// Every this many bytes of sequence space a segment is sampled, unless set otherwise (law/sample.h).
pub const SAMPLE_BYTES: u32 = raw::ONR_SAMPLE_BYTES;
