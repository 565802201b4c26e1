// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp report` and figures/draw.py as a user meets them: directories in, a page or pictures out,
//! and what they say when something is wrong.

#[path = "../../report/tests/fixture.rs"]
mod fixture;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use onramp_results::figure::SCHEMA;
use onramp_results::write_json;
use serde_json::json;
use tempfile::TempDir;

const SCENARIO: &str = "title = \"a <small> incast\"\nduration = \"4 ms\"\n[network]\n\
    topology = { kind = \"star\", hosts = 5 }\n\
    link = { rate = \"10 Gbit/s\", delay = \"1 us\" }\n\
    [[traffic]]\nkind = \"incast\"\nfanout = 4\nsize = \"8 kB\"\nload = \"30 %\"\n\
    [sweep]\n\"onramp.threshold\" = [\"off\", \"40 us\"]\n";

/// A directory to work in.
struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// A figure in a directory of its name.
    fn figure(&self, id: &str) {
        std::fs::create_dir_all(self.path(id)).unwrap();
        write_json(&self.path(id).join("figure.json"), &fixture::figure(id)).unwrap();
    }

    fn onramp(&self, arguments: &[&str]) -> Output {
        run(env!("CARGO_BIN_EXE_onramp").as_ref(), arguments, self)
    }

    /// What `onramp report` says when it fails, which leaves an older report as it was.
    fn refusal(&self, directory: &str) -> String {
        self.write("report.html", "the older report");
        let output = self.onramp(&["report", directory]);
        assert!(!output.status.success());
        assert_eq!(self.read("report.html"), "the older report");
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of its files, in order.
    fn names(&self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(directory)).unwrap();
        let name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string();
        let mut names: Vec<String> = entries.map(|entry| name(entry).unwrap()).collect();
        names.sort();
        names
    }
}

fn run(program: &Path, arguments: &[&str], desk: &Desk) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(desk.0.path());
    command
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}: make setup", program.display()))
}

fn succeeded(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[test]
fn figures_below_a_directory_are_in_the_order_of_their_numbers() {
    let desk = Desk::new();
    for id in ["all/quick/f10", "all/quick/f9", "all/quick/table1"] {
        desk.figure(id);
    }
    succeeded(&desk.onramp(&["report", "all", "--out", "page.html"]));
    let page = desk.read("page.html");
    let at = |id: &str| page.find(&format!("id=\"figure-all-quick-{id}\"")).unwrap();
    assert!(at("f9") < at("f10") && at("f10") < at("table1"));
    assert!(page.ends_with("</html>"));
    let before = page;
    succeeded(&desk.onramp(&["report", "all", "--out", "page.html"]));
    assert_eq!(desk.read("page.html"), before);
    assert_eq!(desk.names(""), ["all", "page.html"]);
}

#[test]
fn a_simulation_is_reported() {
    let desk = Desk::new();
    desk.write("small.toml", SCENARIO);
    succeeded(&desk.onramp(&["sim", "run", "small.toml", "--out", "results"]));
    succeeded(&desk.onramp(&["report", "results"]));
    let page = desk.read("report.html");
    for part in [
        "a &lt;small&gt; incast",
        "the simulator",
        "Completion times of requests",
        "One-way delay to host0 over time",
        "Queue of switch0-host0 over time",
        "incast.rct_us.p99",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Cut short, as by a full disk or a copy under way.
    let series = std::fs::read(desk.path("results/series.parquet")).unwrap();
    std::fs::write(
        desk.path("results/series.parquet"),
        &series[..series.len() / 2],
    )
    .unwrap();
    assert!(desk.refusal("results").contains("results/series.parquet"));
}

#[test]
fn delays_of_a_fleet_are_reported() {
    let desk = Desk::new();
    let way =
        |from: &str, to: &str| json!({"from": from, "to": to, "min_ns": 21_000, "now_ns": 25_500});
    let status = json!({
        "version": "0.1.0", "pid": 1, "own": "10.0.0.1:1", "coordinator": "10.0.0.1:1", "term": 0, "members": 2,
        "fleet": null, "other_versions": [],
        "source": "software", "authenticated": true, "state": "synchronised", "clock": null, "edges": [],
        "ways": [way("10.0.0.1:1", "10.0.0.2:1"), way("10.0.0.2:1", "10.0.0.1:1")],
        "cost": {"wall_ns": 1, "cpu_ns": 1, "wire_bytes": 1}, "counters": [],
    });
    desk.write("fleet.json", &status.to_string());
    succeeded(&desk.onramp(&["report", "fleet.json"]));
    let page = desk.read("report.html");
    assert!(page.contains("One-way delays between 2 hosts"));
    assert!(page.contains("25.5"));
}

#[test]
fn what_cannot_be_read_is_named() {
    let desk = Desk::new();
    let usage = String::from_utf8(desk.onramp(&["report"]).stderr).unwrap();
    assert!(usage.contains("<DIR>"), "{usage}");
    assert!(desk
        .refusal("nowhere")
        .contains("cannot read nowhere: No such file"));

    desk.write("empty/notes.txt", "");
    assert!(desk
        .refusal("empty")
        .contains("empty and the directories below it have no results, expected one of figure.json (onramp reproduce)"));
    desk.write("killed/runs/run-0.json", "{}");
    assert!(desk
        .refusal("killed")
        .contains("no summary.json, because the command was killed"));

    desk.write("old/figure.json", "{\"schema\": 1}");
    let old = desk.refusal("old");
    assert!(
        old.contains("old/figure.json: it is of an older onramp: its schema is 1"),
        "{old}"
    );
    desk.write("new/summary.json", "{\"schema\": 99}");
    assert!(desk
        .refusal("new")
        .contains("of a newer onramp: its schema is 99"));

    let broken = format!("{{\"schema\": {SCHEMA},\n \"id\":");
    desk.write("broken/figure.json", &broken);
    let broken = desk.refusal("broken");
    assert!(
        broken.contains("broken/figure.json: EOF while parsing") && broken.contains("line 2"),
        "{broken}"
    );

    desk.write("other.json", "{\"some\": 1}");
    let other = desk.refusal("other.json");
    assert!(
        other.contains("not a file of results, expected one of figure.json (onramp reproduce)"),
        "{other}"
    );

    let mut figure = fixture::figure("uneven");
    figure.plots[0].series[0].y.pop();
    std::fs::create_dir(desk.path("uneven")).unwrap();
    write_json(&desk.path("uneven/figure.json"), &figure).unwrap();
    let uneven = desk.refusal("uneven");
    assert!(
        uneven.contains("series \"off\": x has 12 values, but y has 11"),
        "{uneven}"
    );
}

#[test]
fn a_report_that_cannot_be_written_leaves_the_older_one() {
    let desk = Desk::new();
    desk.figure("f9");
    let output = desk.onramp(&["report", "f9", "--out", "f9/figure.json/report.html"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("f9/figure.json/report.html: Not a directory"),
        "{text}"
    );

    // As on a full disk: no file may grow beyond 100 kB.
    desk.write("report.html", "the older report");
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" report f9";
    let output = run(
        "bash".as_ref(),
        &["-c", script, env!("CARGO_BIN_EXE_onramp")],
        &desk,
    );
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("report.html: File too large"), "{text}");
    assert_eq!(desk.read("report.html"), "the older report");
    assert_eq!(desk.names(""), ["f9", "report.html"]);
}

/// figures/draw.py in the Python that `make setup` makes.
fn draw(desk: &Desk, arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = root.join("figures/draw.py");
    let all = [&[script.to_str().unwrap()], arguments].concat();
    run(&root.join(".cache/venv/bin/python"), &all, desk)
}

#[test]
fn pictures_of_every_kind_are_drawn() {
    let desk = Desk::new();
    desk.figure("f9");
    succeeded(&draw(&desk, &["f9", "--out", "one"]));
    succeeded(&draw(&desk, &["f9", "--out", "two"]));
    let names = desk.names("one");
    assert_eq!(
        names.len(),
        2 * fixture::figure("f9").plots.len(),
        "{names:?}"
    );
    for name in names {
        let read = |directory: &str| std::fs::read(desk.path(directory).join(&name)).unwrap();
        assert!(read("one").len() > 5_000, "{name}");
        assert_eq!(read("one"), read("two"), "{name}");
    }
}

#[test]
fn pictures_that_cannot_be_drawn_are_named() {
    let desk = Desk::new();
    let refusal = |directory: &str| {
        let output = draw(&desk, &[directory]);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let none = refusal("nowhere");
    assert!(
        none.contains("nowhere/figure.json: No such file") && none.contains("onramp reproduce"),
        "{none}"
    );
    desk.write("old/figure.json", "{\"schema\": 1}");
    let hint = format!("its schema is 1, this draws {SCHEMA}; reproduce it again");
    assert!(refusal("old").contains(&hint));
    desk.write("broken/figure.json", "{");
    assert!(refusal("broken").contains("broken/figure.json is not a figure"));
    let odd = format!(
        "{{\"schema\": {SCHEMA}, \"id\": \"f\", \"partial\": false, \"plots\": [{{\"kind\": \"pie\"}}]}}"
    );
    desk.write("odd/figure.json", &odd);
    assert!(refusal("odd").contains("odd/figure.json is not a figure as this draws it"));

    // A Python without matplotlib.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../figures/draw.py");
    let arguments = ["-I", "-S", script.to_str().unwrap(), "old"];
    let output = run("/usr/bin/python3".as_ref(), &arguments, &desk);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("make setup"), "{text}");
}
