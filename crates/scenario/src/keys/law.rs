// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys `onramp.NAME.*`: what control laws of other crates declare (crates/cc, law.rs), as keys of scenarios.

use crate::key::{of_parameter, Key, Scope};
use onramp_cc::law::{entries, Entry};
use onramp_cc::Parameter;
use std::sync::LazyLock;

pub(super) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let of = |law: &'static Entry| law.parameters.iter().map(move |p| key(law, p));
    entries().flat_map(of).collect()
});

fn key(law: &'static Entry, parameter: &Parameter) -> Key {
    let default = (law.law)().get(parameter.name);
    let default = default.map_or_else(String::new, |default| default.to_string());
    let key = of_parameter(parameter, default, parameter.meaning.to_owned());
    let more = Scope {
        of_law: Some(law.name),
        ..key.more
    };
    Key { more, ..key }
}
