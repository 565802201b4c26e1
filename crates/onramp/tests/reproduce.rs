// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp reproduce --rack` as a user meets it: a small figure in the simulator and on real kernels in
//! virtual machines, a few seconds each.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use onramp_results::figure::Figure;
use onramp_results::read_json;
use tempfile::TempDir;

const SCENARIO: &str = r#"title = "Two to one"
duration = "3 ms"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[[traffic]]
kind = "long"
flows = 2
[onramp]
threshold = "50 us"
[[case]]
name = "final"
"onramp.law" = "final"
[[case]]
name = "fq"
"host.qdisc" = "fq"
"#;

const FIGURE: &str = r#"title = "Two to one"
asked = "Is the port full?"
scenario = "tiny.toml"
[quick]
seeds = 5
takes_s = 1
[full]
seeds = 5
takes_s = 1
[rack]
seeds = 1
few_seeds = "it is a test"
takes_s = 10
set = { time_dilation = 100, warmup = "1 ms" }
[[row]]
name = "goodput"
source = "nowhere"
metric = "background.goodput_gbps"
of = { case = "fq" }
unit = "Gbit/s"
paper = 9.5
[[plot]]
title = "Queue"
y_label = "queue (us)"
show.bars = { metrics = ["queue_us.mean"], by = "case" }
[[plot]]
title = "Rate"
y_label = "rate (Gbit/s)"
show.time = { series = "rate_gbps", places = ["switch0-host0"], by = "case" }
"#;

/// A repository with one figure, and where its results go.
struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("figures/tiny.toml", FIGURE),
            ("scenarios/tiny.toml", SCENARIO),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Desk(root)
    }

    fn out(&self, name: &str) -> PathBuf {
        self.0.path().join("out/rack/tiny").join(name)
    }

    fn reproduce(&self, cache: &Path) -> Output {
        let root = self.0.path();
        Command::new(env!("CARGO_BIN_EXE_onramp"))
            .args(["reproduce", "tiny", "--rack", "--from"])
            .arg(root)
            .arg("--out")
            .arg(root.join("out"))
            .arg("--cache")
            .arg(cache)
            .output()
            .unwrap()
    }

    fn written(&self, name: &str) -> SystemTime {
        std::fs::metadata(self.out(name))
            .unwrap()
            .modified()
            .unwrap()
    }
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn both_worlds_run_the_same_scenario_and_what_is_there_stays() {
    let desk = Desk::new();
    let output = desk.reproduce(&cache());
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    for column in ["paper", "simulator", "real kernel"] {
        assert!(stdout.contains(column), "{stdout}");
    }
    let figure: Figure = read_json(&desk.out("figure.json")).unwrap();
    let [sim, rack] = &figure.rows[0].measured[..] else {
        panic!("{:?}", figure.rows);
    };
    assert_eq!((sim.world.as_str(), rack.world.as_str()), ("sim", "rack"));
    for measured in [sim, rack] {
        // 9.57 is all that fits.
        let gbps = measured.value.unwrap();
        assert!((9.0..9.6).contains(&gbps), "{measured:?}");
    }
    let titles: Vec<&str> = figure.plots.iter().map(|p| p.title.as_str()).collect();
    assert_eq!(titles, ["Queue", "Rate, simulator", "Rate, real kernel"]);
    let names = |plot: usize| {
        let series = figure.plots[plot].series.iter();
        series.map(|s| s.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        names(0),
        [
            "final, simulator",
            "fq, simulator",
            "final, real kernel",
            "fq, real kernel"
        ]
    );
    assert_eq!(names(2), ["final", "fq"]);
    // The port is full in both, in each of 2000 intervals but a few.
    for plot in &figure.plots[1..] {
        let rates: Vec<f64> = plot.series[1].y.iter().copied().flatten().collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!(
            rates.len() > 100 && (9.0..=10.01).contains(&mean),
            "{}: {mean}",
            plot.title
        );
    }

    // The rack's run 1 is missing: the others stay.
    let runs = [
        "sim/runs/run-0.json",
        "sim/runs/run-1.json",
        "rack/runs/run-0.json",
    ];
    let before = runs.map(|run| desk.written(run));
    std::fs::remove_file(desk.out("rack/runs/run-1.json")).unwrap();
    let output = desk.reproduce(&cache());
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("rack: kept 1 of 2 runs"), "{stderr}");
    assert_eq!(runs.map(|run| desk.written(run)), before);
    let again: Figure = read_json(&desk.out("figure.json")).unwrap();
    assert!(!again.partial && again.rows == figure.rows);
}

#[test]
fn without_a_kernel_it_says_what_fetches_one_and_keeps_what_the_simulator_has() {
    let desk = Desk::new();
    let output = desk.reproduce(desk.0.path());
    assert!(!output.status.success());
    let stderr = text(&output.stderr);
    assert!(stderr.contains("make setup"), "{stderr}");
    assert!(desk.out("sim/runs/run-1.json").exists());
    assert!(!desk.out("figure.json").exists());
}
