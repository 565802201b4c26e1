// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Mistakes of those who set a daemon up, and the messages that name the fix. Facts of tests/daemon (`refusals::`) have
//! those that need a device.
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use tempfile::TempDir;

#[path = "../../../tests/machine.rs"]
mod machine;

use machine::{addresses, until};

fn onramp(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    command
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file with this text and mode.
fn file(directory: &TempDir, name: &str, text: &str, mode: u32) -> String {
    let path = directory.path().join(name);
    fs::write(&path, text).expect("it is writable");
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
    path.display().to_string()
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A fleet of this host and one that does not answer.
struct Pair {
    own: String,
    members: String,
}

impl Pair {
    fn new() -> Pair {
        let [own, other] = addresses().map(|address| address.to_string());
        let members = format!("{own},{other}");
        Pair { own, members }
    }

    fn arguments(&self) -> [&str; 8] {
        let (own, members) = (&self.own, &self.members);
        [
            "clock",
            "run",
            "--config",
            "/dev/null",
            "--member",
            members,
            "--own",
            own,
        ]
    }

    /// What a clock says that does not start.
    fn refused(&self, options: &[&str]) -> String {
        let output = onramp(&[&self.arguments()[..], options].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        text(&output.stderr)
    }
}

fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing in: {said}");
    }
}

#[test]
fn ten_mistakes_in_a_file_are_told_at_once_with_their_lines() {
    let wrong = "\
devcies = [\"eth0\"]
socket = 7
[law]
gain = 2
threshold = \"50\"
max_pause = \"0 ms\"
name = \"fast\"
[limits]
flows = 4
[peers]
prefixes = [\"10.0.0.0/40\"]
[clock]
source = \"sundial\"
[nonsense]
a = 1
";
    let directory = directory();
    let name = file(&directory, "onramp.toml", wrong, 0o644);
    let output = onramp(&["agent", "validate", &name]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    println!("{said}");
    for line in [1, 2, 4, 5, 6, 7, 9, 11, 13, 14] {
        assert_says(&said, &[&format!("{name}:{line}: ")]);
    }
    assert_says(&said, &["has 10 mistakes:", "do you mean devices?"]);
}

#[test]
fn a_key_that_others_can_read_is_refused_with_the_command_that_mends_it() {
    let directory = directory();
    let keys = file(
        &directory,
        "keys",
        "0 00112233445566778899aabbccddeeff\n",
        0o644,
    );
    let said = Pair::new().refused(&["--key-file", &keys]);
    let fix = format!("run: chmod 600 {keys}");
    assert_says(&said, &["has mode 644", &fix]);
}

#[test]
fn a_port_in_use_is_named() {
    let pair = Pair::new();
    let _taken = UdpSocket::bind(&pair.own).expect("it is free");
    let directory = directory();
    let socket = directory.path().join("socket").display().to_string();
    let said = pair.refused(&["--socket", &socket]);
    let bind = format!("cannot bind UDP {}", pair.own);
    assert_says(&said, &[&bind, "with a free port"]);
}

/// /proc takes no new files, whoever asks.
#[test]
fn a_file_system_without_write_access_is_named_with_the_option() {
    let said = Pair::new().refused(&["--socket", "/proc/onramp/socket"]);
    assert_says(&said, &["cannot create /proc/onramp for --socket"]);
    let said = Pair::new().refused(&["--socket", "/proc/socket"]);
    assert_says(
        &said,
        &["cannot listen on /proc/socket; use another path with --socket"],
    );
    let output = onramp(&["keygen", "/proc/onramp-keys"]);
    let said = text(&output.stderr);
    assert_says(
        &said,
        &[
            "cannot write /proc/onramp-keys",
            "a directory that exists and is writable",
        ],
    );
}

/// A daemon that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The answer to a request for metrics; none while nobody listens.
fn scrape(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn a_reload_does_not_disturb_those_who_read_metrics() {
    let (directory, pair) = (directory(), Pair::new());
    let keys = file(
        &directory,
        "keys",
        "0 00112233445566778899aabbccddeeff\n",
        0o600,
    );
    let socket = directory.path().join("socket").display().to_string();
    let metrics: SocketAddr = pair.own.parse().expect("an address"); // TCP, where the clock has UDP
    let options = [
        "--key-file",
        &keys,
        "--socket",
        &socket,
        "--metrics",
        &pair.own,
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_onramp"));
    command
        .args(pair.arguments())
        .args(options)
        .stderr(Stdio::null());
    let _clock = Running(command.spawn().expect("the program starts"));
    until("it serves metrics", || scrape(metrics).is_some());
    thread::scope(|scope| {
        let scraper = scope.spawn(|| {
            for _ in 0..50 {
                let answer = scrape(metrics).expect("it is answered");
                let is_whole =
                    answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200");
                assert!(is_whole && answer.contains("onramp_"), "{answer}");
            }
        });
        // A daemon does not answer who needs a second for a request, as a process may on a busy machine.
        let is_reloaded = || onramp(&["reload", "--socket", &socket]).status.success();
        until("it reloads", is_reloaded);
        while !scraper.is_finished() {
            is_reloaded();
        }
    });
}
