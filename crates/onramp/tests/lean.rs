// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Who only simulates needs neither libbpf nor the compiler of BPF programs; nor, in a program of one's own, Parquet.

use std::process::Command;

/// The crates that a build of `package` with these features compiles.
fn crates(package: &str, features: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", package])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .args(features)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

#[test]
fn a_build_without_features_has_no_libbpf() {
    let (lean, whole) = (
        crates("onramp", &["--no-default-features"]),
        crates("onramp", &[]),
    );
    assert!(lean.contains("onramp-sim"));
    for name in ["libbpf", "onramp-agent", "onramp-rack", "etcd-client"] {
        assert!(whole.contains(name), "{name} is in no build");
        assert!(!lean.contains(name), "{name}: {lean}");
    }
}

#[test]
fn a_simulator_without_features_has_no_parquet() {
    assert!(crates("onramp-sim", &[]).contains("parquet"));
    let lean = crates("onramp-sim", &["--no-default-features"]);
    assert!(!lean.contains("parquet"), "{lean}");
}
