// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Compiles law/*.h for this host. The functions are `static inline`: generated/*.c makes them callable, and
//! generated/*.rs is their Rust side (examples/law-bindings writes these files). In a debug build, overflow in C
//! traps as it does in Rust; otherwise it wraps. Needs a C compiler only.

use std::env;

fn main() {
    for path in ["law", "bpf", "generated"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let mut build = cc::Build::new();
    build
        .file("generated/wrappers.c")
        .file("generated/cc_wrappers.c")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true);
    match env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        true => build
            .flag("-fsanitize=undefined")
            .flag("-fsanitize-undefined-trap-on-error"),
        false => build.flag("-fwrapv"),
    };
    build.compile("onramp_law");
}
