//! Compiles the BPF programs (bpf/*.bpf.c) into skeletons, and names their digest.
#[path = "../../bpf/build.rs"]
mod bpf;

use std::{env, error::Error, path::PathBuf};

/// FNV-1a, 64 bits.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x100_0000_01b3;

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    let mut digest = OFFSET;
    for name in ["edge", "orack"] {
        let skeleton = out.join(format!("{name}.skel.rs"));
        bpf::skeleton(&sources.join(format!("{name}.bpf.c")), &skeleton)?;
        let step = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(PRIME);
        digest = std::fs::read(skeleton)?.iter().fold(digest, step);
    }
    // A daemon uses what another left only if both have the same programs (src/datapath/pins.rs).
    println!("cargo:rustc-env=ONRAMP_PROGRAMS={digest:016x}");
    Ok(())
}
