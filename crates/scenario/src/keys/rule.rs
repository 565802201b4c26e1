// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What each rule of switches declares (crates/cc, switch/), as keys of scenarios.

use crate::key::{of_parameter, Key};
use onramp_cc::switch::{self, Entry};
use onramp_cc::Parameter;
use std::sync::LazyLock;

pub(super) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let all = switch::entries().flat_map(|rule| rule.parameters.iter().map(move |p| (rule, p)));
    all.map(|(rule, p)| parameter(rule, p)).collect()
});

fn parameter(rule: &Entry, parameter: &Parameter) -> Key {
    let default = (rule.rule)().get(parameter.name);
    let default = default.map_or_else(String::new, |default| default.to_string());
    of_parameter(parameter, default, parameter.meaning.to_owned())
}
