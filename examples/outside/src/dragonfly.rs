// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A topology: a dragonfly (Kim et al., ISCA 2008). All routers of a group are linked with each other, and each group has
//! a link to each other group.

use onramp_scenario::{Builder, Count, ShapeKind, Size};

pub static KIND: ShapeKind = ShapeKind::new(
    "dragonfly",
    "groups of linked routers, and a link between each two groups (Kim et al., ISCA 2008)",
    |counts| counts[0] * counts[1],
    build,
)
.counts(&[
    Count::new("network.topology.groups", (2, 64), "Number of groups."),
    Count::new(
        "network.topology.routers",
        (1, 64),
        "Number of routers in a group. Each has hosts.",
    ),
])
.switch_links(3); // to another router, to another group, to another router

fn build(to: &mut Builder, size: &Size<'_>) {
    let (groups, routers) = (size.counts[0] as usize, size.counts[1] as usize);
    let all = to.switches((groups * routers) as u32);
    let group = |number: usize| &all[number * routers..][..routers];
    for &router in &all {
        to.hosts_at(router, size);
    }
    for near in 0..groups {
        for (n, &router) in group(near).iter().enumerate() {
            for &other in &group(near)[n + 1..] {
                to.link(router, other, size.fabric);
            }
        }
        for far in near + 1..groups {
            let (near_end, far_end) = (group(near)[far % routers], group(far)[near % routers]);
            to.link(near_end, far_end, size.fabric);
        }
    }
}
