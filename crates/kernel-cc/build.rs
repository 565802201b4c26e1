// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Compiles the congestion controls (bpf/cc/*.bpf.c) into skeletons.
#[path = "../../bpf/build.rs"]
mod bpf;

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=../../law");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf/cc");
    for name in ["rapid", "rapid_hooks", "tbtcp", "timely"] {
        let source = sources.join(format!("{name}.bpf.c"));
        bpf::skeleton(&source, &out.join(format!("{name}.skel.rs")))?;
    }
    // The programs for tcx use the headers of the data path.
    println!("cargo:rerun-if-changed=../../bpf");
    Ok(())
}
