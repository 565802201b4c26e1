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

/// The Helm chart and the commands of docs/operate.md name the version of Cargo.toml.
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

#[test]
fn bash_completes_commands() {
    let script = onramp(&["reference", "completions", "bash"]).stdout;
    let script = String::from_utf8(script).expect("it is text");
    let asked =
        "COMP_WORDS=(onramp rel); COMP_CWORD=1; _onramp onramp rel onramp; echo ${COMPREPLY[@]}";
    let mut bash = Command::new("bash");
    let output = bash.arg("-c").arg(format!("{script}\n{asked}")).output();
    let output = output.expect("bash starts");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "reload\n",
        "{output:?}"
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
