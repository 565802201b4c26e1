// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The book: it builds without a broken link, its first pages do on this machine what they say, and README.md stays short.
//!
//! In the pages that docs/index.md lists below Start and Guides, each block of commands (```console) has a mark in the
//! line above it: `<!-- run -->`, `<!-- run: fails -->` or `<!-- not run: WHY -->`. The last in the head of a page holds for its blocks without
//! a mark. The commands of a page run in one new directory with the repository's scenarios. Each has to succeed (or
//! fail), and to print what the page shows, where `...` in a line stands for any text, and a line `...` for any lines.
//! `ONRAMP_WRITE=1 cargo test -p onramp --test book` writes other output into the page.
#[path = "book/pages.rs"]
mod pages;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use pages::{blocks, fits, Block, Mark};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What commands of pages find in their directory.
const FROM_REPOSITORY: [&str; 6] = [
    "scenarios",
    "workloads",
    "figures",
    "deploy",
    "examples",
    ".cache",
];
const MOST_LINES_OF_README: usize = 100;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages whose commands are run.
fn guides() -> Vec<PathBuf> {
    let docs = Path::new(ROOT).join("docs");
    let pages = pages::listed(&read(&docs.join("index.md")), &["Start", "Guides"]);
    assert!(pages.len() > 10, "{pages:?}");
    pages.iter().map(|page| docs.join(page)).collect()
}

/// A directory for the commands of a page.
fn desk() -> TempDir {
    let desk = tempfile::tempdir().expect("a temporary directory");
    let root = fs::canonicalize(ROOT).expect("the repository is there");
    for name in FROM_REPOSITORY {
        symlink(root.join(name), desk.path().join(name)).expect("the directory is new");
    }
    desk
}

/// Runs a command as a shell does. Returns whether it succeeds, and what it prints on both outputs.
fn run(command: &str, desk: &Path) -> (bool, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_onramp"));
    let programs = program.parent().expect("it is in a directory").display();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash");
    let shell = shell.args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{command}")]);
    let output = shell.current_dir(desk).env("PATH", path).output();
    let output = output.expect("bash starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text)
}

/// Runs the commands of a page. Returns those that end or print otherwise, and the page with what they print.
fn tried(page: &Path) -> (Vec<String>, String) {
    let (desk, text) = (desk(), read(page));
    let (mut wrong, mut new) = (vec![], text.clone());
    let of_page = blocks(&text);
    let to_run = of_page.iter().filter(|block| block.mark.is_run());
    let steps = to_run.flat_map(|block: &Block| block.steps.iter().map(|step| (block.mark, step)));
    for (mark, step) in steps {
        let shown = format!("{}:{}: {}", page.display(), step.line, step.command);
        let (succeeds, printed) = run(&step.command, desk.path());
        if succeeds != (mark == Mark::Run) {
            let ended = if succeeds { "succeeds" } else { "fails" };
            wrong.push(format!("{shown}{ended}:\n{printed}"));
        } else if !fits(&step.output, &printed) {
            wrong.push(format!("{shown}prints:\n{printed}"));
            new = new.replacen(&step.source, &step.printing(&printed), 1);
        }
    }
    (wrong, new)
}

#[test]
fn the_commands_of_start_and_guides_do_what_the_pages_say() {
    let mut wrong = vec![];
    for page in guides() {
        let (of_page, new) = tried(&page);
        if !of_page.is_empty() && std::env::var_os("ONRAMP_WRITE").is_some() {
            fs::write(&page, new).expect("it is writable");
        }
        wrong.extend(of_page);
    }
    assert!(
        wrong.is_empty(),
        "{}\nIf the output is right: ONRAMP_WRITE=1 cargo test -p onramp --test book",
        wrong.join("\n")
    );
}

#[test]
fn each_block_of_commands_is_run_or_says_why_not() {
    let mut unmarked = vec![];
    let mut run = 0;
    for page in guides() {
        for block in blocks(&read(&page)) {
            match block.mark {
                Mark::None => unmarked.push(format!("{}:{}", page.display(), block.line)),
                Mark::Run | Mark::Fails => run += 1,
                Mark::NotRun => {}
            }
        }
    }
    assert!(
        unmarked.is_empty(),
        "no mark (see the head of this test): {unmarked:#?}"
    );
    assert!(run >= 10, "only {run} blocks are run");
}

#[test]
fn the_readme_fits_on_100_lines() {
    let lines = read(&Path::new(ROOT).join("README.md")).lines().count();
    assert!(lines <= MOST_LINES_OF_README, "{lines} lines");
}

/// It also fails if docs/index.md lacks a page.
#[test]
fn the_book_builds_without_a_broken_link() {
    let output = Command::new(format!("{ROOT}/tools/book/build")).output();
    let output = output.expect("bash starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn the_pictures_are_those_of_their_script() {
    let new = tempfile::tempdir().expect("a temporary directory");
    let mut python = Command::new("python3");
    let python = python
        .arg(format!("{ROOT}/figures/concepts.py"))
        .arg(new.path());
    assert!(python.status().expect("python3 starts").success());
    for name in ["onramp.svg", "concepts.svg"] {
        let committed = read(&Path::new(ROOT).join("docs/img").join(name));
        assert!(
            read(&new.path().join(name)) == committed,
            "docs/img/{name} is stale; run: python3 figures/concepts.py"
        );
    }
}
