// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! deploy/wireshark/onramp.lua with tshark: it reads OR-ACKs and messages as our own code writes them, and survives
//! whatever else comes to their ports.

use std::{fs, net::SocketAddr, os::unix::process::CommandExt, path::Path, process::Command};

use onramp_clock::{
    keys::Keys,
    wire::{Body, Delays, EdgeReport, Message, Probe, Report, State, Verdict},
};
use onramp_law::abi::{onr_orack, ONR_ORACK_PORT, ONR_ORACK_VERSION};
use onramp_sync::{
    correction::{Correction, Error},
    line::Line,
};
use onramp_units::Time;

const CLOCK_PORT: u16 = 5198;
/// Uid of nobody. Wireshark runs no scripts as root.
const NOBODY: u32 = 65_534;

/// An IPv4 packet with a UDP datagram, from 10.0.0.1 to 10.0.0.2.
fn packet(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x45, 0];
    out.extend((28 + payload.len() as u16).to_be_bytes());
    out.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    for number in [port, port, 8 + payload.len() as u16, 0] {
        out.extend(number.to_be_bytes());
    }
    out.extend(payload);
    out
}

/// A capture of IP packets without link header.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![];
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101u32] {
        out.extend(word.to_le_bytes());
    }
    for packet in packets {
        for word in [0, 0, packet.len() as u32, packet.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(packet);
    }
    out
}

/// The values of the fields, a line a packet, separated by `|`.
fn fields(packets: &[Vec<u8>], names: &[&str]) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/wireshark/onramp.lua");
    let (lua, capture) = (dir.path().join("onramp.lua"), dir.path().join("in.pcap"));
    fs::copy(script, &lua).expect("the dissector");
    fs::write(&capture, pcap(packets)).expect("a file");
    let mut command = Command::new("tshark");
    if nix::unistd::geteuid().is_root() {
        for path in [dir.path(), &lua, &capture] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    command
        .env("HOME", dir.path())
        .arg("-X")
        .arg(format!("lua_script:{}", lua.display()))
        .arg("-r")
        .arg(&capture)
        .args(["-T", "fields", "-E", "separator=|"]);
    names.iter().for_each(|name| {
        command.args(["-e", name]);
    });
    let output = command
        .output()
        .expect("tshark, which tools/setup installs");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{err}");
    assert!(!err.contains("Lua"), "{err}");
    assert!(!out.contains("Lua Error"), "{out}");
    out.lines().map(str::to_owned).collect()
}

fn message(body: Body) -> Vec<u8> {
    let (from, to): (SocketAddr, SocketAddr) = (
        "10.0.0.1:5198".parse().unwrap(),
        "10.0.0.2:5198".parse().unwrap(),
    );
    let message = Message {
        seq: 77,
        term: 5,
        body,
    };
    packet(CLOCK_PORT, &message.encode(&Keys::well_known(), from, to))
}

fn delays(first: i64) -> Delays {
    Delays {
        out_min_ns: first,
        back_min_ns: first + 1,
        out_now_ns: first + 2,
        back_now_ns: first + 3,
    }
}

#[test]
fn an_orack_has_the_fields_that_the_kernel_writes() {
    let orack = onr_orack {
        version: ONR_ORACK_VERSION as u8,
        key_id: 3u16.to_be(),
        seq: 14_480u32.to_be(),
        sport: 40_000u16.to_be(),
        dport: 80u16.to_be(),
        hint: (31u16 << 11 | 7 << 8 | 2).to_be(),
        len: 1_448u16.to_be(),
        rx_fleet_hi_ns: 1u32.to_be(),
        rx_fleet_lo_ns: 5u32.to_be(),
        tag: 0x0102_0304_0506_0708u64.to_be(),
        ..Default::default()
    };
    let packets = [packet(ONR_ORACK_PORT as u16, bytemuck::bytes_of(&orack))];
    let names = [
        "version",
        "key",
        "seq",
        "srcport",
        "dstport",
        "managed",
        "use",
        "flows",
        "len",
        "rx_fleet_ns",
        "tag",
    ];
    let names: Vec<String> = names.iter().map(|n| format!("onramp_orack.{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let expected = "1|3|14480|40000|80|31|7|2|1448|4294967301|0x0102030405060708";
    assert_eq!(fields(&packets, &names), [expected]);
}

/// One of each kind but a probe.
fn packets() -> [Vec<u8>; 4] {
    let correction = Correction {
        reference: Time::from_ticks(900),
        offset_ns: -12,
        drift: 0.5,
        bend: 0.0,
        error: Error {
            sigma_ns: 250.0,
            ..Error::default()
        },
    };
    let line = Line {
        at: Time::from_ticks(1),
        about_ns: 2,
        ahead_ns: 3.0,
        drift: 4.0,
        delay_ns: 5.0,
        points: 6,
        sigma_ns: 50.0,
        drift_sigma: 2e-8,
    };
    let far = |last: u8| SocketAddr::from(([10, 0, 0, last], 5198));
    let edge = |last: u8| EdgeReport {
        far: far(last),
        far_epoch: 0,
        line,
        delays: delays(i64::from(last) * 100),
    };
    let probe = Probe {
        received_mono_ns: 123_456,
        id: 9,
        ..Probe::default()
    };
    [
        message(Body::Ack(probe)),
        message(Body::Report(Report {
            epoch: 0,
            follows: Some(correction),
            edges: vec![edge(3), edge(4)],
        })),
        message(Body::Verdict(Verdict {
            answers: 88,
            state: State::Synchronised(correction),
            wall: None,
            delays: vec![(far(7), delays(700))],
        })),
        message(Body::Notice { answers: 99 }),
    ]
}

#[test]
fn messages_have_the_fields_that_the_clock_writes() {
    let packets = packets();
    let names = [
        "kind",
        "seq",
        "term",
        "answers",
        "received_mono_ns",
        "offset_ns",
        "sigma_ns",
        "count",
        "far",
        "out_min_ns",
        "back_now_ns",
    ];
    let names: Vec<String> = names.iter().map(|n| format!("onramp_clock.{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let expected = [
        "2|77|5||123456||||||",
        "3|77|5|||-12|250|2|::ffff:10.0.0.3,::ffff:10.0.0.4|300,400|303,403",
        "4|77|5|88||-12|250|1|::ffff:10.0.0.7|700|703",
        "5|77|5|99|||||||",
    ];
    assert_eq!(fields(&packets, &names), expected);
}

#[test]
fn whatever_else_comes_is_marked_and_no_error_of_the_script() {
    let verdict = message(Body::Verdict(Verdict {
        answers: 88,
        state: State::Apart,
        wall: None,
        delays: vec![],
    }));
    let cut = packet(CLOCK_PORT, &verdict[28..28 + 40]);
    let packets = [
        packet(ONR_ORACK_PORT as u16, &[1; 7]),
        packet(ONR_ORACK_PORT as u16, &[2; 36]),
        packet(CLOCK_PORT, b"hello"),
        packet(CLOCK_PORT, &[3; 60]),
        cut,
    ];
    let marks = fields(
        &packets,
        &["onramp_orack.malformed", "onramp_clock.malformed"],
    );
    assert_eq!(marks.len(), 5);
    for (line, mark) in marks.iter().zip([0, 0, 1, 1, 1]) {
        let marked = line.split('|').nth(mark).unwrap();
        assert!(!marked.is_empty(), "{line}");
    }
}
