// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Observation of a simulation: captures, samples of ports, delays.

pub(crate) mod capture;
pub(crate) mod delays;
pub(crate) mod frame;
pub(crate) mod probe;
