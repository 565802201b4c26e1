// Part of the build scripts that compile BPF programs: one compiler, one set of flags.

use libbpf_cargo::SkeletonBuilder;
use std::{env, error::Error, path::Path};

/// Compiles a BPF program with clang and writes its typed skeleton.
pub fn skeleton(source: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    // With the headers that it includes.
    let own = source.parent().ok_or("a source has a directory")?;
    for dir in [own.to_owned(), own.join("../law")] {
        if dir.is_dir() {
            println!("cargo:rerun-if-changed={}", dir.display());
        }
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    // Debian keeps asm/types.h in a directory that clang does not search for the BPF target.
    let asm = format!(
        "-I/usr/include/{}-linux-gnu",
        env::var("CARGO_CFG_TARGET_ARCH")?
    );
    SkeletonBuilder::new()
        .source(source)
        .clang(env::var("CLANG").unwrap_or_else(|_| "clang-19".into()))
        .clang_args([
            "-mcpu=v3",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            &asm,
        ])
        .build_and_generate(to)
        .map_err(|error| {
            let source = source.display();
            format!("compiling {source} needs clang-19 (run `make setup`): {error:#}").into()
        })
}
