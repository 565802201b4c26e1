// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Manual pages, completions and docs/cli.md are those of the declared arguments; a closed pipe ends a command silently.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn onramp(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    let output = command.args(arguments).output();
    output.expect("the program starts")
}

#[test]
fn the_documentation_lists_every_command() {
    let output = onramp(&["reference", "markdown"]);
    let file = fs::read_to_string(format!("{ROOT}/docs/cli.md")).unwrap_or_default();
    assert!(
        String::from_utf8_lossy(&output.stdout) == file,
        "docs/cli.md differs from the arguments; write it again: \
         cargo run -p onramp -- reference markdown > docs/cli.md"
    );
}

/// The Helm chart, the citation and the commands of docs/operate.md name the version of Cargo.toml.
#[test]
fn what_is_deployed_has_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    let read = |file: &str| fs::read_to_string(format!("{ROOT}/{file}")).expect("it is there");
    let chart = read("deploy/helm/onramp/Chart.yaml");
    for line in [
        format!("version: {version}"),
        format!("appVersion: \"{version}\""),
    ] {
        let has_it = chart.lines().any(|of_chart| of_chart == line);
        assert!(has_it, "Chart.yaml lacks the line {line}");
    }
    let citation = read("CITATION.cff");
    let line = format!("version: {version}");
    assert!(
        citation.lines().any(|of_file| of_file == line),
        "CITATION.cff lacks {line}"
    );
    let manual = read("docs/operate.md");
    for name in ["onramp_", "REGISTRY/onramp:"] {
        let named = manual.split(name).skip(1);
        let mut others = named.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let other = others.find(|rest| !rest.starts_with(version));
        assert!(other.is_none(), "docs/operate.md has another {name}VERSION");
    }
}

fn pages(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).expect("the directory exists");
    let page = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("it is readable");
        let text = fs::read_to_string(entry.path()).expect("it is text");
        (entry.file_name().to_string_lossy().into_owned(), text)
    };
    entries.map(page).collect()
}

#[test]
fn every_command_has_its_manual_page() {
    let made = tempfile::tempdir().expect("a temporary directory");
    let output = onramp(&["reference", "man", &made.path().display().to_string()]);
    assert!(output.status.success(), "{output:?}");
    let (made, shipped) = (
        pages(made.path()),
        pages(Path::new(&format!("{ROOT}/deploy/man"))),
    );
    let differs = |name: &&String| made.get(*name) != shipped.get(*name);
    let differing: Vec<_> = made.keys().chain(shipped.keys()).filter(differs).collect();
    assert!(
        differing.is_empty(),
        "{differing:?} differ from the arguments; write them again: \
         rm deploy/man/*; cargo run -p onramp -- reference man deploy/man"
    );
    assert!(made.contains_key("onramp-agent-run.1"));
}

#[test]
fn a_directory_of_pages_that_cannot_be_written_is_named() {
    let output = onramp(&["reference", "man", "/proc/pages"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error.contains("/proc/pages; name a directory that you can write"),
        "{error}"
    );
}

/// What bash offers for the last of these words.
fn completions(words: &[&str]) -> Vec<String> {
    let script = onramp(&["reference", "completions", "bash"]).stdout;
    let script = String::from_utf8(script).expect("it is text");
    let (at, line) = (words.len() - 1, words.join(" "));
    let (last, before) = (words[at], words[at - 1]);
    let asked = format!(
        "COMP_WORDS=({line}); COMP_CWORD={at}; _onramp onramp '{last}' '{before}'; echo ${{COMPREPLY[@]}}"
    );
    let mut bash = Command::new("bash");
    let output = bash.arg("-c").arg(format!("{script}\n{asked}")).output();
    let output = output.expect("bash starts");
    assert!(output.status.success(), "{output:?}");
    let offered = String::from_utf8(output.stdout).expect("it is text");
    offered.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands() {
    assert_eq!(completions(&["onramp", "rel"]), ["reload"]);
}

#[test]
fn bash_completes_names_of_values() {
    let laws = completions(&["onramp", "agent", "run", "--law", "g"]);
    assert_eq!(laws, ["gate"]);
    let paths = completions(&["onramp", "agent", "run", "--path", "e"]);
    assert_eq!(paths, ["edge", "edt"]);
    assert_eq!(completions(&["onramp", "cc", "load", "tb"]), ["tbtcp"]);
}

#[test]
fn bash_offers_no_hidden_option() {
    for (command, hidden) in [
        (&["onramp", "sim", "run", "--"][..], "--jobs"),
        (&["onramp", "reproduce", "--"], "--again"),
        (&["onramp", "agent", "run", "--"], "--synthetic-clock"),
    ] {
        let offered = completions(command);
        assert!(offered.len() > 3, "{offered:?}");
        assert!(!offered.iter().any(|name| name == hidden), "{offered:?}");
    }
}

/// As a terminal of 40 columns shows it.
#[test]
fn help_fits_the_terminal() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    let command = command.args(["reproduce", "--help"]).env("COLUMNS", "40");
    let text = command.output().expect("the program starts").stdout;
    let text = String::from_utf8(text).expect("it is text");
    let is_long = |line: &&str| line.chars().count() > 40;
    let long: Vec<&str> = text.lines().filter(is_long).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// What `onramp doctor` looks at, and its options, are those of `onramp agent run`.
#[test]
fn doctor_takes_options_of_the_daemon() {
    let help = String::from_utf8(onramp(&["doctor", "--help"]).stdout).expect("it is text");
    for option in ["--dev", "--config", "--peers", "--line-rate", "--clock"] {
        assert!(help.contains(&format!("{option} <")), "{option}: {help}");
    }
    let refused = onramp(&["doctor", "--config", "/dev/null", "--dev", "none"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        error.contains("--dev is none, which is not a network device here"),
        "{error}"
    );
}

/// A page is longer than one write, and nobody reads the pipe.
#[test]
fn a_closed_pipe_ends_a_command_silently() {
    for arguments in [
        &["scenario", "explain"][..],
        &["agent", "explain"],
        &["reference", "completions", "zsh"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
        let child = command
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn();
        let output = child
            .expect("the program starts")
            .wait_with_output()
            .expect("it ends");
        assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
        let expected = if arguments == ["--help"] { 0 } else { 141 };
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}");
    }
}
