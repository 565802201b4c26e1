// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What is checked in is what the headers give: generated/.

use std::fs;

#[path = "../examples/law-bindings/main.rs"]
#[allow(dead_code)] // its main writes the files
mod bindings;

#[test]
fn the_bindings_are_those_of_the_headers() {
    for (name, text) in bindings::generated() {
        let path = format!("{}/generated/{name}", env!("CARGO_MANIFEST_DIR"));
        assert!(
            fs::read_to_string(&path).is_ok_and(|held| held == text),
            "{path} is stale: cargo run -p onramp-law --example law-bindings"
        );
    }
}
