//! Compiles the congestion controls (bpf/cc/*.bpf.c) into skeletons.
#[path = "../../bpf/build.rs"]
mod bpf;

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf/cc");
    for name in ["tbtcp"] {
        bpf::skeleton(
            &sources.join(format!("{name}.bpf.c")),
            &out.join(format!("{name}.skel.rs")),
        )?;
    }
    println!("cargo:rerun-if-changed=../../law");
    Ok(())
}
