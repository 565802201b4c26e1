// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The defaults of daemons and scenarios. law/state.h defines them; docs/law.md gives the reasons.

use crate::raw;
use onramp_units::{Bytes, Span};

/// g of eq. 3 in units of 2^-16.
pub const GAIN_Q16: u32 = raw::ONR_DEFAULT_GAIN_Q16;
/// Longest hold of a head.
pub const MAX_PAUSE: Span = Span::from_ns(raw::ONR_DEFAULT_MAX_PAUSE_NS as i64);
/// Largest plausible one-way delay, of either sign.
pub const MAX_OWD: Span = Span::from_ns(raw::ONR_DEFAULT_MAX_OWD_NS as i64);
/// Averaging time of the gate's delivery rate.
pub const GATE_TAU: Span = Span::from_ns(raw::ONR_DEFAULT_GATE_TAU_NS as i64);
/// Bytes in flight that the gate does not count.
pub const GATE_ALLOWANCE: Bytes = Bytes::new(raw::ONR_DEFAULT_GATE_ALLOWANCE_BYTES as u64);
/// Time after which the guard judges whether holding has an effect.
pub const GUARD_WINDOW: Span = Span::from_ns(raw::ONR_DEFAULT_GUARD_WINDOW_NS as i64);
