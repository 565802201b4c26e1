//! The configuration as shipped and documented.
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn onramp(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    command
        .current_dir(ROOT)
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_shipped_example_is_valid() {
    let output = onramp(&["agent", "validate", "deploy/onramp.toml"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "deploy/onramp.toml: valid\n");
}

#[test]
fn an_invalid_file_fails_with_all_of_its_mistakes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("onramp.toml");
    std::fs::write(&file, "devcies = []\n[law]\ngain = 7\n").expect("it is writable");
    let name = file.display().to_string();
    let output = onramp(&["agent", "validate", &name, "deploy/onramp.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(
        errors.contains(&format!(
            "{name}:1: devcies is no key; do you mean devices?\n"
        )),
        "{errors}"
    );
    assert!(
        errors.contains(&format!("{name}:3: law.gain is 7, outside (0, 1]; ")),
        "{errors}"
    );
    assert!(
        errors.ends_with("onramp: 1 of 2 files invalid\n"),
        "{errors}"
    );
}

#[test]
fn the_documentation_lists_these_keys() {
    let output = onramp(&["agent", "explain", "--markdown"]);
    let file = std::fs::read_to_string(format!("{ROOT}/docs/configuration.md")).unwrap_or_default();
    assert!(
        text(&output.stdout) == file,
        "docs/configuration.md differs from the keys; write it again: \
         cargo run -p onramp -- agent explain --markdown > docs/configuration.md"
    );
    let plain = text(&onramp(&["agent", "explain"]).stdout);
    assert!(plain.contains("  law.threshold (--threshold)\n"), "{plain}");
}

#[test]
fn the_command_line_is_told_all_of_its_mistakes_at_once() {
    let options = [
        "agent",
        "run",
        "--config",
        "/dev/null",
        "--flows",
        "1",
        "--gain",
        "2",
        "--etcd-user",
        "a",
    ];
    let output = onramp(&options);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(
        errors.contains("the configuration has 4 mistakes:\n"),
        "{errors}"
    );
    for part in [
        "--flows is 1, below min 16",
        "--gain is 2, outside (0, 1]",
        "--etcd-user is a, which needs --etcd-password-file",
    ] {
        assert!(errors.contains(part), "{errors}");
    }
    let help = text(&onramp(&["agent", "run", "--help"]).stdout);
    assert!(
        help.contains("--threshold <TIME>") && help.contains("[default: auto]"),
        "{help}"
    );
}

#[test]
fn in_a_pipe_logs_have_levels_and_times_and_no_colour() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    command.args([
        "agent",
        "run",
        "--config",
        "/dev/null",
        "--observe",
        "--path",
        "edt",
        "--dev",
        "none",
    ]);
    let errors = text(&command.output().expect("the program starts").stderr);
    let first = errors.lines().next().unwrap_or_default();
    assert!(
        first.contains(" WARN observe is true, so these keys have no effect: path"),
        "{errors}"
    );
    let year = first.split('-').next().unwrap_or_default();
    assert!(
        year.len() == 4 && year.bytes().all(|digit| digit.is_ascii_digit()),
        "{errors}"
    );
    assert!(!errors.contains('\u{1b}'), "{errors}");
}

#[test]
fn keys_are_made_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("keys").display().to_string();
    let output = onramp(&["keygen", &file]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let again = onramp(&["keygen", &file]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        text(&again.stderr).contains("keys are not overwritten"),
        "{}",
        text(&again.stderr)
    );
    assert!(onramp(&["keygen", &file, "--add"]).status.success());
    assert!(!onramp(&["keygen", &file, "--add", "--remove", "0"])
        .status
        .success());
}
