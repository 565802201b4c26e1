//! Compiles the BPF programs (bpf/*.bpf.c) into skeletons and generates the Rust types of bpf/abi.h.
#[path = "../../bpf/build.rs"]
mod bpf;

use std::{env, fs, path::PathBuf};

use anyhow::{anyhow, Context, Result};
use bindgen::callbacks::{DeriveInfo, ParseCallbacks, TypeKind};

const LIBCLANG: &str = "/usr/lib/llvm-19/lib";

/// Structures that cross into BPF maps are plain bytes; bytemuck proves that they have no padding.
#[derive(Debug)]
struct DerivePod;

impl ParseCallbacks for DerivePod {
    fn add_derives(&self, info: &DeriveInfo<'_>) -> Vec<String> {
        match info.kind {
            TypeKind::Struct => vec!["bytemuck::Pod".into(), "bytemuck::Zeroable".into()],
            _ => vec![],
        }
    }
}

fn main() -> Result<()> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    for dir in ["../../bpf", "../../law"] {
        println!("cargo:rerun-if-changed={dir}");
    }

    for name in ["edge", "orack"] {
        bpf::skeleton(
            &sources.join(format!("{name}.bpf.c")),
            &out.join(format!("{name}.skel.rs")),
        )
        .map_err(|error| anyhow!(error.to_string()))?;
    }

    if env::var_os("LIBCLANG_PATH").is_none() && PathBuf::from(LIBCLANG).exists() {
        env::set_var("LIBCLANG_PATH", LIBCLANG);
    }
    bindgen::Builder::default()
        .header(sources.join("abi.h").display().to_string())
        .allowlist_type("onr_(dev_cfg|clock_params|peer|prefix|counter|law|orack)")
        .allowlist_var("ONR_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .parse_callbacks(Box::new(DerivePod))
        .generate()
        .context("reading bpf/abi.h needs libclang-19: run `make setup`")?
        .write_to_file(out.join("abi.rs"))?;

    let abi = fs::read_to_string(sources.join("abi.h"))?;
    fs::write(out.join("counters.rs"), counters(&abi))?;
    Ok(())
}

/// The list ONR_COUNTERS of abi.h, `X(name, "meaning")`, as a Rust array.
fn counters(abi: &str) -> String {
    let entries: String = abi
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("X("))
        .map(|entry| {
            let (name, rest) = entry.split_once(", ").expect("X(name, \"meaning\")");
            let meaning = rest.split('"').nth(1).expect("a quoted meaning");
            format!("(\"{name}\", \"{meaning}\"),\n")
        })
        .collect();
    format!("pub const LIST: &[(&str, &str)] = &[{entries}];")
}
