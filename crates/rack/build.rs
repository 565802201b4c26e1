// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Compiles the rack's BPF programs (bpf/switch.bpf.c, bpf/probe.bpf.c) with clang and generates
//! their typed skeletons; compiles the emulator's plugin (plugin/halt.c).

#[path = "bpf/build.rs"]
mod bpf;

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let sources = own.join("bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for name in ["switch", "probe"] {
        bpf::skeleton(
            &sources.join(name).with_extension("bpf.c"),
            &out.join(name).with_extension("skel.rs"),
        )?;
    }
    // The emulator's processor is that of the machine that runs us; in tests for another one, that of this machine.
    plugin(
        &own.join("plugin"),
        &env::var("TARGET")?,
        &out.join("halt.so"),
    )?;
    plugin(
        &own.join("plugin"),
        &env::var("HOST")?,
        &out.join("halt-host.so"),
    )
}

/// Compiles the emulator's plugin for a machine.
fn plugin(own: &Path, target: &str, to: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", own.display());
    let status = cc::Build::new()
        .target(target)
        .opt_level(2)
        .get_compiler()
        .to_command()
        .args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
        .arg(own.join("halt.c"))
        .arg("-o")
        .arg(to)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        failed => Err(format!("compiling {} for {target}: {failed:?}", own.display()).into()),
    }
}
