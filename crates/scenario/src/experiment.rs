// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys at the top of a scenario.

use crate::key::{both, Rack, Scope, HOUR};
use crate::values::Title;
use onramp_keys::Absent::{Is, Required};
use onramp_keys::{section, ANY_NUMBER};
use onramp_units::Span;

section! {
    /// The experiment as a whole.
    pub(crate) struct Experiment in "" with Scope {
        title: Title = Required, both().fixed(),
            "What the experiment shows.";
        seed: u64 [0, ANY_NUMBER] = Is("1"), both(),
            "Seed of all random numbers. All cases of a seed have the same traffic.";
        duration: Span [Span::from_us(1), HOUR] = Required, both(),
            "Time within which traffic starts.";
        warmup: Span [Span::ZERO, HOUR] = Is("0 s"), both(),
            "Traffic that starts before this time is not measured. Must be below `duration`.";
        time_dilation: u64 [1, 1000] = Is("1"), both().rack(Rack::Ignores("rack")),
            "The rack runs slower by this factor and scales its results back. The simulator ignores it.";
    }
}
