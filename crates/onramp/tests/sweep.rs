// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp sweep` as a user calls it: it is resumed after any death, and says what failed.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

const SCENARIO: &str = r#"title = "t"
duration = "300 us"
[network]
topology = { kind = "star", hosts = 5 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[[traffic]]
kind = "incast"
fanout = 4
size = "8 kB"
interval = "30 us"
"#;

const SWEEP: &str = r#"title = "Delays"
scenario = "star.toml"
seeds = [1, 2]
[sample]
method = "sobol"
points = 120
[sample.keys]
"network.link.delay" = { from = "1 us", to = "9 us" }
"traffic.0.fanout" = { from = 1, to = 4 }
"#;

struct Desk(TempDir);

impl Desk {
    fn new(sweep: &str) -> Desk {
        let desk = Desk(TempDir::new().expect("a temporary directory"));
        fs::write(desk.path("star.toml"), SCENARIO).expect("it is writable");
        fs::write(desk.path("sweep.toml"), sweep).expect("it is writable");
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn sweep(&self, out: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
        command.args(["sweep", "sweep.toml", "--out", out]);
        command.current_dir(self.0.path());
        command
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Parts that were made.
fn parts(out: &Path) -> usize {
    let names = fs::read_dir(out.join("runs"))
        .into_iter()
        .flatten()
        .flatten();
    let names = names.map(|entry| entry.file_name().into_string().expect("ours are ASCII"));
    names.filter(|name| name.ends_with(".json")).count()
}

fn data(out: &Path) -> [Vec<u8>; 2] {
    ["data/part-00000.parquet", "sweep.json"]
        .map(|name| fs::read(out.join(name)).expect("it is there"))
}

#[test]
fn a_sweep_that_is_killed_again_and_again_has_the_data_of_one_that_is_not() {
    let desk = Desk::new(SWEEP);
    let (whole, killed) = (desk.path("whole"), desk.path("killed"));
    let output = desk
        .sweep("whole")
        .args(["--threads", "1"])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", text(&output));
    assert!(
        text(&output).contains("Delays: 120 of 120 points, 240 runs\n"),
        "{}",
        text(&output)
    );
    let mut deaths = 0;
    loop {
        let before = parts(&killed);
        let mut child = desk.sweep("killed");
        let child = child
            .args(["--threads", "2"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = child.spawn().expect("it starts");
        let ended = loop {
            if let Some(status) = child.try_wait().expect("it is ours") {
                break Some(status);
            }
            if parts(&killed) >= before + 10 {
                break None;
            }
            thread::sleep(Duration::from_millis(1)); // machine: until parts have been made, or all
        };
        match ended {
            Some(status) => {
                assert!(status.success());
                break;
            }
            None => {
                child.kill().expect("it is ours"); // SIGKILL
                child.wait().expect("it is ours");
                deaths += 1;
            }
        }
    }
    assert!(deaths >= 1, "{deaths}"); // eleven, if this thread is never starved
    assert!(data(&whole) == data(&killed));
    // Made again, nothing changes.
    let output = desk.sweep("whole").output().expect("it starts");
    assert!(
        text(&output).contains("whole: kept 120 of 120 parts\n"),
        "{}",
        text(&output)
    );
    assert!(data(&whole) == data(&killed));
}

#[test]
fn what_failed_is_named_and_the_others_are_whole() {
    let values = r#"["bbr", "nothing", "cubic"]"#;
    let desk = Desk::new(&format!(
        "scenario = \"star.toml\"\n[grid]\n\"host.cc\" = {values}\n"
    ));
    let output = desk.sweep("out").output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert!(
        said.contains("sweep.toml: 3 of 3 points, 3 runs\n"),
        "{said}"
    );
    assert!(
        said.contains("point 1 failed: host.cc is \"nothing\", expected "),
        "{said}"
    );
    assert!(
        said.ends_with("onramp: 1 of 3 runs failed; the others are whole\n"),
        "{said}"
    );
}

#[test]
fn another_sweep_in_the_same_directory_is_refused() {
    let desk = Desk::new(SWEEP);
    let points = desk
        .sweep("out")
        .arg("--points")
        .output()
        .expect("it starts");
    let listed = text(&points);
    assert_eq!(listed.lines().count(), 120, "{listed}");
    assert!(listed.starts_with("0 network.link.delay='"), "{listed}");
    assert!(!desk.path("out").exists());
    fs::write(desk.path("sweep.toml"), "scenario = \"star.toml\"").expect("it is writable");
    assert!(desk
        .sweep("out")
        .output()
        .expect("it starts")
        .status
        .success());
    fs::write(desk.path("sweep.toml"), SWEEP).expect("it is writable");
    let output = desk.sweep("out").output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert!(
        said.contains("out has results of another scenario, seed or options"),
        "{said}"
    );
    let output = desk
        .sweep("out")
        .arg("--force")
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(parts(&desk.path("out")), 120);
}
