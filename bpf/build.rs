// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// Part of the build scripts and tests that compile BPF programs: one compiler, one set of flags.

use libbpf_cargo::SkeletonBuilder;
use std::{env, error::Error, path::Path};

/// The compiler: CLANG, or clang-19.
pub fn clang() -> String {
    env::var("CLANG").unwrap_or_else(|_| "clang-19".into())
}

/// What compiles a BPF program.
pub fn builder(source: &Path) -> SkeletonBuilder {
    // Debian keeps asm/types.h in a directory that clang does not search for the BPF target. It is that of this machine,
    // also when we compile for another one: the programs are the same bytes for all.
    let asm = format!("-I/usr/include/{}-linux-gnu", env::consts::ARCH);
    let mut builder = SkeletonBuilder::new();
    builder.source(source).clang(clang()).clang_args([
        "-mcpu=v3",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unused-parameter",
        &asm,
    ]);
    builder
}

/// For build scripts: compiles a BPF program and writes its typed skeleton.
#[allow(dead_code)] // tests only compile
pub fn skeleton(source: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    // With the headers that it includes.
    let own = source.parent().ok_or("a source has a directory")?;
    for dir in [own.to_owned(), own.join("../law")] {
        if dir.is_dir() {
            println!("cargo:rerun-if-changed={}", dir.display());
        }
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    builder(source).build_and_generate(to).map_err(|error| {
        let source = source.display();
        format!("compiling {source} needs clang-19 (run `make setup`): {error:#}").into()
    })
}
