// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Three stages: pods of `width` ToR and `width` aggregation switches; the n-th aggregation switch of every pod is
//! linked to the n-th group of `width` core switches. The papers' fabric is 5 pods of width 4 with 16 hosts a ToR.

use super::{Builder, Count, ShapeKind, Size};

pub(super) static KIND: ShapeKind = ShapeKind {
    name: "fat_tree",
    about: "three stages of ToR, aggregation and core switches",
    counts: &[
        Count {
            key: "network.topology.pods",
            bounds: (2, 64),
            meaning: "Number of pods. A pod is a group of ToR and aggregation switches, with a link from each ToR switch to each aggregation switch.",
        },
        Count {
            key: "network.topology.width",
            bounds: (1, 32),
            meaning: "Number of ToR switches in a pod. A pod has as many aggregation switches, and each of the `width` groups of core switches has as many core switches.",
        },
    ],
    racks: |counts| counts[0] * counts[1],
    switch_links: 4,
    build,
};

fn build(to: &mut Builder, size: &Size<'_>) {
    let (pods, width) = (size.counts[0], size.counts[1]);
    let tors = to.switches(pods * width);
    let aggregation = to.switches(pods * width);
    let cores = to.switches(width * width);
    for &tor in &tors {
        to.hosts_at(tor, size);
    }
    let width = width as usize;
    for (n, &tor) in tors.iter().enumerate() {
        let pod = n / width * width;
        for &agg in &aggregation[pod..pod + width] {
            to.link(tor, agg, size.fabric);
        }
    }
    for (n, &agg) in aggregation.iter().enumerate() {
        let group = n % width * width;
        for &core in &cores[group..group + width] {
            to.link(agg, core, size.fabric);
        }
    }
}
