// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Hosts at leaves, every leaf linked to every spine.

use super::{Builder, Count, ShapeKind, Size};

pub(super) static KIND: ShapeKind = ShapeKind {
    name: "leaf_spine",
    about: "hosts at leaves, and every leaf has a link to every spine",
    counts: &[
        Count {
            key: "network.topology.leaves",
            bounds: (2, 256),
            meaning: "Number of leaves: switches with hosts.",
        },
        Count {
            key: "network.topology.spines",
            bounds: (1, 256),
            meaning: "Number of spines: switches that connect the leaves.",
        },
    ],
    racks: |counts| counts[0],
    switch_links: 2,
    build,
};

fn build(to: &mut Builder, size: &Size<'_>) {
    let leaves = to.switches(size.counts[0]);
    let spines = to.switches(size.counts[1]);
    for &leaf in &leaves {
        to.hosts_at(leaf, size);
    }
    for &leaf in &leaves {
        for &spine in &spines {
            to.link(leaf, spine, size.fabric);
        }
    }
}
