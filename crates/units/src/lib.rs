// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Times, spans, rates and sizes whose types keep them apart.
//!
//! Does: exact integer arithmetic, text with units in and out ("50 us", "10 Gbit/s", "32 kB").
//! Does not: read clocks, or convert one clock's time into another's.
//!
//! ```
//! use onramp_units::{Bytes, Rate, Sim, Span, Time};
//! let link: Rate = "400 Gbit/s".parse()?;
//! let frame: Bytes = "64 B".parse()?;
//! assert_eq!(link.time_to_send(frame), Span::from_ps(1280));
//! assert_eq!((Time::<Sim>::ZERO + Span::from_us(50)).ticks(), 50_000_000);
//! assert_eq!(Span::from_us(1500).to_string(), "1.5 ms");
//! # Ok::<(), onramp_units::ParseError>(())
//! ```
//!
//! Times of different clocks cannot be subtracted:
//! ```compile_fail,E0308
//! use onramp_units::{Fleet, Sim, Time};
//! let wrong = Time::<Sim>::ZERO - Time::<Fleet>::ZERO;
//! ```
#![warn(missing_docs)]

mod bytes;
mod quantity;
mod rate;
mod time;

pub use bytes::Bytes;
pub use quantity::ParseError;
pub use rate::Rate;
pub use time::{Clock, Fleet, Mono, Sim, Span, Time};
