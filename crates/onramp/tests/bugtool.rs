// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp bugtool` beside a daemon with keys, in a network namespace of its own. Needs root, as the daemon does.
//! machine: it waits for the daemon's first answer, and nobody else is in the namespace to have the port.

use std::{fs, io::Read, os::unix::fs::PermissionsExt, process::Command};

const KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const ONRAMP: &str = env!("CARGO_BIN_EXE_onramp");

/// Starts a clock with the key, waits for it, and has the tar written. The alias of a device shows the key to `ip`.
const SCRIPT: &str = r#"
set -eu
ip link set dev lo up alias "$KEY"
"$ONRAMP" clock run --member 127.0.0.1,127.0.0.2 --key-file "$DIR/keys" 2>"$DIR/log" &
clock=$!
trap 'kill "$clock"; wait "$clock" || true' EXIT
until "$ONRAMP" clock status >/dev/null 2>&1; do
	kill -0 "$clock"
	sleep 0.1
done
"$ONRAMP" bugtool --out "$DIR/bug.tar"
"#;

#[test]
fn the_file_has_the_status_of_the_clock_and_no_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys = dir.path().join("keys");
    fs::write(&keys, format!("0 {KEY}\n")).expect("a file");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", SCRIPT])
        .envs([("KEY", KEY), ("ONRAMP", ONRAMP)])
        .env("DIR", dir.path())
        .output()
        .expect("unshare runs");
    let log = fs::read_to_string(dir.path().join("log")).unwrap_or_default();
    assert!(output.status.success(), "{output:?}\n{log}");

    let bytes = fs::read(dir.path().join("bug.tar")).expect("the tar");
    let mut whole = String::new();
    for entry in tar::Archive::new(bytes.as_slice())
        .entries()
        .expect("a tar")
    {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a name").display().to_string();
        whole += &format!("\n== {path}\n");
        entry.read_to_string(&mut whole).expect("text");
    }
    for part in [
        "== onramp-bugtool/version.txt\n0.",
        "\"own\": \"127.0.0.1:5198\"",
        "onramp_clock_members 2\n",
        "alias (hex removed)",
        "== onramp-bugtool/tc--s--d-qdisc-show.txt",
        "  kernel        ",
    ] {
        assert!(whole.contains(part), "{part:?} is missing in {whole}");
    }
    let raw: Vec<u8> = (0..KEY.len() / 2)
        .map(|n| u8::from_str_radix(&KEY[2 * n..2 * n + 2], 16).expect("hex"))
        .collect();
    for key in [KEY.as_bytes(), &raw] {
        let found = bytes.windows(key.len()).any(|window| window == key);
        assert!(!found, "the key is in the file");
    }
}
