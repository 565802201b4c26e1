//! Compiles the rack's BPF programs (bpf/switch.bpf.c, bpf/probe.bpf.c) with clang and generates
//! their typed skeletons; compiles the emulator's plugin (plugin/halt.c).

#[path = "../../bpf/build.rs"]
mod bpf;

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::Command,
};

fn main() -> Result<(), Box<dyn Error>> {
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let sources = own.join("../../bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for name in ["switch", "probe"] {
        bpf::skeleton(
            &sources.join(name).with_extension("bpf.c"),
            &out.join(name).with_extension("skel.rs"),
        )?;
    }
    plugin(&own.join("plugin"), &out.join("halt.so"))
}

fn plugin(own: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", own.display());
    let status = Command::new(bpf::clang())
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
        .arg(own.join("halt.c"))
        .arg("-o")
        .arg(to)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        failed => Err(format!("compiling {} with clang: {failed:?}", own.display()).into()),
    }
}
