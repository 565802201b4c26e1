// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Captures, read back: by the reader of the crate that wrote them, by hand, and by tshark.

#[path = "harness/captures.rs"]
mod captures;

use captures::Captures;
use onramp_results::{RunResult, Tables};
use onramp_scenario::Scenario;
use onramp_sim::run::{self, Watch};
use onramp_sim::Output;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;

/// Four answers at once to a switch that has little memory.
const INCAST: &str = r#"title = "t"
duration = "200 us"
[network]
topology = { kind = "star", hosts = 5 }
link = { rate = "100 Gbit/s", delay = "1 us" }
buffer = "300 kB"
[host]
kind = "nic"
cc = "dcqcn"
[[traffic]]
kind = "incast"
fanout = 4
size = "100 kB"
requests = 1
interval = "10 us"
"#;

struct Frame {
    at_ns: u64,
    original_bytes: u64,
    data: Vec<u8>,
}

/// The bytes of the captures of `ports`, and the results of the run.
fn simulate(cc: &str, ports: &[&str]) -> (Vec<Vec<u8>>, (RunResult, Tables)) {
    simulate_with(&[("host.cc", cc), ("onramp.law", "off")], ports)
}

fn simulate_with(set: &[(&str, &str)], ports: &[&str]) -> (Vec<Vec<u8>>, (RunResult, Tables)) {
    let scenario = Scenario::parse_with(INCAST, "t", set).unwrap();
    let captures = Captures::of(ports);
    let watch = Watch {
        captures: captures.outputs(),
        series: vec![],
    };
    let result = run::run(&scenario.runs()[0], 0, watch, &mut |_| true);
    (captures.bytes(), result.unwrap().into_tables())
}

fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut reader = PcapNgReader::new(bytes).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            frames.push(Frame {
                at_ns: packet.timestamp.as_nanos() as u64,
                original_bytes: u64::from(packet.original_len),
                data: packet.data.to_vec(),
            });
        }
    }
    frames
}

fn captured(cc: &str, port: &str) -> Vec<Frame> {
    frames(&simulate(cc, &[port]).0[0])
}

/// RFC 1071.
fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let word = |two: &[u8]| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

fn is_pfc(frame: &Frame) -> bool {
    frame.data[12..14] == [0x88, 0x08]
}

fn is_data(frame: &Frame) -> bool {
    !is_pfc(frame) && frame.data[42] & 7 == 0
}

#[test]
fn every_header_has_its_lengths_and_checksums() {
    for cc in ["dcqcn", "timely", "hpcc"] {
        for port in ["host1", "switch0-host1"] {
            let frames = captured(cc, port);
            assert!(frames.len() >= 100, "{cc} {port}: {}", frames.len());
            for frame in frames.iter().filter(|frame| !is_pfc(frame)) {
                let (ip, udp) = (&frame.data[14..34], &frame.data[34..]);
                assert_eq!(frame.data.len() as u64, frame.original_bytes.min(128));
                assert_eq!(number(&ip[2..4]), frame.original_bytes - 14);
                assert_eq!(number(&udp[4..6]), frame.original_bytes - 34);
                assert_eq!(ones_complement_sum(ip), 0xffff);
                // RFC 768; what the capture cut off is zeros.
                let pseudo_header = [&ip[12..], &[0, 17], &udp[4..6]].concat();
                assert_eq!(ones_complement_sum(&[&pseudo_header, udp].concat()), 0xffff);
            }
        }
    }
}

#[test]
fn the_port_to_the_receiver_sends_every_byte_once() {
    let (bytes, (result, _)) = simulate("dcqcn", &["switch0-host0"]);
    assert_eq!(result.metrics["drops"], 0);
    let frames = frames(&bytes[0]);
    let payload = |source: u8| -> u64 {
        let of_host = frames.iter().filter(|frame| frame.data[29] == source);
        of_host.map(|frame| frame.original_bytes - 48).sum()
    };
    for host in 1..=4 {
        assert_eq!(payload(1 + host), 100_000, "10.0.0.{}", 1 + host);
    }
    let marks = frames.iter().filter(|frame| frame.data[15] & 3 == 3);
    assert_eq!(
        marks.count() as u64,
        result.metrics["marks"].as_u64().unwrap()
    );
}

#[test]
fn frames_leave_one_after_the_other() {
    let frames = captured("dcqcn", "switch0-host0");
    for two in frames.windows(2) {
        // 80 ps a byte; times are whole ns.
        let wire_ns = two[0].original_bytes * 80 / 1000;
        assert!(two[1].at_ns >= two[0].at_ns + wire_ns);
    }
}

#[test]
fn a_pause_is_a_priority_flow_control_frame() {
    let (bytes, (result, _)) = simulate("dcqcn", &["switch0-host1"]);
    let frames = frames(&bytes[0]);
    let pfc: Vec<&Frame> = frames.iter().filter(|frame| is_pfc(frame)).collect();
    assert!(result.metrics["pfc_pauses"].as_u64().unwrap() > 0 && !pfc.is_empty());
    for (n, frame) in pfc.iter().enumerate() {
        assert_eq!(frame.data[..6], [0x01, 0x80, 0xc2, 0, 0, 1]);
        // Opcode 0x0101; class 3 enabled; its time: pause, resume, pause, ...
        assert_eq!(frame.data[14..18], [1, 1, 0, 8]);
        let time = if n % 2 == 0 { [0xff, 0xff] } else { [0, 0] };
        assert_eq!(frame.data[24..26], time);
        assert_eq!(frame.original_bytes, 43);
    }
}

#[test]
fn acknowledgements_count_up_to_the_size() {
    let acks: Vec<Frame> = captured("hpcc", "host0");
    assert!(acks
        .iter()
        .all(|frame| !is_data(frame) && frame.original_bytes == 88));
    assert!(
        acks.iter().all(|frame| frame.data[42] == 1 | 1 << 4),
        "one hop of telemetry"
    );
    assert_eq!(
        acks.iter().map(|frame| number(&frame.data[43..48])).max(),
        Some(100_000)
    );
}

#[test]
fn a_kernel_hosts_packets_are_tcp() {
    let set = [
        ("host.kind", "kernel"),
        ("host.cc", "cubic"),
        ("network.sharing", "per_port"),
    ];
    let (bytes, _) = simulate_with(&set, &["host1", "host0"]);
    let (data, acks) = (frames(&bytes[0]), frames(&bytes[1]));
    for frame in data.iter().chain(&acks) {
        let ip = &frame.data[14..34];
        let tcp = &frame.data[34..];
        let is_or_ack = ip[9] == 17;
        assert!(is_or_ack || ip[9] == 6);
        assert_eq!(number(&ip[2..4]), frame.original_bytes - 14);
        let tcp_bytes = frame.original_bytes - 34;
        let pseudo_header = [&ip[12..], &[0, ip[9]], &tcp_bytes.to_be_bytes()[6..]].concat();
        assert_eq!(ones_complement_sum(&[&pseudo_header, tcp].concat()), 0xffff);
    }
    assert_eq!(number(&data[1].data[38..42]), 1448, "second packet");
    assert_eq!(data[1].original_bytes, 1514);
    let from_host0 = acks.iter().filter(|frame| frame.data[23] == 6);
    assert_eq!(
        from_host0.map(|frame| number(&frame.data[42..46])).max(),
        Some(100_000)
    );
}

/// Flows that use a connection again begin where a full packet would have ended.
#[test]
fn answers_on_a_used_connection_fit_its_data() {
    let set = [
        ("duration", "5 ms"),
        ("traffic.0.requests", "3"),
        ("traffic.0.interval", "500 us"),
        ("host.kind", "kernel"),
        ("host.cc", "cubic"),
        ("network.sharing", "per_port"),
    ];
    let (bytes, _) = simulate_with(&set, &["host1", "host0"]);
    let (data, answers) = (frames(&bytes[0]), frames(&bytes[1]));
    let host1 = data[0].data[26..30].to_vec();
    let end = |frame: &Frame| number(&frame.data[38..42]) + frame.original_bytes - 66;
    let ends: BTreeSet<u64> = data.iter().map(end).collect();
    let to_host1 = answers.iter().filter(|frame| frame.data[30..34] == host1);
    let (acks, or_acks): (Vec<&Frame>, Vec<&Frame>) = to_host1.partition(|f| f.data[23] == 6);
    let acks: BTreeSet<u64> = acks.iter().map(|f| number(&f.data[42..46])).collect();
    assert!(acks.is_subset(&ends), "{acks:?}");
    assert!(or_acks.len() >= 3 * 6);
    for frame in or_acks {
        let (byte, len) = (number(&frame.data[46..50]), number(&frame.data[58..62]));
        let holds = |data: &&Frame| number(&data.data[38..42]) <= byte && byte < end(data);
        let of = data.iter().find(holds).expect("the byte was sent");
        assert_eq!(len, of.original_bytes - 66);
    }
    // Twice 70 packets, the last of which has 88 B, and the third flow.
    assert_eq!(acks.last(), Some(&(2 * 70 * 1448 + 100_000)));
}

/// Layout: struct onr_orack of bpf/abi.h.
#[test]
fn an_or_ack_is_the_data_paths() {
    let set = [("host.cc", "timely"), ("onramp.law", "final")];
    let (bytes, _) = simulate_with(&set, &["host0"]);
    let frames = frames(&bytes[0]);
    let to_port = |frame: &&Frame| number(&frame.data[36..38]) == 5199;
    let or_acks: Vec<&Frame> = frames.iter().filter(to_port).collect();
    assert_eq!(or_acks.len(), 400, "one a packet");
    for frame in or_acks {
        let payload = &frame.data[42..];
        assert_eq!((frame.original_bytes, payload[0]), (78, 1));
        assert_eq!(number(&payload[4..8]) % 1000, 0, "first byte of a packet");
        assert_eq!(number(&payload[14..16]), 100, "port of the data");
        assert_eq!(number(&payload[16..20]), 1000);
        let received_ns = number(&payload[20..28]);
        assert!(received_ns > 2000 && received_ns <= frame.at_ns);
    }
}

#[test]
fn capturing_changes_neither_results_nor_bytes() {
    let (first, watched) = simulate("dcqcn", &["host0", "switch0-host2"]);
    let (again, _) = simulate("dcqcn", &["host0", "switch0-host2"]);
    let (_, unwatched) = simulate("dcqcn", &[]);
    assert_eq!(first, again);
    assert_eq!(watched, unwatched);
}

struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_that_cannot_be_written_fails_the_run() {
    let scenario = Scenario::parse(INCAST, "t").unwrap();
    let out: Output = Box::new(Full);
    let watch = Watch {
        captures: vec![("host1".to_owned(), out)],
        series: vec![],
    };
    let report = run::run(&scenario.runs()[0], 0, watch, &mut |_| true);
    assert_eq!(
        report.err().unwrap().to_string(),
        "cannot write the packets of port host1: no storage space"
    );
}

/// Wireshark's own dissectors agree: checksums, ECN, PFC.
#[test]
fn tshark_finds_nothing_wrong() {
    let (bytes, (result, _)) = simulate("dcqcn", &["switch0-host0", "switch0-host1"]);
    let count = |bytes: &[u8], filter: &str| {
        let path = std::env::temp_dir().join(format!("onramp-{}.pcapng", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let output = Command::new("tshark")
            .args([
                "-o",
                "ip.check_checksum:TRUE",
                "-o",
                "udp.check_checksum:TRUE",
            ])
            .args(["-Y", filter, "-r"])
            .arg(&path)
            .output()
            .expect("tshark, which tools/setup installs");
        std::fs::remove_file(&path).unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().lines().count() as u64
    };
    for capture in &bytes {
        assert_eq!(count(capture, "frame"), frames(capture).len() as u64);
        assert_eq!(
            count(
                capture,
                "ip.checksum.status == Bad || udp.checksum.status == Bad || _ws.malformed"
            ),
            0
        );
    }
    let marks = result.metrics["marks"].as_u64().unwrap();
    assert_eq!(count(&bytes[0], "ip.dsfield.ecn == 3"), marks);
    let pfc = frames(&bytes[1])
        .iter()
        .filter(|frame| is_pfc(frame))
        .count();
    assert_eq!(count(&bytes[1], "macc.opcode == 0x0101"), pfc as u64);
}
