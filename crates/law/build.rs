// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Compiles law/*.h for this host and generates the Rust side of law/*.h and bpf/abi.h from the same
//! text. The functions are `static inline`: bindgen writes a C file of callable wrappers, cc compiles it.
//! In a debug build, overflow in C traps as it does in Rust. Needs a C compiler and libclang, no
//! compiler for BPF and no libbpf.

use bindgen::callbacks::{DeriveInfo, EnumVariantValue, ParseCallbacks, TypeKind};
use std::path::{Path, PathBuf};
use std::{env, fmt::Write as _, fs};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const LISTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lists.c");

fn main() {
    for path in ["law", "bpf/abi.h", "crates/law/lists.c"] {
        println!("cargo:rerun-if-changed={ROOT}/{path}");
    }
    println!("cargo:rerun-if-env-changed=LIBCLANG_PATH");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let wrappers = out.join("law_wrappers.c");

    find_libclang();
    bindgen::Builder::default()
        .header(format!("{ROOT}/bpf/abi.h"))
        .header(format!("{ROOT}/law/clock.h"))
        .header(format!("{ROOT}/law/histogram.h"))
        .header(format!("{ROOT}/law/cc/rapid.h"))
        .header(format!("{ROOT}/law/cc/tbtcp.h"))
        .header(format!("{ROOT}/law/cc/timely.h"))
        .allowlist_type("onr_.*")
        .blocklist_type("onr_counter") // the generated COUNTERS lists them
        .allowlist_function("onr_(segment_sent|orack_arrived|may_go|pause_clock)")
        .allowlist_function("onr_sampled(_byte|_next)?")
        .allowlist_function("onr_records_(sent|orack|reset)")
        .allowlist_function("onr_level_told")
        .allowlist_function("onr_receiver_(arrived|flow|says)")
        .allowlist_function("onr_least_(ends|turn|sample|owd)")
        .allowlist_function("onr_nic_(look|gets)")
        .allowlist_function("onr_wire_(sample|has_enough|sooner_q16|least_ns)")
        .allowlist_function("onr_clock_offset")
        .allowlist_function("onr_histogram_bucket")
        .allowlist_function(
            "onr_rapid_(begin|first_rate|gap_ns|arrived|back_off|estimate|denoise|adapt)",
        )
        .allowlist_function("onr_tbtcp_(cut|grow|marks)")
        .allowlist_function("onr_timely_(acked|bound|sample|loss)")
        .allowlist_var("ONR_.*")
        .rustified_enum("onr_.*")
        .derive_default(true)
        .derive_eq(true)
        .generate_comments(false)
        .wrap_static_fns(true)
        .wrap_static_fns_path(&wrappers)
        .parse_callbacks(Box::new(Rust))
        .generate()
        .unwrap_or_else(|error| panic!("law/*.h and bpf/abi.h: {error}"))
        .write_to_file(out.join("raw.rs"))
        .expect("OUT_DIR is writable");

    let mut build = cc::Build::new();
    build
        .file(&wrappers)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true);
    if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        build
            .flag("-fsanitize=undefined")
            .flag("-fsanitize-undefined-trap-on-error");
    }
    build.compile("onramp_law");

    let expanded = cc::Build::new().file(LISTS).expand();
    let expanded = String::from_utf8(expanded).expect("the headers are UTF-8");
    fs::write(out.join("lists.rs"), lists(&expanded)).expect("OUT_DIR is writable");
}

/// What becomes of C's names and structures.
#[derive(Debug)]
struct Rust;

impl ParseCallbacks for Rust {
    /// `ONR_LAW_final` is `Law::Final`, `ONR_USED` is `Verdict::Used`.
    fn enum_variant_name(
        &self,
        _enum: Option<&str>,
        variant: &str,
        _value: EnumVariantValue,
    ) -> Option<String> {
        let name = ["ONR_LAW_", "ONR_PROBE_", "ONR_EGRESS_", "ONR_"]
            .iter()
            .find_map(|prefix| variant.strip_prefix(prefix))?;
        Some(capitalised(name))
    }

    /// Structures are plain bytes, in maps and in packets; bytemuck proves that they have no padding.
    fn add_derives(&self, info: &DeriveInfo<'_>) -> Vec<String> {
        match info.kind {
            TypeKind::Struct => vec!["bytemuck::Pod".into(), "bytemuck::Zeroable".into()],
            _ => vec![],
        }
    }
}

fn capitalised(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..].to_lowercase()
}

/// The rows of lists.c, expanded, as Rust constants.
fn lists(expanded: &str) -> String {
    let (mut laws, mut names, mut counters) = (String::new(), String::new(), String::new());
    for (name, meaning) in rows(expanded, "@law ") {
        let variant = capitalised(name);
        let _ = writeln!(laws, "    (Law::{variant}, {name:?}, {meaning:?}),");
        let _ = writeln!(names, "    {name:?},");
    }
    for (name, meaning) in rows(expanded, "@counter ") {
        let _ = writeln!(counters, "    ({name:?}, {meaning:?}),");
    }
    format!(
        "pub const LAWS: &[(Law, &str, &str)] = &[\n{laws}];\n\
         pub const LAW_NAMES: &[&str] = &[\n{names}];\n\
         pub const COUNTERS: &[(&str, &str)] = &[\n{counters}];\n"
    )
}

/// Name and meaning of each row that `mark` begins.
fn rows<'a>(expanded: &'a str, mark: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    expanded.split(mark).skip(1).map(|row| {
        let mut parts = row.splitn(3, '"');
        let name = parts.next().expect("a row").trim();
        (name, parts.next().expect("a quoted meaning"))
    })
}

/// Points bindgen at the newest libclang of Debian's llvm packages unless LIBCLANG_PATH does.
fn find_libclang() {
    if env::var_os("LIBCLANG_PATH").is_some() {
        return;
    }
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry
                .file_name()
                .to_str()?
                .strip_prefix("llvm-")?
                .parse()
                .ok()?;
            Some((version, entry.path().join("lib")))
        })
        .filter(|(_, lib)| holds_libclang(lib))
        .collect();
    found.sort();
    match found.pop() {
        Some((_, lib)) => env::set_var("LIBCLANG_PATH", lib),
        None => panic!(
            "no libclang in /usr/lib/llvm-*/lib, which generating Rust from law/*.h and bpf/abi.h needs: \
             install libclang-19-dev, or set LIBCLANG_PATH to the directory of libclang.so"
        ),
    }
}

fn holds_libclang(lib: &Path) -> bool {
    fs::read_dir(lib)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| {
                name.starts_with("libclang.so") || name.starts_with("libclang-")
            })
        })
}
