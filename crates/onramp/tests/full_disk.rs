// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Standard output that takes no more, as of a full disk, is an error of one line and no panic, whatever the command.
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const ERROR: &str =
    "onramp: cannot write to standard output: No space left on device (os error 28)\n";

/// Commands that print, and arguments with which they do so on any machine. They run in this order in one directory.
/// `ROOT` stands for that of the repository.
const PRINTING: [(&str, &str); 21] = [
    ("scenario new", "incast"),
    ("scenario validate", "incast.toml"),
    ("scenario explain", ""),
    ("sim run", "incast.toml --set duration=12ms --out incast"),
    (
        "sim replay",
        "ROOT/crates/sim/tests/reference/star17.topo ROOT/crates/sim/tests/reference/single.flow --cc hpcc",
    ),
    ("sim bench", "--duration 2us --repeat 1 --threads 1"),
    ("sweep", "ROOT/examples/sweep/threshold.toml --points"),
    ("report", "incast --out report.html"),
    ("compare", "incast --baseline case=off"),
    ("reproduce", "timely-f1"),
    ("experiment new", "mine"),
    ("experiment run", "mine --seeds 1"),
    ("tbtcp fit", ""),
    ("cc list", ""),
    ("agent explain", ""),
    ("agent validate", "ROOT/deploy/onramp.toml"),
    ("doctor", "--dev lo --config /dev/null"),
    ("keygen", "keys"),
    ("clock simulate", "clock.toml"),
    ("reference completions", "bash"),
    ("reference markdown", ""),
];

/// Commands that print nothing here, and why.
const OTHERS: [(&str, &str); 18] = [
    ("advise", "needs traces: tests/advise.rs"),
    ("reference man", "prints nothing"),
    ("cc load", "needs root"),
    ("cc unload", "needs root"),
    ("rack run", "needs root or a virtual machine"),
    ("detach", "needs root"),
    ("agent run", "needs root"),
    ("bugtool", "prints where it wrote; needs root"),
    ("clock run", "runs until it is interrupted"),
    ("clock status", "needs a daemon"),
    ("clock watch", "needs a daemon"),
    ("clock matrix", "needs a daemon"),
    ("connectivity serve", "needs a daemon"),
    ("connectivity test", "needs a daemon"),
    ("reload", "needs a daemon"),
    ("status", "needs a daemon"),
    ("top", "needs a daemon"),
    ("trace", "needs a daemon"),
];

/// Wrong clocks of few hosts for a moment.
const CLOCK: &str = r#"title = "Three clocks"
duration = "60 ms"
warmup = "30 ms"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[[traffic]]
kind = "poisson"
workload = "fb_hadoop"
load = "10 %"
[clock]
sync = "huygens"
window = "10 ms"
offset = "10 us"
"#;

fn on_full_disk(directory: &Path, arguments: &[&str]) -> Output {
    let full = OpenOptions::new().write(true).open("/dev/full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    let command = command.args(arguments).current_dir(directory);
    let output = command.stdout(full.expect("Linux has it")).output();
    output.expect("the program starts")
}

#[test]
fn every_command_that_prints_ends_with_one_error() {
    let directory = TempDir::new().expect("a temporary directory");
    fs::write(directory.path().join("clock.toml"), CLOCK).expect("it is writable");
    for (name, arguments) in PRINTING {
        let arguments = arguments.replace("ROOT", ROOT);
        let arguments: Vec<&str> = name
            .split(' ')
            .chain(arguments.split_whitespace())
            .collect();
        let output = on_full_disk(directory.path(), &arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.ends_with(ERROR), "{name}: {errors}");
        assert!(!errors.contains("panicked"), "{name}: {errors}");
        assert_eq!(output.status.code(), Some(1), "{name}: {errors}");
    }
}

#[test]
fn help_and_version_end_with_one_error() {
    let here = Path::new(".");
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["-V"],
        &["help", "sim"],
        &["sim", "run", "-h"],
    ] {
        let output = on_full_disk(here, arguments);
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            ERROR,
            "{arguments:?}"
        );
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    }
}

/// docs/cli.md lists all commands.
#[test]
fn every_command_is_tried_or_has_a_reason() {
    let page = fs::read_to_string(format!("{ROOT}/docs/cli.md")).expect("it is there");
    let headings = page
        .lines()
        .filter_map(|line| line.strip_prefix("## onramp "));
    let mut commands: Vec<&str> = headings.collect();
    let known = PRINTING.iter().chain(&OTHERS).map(|(name, _)| *name);
    let mut known: Vec<&str> = known.collect();
    commands.sort_unstable();
    known.sort_unstable();
    assert_eq!(commands, known);
}
