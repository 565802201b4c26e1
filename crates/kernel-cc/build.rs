//! Compiles the congestion controls (bpf/cc/*.bpf.c) into skeletons.
#[path = "../../bpf/build.rs"]
mod bpf;

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=../../law");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf/cc");
    bpf::skeleton(&sources.join("tbtcp.bpf.c"), &out.join("tbtcp.skel.rs"))?;
    bpf::skeleton(&sources.join("timely.bpf.c"), &out.join("timely.skel.rs"))
}
