// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The committed table of results is what the simulator gives now.

#[path = "../examples/table/render.rs"]
mod render;

#[test]
fn the_table_of_results_is_current() {
    let committed = include_str!("../../../docs/results/table.md");
    let now = render::table();
    let differs = now
        .lines()
        .zip(committed.lines())
        .find(|(now, then)| now != then);
    assert!(
        now == committed,
        "{differs:?}\ndocs/results/table.md is stale. If the change is meant, say why in the commit and run: \
         cargo run -p onramp-sim --example table > docs/results/table.md"
    );
}
