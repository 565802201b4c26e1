//! Compiles law/*.h for this host and generates the Rust side from the same text. The functions are
//! `static inline`: bindgen writes a C file of callable wrappers, cc compiles it.
//! In a debug build, overflow in C traps as it does in Rust.

use bindgen::callbacks::{EnumVariantValue, ParseCallbacks};
use std::path::{Path, PathBuf};
use std::{env, fs};

const LAW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../law");

fn main() {
    println!("cargo:rerun-if-changed={LAW}");
    println!("cargo:rerun-if-env-changed=LIBCLANG_PATH");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let wrappers = out.join("law_wrappers.c");

    find_libclang();
    bindgen::Builder::default()
        .header(format!("{LAW}/records.h"))
        .header(format!("{LAW}/clock.h"))
        .allowlist_type("onr_.*")
        .allowlist_function("onr_(segment_sent|orack_arrived|may_go|pause_clock|sampled(_byte)?)")
        .allowlist_function("onr_records_(sent|orack|reset)")
        .allowlist_function("onr_clock_offset")
        .allowlist_var("ONR_.*")
        .rustified_enum("onr_.*")
        .derive_default(true)
        .derive_eq(true)
        .generate_comments(false)
        .wrap_static_fns(true)
        .wrap_static_fns_path(&wrappers)
        .parse_callbacks(Box::new(RustNames))
        .generate()
        .unwrap_or_else(|error| panic!("law/records.h: {error}"))
        .write_to_file(out.join("law.rs"))
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
}

/// The variants of the enums that users meet get Rust names.
#[derive(Debug)]
struct RustNames;

impl ParseCallbacks for RustNames {
    /// `ONR_LAW_FINAL` is `Law::Final`, `ONR_USED` is `Verdict::Used`.
    fn enum_variant_name(
        &self,
        _enum: Option<&str>,
        variant: &str,
        _value: EnumVariantValue,
    ) -> Option<String> {
        let name = variant
            .strip_prefix("ONR_LAW_")
            .or(variant.strip_prefix("ONR_"))?;
        Some(name[..1].to_owned() + &name[1..].to_lowercase())
    }
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
            "no libclang in /usr/lib/llvm-*/lib, which generating Rust from law/*.h needs: \
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
