// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Who only simulates needs neither libbpf nor the compiler of BPF programs.

use std::process::Command;

/// The crates that a build of `onramp` with these features compiles.
fn crates(features: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", "onramp"])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .args(features)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

#[test]
fn a_build_without_features_has_no_libbpf() {
    let (lean, whole) = (crates(&["--no-default-features"]), crates(&[]));
    assert!(lean.contains("onramp-sim"));
    for name in ["libbpf", "onramp-agent", "onramp-rack", "etcd-client"] {
        assert!(whole.contains(name), "{name} is in no build");
        assert!(!lean.contains(name), "{name}: {lean}");
    }
}
