// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [cc]: what each congestion control declares (crates/cc), as keys of scenarios.

use crate::hosts::HostKind;
use crate::key::{of_parameter, Key, Scope};
use onramp_cc::Cc;
use std::sync::LazyLock;

pub(super) static KEYS: LazyLock<Vec<Key>> =
    LazyLock::new(|| onramp_cc::keys().iter().map(parameter).collect());

fn parameter(declared: &onramp_cc::Key) -> Key {
    let names = onramp_cc::names_of(declared.of.iter().copied());
    let lacks_it = |cc: &Cc| names.contains(&cc.name()) && !declared.of.contains(cc);
    let on = Cc::all().find(lacks_it).map(|cc| match cc {
        Cc::Nic(_) => HostKind::Kernel,
        Cc::Kernel(_) => HostKind::Nic,
    });
    let default = declared.default_text();
    let key = of_parameter(declared.parameter, default, declared.meaning());
    let more = Scope {
        on,
        of_cc: names.leak(),
        ..key.more
    };
    Key { more, ..key }
}
