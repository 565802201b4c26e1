// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The configuration as shipped and documented.
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

#[path = "../../../tests/machine.rs"]
mod machine;

use machine::{addresses, until};

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

/// A daemon that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a clock has so many members.
fn wait_for_members(socket: &str, wanted: u64) {
    until(&format!("the clock has {wanted} members"), || {
        let output = onramp(&["clock", "status", "--socket", socket, "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        status["members"] == wanted
    });
}

/// What a clock answers to `onramp reload`. It does not answer who needs a second for a request, as a process may on a
/// busy machine.
fn reload(socket: &str) -> Output {
    let mut output = onramp(&["reload", "--socket", socket]);
    until("the clock answers", || {
        let is_answered = !output.stdout.is_empty();
        if !is_answered {
            output = onramp(&["reload", "--socket", socket]);
        }
        is_answered
    });
    output
}

#[test]
fn a_clock_takes_another_list_of_members_and_keeps_its_own_if_that_is_wrong() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (file, socket, list) = (path("onramp.toml"), path("socket"), path("members"));
    let [own, second, third] = addresses();
    let write = |path: &str, text: &str| std::fs::write(path, text).expect("it is writable");
    write(&list, &format!("{own}\n{second}\n"));
    write(
        &file,
        &format!("socket = {socket:?}\n[fleet]\nmembers_file = {list:?}\nown = \"{own}\"\n"),
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    command
        .args(["clock", "run", "--config", &file])
        .stderr(Stdio::null());
    let clock = Running(command.spawn().expect("the program starts"));
    wait_for_members(&socket, 2);

    write(&list, &format!("{own}\n{second}\n{third}\n"));
    let output = reload(&socket);
    assert!(output.status.success(), "{}", text(&output.stderr));
    wait_for_members(&socket, 3);

    write(&list, &format!("{second}\n{third}\n"));
    let output = reload(&socket);
    assert_eq!(output.status.code(), Some(1));
    let answer = text(&output.stdout);
    assert!(
        answer.contains("refuses") && answer.contains(&own.ip().to_string()),
        "{answer}"
    );
    wait_for_members(&socket, 3);

    write(&list, &format!("{own}\n{second}\n"));
    kill(Pid::from_raw(clock.0.id() as i32), Signal::SIGHUP).expect("the clock runs");
    wait_for_members(&socket, 2);
}
