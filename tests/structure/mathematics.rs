// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Finds functions of the platform's mathematics. glibc has other versions of them by processor and by release, which may
//! differ in the last bit. Results have to be the same bytes on all, so they come from the libm crate. Square roots and
//! whole powers are exact, or made of exact steps, everywhere.

use super::sources::Source;

/// Crates whose results are compared, or stand in files.
const CRATES: [&str; 11] = [
    "agent",
    "cc",
    "clock",
    "fleets",
    "law",
    "reproduce",
    "results",
    "scenario",
    "sim",
    "sync",
    "units",
];
const FUNCTIONS: [&str; 24] = [
    "acos", "asin", "atan", "atan2", "cbrt", "cos", "cosh", "exp", "exp2", "exp_m1", "hypot", "ln",
    "ln_1p", "log", "log10", "log2", "mul_add", "powf", "sin", "sin_cos", "sinh", "tan", "tanh",
    "acosh",
];

/// The lines that call one, as `path:number: function`. Unit tests may.
pub fn calls(files: &[Source]) -> Vec<String> {
    let of_crates = files.iter().filter(|file| {
        let is_of = |name: &&str| file.path.starts_with(&format!("crates/{name}/src/"));
        CRATES.iter().any(is_of) && !file.path.ends_with("tests.rs")
    });
    of_crates.flat_map(calls_of).collect()
}

fn calls_of(file: &Source) -> Vec<String> {
    let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
    let found = code.lines().enumerate().flat_map(|(at, line)| {
        let line_code = line.split("//").next().unwrap_or_default();
        let called = FUNCTIONS.iter().filter(|name| {
            line_code.contains(&format!(".{name}(")) || line_code.contains(&format!("f64::{name}"))
        });
        called
            .map(|name| format!("{}:{}: {name}", file.path, at + 1))
            .collect::<Vec<_>>()
    });
    found.collect()
}

#[test]
fn a_call_is_found_in_both_spellings_and_not_in_tests() {
    let file = |path: &str, text: &str| Source {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let text = "a.hypot(b);\nmap(f64::exp);\nlibm::hypot(a, b); // a.ln()\n#[cfg(test)]\nx.sin()";
    let found = calls(&[
        file("crates/sync/src/a.rs", text),
        file("crates/report/src/a.rs", text),
    ]);
    assert_eq!(
        found,
        [
            "crates/sync/src/a.rs:1: hypot",
            "crates/sync/src/a.rs:2: exp"
        ]
    );
}
