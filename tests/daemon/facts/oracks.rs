// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! OR-ACKs on the wire: their size, checksum, class and number.
use std::net::UdpSocket;

use nix::sys::socket::{setsockopt, sockopt};

use crate::{
    agent::Agent,
    net::{Plan, Star},
    orack::{Orack, OPEN_KEY, PAYLOAD, PORT, WIRE4, WIRE6},
    tcp::{Load, Transfer},
    wire::Wire,
};

/// A segment is sampled once in this many bytes of a stream (law/sample.h).
const SAMPLE_BYTES: u64 = onramp_law::SAMPLE_BYTES as u64;
const BYTES: u64 = 3_000_000;
/// Offsets of the checksums in their headers.
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
/// AF21, RFC 2597: a class that somebody chose.
const TOS: u8 = 0x48;

/// Checks the OR-ACKs of one transfer to a host that alone runs On-Ramp.
fn check(plan: &Plan, v6: bool, checksums_by_sender: bool) {
    let star = Star::build(plan);
    let (from, to) = star.pair();
    // What the last device does not compute, the kernel does before the frame leaves: then the
    // capture shows it. With the sender's off, data carry complete checksums.
    to.ns.run("ethtool -K eth0 tx off");
    if checksums_by_sender {
        from.ns.run("ethtool -K eth0 tx off");
    }
    let address = if v6 { from.v6 } else { from.v4 };
    let socket = from
        .ns
        .enter(|| UdpSocket::bind((address, PORT)))
        .expect("nobody uses the port");
    socket.set_nonblocking(true).expect("a socket");
    setsockopt(&socket, sockopt::RcvBufForce, &(64 << 20)).expect("root may");
    let receiver = Agent::start(to, &[]);
    let wire = Wire::open(&star.switch, &to.port);

    let load = Load {
        v6,
        tos: TOS,
        ..Load::bytes(BYTES)
    };
    let transfer = Transfer::start(from, to, load);
    let ports = (transfer.from_port, transfer.to_port);
    transfer.finish();

    let frames = wire.drain();
    let expected = BYTES / SAMPLE_BYTES;
    let number = frames.len() as u64;
    println!("{number} OR-ACKs for {BYTES} B; one in {SAMPLE_BYTES} B were {expected}");
    assert_eq!(star.drops_towards(to), 0, "a loss would change the number");
    assert_eq!(number, receiver.counter("oracks_sent"));
    assert_eq!(receiver.counter("oracks_unsent"), 0);
    let longest = frames.iter().map(|frame| Orack::parse(frame).len).max();
    if plan.gro {
        assert!(longest > Some(9000), "nothing was merged");
        // One a pure ACK at most, and pure ACKs are fewer under GRO.
        assert!(number <= expected + 1 && number > expected / 8);
    } else {
        assert_eq!(longest, Some(if v6 { 1428 } else { 1448 }));
        assert!(number.abs_diff(expected) <= 1);
    }
    for frame in &frames {
        let orack = Orack::parse(frame);
        assert_eq!(frame.len(), if v6 { WIRE6 } else { WIRE4 });
        assert!(orack.checksums_are_right(), "{orack:02x?}");
        assert_eq!(orack.tos() & 0xfc, TOS, "the class of the data");
        assert_eq!((orack.sport, orack.dport), ports);
        assert_eq!(orack.tag, orack.tag_under(&OPEN_KEY), "{orack:?}");
    }
    // A host without On-Ramp gets well-formed UDP, whose checksum its stack has verified.
    let mut payload = [0; 2 * PAYLOAD];
    let arrived = std::iter::from_fn(|| socket.recv(&mut payload).ok());
    assert_eq!(
        arrived.inspect(|size| assert_eq!(*size, PAYLOAD)).count() as u64,
        number
    );
}

pub fn over_ipv4_they_have_78_bytes_and_a_right_checksum() {
    check(&Plan::USUAL, false, false);
}

pub fn over_ipv6_they_have_98_bytes_and_a_right_checksum() {
    check(&Plan::USUAL, true, false);
}

pub fn data_with_complete_checksums_make_no_difference() {
    check(&Plan::USUAL, false, true);
}

/// The class is the data's, not that of the ACK that was cloned: the receiver's socket has none.
pub fn from_merged_segments_they_are_the_same() {
    check(
        &Plan {
            gro: true,
            port_mbit: None,
            ..Plan::USUAL
        },
        false,
        false,
    );
}

/// A device that completes checksums goes by the offset that the kernel gives it, which is TCP's in a clone of a
/// TCP segment, or by the protocol of the packet.
pub fn whoever_completes_the_checksum_it_becomes_right() {
    for v6 in [false, true] {
        let star = Star::build(&Plan::USUAL);
        let (from, to) = star.pair();
        let _receiver = Agent::start(to, &[]);
        let _sender = Agent::start(from, &[]);
        let wire = Wire::open(&star.switch, &to.port);
        let load = Load {
            v6,
            ..Load::bytes(BYTES)
        };
        Transfer::start(from, to, load).finish();
        let frames = wire.drain();
        let oracks: Vec<Orack> = frames.iter().map(|frame| Orack::parse(frame)).collect();
        // One sum of 65,536 is right by chance.
        let complete = oracks.iter().filter(|orack| orack.checksums_are_right());
        assert!(
            complete.count() < 1 + oracks.len() / 50,
            "a device was to complete them"
        );
        for orack in oracks {
            for offset in [TCP_CHECKSUM, UDP_CHECKSUM] {
                assert!(
                    orack.completed_at(offset).checksums_are_right(),
                    "{orack:02x?}"
                );
            }
        }
    }
}

/// What the last of them told of the queue has gone by then, and the sender would pause for it. No
/// packet is through a host within 1 us here.
pub fn a_sample_older_than_the_longest_pause_is_not_told() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let receiver = Agent::start(to, &["--max-pause", "1us"]);
    Transfer::start(from, to, Load::bytes(BYTES)).finish();
    println!("{:?}", receiver.status().counters);
    assert_eq!(receiver.counter("oracks_sent"), 0);
    assert!(receiver.counter("oracks_unsent") >= BYTES / SAMPLE_BYTES);
}

/// Both ends have to be told the same: each finds the sampled bytes by itself.
pub fn how_often_they_come_can_be_set() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let every = ["--orack-every", "100kB"];
    let [sender, receiver] = [from, to].map(|host| Agent::start(host, &every));
    Transfer::start(from, to, Load::bytes(BYTES)).finish();
    println!("{:?}", sender.status().counters);
    let sent = receiver.counter("oracks_sent");
    assert!(sent.abs_diff(BYTES / 100_000) <= 1, "{sent} OR-ACKs");
    assert_eq!(sender.counter("oracks_received"), sent);
    assert_eq!(sender.counter("oracks_unmatched"), 0);
    // The first only says where the next ones count from.
    assert!(sender.counter("oracks_used") + 1 >= sent);
}
