// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Commands that make runs, as a user meets them: interrupted, repeated, two at a time, out of bounds.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use onramp_results::{read_json, SummaryFile};
use tempfile::TempDir;

#[path = "../../../tests/machine.rs"]
mod machine;

use machine::until;

/// Two short runs and then one that nobody waits for.
const SCENARIO: &str = r#"title = "Two to one"
duration = "100 us"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "hpcc"
[[traffic]]
kind = "long"
flows = 2
[sweep]
duration = ["100 us", "200 us", "1000 s"]
"#;

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        std::fs::write(desk.path("two.toml"), SCENARIO).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn simulate(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
        command.args(["sim", "run", "two.toml", "--out", "out", "--threads", "1"]);
        command.args(arguments).current_dir(self.0.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A command that has made two runs and is at the third.
    fn start(&self) -> Child {
        let child = self.simulate(&[]).spawn().unwrap();
        until("the second run", || {
            self.path("out/runs/run-1.json").exists()
        });
        child
    }

    fn summary(&self) -> SummaryFile {
        read_json(&self.path("out/summary.json")).unwrap()
    }

    fn written(&self, name: &str) -> std::time::SystemTime {
        let metadata = std::fs::metadata(self.path(name)).unwrap();
        metadata.modified().unwrap()
    }
}

fn interrupt(child: Child) -> Output {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    child.wait_with_output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_interrupted_command_exits_with_130_marks_what_is_partial_and_resumes() {
    let desk = Desk::new();
    let output = interrupt(desk.start());
    let message = text(&output);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(
        message.contains("interrupted: 2 of 3 runs are complete"),
        "{message}"
    );
    let summary = desk.summary();
    assert!(summary.partial && summary.whole_runs() == 2);

    let before = desk.written("out/runs/run-0.json");
    let mut again = desk.simulate(&[]).spawn().unwrap();
    let mut message = BufReader::new(again.stderr.take().unwrap()).lines();
    let says_what_it_keeps = message.any(|line| line.unwrap().contains("kept 2 of 3 runs"));
    interrupt(again);
    assert!(says_what_it_keeps);
    assert_eq!(desk.written("out/runs/run-0.json"), before);
}

#[test]
fn a_second_command_into_the_same_directory_is_refused() {
    let desk = Desk::new();
    let first = desk.start();
    let output = desk.simulate(&["--force"]).output().unwrap();
    let message = text(&output);
    interrupt(first);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        message.contains("out is in use by another onramp"),
        "{message}"
    );
    assert_eq!(desk.summary().whole_runs(), 2);
}

#[test]
fn results_of_another_scenario_are_refused_and_replaced_by_force() {
    let desk = Desk::new();
    let short = ["--set", "duration=50 us"];
    assert!(desk.simulate(&short).status().unwrap().success());
    let other = ["--set", "duration=60 us"];
    let output = desk.simulate(&other).output().unwrap();
    let message = text(&output);
    assert!(
        !output.status.success() && message.contains("--force"),
        "{message}"
    );
    assert_eq!(desk.summary().runs[0].resolved["duration"], "50 us");
    let forced = [&other[..], &["--force"]].concat();
    assert!(desk.simulate(&forced).status().unwrap().success());
    assert_eq!(desk.summary().runs[0].resolved["duration"], "60 us");
}

#[test]
fn numbers_out_of_bounds_are_refused_with_value_and_bound() {
    let desk = Desk::new();
    for (option, value, bound) in [
        ("--threads", "0", "at least 1"),
        ("--threads", "-3", "at least 1"),
        ("--seed", "-1", "from 0 to 18446744073709551615"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_onramp"))
            .args(["sim", "run", "two.toml", option, value])
            .current_dir(desk.0.path())
            .output()
            .unwrap();
        let message = text(&output);
        assert!(!output.status.success());
        for part in [option, value, bound] {
            assert!(message.contains(part), "{message}");
        }
    }
}

/// docs/results has a page for each scenario of both worlds; `tools/record` writes them.
#[test]
fn recorded_pages_have_the_simulators_tables_of_today() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scenarios = [
        "incast",
        "incast-bbr",
        "dctcp",
        "two-flows",
        "saturated",
        "saturated8",
        "undilated",
    ];
    for scenario in scenarios {
        let out = tempfile::tempdir().unwrap();
        let small_queue = match scenario {
            "undilated" => vec![],
            _ => vec!["--set", "host.small_queue=10 us"],
        };
        let run = Command::new(env!("CARGO_BIN_EXE_onramp"))
            .args(["sim", "run"])
            .args(small_queue)
            .arg("--out")
            .arg(out.path())
            .arg(root.join(format!("scenarios/{scenario}.toml")))
            .output()
            .unwrap();
        let table = String::from_utf8(run.stdout).unwrap();
        assert!(table.contains("port and queue"), "{scenario}: {table}");
        let page = root.join(format!("docs/results/{scenario}.md"));
        assert!(
            std::fs::read_to_string(&page).unwrap().contains(&table),
            "{}: write this into it:\n{table}",
            page.display()
        );
    }
}

#[test]
fn each_template_is_a_scenario_that_runs() {
    let desk = tempfile::tempdir().unwrap();
    let onramp = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
        command.args(arguments).current_dir(desk.path());
        command.output().unwrap()
    };
    for template in ["incast", "dumbbell", "fabric"] {
        let file = format!("{template}.toml");
        let made = onramp(&["scenario", "new", template]);
        assert!(made.status.success(), "{made:?}");
        let ran = onramp(&["sim", "run", &file, "--out", template]);
        assert!(ran.status.success(), "{ran:?}");
        let table = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(table.contains("requests a case"), "{template}: {table}");
        let again = onramp(&["scenario", "new", template]);
        let error = String::from_utf8_lossy(&again.stderr).into_owned();
        assert_eq!(again.status.code(), Some(1));
        assert_eq!(
            error,
            format!(
                "onramp: {file} exists, and is not overwritten; name another file: onramp scenario new {template} \
                 NAME.toml\n"
            )
        );
    }
    let lost = onramp(&["scenario", "new", "incast", "nowhere/a.toml"]);
    let error = String::from_utf8_lossy(&lost.stderr).into_owned();
    assert!(
        error.starts_with(
            "onramp: cannot write nowhere/a.toml; name a file in a directory that you can write: "
        ),
        "{error}"
    );
}

/// Two cases with random traffic.
const CASES: &str = r#"title = "Two congestion controls"
duration = "400 us"
[network]
topology = { kind = "star", hosts = 5 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
[[traffic]]
kind = "incast"
fanout = 4
size = "20 kB"
interval = "20 us"
[sweep]
"host.cc" = ["none", "hpcc"]
"#;

#[test]
fn seeds_are_folded_and_compared_and_files_of_runs_are_apart() {
    let desk = Desk::new();
    std::fs::write(desk.path("two.toml"), CASES).unwrap();
    let output = desk.simulate(&["--seeds", "1-3"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    let cases = table.lines().filter(|line| line.starts_with("cc="));
    assert_eq!(cases.count(), 2, "{table}");
    assert!(table.contains("\nmeans over 3 seeds, ±"), "{table}");
    let each = desk.simulate(&["--seeds", "1-3", "--each-seed"]).output();
    let each = String::from_utf8(each.unwrap().stdout).unwrap();
    assert!(each.contains("\ncc=hpcc seed=3 "), "{each}");

    let names = std::fs::read_dir(desk.path("out")).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".parquet"))
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["flows.parquet", "requests.parquet", "series.parquet"]
    );

    let compare = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
        command.args(["compare", "out"]).args(arguments);
        command.current_dir(desk.0.path()).output().unwrap()
    };
    let metric = ["--metric", "incast.rct_us.mean"];
    let output = compare(&[&["--baseline", "cc=none"][..], &metric].concat());
    let table = String::from_utf8(output.stdout).unwrap();
    let line = table.lines().nth(1).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..2], ["incast.rct_us.mean", "cc=hpcc"], "{table}");
    let mean = |cc: &str| {
        let runs = desk.summary().runs.into_iter();
        let means = runs.filter(|run| run.params["host.cc"] == cc);
        means.map(|run| run.number(metric[1]).unwrap()).sum::<f64>() / 3.0
    };
    assert_eq!(words[2], "3", "{table}");
    let shown: f64 = words[3].parse().unwrap();
    assert!((shown - mean("none")).abs() < 0.1, "{table}");
    let unknown = compare(&["--baseline", "case=fq"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(
        text(&unknown),
        "onramp: no run has case=fq; the cases are cc=none, cc=hpcc\n"
    );
}

#[test]
fn seeds_out_of_bounds_are_refused_with_the_bound() {
    let desk = Desk::new();
    for (seeds, part) in [("1-9999", "at most 1000 seeds"), ("3-1", "has no seed")] {
        let output = desk.simulate(&["--seeds", seeds]).output().unwrap();
        assert!(!output.status.success());
        assert!(text(&output).contains(part), "{}", text(&output));
    }
    assert!(!desk.path("out").exists());
}
