// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use etherparse::PacketBuilder;
use onramp_trace::ReplayFlow;
use onramp_units::Span;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::DataLink;
use proptest::prelude::*;
use std::time::Duration;

const HEAD: &str = "#separator \\x09\n#unset_field\t-\n#path\tconn\n\
    #fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tservice\tduration\torig_bytes\tresp_bytes\n\
    #types\ttime\tstring\taddr\tport\taddr\tport\tenum\tstring\tinterval\tcount\tcount\n";

fn read(files: &[&[u8]]) -> Result<Log, LogError> {
    let mut logs = Logs::default();
    for file in files {
        logs.add("a.log", *file)?;
    }
    logs.finish(false)
}

/// Sender, receiver, start in us after the first, bytes.
fn short(log: &Log) -> Vec<(String, String, i64, u64)> {
    let host = |number: u32| log.flows.hosts[number as usize].clone();
    let short = |flow: &ReplayFlow| {
        let start_us = flow.start.as_ns() / 1000;
        (host(flow.src), host(flow.dst), start_us, flow.size_bytes)
    };
    log.flows.flows.iter().map(short).collect()
}

fn flow(from: &str, to: &str, start_us: i64, bytes: u64) -> (String, String, i64, u64) {
    (from.to_owned(), to.to_owned(), start_us, bytes)
}

fn error(file: &str) -> String {
    read(&[file.as_bytes()]).unwrap_err().to_string()
}

#[test]
fn a_connection_of_zeek_is_a_flow_each_way() {
    let line =
        "1700000000.000250\tC1\t10.0.0.1\t4000\t10.0.0.2\t80\ttcp\thttp\t0.020000\t100\t64000\n\
        1700000001.0\tC2\t10.0.0.1\t53\t10.0.0.3\t53\tudp\tdns\t-\t-\t-\n\
        1700000002.0\tC3\t10.0.0.1\t4001\t10.0.0.2\t80\ttcp\t-\t-\t-\t-\n";
    let log = read(&[format!("{HEAD}{line}#close\t2023\n").as_bytes()]).unwrap();
    let expected = [
        flow("10.0.0.1", "10.0.0.2", 0, 100),
        flow("10.0.0.2", "10.0.0.1", 0, 64_000),
    ];
    assert_eq!(short(&log), expected);
    let json = r#"{"ts":1700000000.000250,"id.orig_h":"10.0.0.1","id.orig_p":4000,"id.resp_h":"10.0.0.2","id.resp_p":80,"proto":"tcp","duration":0.02,"orig_bytes":100,"resp_bytes":64000}"#;
    assert_eq!(short(&read(&[json.as_bytes()]).unwrap()), expected);
    assert!(
        log.remarks[0].contains("not its bursts"),
        "{:?}",
        log.remarks
    );
    assert_eq!(
        log.remarks[2..],
        [
            "left out: 1 record of other protocols than TCP",
            "left out: 1 connection without payload"
        ]
    );
}

#[test]
fn a_long_connection_is_even_pieces() {
    let line = "5.0\tC1\t10.0.0.1\t4000\t10.0.0.2\t80\ttcp\t-\t0.35\t100000\t0\n";
    let log = read(&[format!("{HEAD}{line}").as_bytes()]).unwrap();
    let starts: Vec<i64> = log
        .flows
        .flows
        .iter()
        .map(|flow| flow.start.as_ns() / 1_000_000)
        .collect();
    assert_eq!(starts, [0, 87, 175, 262]);
    assert!(log.flows.flows.iter().all(|flow| flow.size_bytes == 25_000));
}

#[test]
fn netflow_is_read_by_the_names_of_its_exporter() {
    let nfdump = "ts,te,td,sa,da,sp,dp,pr,flg,ipkt,ibyt,opkt,obyt\n\
        2026-11-30 08:00:00.001,2026-11-30 08:00:00.021,0.020,10.0.0.1,10.0.0.2,4000,80,TCP,...AP.SF,10,15000,0,0\n\
        2026-11-30 08:00:00.002,2026-11-30 08:00:00.002,0.000,10.0.0.1,10.0.0.2,53,53,UDP,......,1,80,0,0\n\
        Summary\nflows,bytes\n2,15080\n";
    let at_us = 0;
    let expected = [flow("10.0.0.1", "10.0.0.2", at_us, 15_000 - 520)];
    assert_eq!(short(&read(&[nfdump.as_bytes()]).unwrap()), expected);
    let ipfix = "flowStartMilliseconds,flowEndMilliseconds,sourceIPv4Address,destinationIPv4Address,sourceTransportPort,\
        destinationTransportPort,protocolIdentifier,octetDeltaCount\n1796025600001,1796025600021,10.0.0.1,10.0.0.2,4000,80,6,15000\n";
    let expected = [flow("10.0.0.1", "10.0.0.2", at_us, 15_000)];
    assert_eq!(short(&read(&[ipfix.as_bytes()]).unwrap()), expected);
}

#[test]
fn silk_and_dual_stacks_are_read() {
    let silk = "sIP,dIP,sPort,dPort,pro,packets,bytes,flags,sTime,dur,eTime,sen\n\
        10.0.0.1,10.0.0.2,4000,80,6,10,15000,FSPA,2026/11/30T08:00:00.001,0.020,2026/11/30T08:00:00.021,S0\n";
    let expected = [flow("10.0.0.1", "10.0.0.2", 0, 15_000 - 520)];
    assert_eq!(short(&read(&[silk.as_bytes()]).unwrap()), expected);
    let head = "flowStartMilliseconds,flowEndMilliseconds,sourceIPv4Address,sourceIPv6Address,destinationIPv4Address,\
        destinationIPv6Address,sourceTransportPort,destinationTransportPort,protocolIdentifier,octetDeltaCount\n";
    let line = "1796025600001,1796025600021,,fd00::1,,fd00::2,4000,80,6,15000\n";
    let expected = [flow("fd00::1", "fd00::2", 0, 15_000)];
    assert_eq!(
        short(&read(&[format!("{head}{line}").as_bytes()]).unwrap()),
        expected
    );
    let line = "1796025600001,1796025600021,,fd00::1,,,4000,80,6,15000\n";
    let error = error(&format!("{head}{line}"));
    assert!(
        error.contains("line 2: destinationIPv4Address is \"\", expected an address"),
        "{error}"
    );
}

#[test]
fn json_has_exponents_and_nulls() {
    let line = |duration: &str, bytes: &str| {
        let ends = r#""id.orig_h":"10.0.0.1","id.orig_p":4000,"id.resp_h":"10.0.0.2","id.resp_p":80,"proto":"tcp""#;
        format!(r#"{{"ts":1.5,{ends},"duration":{duration},"orig_bytes":{bytes},"resp_bytes":7}}"#)
    };
    for (duration, bytes) in [("9.06e-06", "null"), ("0.000009", "0"), ("null", "null")] {
        let log = read(&[line(duration, bytes).as_bytes()]).unwrap();
        assert_eq!(short(&log), [flow("10.0.0.2", "10.0.0.1", 0, 7)]);
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let zeek = |line: &str| error(&format!("{HEAD}{line}"));
    assert_eq!(
        zeek("1.0\tC1\t10.0.0.1\t40"),
        "a.log, line 6: 4 fields, but 11 columns: the line is cut, or it is no line of this log"
    );
    assert_eq!(
        zeek("1.0\tC1\t10.0.0.1\t4000\t10.0.0.2\t80\ttcp\t-\t-0.5\t1\t1\n"),
        "a.log, line 6: it ends 500000000 ns before it starts"
    );
    assert_eq!(
        zeek("1.0\tC1\t10.0.0.1\t4000\t10.0.0.2\t80000\ttcp\t-\t0.5\t1\t1\n"),
        "a.log, line 6: id.resp_p is \"80000\", expected a port, 0 to 65535"
    );
    assert!(error("#separator \\x09\n")
        .starts_with("a.log: the line #fields lacks; expected a conn.log"));
    assert!(error("{\"ts\": 1.0, \"proto\"").starts_with("a.log, line 1: not JSON of a conn.log"));
    assert!(
        error("{\"proto\": \"tcp\"}").starts_with("a.log, line 1: ts lacks; expected a conn.log")
    );
    assert!(error("a,b\n1,2\n").starts_with("a.log, line 1: a source address lacks; expected CSV"));
    let csv = "ts,td,sa,da,sp,dp,pr,ibyt\n";
    assert_eq!(
        error(&format!("{csv}soon,1,10.0.0.1,10.0.0.2,1,2,TCP,5\n")),
        "a.log, line 2: ts is \"soon\", expected a time since 1970, or a date"
    );
    assert!(error(&format!("{csv}1,1,10.0.0.1\n")).contains("line 2: 3 fields, but 8 columns"));
    let compressed = read(&[&[0x1f, 0x8b, 0, 0]]).unwrap_err().to_string();
    assert!(compressed.contains("decompress it first"), "{compressed}");
}

/// A segment of a connection between 10.0.0.1:`ports.0` and 10.0.0.2:`ports.1`, the latter being the server, and its time.
struct Sent {
    at_us: u64,
    from_server: bool,
    sequence: u32,
    payload: usize,
    flags: &'static str,
}

fn sent(at_us: u64, from_server: bool, sequence: u32, payload: usize, flags: &'static str) -> Sent {
    Sent {
        at_us,
        from_server,
        sequence,
        payload,
        flags,
    }
}

/// A capture that keeps 96 bytes of each packet.
fn capture(segments: &[Sent]) -> Vec<u8> {
    let header = PcapHeader {
        datalink: DataLink::ETHERNET,
        snaplen: 96,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for segment in segments {
        let (client, server) = (([10, 0, 0, 1], 4000), ([10, 0, 0, 2], 80));
        let (from, to) = if segment.from_server {
            (server, client)
        } else {
            (client, server)
        };
        let mut tcp = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(from.0, to.0, 64)
            .tcp(from.1, to.1, segment.sequence, 65_000);
        if segment.flags.contains('S') {
            tcp = tcp.syn();
        }
        if segment.flags.contains('A') {
            tcp = tcp.ack(1);
        }
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, &vec![0; segment.payload]).unwrap();
        let length = bytes.len() as u32;
        bytes.truncate(96);
        let packet = PcapPacket::new_owned(Duration::from_micros(segment.at_us), length, bytes);
        writer.write_packet(&packet).unwrap();
    }
    writer.into_writer()
}

fn exchange() -> Vec<Sent> {
    vec![
        sent(0, false, 99, 0, "S"),
        sent(39, true, u32::MAX - 1000, 0, "SA"),
        sent(40, false, 100, 0, "A"),
        sent(50, false, 100, 200, "A"),
        sent(100, true, u32::MAX - 999, 1448, "A"),
        sent(110, true, 448, 1448, "A"), // the sequence number has wrapped
        sent(300, true, 448, 1448, "A"), // again
        sent(4900, false, 300, 64, "A"),
        sent(5000, true, 1896, 60_000, "A"),
        sent(9000, true, 61_896, 4000, "A"), // at a full port
    ]
}

#[test]
fn bursts_of_a_capture_are_flows_and_what_is_sent_again_counts_once() {
    let bytes = capture(&exchange());
    let mut expected = vec![
        flow("10.0.0.1", "10.0.0.2", 0, 200),
        flow("10.0.0.2", "10.0.0.1", 50, 2896),
        flow("10.0.0.1", "10.0.0.2", 4850, 64),
        flow("10.0.0.2", "10.0.0.1", 4950, 64_000),
    ];
    expected.sort();
    let log = read(&[&bytes]).unwrap();
    let mut found = short(&log);
    found.sort();
    assert_eq!(found, expected);
    assert!(
        log.remarks[1]
            .starts_with("1 of 1 handshakes look as if they were captured near the client"),
        "{:?}",
        log.remarks
    );
    // The handshake took 40 us.
    assert_eq!(log.flows.base_delay, Some(Span::from_us(20)));
    // Files of one capture come in any order.
    let (first, second) = (capture(&exchange()[..6]), capture(&exchange()[6..]));
    let mut rotated = short(&read(&[&second, &first]).unwrap());
    rotated.sort();
    assert_eq!(rotated, expected);
    // The capture of the other host has the same packets.
    let mut both = short(&read(&[&bytes, &bytes]).unwrap());
    both.sort();
    assert_eq!(both, expected);
}

#[test]
fn times_are_in_the_unit_of_the_interface() {
    let interface = |options: Vec<InterfaceDescriptionOption<'static>>| {
        let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 96);
        interface.options = options;
        interface
    };
    use InterfaceDescriptionOption::{IfTsOffset, IfTsResol};
    for (options, stamp, ns) in [
        (vec![], 3, 3000),
        (vec![IfTsResol(9)], 3, 3),
        (vec![IfTsResol(12)], 3000, 3),
        (vec![IfTsResol(0x94)], 1 << 20, 1_000_000_000),
        (vec![IfTsResol(9), IfTsOffset(2)], 3, 2_000_000_003),
    ] {
        let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
        writer
            .write_block(&PcapNgBlock::into_block(interface(options.clone())))
            .unwrap();
        let bytes = capture(&exchange()[..1]);
        let packet = EnhancedPacketBlock {
            timestamp: Duration::from_nanos(stamp),
            data: bytes[40..].to_vec().into(),
            original_len: 54,
            interface_id: 0,
            options: vec![],
        };
        writer.write_block(&packet.into_block()).unwrap();
        let file = writer.into_inner();
        let mut packets = capture::pcapng(&file[..]).unwrap();
        let (at_ns, ..) = packets.next().unwrap().unwrap();
        assert_eq!(at_ns, ns, "{options:?}");
    }
}

#[test]
fn a_capture_that_is_cut_says_where() {
    let bytes = capture(&exchange());
    let error = read(&[&bytes[..bytes.len() - 10]]).unwrap_err().to_string();
    assert!(
        error.starts_with("a.log, packet 10: the file ends within a packet"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_answered(start in 0usize..6, bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let starts: [&[u8]; 6] =
            [&[0xd4, 0xc3, 0xb2, 0xa1], &[0x0a, 0x0d, 0x0d, 0x0a], b"#fields\tts\n", b"{", b"ts,te,sa,da,sp,dp,pr,ibyt\n", b""];
        let file = [starts[start], &bytes].concat();
        let _ = read(&[&file]);
    }

    #[test]
    fn any_change_of_a_capture_is_answered(place in 0usize..1000, byte: u8) {
        let mut bytes = capture(&exchange());
        let length = bytes.len();
        bytes[place % length] = byte;
        if let Ok(log) = read(&[&bytes]) {
            prop_assert!(log.flows.flows.iter().all(|flow| flow.size_bytes > 0));
        }
    }
}
