// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp sim replay` as a user meets it: threads, bounds of rates and sizes, and an interrupt.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use tempfile::TempDir;

/// 17 hosts with 100 Gbit/s at one switch.
const STAR: &str = "star17.topo";
/// 320 hosts, of which one sends to another in a different rack.
const FABRIC: &str = "fat.txt";
/// Neither of the two large flows ends while somebody waits.
const ENDLESS: &str =
    "3\n1 0 3 100 1000 2.0\n2 0 3 100 1000000000000000 2.0\n3 0 3 100 1000000000000000 2.0\n";

fn replay(desk: &TempDir, topology: &str, flows: &str, options: &[&str]) -> Command {
    let reference = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sim/tests/reference");
    std::fs::write(desk.path().join("flows"), flows).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    command
        .args(["sim", "replay"])
        .arg(reference.join(topology));
    command.args(["flows", "--cc"]).args(options);
    command.current_dir(desk.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(topology: &str, flows: &str, options: &[&str]) -> Output {
    let desk = tempfile::tempdir().unwrap();
    replay(&desk, topology, flows, options).output().unwrap()
}

/// The CSV of flows that all end.
fn csv(topology: &str, flows: &str, options: &[&str]) -> String {
    let output = run(topology, flows, options);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Flows across the fabric, many to one and one to many.
fn crossing() -> String {
    let row = |n: u32| {
        format!(
            "{} {} 3 100 {} 2.00000{n}\n",
            40 * n,
            319 - 30 * n,
            20_000 * (n + 1)
        )
    };
    format!("8\n{}", (0..8).map(row).collect::<String>())
}

#[test]
fn threads_do_not_change_a_byte() {
    let of = |threads| csv(FABRIC, &crossing(), &["hpcc", "--threads", threads]);
    assert_eq!(of("1"), of("2"));
}

#[test]
fn a_lower_bound_of_rates_holds() {
    let two = "2\n1 0 3 100 2000000 2.0\n2 0 3 100 2000000 2.0\n";
    let of = |options: &[&str]| csv(STAR, two, &[&["timely"], options].concat());
    assert_ne!(of(&[]), of(&["--min-rate", "90 Gbit/s"]));
}

#[test]
fn a_lower_bound_that_cannot_be_is_refused() {
    let refused = |options: &[&str]| {
        let output = run(STAR, ENDLESS, options);
        assert!(!output.status.success() && output.stdout.is_empty());
        text(&output.stderr)
    };
    let above = refused(&["hpcc", "--min-rate", "200 Gbit/s"]);
    assert!(
        above.contains("--min-rate is 200 Gbit/s, above max 100 Gbit/s"),
        "{above}"
    );
    let none = refused(&["none", "--min-rate", "1 Gbit/s"]);
    assert!(none.contains("none has no lower bound"), "{none}");
}

#[test]
fn a_flow_that_no_sequence_number_can_count_is_refused() {
    let output = run(
        STAR,
        &ENDLESS.replace("1000000000000000 ", "1000000000000001 "),
        &["hpcc"],
    );
    assert!(!output.status.success());
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("flows") && stderr.contains("1000000000000001"),
        "{stderr}"
    );
}

#[test]
fn an_interrupted_replay_prints_what_has_ended_and_says_so() {
    let desk = tempfile::tempdir().unwrap();
    let options = ["hpcc", "--patience", "1000000 s", "--threads", "1"];
    let mut child = replay(&desk, STAR, ENDLESS, &options).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut progress = String::new();
    stderr.read_line(&mut progress).unwrap();
    assert!(progress.contains("of 3 flows"), "{progress}");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert!(
        rest.contains("interrupted at") && rest.contains("of 3 flows are unfinished"),
        "{rest}"
    );
    let lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    let ended = |line: &&String| line.split(',').nth(6).is_some_and(|fct| !fct.is_empty());
    assert!(lines[1..].iter().filter(ended).count() <= 1, "{lines:?}");
}
