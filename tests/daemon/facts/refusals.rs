// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the daemon refuses: with a failure, in words that name place, value and bound, and without
//! having touched the device.
use std::{
    fs::Permissions,
    os::unix::{fs::PermissionsExt, process::CommandExt},
};

use nix::sys::signal::Signal;

use crate::{
    agent::{write_keys, Agent, PROGRAM, USUAL},
    net::{shell, Plan, Star},
};

/// Asserts that the text has all parts, on one line: the message is not spread over the log.
fn assert_says(text: &str, parts: &[&str]) {
    let flat = text.replace('\n', " ");
    for part in parts {
        assert!(flat.contains(part), "{part:?} is missing in: {text}");
    }
}

pub fn a_second_daemon_on_a_device() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let first = Agent::start(host, &[]);
    let ended = Agent::refuse(host, USUAL);
    assert_says(
        &ended.text,
        &["already runs on eth0", &first.pid().to_string()],
    );
    first.assert_harmless();
}

pub fn loopback_and_devices_that_do_not_exist() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let ended = Agent::refuse(host, &["--dev", "lo"]);
    assert_says(&ended.text, &["--dev is lo, the loopback device"]);
    let ended = Agent::refuse(host, &["--dev", "eth7"]);
    assert_says(&ended.text, &["--dev is eth7", "devices: lo, ", "eth0"]);
}

/// GRE: a tunnel with a link header that the parser does not know. 778 is ARPHRD_IPGRE.
pub fn a_device_of_a_type_that_it_does_not_know() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    shell("insmod /job/gre.ko");
    shell("insmod /job/ip_gre.ko");
    host.ns
        .run("ip link add out type gre local 10.0.0.1 remote 10.0.0.2");
    let ended = Agent::refuse(host, &["--dev", "out"]);
    assert_says(
        &ended.text,
        &[
            "--dev is out, a device of type 778",
            "it knows Ethernet, IP tunnels",
        ],
    );
}

/// It has no queue of its own. Its ports can be held.
pub fn a_team_in_place_of_its_ports() {
    shell("insmod /job/team.ko");
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    host.ns.run("ip link add team0 type team");
    let ended = Agent::refuse(host, &["--dev", "team0"]);
    assert_says(
        &ended.text,
        &["--dev is team0, a team device", "add ports to it"],
    );
    host.ns.run("ip link set eth0 down");
    host.ns.run("ip link set eth0 master team0");
    host.ns.run("ip link set team0 up");
    let ended = Agent::refuse(host, &["--dev", "team0"]);
    assert_says(
        &ended.text,
        &[
            "--dev is team0, a team device",
            "name its ports: --dev eth0",
        ],
    );
    assert!(host.ns.qdisc("team0").is_none(), "the device was touched");
    let agent = Agent::start(host, &["--dev", "eth0"]);
    assert_eq!(agent.stop(Signal::SIGTERM).code, Some(0));
}

pub fn users_without_privilege() {
    let star = Star::build(&Plan::USUAL);
    let output = star.hosts[0].ns.enter(|| {
        let mut command = std::process::Command::new(PROGRAM);
        command
            .args(["agent", "run", "--dev", "eth0"])
            .uid(65534)
            .gid(65534);
        command.output().expect("the program starts")
    });
    assert_eq!(output.status.code(), Some(1));
    assert_says(&String::from_utf8_lossy(&output.stderr), &["root", "65534"]);
}

pub fn values_out_of_bounds() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let wrong: &[(&str, &str, &[&str])] = &[
        ("--gain", "2", &["--gain is 2", "(0, 1]"]),
        ("--gain", "0", &["--gain is 0", "(0, 1]"]),
        (
            "--threshold",
            "0us",
            &["--threshold is 0", "below min 1 ns"],
        ),
        ("--threshold", "50", &["--threshold", "50", "unit"]),
        (
            "--max-pause",
            "0ms",
            &["--max-pause is 0", "below min 1 ns"],
        ),
        ("--flows", "4", &["--flows is 4", "below min 16"]),
        ("--limit", "0", &["--limit is 0", "below min 1"]),
        ("--flow-limit", "0", &["--flow-limit is 0", "below min 1"]),
        ("--gso-max", "1kB", &["--gso-max is 1", "1.448 kB"]),
        (
            "--law",
            "fast",
            &["--law is fast", "\"strawman\" or \"final\""],
        ),
        ("--peers", "10.0.0.0/40", &["--peers", "40", "above 32"]),
        ("--line-rate", "fast", &["--line-rate", "fast"]),
        ("--threshold", "often", &["--threshold", "often", "auto"]),
        ("--member", "10.0.0.1", &["--member", "--clock huygens"]),
        (
            "--metrics",
            "192.0.2.1:9464",
            &["--metrics", "192.0.2.1:9464", "a free port of this host"],
        ),
        ("--key-file", "/tmp/none", &["/tmp/none", "onramp keygen"]),
    ];
    for (option, value, says) in wrong {
        let ended = Agent::refuse(host, &[option, value]);
        println!("{option} {value}: {}", ended.text.trim());
        assert_says(&ended.text, says);
    }
    assert!(host.ns.qdisc("eth0").is_none(), "the device was touched");
}

pub fn key_files_that_are_none() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let wrong: &[(&str, &[&str])] = &[
        (
            "# fleet\n0 00112233445566778899aabbccddeeff\n9 00112233445566778899aabbccddeeff\n",
            &["keys:3", "9", "above 3"],
        ),
        ("0 0011\n", &["keys:1", "4 hex digits, not 32"]),
        (
            "\n0 zz112233445566778899aabbccddeeff\n",
            &["keys:2", "zz is not hexadecimal"],
        ),
        ("0\n", &["keys:1", "ID HEX"]),
        (
            "one 00112233445566778899aabbccddeeff\n",
            &["keys:1", "one is not a number"],
        ),
        ("# none yet\n", &["/tmp/keys has no key"]),
    ];
    for (text, says) in wrong {
        write_keys("/tmp/keys", text);
        let ended = Agent::refuse(host, &["--key-file", "/tmp/keys"]);
        println!("{}", ended.text.trim());
        assert_says(&ended.text, says);
    }
    // Of another user, as when somebody runs the daemon by sudo.
    write_keys("/tmp/keys", "0 00112233445566778899aabbccddeeff\n");
    std::os::unix::fs::chown("/tmp/keys", Some(65534), None).expect("root may");
    let ended = Agent::refuse(host, &["--key-file", "/tmp/keys"]);
    assert_says(&ended.text, &["/tmp/keys", "run: chown root /tmp/keys"]);
    // The daemon is root without the capability to read whatever it likes.
    std::os::unix::fs::chown("/tmp/keys", Some(0), None).expect("root may");
    std::fs::set_permissions("/tmp/keys", Permissions::from_mode(0o000)).expect("it is ours");
    let ended = Agent::refuse(host, &["--key-file", "/tmp/keys"]);
    std::fs::remove_file("/tmp/keys").expect("it is there");
    println!("{}", ended.text.trim());
    assert_says(&ended.text, &["cannot read", "&& chmod 600 /tmp/keys"]);
    assert!(host.ns.qdisc("eth0").is_none(), "the device was touched");
}
