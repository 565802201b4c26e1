// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Writes docs/results/table.md: `cargo run -p onramp-sim --example table > docs/results/table.md`
mod render;

fn main() {
    print!("{}", render::table());
}
