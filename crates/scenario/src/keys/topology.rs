// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The counts that each shape of networks declares (topology/), as keys of scenarios.

use crate::key::{both, Key, Rack};
use crate::topology::{shapes, Count, ShapeKind};
use onramp_keys::{Absent::Without, Of};
use std::sync::LazyLock;

pub(super) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys: Vec<Key> = Vec::new();
    for shape in shapes() {
        for count in shape.counts {
            if keys.iter().all(|key| key.path != count.key) {
                keys.push(key_of(count, shape));
            }
        }
    }
    keys
});

/// Shapes that share a key share its declaration; the documentation names the first. Keys live as long as the program.
fn key_of(count: &'static Count, shape: &ShapeKind) -> Key {
    Key {
        path: count.key,
        form: Box::leak(Box::new(Of::<u32>(count.bounds))),
        absent: Without(format!("required for {}", shape.name).leak()),
        meaning: count.meaning,
        more: both().rack(Rack::Ignores("simulator")),
    }
}
