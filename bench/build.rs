//! Compiles the measuring programs (bpf/cost.bpf.c) with clang and generates their typed skeleton.

use libbpf_cargo::SkeletonBuilder;
use std::{env, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("bpf/cost.bpf.c");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("cost.skel.rs");
    // asm/types.h lies in the host architecture's directory on Debian.
    let asm = format!(
        "-I/usr/include/{}-linux-gnu",
        env::var("CARGO_CFG_TARGET_ARCH")?
    );
    println!("cargo:rerun-if-changed={}", source.display());
    println!("cargo:rerun-if-env-changed=CLANG");
    SkeletonBuilder::new()
        .source(&source)
        .clang(env::var("CLANG").unwrap_or_else(|_| "clang-19".into()))
        .clang_args([
            "-mcpu=v3",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            &asm,
        ])
        .build_and_generate(out)?;
    Ok(())
}
