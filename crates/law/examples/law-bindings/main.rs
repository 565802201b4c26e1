// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Writes generated/: the Rust side of law/*.h and bpf/abi.h, from their text. tests/bindings.rs compares.
//! `cargo run -p onramp-law --example law-bindings`. Needs libclang.

use bindgen::callbacks::{DeriveInfo, EnumVariantValue, ParseCallbacks, TypeKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt::Write as _, fs};

mod transports;

/// The crate's folder: wrappers name headers from here.
const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const LICENCE: &str = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later";
const ORIGIN: &str = "Written by examples/law-bindings.";
const HEADERS: [&str; 3] = ["bpf/abi.h", "law/clock.h", "law/histogram.h"];

fn main() {
    for (name, text) in generated() {
        let path = Path::new(CRATE).join("generated").join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// Name and text of each file.
pub fn generated() -> Vec<(&'static str, String)> {
    find_libclang();
    let (laws, laws_c) = with_wrappers("law", |builder| written(laws(builder)));
    let (cc, cc_c) = with_wrappers("cc", transports::generate);
    let lists = lists(&expanded_lists());
    let rust = |text| format!("// {LICENCE}\n// {ORIGIN}\n{text}");
    let c = |text| format!("/* {LICENCE} */\n/* {ORIGIN} */\n{text}");
    vec![
        ("raw.rs", rust(laws)),
        ("wrappers.c", c(laws_c)),
        ("cc.rs", rust(cc)),
        ("cc_wrappers.c", c(cc_c)),
        ("lists.rs", rust(lists)),
    ]
}

/// What `generate` makes, and the C that makes its `static inline` functions callable.
fn with_wrappers(
    name: &str,
    generate: impl FnOnce(bindgen::Builder) -> String,
) -> (String, String) {
    let path = env::temp_dir().join(format!("onramp-{name}-{}.c", std::process::id()));
    let builder = bindgen::Builder::default()
        .rustified_enum("onr_.*")
        .derive_default(true)
        .derive_eq(true)
        .generate_comments(false)
        .disable_header_comment()
        .formatter(bindgen::Formatter::Prettyplease)
        .wrap_static_fns(true)
        .wrap_static_fns_path(&path);
    let rust = generate(builder);
    let wrappers = fs::read_to_string(&path).expect("bindgen has written it");
    fs::remove_file(&path).expect("it is there");
    (rust, wrappers.replace(&format!("{CRATE}/"), "../"))
}

/// What bindgen writes.
fn written(builder: bindgen::Builder) -> String {
    let bindings = builder.generate();
    bindings
        .unwrap_or_else(|error| panic!("law/*.h and bpf/abi.h: {error}"))
        .to_string()
}

/// The laws, and what they and the kernel's programs share with Rust.
fn laws(mut builder: bindgen::Builder) -> bindgen::Builder {
    for header in HEADERS {
        builder = builder.header(format!("{CRATE}/{header}"));
    }
    builder
        .allowlist_type("onr_.*")
        .blocklist_type("onr_counter") // the generated COUNTERS lists them
        .allowlist_function("onr_(segment_sent|orack_arrived|may_go|pause_clock)")
        .allowlist_function("onr_sampled(_byte|_next)?")
        .allowlist_function("onr_records_(sent|orack|reset)")
        .allowlist_function("onr_(path_set|threshold_held)")
        .allowlist_function("onr_receiver_(arrived|flow|says)")
        .allowlist_function("onr_least_(ends|roll|sample|owd)")
        .allowlist_function("onr_nic_(look|gets)")
        .allowlist_function("onr_wire_(sample|has_enough|sooner_q16|least_ns)")
        .allowlist_function("onr_clock_offset")
        .allowlist_function("onr_histogram_bucket")
        .allowlist_var("ONR_.*")
        .parse_callbacks(Box::new(Rust))
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

/// lists.c after the C preprocessor.
fn expanded_lists() -> String {
    let output = Command::new("cc")
        .args(["-E", "lists.c"])
        .current_dir(CRATE)
        .output()
        .expect("there is a C compiler");
    assert!(output.status.success(), "cc -E lists.c: {output:?}");
    String::from_utf8(output.stdout).expect("the headers are UTF-8")
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
