// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp advise` on traces whose answer is known.
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
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

/// An empty directory.
fn empty(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("it is writable");
    directory
}

fn advice(name: &str, trace: &str) -> String {
    let file = empty(name).join("a.trace");
    fs::write(&file, trace).expect("it is writable");
    advice_of(&file)
}

/// What `onramp advise` prints about a file of traffic behind a port with 300 kB; the page is written.
fn advice_of(file: &Path) -> String {
    let out = file.with_file_name("advice");
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    command.arg("advise").arg(file).arg("--out").arg(&out);
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

/// The same two, as Zeek logs them: requests of 100 B and their answers.
#[test]
fn a_log_of_connections_gives_the_same_advice() {
    let log = |name: &str, senders: usize, bytes: u64| {
        let mut text = "#separator \\x09\n#unset_field\t-\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\t\
                        duration\torig_bytes\tresp_bytes\n"
            .to_owned();
        for round in 0..80 {
            for sender in 0..senders {
                let (at, port) = (1_700_000_000.0 + f64::from(round) * 0.005, 1000 + round);
                let _ = writeln!(
                    text,
                    "{at:.6}\tC\t10.0.0.1\t{port}\t10.0.1.{sender}\t80\ttcp\t0.0005\t100\t{bytes}"
                );
            }
        }
        let file = empty(name).join("conn.log");
        fs::write(&file, text).expect("it is writable");
        advice_of(&file)
    };
    let text = log("zeek-incasts", 24, 64_000);
    assert!(text.starts_with("On-Ramp is recommended: "), "{text}");
    assert!(text.contains("not its bursts"), "{text}");
    assert!(
        text.contains("With another buffer ")
            && text.contains("- 75 kB: ")
            && text.contains("- 1.2 MB: "),
        "{text}"
    );
    assert!(
        text.contains("So the answer depends on the buffer"),
        "{text}"
    );
    let text = log("zeek-sparse", 1, 20_000);
    assert!(text.starts_with("On-Ramp is not recommended"), "{text}");
}

/// A capture of the simulator, at the port that the incasts overflow.
#[test]
fn a_capture_gives_the_same_advice() {
    let directory = empty("capture");
    let scenario = directory.join("s.toml");
    let text = r#"title = "24 to 1"
duration = "800 ms"
[network]
topology = { kind = "star", hosts = 25 }
link = { rate = "10 Gbit/s", delay = "2 us" }
buffer = "300 kB"
[host]
qdisc = "fq"
[[traffic]]
kind = "incast"
fanout = 24
size = "64 kB"
interval = "5 ms"
arrivals = "periodic"
"#;
    fs::write(&scenario, text).expect("it is writable");
    let runs = directory.join("runs");
    let output = Command::new(env!("CARGO_BIN_EXE_onramp"))
        .args(["sim", "run", "--pcap", "switch0-host0"])
        .arg(&scenario)
        .arg("--out")
        .arg(&runs)
        .output()
        .expect("onramp starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let captures = fs::read_dir(&runs).expect("it is there");
    let is_capture = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "pcapng")
    };
    let capture = captures
        .flatten()
        .map(|entry| entry.path())
        .find(is_capture)
        .expect("a capture");
    let file = directory.join("a.pcapng");
    fs::copy(capture, &file).expect("it is writable");
    let text = advice_of(&file);
    assert!(text.starts_with("On-Ramp is recommended: "), "{text}");
    assert!(text.contains(" to 25 hosts; "), "{text}");
}

#[test]
fn what_is_no_record_of_traffic_is_named() {
    let file = empty("none").join("conn.log");
    fs::write(&file, "#fields\tts\tuid\n1.0\tC\n").expect("it is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    let output = command
        .arg("advise")
        .arg(&file)
        .output()
        .expect("onramp starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.contains("conn.log, line 1: id.orig_h lacks; expected a conn.log with ts, "),
        "{errors}"
    );
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
