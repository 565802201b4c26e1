// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Compiles all of bpf/cc/*.bpf.c, and lists the objects: name and bytes.
#[path = "bpf/build.rs"]
mod bpf;

use std::fmt::Write as _;
use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("bpf/cc");
    let mut names: Vec<String> = fs::read_dir(&sources)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".bpf.c").map(str::to_owned))
        .collect();
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        let object = out.join(format!("{name}.bpf.o"));
        bpf::object(&sources.join(format!("{name}.bpf.c")), &object)?;
        writeln!(
            list,
            "    ({name:?}, &Aligned(*include_bytes!({object:?})).0),"
        )?;
    }
    fs::write(out.join("objects.rs"), list + "]\n")?;
    for headers in ["law", "bpf"] {
        println!("cargo:rerun-if-changed={headers}");
    }
    Ok(())
}
