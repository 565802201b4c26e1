// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Compiles the measuring programs (bpf/cost.bpf.c) with clang and generates their typed skeleton.

#[path = "../bpf/build.rs"]
mod bpf;

use std::{env, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("bpf/cost.bpf.c");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("cost.skel.rs");
    bpf::skeleton(&source, &out)
}
