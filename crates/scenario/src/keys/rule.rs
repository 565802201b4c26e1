// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What rules of switches and their ways to choose paths declare (crates/cc, switch/ and path/), as keys of scenarios.

use crate::key::{of_parameter, Key};
use onramp_cc::{path, switch, Parameter, Tuning};
use std::sync::LazyLock;

pub(super) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let of_rules = switch::entries().flat_map(|rule| {
        let default = |p: &Parameter| Some((rule.rule)().get(p.name)?.to_string());
        rule.parameters.iter().map(move |p| key(p, default(p)))
    });
    let of_paths = path::entries().flat_map(|paths| {
        let choice = (paths.choice)(&Tuning::default());
        let default = move |p: &Parameter| Some(choice.get(p.name)?.to_string());
        paths.parameters.iter().map(move |p| key(p, default(p)))
    });
    of_rules.chain(of_paths).collect()
});

fn key(parameter: &Parameter, default: Option<String>) -> Key {
    let meaning = parameter.meaning.to_owned();
    of_parameter(parameter, default.unwrap_or_default(), meaning)
}
