// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of `network.topology`: what each shape declares (topology/), as keys of scenarios.

use super::{key, Form, Key, Rack, Required, Without};
use crate::types::{FILE, INLINE};
use crate::{shapes, Count, ShapeKind};
use std::sync::LazyLock;

pub(super) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = vec![kind(), HOSTS, PATH];
    for shape in shapes() {
        for count in shape.counts {
            if keys.iter().all(|key| key.path != count.key) {
                keys.push(key_of(count, shape));
            }
        }
    }
    keys
});

const HOSTS: Key = key(
    "network.topology.hosts",
    Form::Count(2, 4096),
    Without("required unless `kind` is file or inline"),
    "Number of hosts. Every switch with hosts has the same number of hosts.",
);

const PATH: Key = key("network.topology.path", Form::Path, Without("required for file"), "File with the nodes and links. A name that ends in `.toml`: `switches` is a list of names; each `[[hosts]]` has `at`, `rate`, `delay` and optionally `count`; each `[[links]]` has `from`, `to`, `rate`, `delay`. Any other name: the HPCC authors' format, which has `nodes switches links`, then the numbers of the switches, then a line `a b rate delay 0` for each link. Hosts are numbered in the file's order.")
    .rack_has(Rack::Ignores("simulator"));

// These texts are made once and live as long as the program.
fn kind() -> Key {
    let mut names: Vec<&str> = shapes().map(|shape| shape.name).collect();
    names.extend([FILE, INLINE]);
    let shapes = shapes().map(|shape| format!("`{}`: {}.", shape.name, shape.about));
    let mut meaning: Vec<String> = shapes.collect();
    meaning.push("`file`: the file `topology.path` lists nodes and links.".to_owned());
    meaning.push("`inline`: `[network.graph]` lists them.".to_owned());
    key(
        "network.topology.kind",
        Form::Choice(names.leak()),
        Required,
        meaning.join(" ").leak(),
    )
    .fixed()
    .rack_has(Rack::Only(&["star"]))
}

/// Shapes that share a key share its declaration; the documentation names the first.
fn key_of(count: &'static Count, shape: &ShapeKind) -> Key {
    let (min, max) = count.bounds;
    let without = format!("required for {}", shape.name);
    key(
        count.key,
        Form::Count(min, max),
        Without(without.leak()),
        count.meaning,
    )
    .rack_has(Rack::Ignores("simulator"))
}
