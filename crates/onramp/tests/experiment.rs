// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp experiment` as a user meets it: begin, run, change, run again, and read the page.
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

use onramp_results::figure::Figure;
use onramp_results::read_json;
use tempfile::TempDir;

fn onramp(desk: &TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onramp"))
        .args(args)
        .current_dir(desk)
        .output()
        .unwrap()
}

fn printed(desk: &TempDir, args: &[&str]) -> String {
    let output = onramp(desk, args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(desk: &TempDir, args: &[&str]) -> String {
    let output = onramp(desk, args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn written(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn a_new_experiment_runs_and_only_what_is_missing_runs_again() {
    let desk = tempfile::tempdir().unwrap();
    let begun = printed(&desk, &["experiment", "new", "mine"]);
    assert!(
        begun.starts_with("mine: 30 runs: On-Ramp in an 8-to-1"),
        "{begun}"
    );
    let again = refused(&desk, &["experiment", "new", "mine"]);
    assert!(
        again.contains("mine/experiment.toml exists, and is not overwritten"),
        "{again}"
    );

    // Shorter, for this test.
    let path = desk.path().join("mine/experiment.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("duration = \"50 ms\"", "duration = \"15 ms\"");
    fs::write(&path, &text).unwrap();
    let run = ["experiment", "run", "mine"];
    let table = printed(&desk, &run);
    assert!(
        table.contains("RCT p50, gate, 150 kB") && table.contains(" us ("),
        "{table}"
    );
    for word in ["paper", "verdict", "quick"] {
        assert!(!table.contains(word), "{table}");
    }
    let out = desk.path().join("results/experiments/mine");
    let figure: Figure = read_json(&out.join("figure.json")).unwrap();
    assert!(figure.is_own() && figure.seeds == [1, 2, 3, 4, 5]);
    let bars = &figure.plots[0];
    assert_eq!(
        (&*bars.x.label, &*bars.y.label),
        ("network.buffer", "incast.rct_us.p99 (us)")
    );
    assert_eq!(bars.x.categories, ["150 kB", "300 kB"]);

    // Another row needs no new run; other seeds do.
    let first = written(&out.join("sim/runs/run-0.json"));
    fs::write(&path, text.replace("RCT p50, gate", "Median, gate")).unwrap();
    assert!(printed(&desk, &run).contains("Median, gate, 150 kB"));
    assert_eq!(written(&out.join("sim/runs/run-0.json")), first);
    let others = ["experiment", "run", "mine", "--seeds", "4,7"];
    let refusal = refused(&desk, &others);
    assert!(
        refusal.contains("--force") && !refusal.contains("results are in"),
        "{refusal}"
    );
    assert_eq!(written(&out.join("sim/runs/run-0.json")), first);
    printed(&desk, &[&others[..], &["--force"]].concat());
    let figure: Figure = read_json(&out.join("figure.json")).unwrap();
    assert_eq!(figure.seeds, [4, 7]);

    printed(
        &desk,
        &["report", "results/experiments/mine", "--out", "mine.html"],
    );
    let page = fs::read_to_string(desk.path().join("mine.html")).unwrap();
    assert!(page.contains("Median, gate, 300 kB"));
    for words in [
        "beyond the paper",
        "Smaller than the paper",
        ">Verdict<",
        "stale",
    ] {
        assert!(
            !page.contains(&format!("{words}</span>")) && !page.contains(&format!(">{words}<"))
        );
    }
}

#[test]
fn a_file_is_called_as_its_folder_also_from_inside() {
    let desk = tempfile::tempdir().unwrap();
    printed(&desk, &["experiment", "new", "mine"]);
    let from_inside = Command::new(env!("CARGO_BIN_EXE_onramp"))
        .args([
            "experiment",
            "run",
            "experiment.toml",
            "--seeds",
            "1",
            "--out",
            "out",
        ])
        .current_dir(desk.path().join("mine"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&from_inside.stderr);
    assert!(from_inside.status.success(), "{errors}");
    let inside = String::from_utf8_lossy(&from_inside.stdout);
    assert!(inside.starts_with("mine: On-Ramp in an 8-to-1"), "{inside}");
}

#[test]
fn mistakes_are_found_before_a_run() {
    let desk = tempfile::tempdir().unwrap();
    printed(&desk, &["experiment", "new", "mine"]);
    let path = desk.path().join("mine/experiment.toml");
    let right = fs::read_to_string(&path).unwrap();
    for (from, to, expected) in [
        (
            "metric = \"incast.rct_us.p99\"",
            "metric = \"incast.rct_us.p9999\"",
            "row.0.metric is \"incast.rct_us.p9999\", no number of a metric, expected incast.rct_us and one of n, mean, p50",
        ),
        (
            "metrics = [\"incast.rct_us.p99\"]",
            "metrics = [\"incast.rct.p99\"]",
            "plot.0.show.bars.metrics is incast.rct.p99, no metric, expected one of incast.rct_us",
        ),
        (
            ", by = \"case\" }\n\n",
            " }\n\n",
            "plot \"Slowest answers\" is of runs that differ in case; choose one with of =",
        ),
        (
            "of = { case = \"gate\" }",
            "of = { case = \"gata\" }",
            "0 runs of 5 seeds; there are case {\"final\", \"gate\", \"off\"}",
        ),
        ("as = \"ratio\"", "as = \"ratio\"\npaper = 2.5", "row.0.paper is a key of figures of papers"),
        ("seeds = 5", "seeds = 0", "seeds is 0, below min 1"),
        ("\"scenario.toml\"", "\"none.toml\"", "cannot read none.toml: No such file"),
        ("question =", "qestion =", "unknown field `qestion`"),
        ("\"network.buffer\" = [", "\"network.bufer\" = [", "network.bufer"),
    ] {
        assert!(right.contains(from), "{from}");
        fs::write(&path, right.replacen(from, to, 1)).unwrap();
        let error = refused(&desk, &["experiment", "run", "mine"]);
        assert!(error.contains(expected), "{error}");
        assert!(error.starts_with("onramp: mine/experiment.toml: ") || error.contains("cannot read") || to.contains("bufer"), "{error}");
    }
    assert!(!desk.path().join("results").exists());
    let none = refused(&desk, &["experiment", "run", "other"]);
    assert!(
        none.contains("onramp experiment new DIR begins one"),
        "{none}"
    );
}

/// The first thing a paper needs: three congestion controls, two buffers, five seeds, two metrics in a plot.
#[test]
fn bars_of_several_metrics_over_a_parameter_have_a_series_each() {
    let desk = tempfile::tempdir().unwrap();
    printed(&desk, &["experiment", "new", "mine"]);
    let text = r#"title = "t"
scenario = "scenario.toml"
seeds = 1
[set]
duration = "12 ms"
"network.buffer" = ["150 kB", "300 kB"]
[[plot]]
title = "Both"
show.bars = { metrics = ["incast.rct_us.p50", "incast.rct_us.p99"], x = "network.buffer", by = "case" }
"#;
    fs::write(desk.path().join("mine/experiment.toml"), text).unwrap();
    printed(&desk, &["experiment", "run", "mine"]);
    let file = desk.path().join("results/experiments/mine/figure.json");
    let figure: Figure = read_json(&file).unwrap();
    let names: Vec<&str> = figure.plots[0]
        .series
        .iter()
        .map(|series| &*series.name)
        .collect();
    let expected = [
        "off, p50",
        "off, p99",
        "final, p50",
        "final, p99",
        "gate, p50",
        "gate, p99",
    ];
    assert_eq!(names, expected);
    assert_eq!(figure.plots[0].y.label, "incast.rct_us (us)");
}
