// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Compiles the BPF programs (bpf/*.bpf.c) into skeletons, and names their digest.
#[path = "bpf/build.rs"]
mod bpf;

use std::{env, error::Error, hash::Hasher, path::PathBuf};

use siphasher::sip::SipHasher13;

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("bpf");
    let mut digest = SipHasher13::new();
    let compile = |name: &str| {
        let skeleton = out.join(format!("{name}.skel.rs"));
        bpf::skeleton(&sources.join(format!("{name}.bpf.c")), &skeleton)?;
        Ok::<_, Box<dyn Error>>(skeleton)
    };
    for name in ["edge", "orack"] {
        digest.write(&std::fs::read(compile(name)?)?);
    }
    // A daemon uses what another left only if both have the same programs (src/datapath/pins.rs).
    println!("cargo:rustc-env=ONRAMP_PROGRAMS={:016x}", digest.finish());
    compile("refuse")?; // no daemon leaves these
    compile("pace")?;
    Ok(())
}
