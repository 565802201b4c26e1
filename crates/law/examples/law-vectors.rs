// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Writes tests/law-vectors.random.txt anew.
//! `cargo run -p onramp-law --example law-vectors`

use std::{fs, io};

#[path = "../tests/vectors/host.rs"]
mod host;
#[path = "../tests/vectors/random.rs"]
mod random;
#[allow(dead_code)]
#[path = "../tests/vectors/mod.rs"]
mod vectors;

fn main() -> io::Result<()> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/law-vectors.random.txt"
    );
    fs::write(path, random::text())
}
