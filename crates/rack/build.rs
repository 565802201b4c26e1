//! Compiles the rack's BPF programs (bpf/switch.bpf.c, bpf/probe.bpf.c) with clang and generates
//! their typed skeletons.

use libbpf_cargo::SkeletonBuilder;
use std::{env, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bpf = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // asm/types.h lies in the host architecture's directory on Debian.
    let arch = env::var("CARGO_CFG_TARGET_ARCH")?;
    for name in ["switch", "probe"] {
        let source = bpf.join(name).with_extension("bpf.c");
        println!("cargo:rerun-if-changed={}", source.display());
        SkeletonBuilder::new()
            .source(&source)
            .clang(env::var("CLANG").unwrap_or_else(|_| "clang-19".into()))
            .clang_args([
                "-Wall",
                "-Werror",
                &format!("-I/usr/include/{arch}-linux-gnu"),
            ])
            .build_and_generate(out.join(name).with_extension("skel.rs"))?;
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    Ok(())
}
