// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! All hosts at one switch.

use super::{Builder, ShapeKind, Size};

pub(super) static KIND: ShapeKind = ShapeKind {
    name: "star",
    about: "all hosts at one switch",
    counts: &[],
    racks: |_| 1,
    switch_links: 0,
    build,
};

fn build(to: &mut Builder, size: &Size<'_>) {
    let switch = to.switch();
    to.hosts_at(switch, size);
}
