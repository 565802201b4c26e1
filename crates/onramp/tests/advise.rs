// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp advise` on traces whose answer is known.
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

const HEAD: &str = r#"{"kind":"head","version":1,"onramp":"0.1.0","addresses":"plain","observes":true,"clock":"huygens","look_ns":100000000,"gap_ns":1000000,"devices":[{"name":"eth0","line_rate_bits_per_s":10000000000}]}"#;

/// Each round of 5 ms, this many hosts send `bytes` to one at the same time.
fn trace(senders: usize, bytes: u64) -> String {
    let mut text = format!("{HEAD}\n");
    for round in 0..80 {
        for sender in 0..senders {
            let start_ns = round * 5_000_000;
            let _ = writeln!(
                text,
                r#"{{"kind":"flow","from":"10.0.1.{sender}","from_port":{},"to":"10.0.0.1","to_port":80,"start_fleet_ns":{start_ns},"duration_ns":20000,"size_bytes":{bytes},"delays":{{"samples":1,"min_ns":12000,"p50_ns":15000,"p99_ns":300000}},"held_ns":0}}"#,
                1000 + sender
            );
        }
    }
    text
}

/// What `onramp advise` prints about a trace behind a port with 300 kB; the page is written.
fn advice(name: &str, trace: &str) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("it is writable");
    let (file, out) = (directory.join("a.trace"), directory.join("advice"));
    fs::write(&file, trace).expect("it is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    command.arg("advise").arg(&file).arg("--out").arg(&out);
    let output = command.args(["--buffer", "300 kB"]).output();
    let output = output.expect("onramp starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(out.join("advice.html").exists());
    String::from_utf8(output.stdout).expect("text")
}

/// 24 first windows of ten packets take 350 kB: of more senders, many would lose packets before On-Ramp knows a delay.
#[test]
fn incasts_that_overflow_a_port_recommend_on_ramp() {
    let text = advice("incasts", &trace(24, 64_000));
    assert!(text.starts_with("On-Ramp is recommended: "), "{text}");
}

#[test]
fn a_flow_at_a_time_does_not() {
    let text = advice("sparse", &trace(1, 20_000));
    assert!(text.starts_with("On-Ramp is not recommended"), "{text}");
    assert!(text.contains("80 flows of 1 sender to 2 hosts; "), "{text}");
    assert!(text.contains("or sent nothing: 1 host; "), "{text}");
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foreign");
    fs::create_dir_all(&directory).expect("it is writable");
    let (file, other) = (directory.join("a.trace"), directory.join("letter"));
    fs::write(&file, trace(1, 20_000)).expect("it is writable");
    fs::write(&other, "").expect("it is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    let output = command
        .arg("advise")
        .arg(&file)
        .arg("--out")
        .arg(&directory);
    let output = output.output().expect("onramp starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("which is not of an advice"), "{errors}");
    assert!(!directory.join("replay").exists());
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("a.trace");
    fs::write(&file, trace(1, 20_000)).expect("it is writable");
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    command.arg("advise").arg(&file);
    command.arg("--out").arg(directory.path().join("advice"));
    let output = command.stdout(full.expect("Linux has it")).output();
    let output = output.expect("onramp starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("cannot write to standard output"),
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
}
