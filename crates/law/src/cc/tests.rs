// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
mod rapid;
mod tbtcp;
mod timely;

/// A microsecond in ns.
const US: u32 = 1_000;
/// A Mbit/s in bytes a second.
const MBIT: u64 = 125_000;
/// One, in units of 2^-16.
const Q16: f64 = 65_536.0;
