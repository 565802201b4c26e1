//! Compiles the rack's BPF programs (bpf/switch.bpf.c, bpf/probe.bpf.c) with clang and generates
//! their typed skeletons.

#[path = "../../bpf/build.rs"]
mod bpf;

use std::{env, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for name in ["switch", "probe"] {
        bpf::skeleton(
            &sources.join(name).with_extension("bpf.c"),
            &out.join(name).with_extension("skel.rs"),
        )?;
    }
    Ok(())
}
