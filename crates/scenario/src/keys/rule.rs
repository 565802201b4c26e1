// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `network.rule`, and what each rule of switches declares (crates/cc, switch/), as keys of scenarios.

use super::{key, Is, Key, Rack, Source};
use crate::value::Form;
use onramp_cc::switch::{self, Entry};
use onramp_cc::Parameter;
use std::sync::LazyLock;

pub(super) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let rules =
        switch::entries().flat_map(|rule| rule.parameters.iter().map(|p| parameter(rule, p)));
    std::iter::once(rule()).chain(rules).collect()
});

// These texts are made once and live as long as the program.
fn rule() -> Key {
    let mut meaning = "Rule by which switches mark or drop packets although the buffer has room. `ecn`: marks by the length of the queue, with the keys `network.ecn`.".to_owned();
    for rule in switch::entries() {
        meaning += &format!(" `{}`: {}.", rule.name, rule.about);
    }
    let names = Form::Choice(switch::names().leak());
    key("network.rule", names, Is("ecn"), meaning.leak())
        .later()
        .rack_has(Rack::Only(&["ecn"]))
}

fn parameter(rule: &Entry, parameter: &Parameter) -> Key {
    let default = (rule.rule)().get(parameter.name);
    let default = default.map_or_else(String::new, |default| default.to_string());
    key(
        parameter.key,
        parameter.bounds.into(),
        Source(default.leak()),
        parameter.meaning,
    )
    .rack_has(Rack::Never)
}
