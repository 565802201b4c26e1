// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Half of the hosts at each of two switches, with one link between the switches.

use super::{Builder, ShapeKind, Size};

pub(super) static KIND: ShapeKind = ShapeKind {
    name: "dumbbell",
    about: "half of the hosts at each of two switches",
    counts: &[],
    racks: |_| 2,
    switch_links: 1,
    build,
};

fn build(to: &mut Builder, size: &Size<'_>) {
    let ends = [to.switch(), to.switch()];
    for end in ends {
        to.hosts_at(end, size);
    }
    to.link(ends[0], ends[1], size.fabric);
}
