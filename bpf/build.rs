// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// Part of the build scripts and tests that compile BPF programs: one compiler, one set of flags.

use libbpf_cargo::SkeletonBuilder;
use std::{env, error::Error, fmt, path::Path};

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
#[allow(dead_code)] // not all need it
pub fn skeleton(source: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    watch(source);
    let built = builder(source).build_and_generate(to);
    built.map_err(|error| failed(source, &error))
}

/// For build scripts: compiles a BPF program.
#[allow(dead_code)] // not all need it
pub fn object(source: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    watch(source);
    let built = builder(source).obj(to).build();
    built.map_err(|error| failed(source, &error))
}

/// A program changes with the headers that it includes.
fn watch(source: &Path) {
    let own = source.parent().expect("a source has a directory");
    for dir in [own.to_owned(), own.join("../law")] {
        if dir.is_dir() {
            println!("cargo:rerun-if-changed={}", dir.display());
        }
    }
    println!("cargo:rerun-if-env-changed=CLANG");
}

fn failed(source: &Path, error: &dyn fmt::Display) -> Box<dyn Error> {
    let source = source.display();
    format!("compiling {source} needs clang-19 (run `make setup`): {error:#}").into()
}
