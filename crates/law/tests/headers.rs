// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The headers compile on their own, without a warning, wherever they are used: by the host's
//! compilers, and for every BPF instruction set (before v4 it has no signed division).

use onramp_law::Law;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const LAW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../law");
const LAWTEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/lawtest.bpf.c");

fn headers() -> Vec<PathBuf> {
    let entries = |directory: &str| fs::read_dir(directory).expect("law/ is there");
    let all = entries(LAW).chain(entries(&format!("{LAW}/cc")));
    let paths = all.map(|e| e.expect("readable").path());
    let mut found: Vec<_> = paths.filter(|path| path.is_file()).collect();
    found.sort();
    assert!(found.len() >= 8, "{LAW} holds only {found:?}");
    found
}

/// Compiles `source` and drops the result.
#[track_caller]
fn compile(compiler: &str, options: &[&str], source: &Path) {
    let output = Command::new(compiler)
        .args([
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-c",
            "-o",
            "/dev/null",
        ])
        .args(options)
        .arg(source)
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{compiler} {options:?} {}:\n{complaints}",
        source.display()
    );
}

#[test]
fn every_header_compiles_alone_on_the_host() {
    for header in headers() {
        for compiler in ["cc", "clang-19"] {
            compile(compiler, &["-std=c11", "-Wconversion", "-xc"], &header);
        }
    }
}

#[test]
fn the_documentation_lists_the_registered_laws() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/law.md");
    let text = fs::read_to_string(page).expect("docs/law.md is there");
    let rows: String = Law::all()
        .map(|law| format!("| `{law}` | {} |\n", law.meaning()))
        .collect();
    let table = format!("| law | what it does |\n|---|---|\n{rows}\n");
    assert!(text.contains(&table), "docs/law.md must contain:\n{table}");
}

#[test]
fn the_laws_compile_for_every_bpf_instruction_set() {
    let include = tempfile::tempdir().expect("a temporary directory");
    let bpf = include.path().join("bpf");
    fs::create_dir(&bpf).expect("writable");
    for (name, text) in libbpf_rs::libbpf_sys::API_HEADERS {
        fs::write(bpf.join(name), text).expect("writable");
    }
    let libbpf = format!("-I{}", include.path().display());
    let asm = format!("-I/usr/include/{}-linux-gnu", env::consts::ARCH);
    for cpu in ["v1", "v2", "v3", "v4"] {
        let cpu = format!("-mcpu={cpu}");
        compile(
            "clang-19",
            &["-target", "bpf", "-g", &cpu, &libbpf, &asm],
            Path::new(LAWTEST),
        );
    }
}
