//! What a daemon or a scenario that says nothing gets: law/state.h, where they are, and docs/law.md says why.

use crate::raw;
use onramp_units::{Bytes, Span};

/// g of eq. 3 in units of 2^-16.
pub const GAIN_Q16: u32 = raw::ONR_DEFAULT_GAIN_Q16;
/// No head is held longer.
pub const MAX_PAUSE: Span = Span::from_ns(raw::ONR_DEFAULT_MAX_PAUSE_NS as i64);
/// A sample with a larger one-way delay, either way, is absurd.
pub const MAX_OWD: Span = Span::from_ns(raw::ONR_DEFAULT_MAX_OWD_NS as i64);
/// Averaging time of the gate's delivery rate.
pub const GATE_TAU: Span = Span::from_ns(raw::ONR_DEFAULT_GATE_TAU_NS as i64);
/// What the gate adds to what may be in flight.
pub const GATE_ALLOWANCE: Bytes = Bytes::new(raw::ONR_DEFAULT_GATE_ALLOWANCE_BYTES as u64);
