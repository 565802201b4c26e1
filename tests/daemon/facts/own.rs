// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the data path sends to itself ends in it, whatever other programs of the host do to it.
use std::{
    io::ErrorKind,
    net::UdpSocket,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use bytemuck::bytes_of;
use libbpf_rs::libbpf_sys as sys;
use onramp_law::abi::{onr_orack, ONR_ORACK_VERSION};

use crate::{
    agent::Agent,
    maps::now_mono_ns,
    net::{Host, Plan, Star},
    orack::PORT,
    tcp::{finish_all, transfers, Load, Transfer},
};

/// Offsets in struct __sk_buff.
const MARK: i16 = 8;
const CB: i16 = 48;
/// Flows are held, and the gate kicks them.
pub const HELD: &[&str] = &["--law", "gate", "--gate-tau", "20ms"];

/// Attaches a tcx program at the egress of eth0, before or behind all others.
pub fn attach_at_egress(host: &Host, code: &[sys::bpf_insn], flags: u32) -> OwnedFd {
    let owned = |fd: i32| {
        assert!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
        // SAFETY: a new descriptor, which nobody else owns.
        unsafe { OwnedFd::from_raw_fd(fd) }
    };
    let (name, license) = (c"other".as_ptr(), c"GPL".as_ptr());
    let (kind, none) = (sys::BPF_PROG_TYPE_SCHED_CLS, std::ptr::null_mut());
    // SAFETY: the program and its texts are valid for the call.
    let program = owned(unsafe {
        sys::bpf_prog_load(kind, name, license, code.as_ptr(), code.len() as u64, none)
    });
    host.ns.enter(|| {
        let options = sys::bpf_link_create_opts {
            sz: size_of::<sys::bpf_link_create_opts>() as u64,
            flags,
            ..Default::default()
        };
        let ifindex = nix::net::if_::if_nametoindex("eth0").expect("it is there") as i32;
        let (fd, egress) = (program.as_raw_fd(), sys::BPF_TCX_EGRESS);
        // SAFETY: the options are valid for the call.
        owned(unsafe { sys::bpf_link_create(fd, ifindex, egress, &options) })
    })
}

/// An instruction with an immediate value for r0, or without one.
pub fn code(code: u8, imm: i32) -> sys::bpf_insn {
    sys::bpf_insn {
        code,
        imm,
        ..Default::default()
    }
}

/// A program that writes 7 over the mark and the whole cb of each packet, and lets the next program decide.
fn scribbler() -> Vec<sys::bpf_insn> {
    let mut seven = code(0xb7, 7); // r2 = 7
    seven.set_dst_reg(2);
    let write = |off| {
        let mut write = code(0x63, 0); // *(u32 *)(r1 + off) = r2
        write.set_dst_reg(1);
        write.set_src_reg(2);
        write.off = off;
        write
    };
    let mut program = vec![seven, write(MARK)];
    program.extend((0..5).map(|word| write(CB + 4 * word)));
    program.extend([code(0xb7, -1), code(0x95, 0)]); // r0 = TCX_NEXT; exit
    program
}

/// Frames that came to the switch from the first host, with the second's address.
pub fn strays(star: &Star) -> u64 {
    let text = star.switch.run("tc -s filter show dev p1 ingress");
    let sent = text.split("Sent ").nth(1).expect("a count");
    let packets = sent.split(' ').nth(2).expect("a count");
    packets.parse().expect("a number")
}

pub fn watch_strays(star: &Star) {
    star.switch.run("tc qdisc add dev p1 clsact");
    star.switch
        .run("tc filter add dev p1 ingress flower src_mac 02:00:00:00:00:02 action pass");
}

/// A kick is an OR-ACK that came in: outside, it would be a frame with the peer's address.
pub fn a_kick_ends_in_the_qdisc_whatever_is_done_to_it() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    watch_strays(&star);
    let sender = Agent::start(from, HELD);
    let _receiver = Agent::start(to, HELD);
    let filter = "tc filter add dev eth0 egress matchall action skbedit mark 7";
    from.ns.run("tc qdisc add dev eth0 clsact");
    from.ns.run(filter);
    let _behind = attach_at_egress(from, &scribbler(), sys::BPF_F_AFTER);
    let mbit_per_s = finish_all(transfers(from, to, Load::seconds(2.0), 2));
    println!("{mbit_per_s} Mbit/s, {:?}", sender.status().counters);
    assert!(sender.counter("kicks") > 0);
    assert!(sender.counter("kicks_altered") > 0);
    assert_eq!(strays(&star), 0);
    sender.assert_harmless();
}

/// A program in front may change the mark and the cb of a clone, which it does not know.
pub fn a_clone_becomes_an_orack_whatever_is_done_to_it() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--law", "off"]);
    let receiver = Agent::start(to, &["--law", "off"]);
    let _in_front = attach_at_egress(to, &scribbler(), sys::BPF_F_BEFORE);
    Transfer::start(from, to, Load::bytes(3_000_000)).finish();
    println!("{:?}", receiver.status().counters);
    assert!(sender.counter("oracks_used") > 0);
    for counter in ["oracks_intercepted", "oracks_strayed", "oracks_muted"] {
        assert_eq!(receiver.counter(counter), 0, "{counter}");
    }
}

/// A user of the receiver has the port before the daemon, which says so, and has a datagram refused by the sender's host,
/// which has no agent: no OR-ACK was refused.
pub fn a_refusal_of_what_is_no_orack_mutes_nobody() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    for (own, peer) in [(to.v4, from.v4), (to.v6, from.v6)] {
        let bound = to.ns.enter(|| UdpSocket::bind((own, PORT)));
        let user = bound.expect("nobody has the port");
        let receiver = Agent::start(to, &["--law", "off"]);
        let text = receiver.text();
        assert!(text.contains("the port of OR-ACKs, is not bound"), "{text}");
        user.connect((peer, PORT)).expect("an address");
        while user.send(bytes_of(&forged())).is_ok() {} // until the refusal has come
        assert_eq!(receiver.counter("oracks_refused"), 0);
    }
}

/// An OR-ACK of now in all but its tag.
fn forged() -> onr_orack {
    let now_ns = now_mono_ns() as u64;
    onr_orack {
        version: ONR_ORACK_VERSION as u8,
        rx_fleet_hi_ns: ((now_ns >> 32) as u32).to_be(),
        rx_fleet_lo_ns: (now_ns as u32).to_be(),
        tag: 7,
        ..Default::default()
    }
}

/// With agents on both hosts nothing is refused, and no user has the port.
pub fn the_port_of_oracks_is_the_daemons() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let _sender = Agent::start(from, &["--law", "off"]);
    let _receiver = Agent::start(to, &["--law", "off"]);
    for own in [to.v4, to.v6] {
        let bound = to.ns.enter(|| UdpSocket::bind((own, PORT)));
        assert_eq!(bound.expect_err("it is taken").kind(), ErrorKind::AddrInUse);
    }
}
