// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Lists the built-in files: figures, scenarios, and the files that scenarios name. Computes digests of the
//! sources that the results of a run depend on.

use std::fmt::Write;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher13;

/// What is built into the binary: figures, their scenarios, and the flow sizes that these name.
const BUILT_IN: [&str; 3] = ["figures", "scenarios", "workloads"];

/// Sources that a simulated run depends on, in addition to its scenario.
const SIMULATOR: [&str; 6] = [
    "law",
    "crates/law/src",
    "crates/scenario/src",
    "crates/sim/src",
    "crates/sync/src",
    "crates/units/src",
];

/// Sources that a run on the rack depends on.
const RACK: [&str; 8] = [
    "bpf",
    "crates/clock/src",
    "crates/agent/src",
    "crates/rack/src",
    "crates/scenario/src",
    "crates/sync/src",
    "crates/units/src",
    "law",
];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository is there");
    for (world, sources) in [("SIMULATOR", &SIMULATOR[..]), ("RACK", &RACK)] {
        let digest = digest(&root, sources);
        println!("cargo::rustc-env=ONRAMP_{world}={digest:016x}");
    }
    let data_path = data_path(&root);
    println!("cargo::rustc-env=ONRAMP_DATA_PATH={data_path:016x}");
    println!(
        "cargo::rerun-if-changed={}",
        root.join("docs/reproduction/models.json").display()
    );
    let mut list = String::from("&[\n");
    for directory in BUILT_IN {
        println!("cargo::rerun-if-changed={}", root.join(directory).display());
        let is_text = |path: &PathBuf| path.extension().is_some_and(|e| e == "toml" || e == "csv");
        for path in files(&root.join(directory)).into_iter().filter(is_text) {
            let name = path.strip_prefix(&root).expect("it is in it");
            let (name, path) = (name.display().to_string(), path.display().to_string());
            writeln!(list, "({name:?}, include_str!({path:?})),").expect("a string takes all");
        }
    }
    list.push_str("]\n");
    let out = std::env::var("OUT_DIR").expect("cargo says where to");
    std::fs::write(Path::new(&out).join("built_in.rs"), list)
        .expect("cargo's directory takes files");
}

/// SipHash of the names and contents of all files in `directories` of `root`.
fn digest(root: &Path, directories: &[&str]) -> u64 {
    let mut hasher = SipHasher13::new();
    for directory in directories {
        println!("cargo::rerun-if-changed={}", root.join(directory).display());
        for path in files(&root.join(directory)) {
            let name = path.strip_prefix(root).expect("it is in it");
            hasher.write(name.as_os_str().as_encoded_bytes());
            hasher
                .write(&std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
        }
    }
    hasher.finish()
}

/// In `law` and `bpf`, and no part of On-Ramp's path: transports, and what runs while an upgrade replaces the path.
const BESIDE_THE_PATH: [&str; 2] = ["cc", "refuse.bpf.c"];

/// SipHash of the kernel programs and the law, without comments and white space.
fn data_path(root: &Path) -> u64 {
    let mut hasher = SipHasher13::new();
    let directories = ["law", "bpf"].map(|directory| root.join(directory));
    for directory in &directories {
        println!("cargo::rerun-if-changed={}", directory.display());
    }
    let sources = directories.iter().flat_map(|directory| files(directory));
    let beside = |path: &PathBuf| {
        BESIDE_THE_PATH
            .iter()
            .any(|name| path.iter().any(|part| part == *name))
    };
    let sources = sources.filter(|path| !beside(path));
    for path in sources.filter(|path| path.extension().is_some_and(|e| e == "c" || e == "h")) {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        hasher.write(without_comments(&text).as_bytes());
    }
    hasher.finish()
}

fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        code.push_str(&rest[..start]);
        rest = rest[start..]
            .split_once("*/")
            .map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    let lines = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines
        .flat_map(str::split_whitespace)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Files in `directory` and below it, sorted.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    paths.into_iter().flat_map(below).collect()
}
