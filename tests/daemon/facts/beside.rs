// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What lies beside On-Ramp on a host: its own firewall, filters of nft at egress, XDP, programs of cgroups, other
//! qdiscs, and traffic that is not TCP. Each fact begins without On-Ramp.
//! machine: its time is virtual (main.rs).
use std::{
    fs::File,
    io::{Read, Write},
    net::{TcpListener, UdpSocket},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use libbpf_rs::libbpf_sys as sys;

use super::{hosts::udp_of, own::code, paths::nft};
use crate::{
    agent::{Agent, USUAL},
    compare::{compare, two_flows, Counters, Ends},
    guest::CGROUPS,
    net::{shell, Host, Namespace, Plan, Star},
    tcp::{connect, finish_all, transfers, Load},
};

const EXIT: u8 = 0x95;

/// A program that only returns a number.
fn returns(number: i32) -> Vec<sys::bpf_insn> {
    vec![code(0xb7, number), code(EXIT, 0)] // r0 = number
}

fn owned(fd: i32) -> OwnedFd {
    assert!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
    // SAFETY: a new descriptor, which nobody else owns.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn load(kind: u32, attach: u32, code: &[sys::bpf_insn]) -> OwnedFd {
    let mut options = sys::bpf_prog_load_opts {
        sz: size_of::<sys::bpf_prog_load_opts>() as u64,
        expected_attach_type: attach,
        ..Default::default()
    };
    let (name, license) = (c"other".as_ptr(), c"GPL".as_ptr());
    let (first, number) = (code.as_ptr(), code.len() as u64);
    // SAFETY: the program, its texts and the options are valid for the call.
    owned(unsafe { sys::bpf_prog_load(kind, name, license, first, number, &mut options) })
}

const GENERIC: u32 = 1 << 1;
const NATIVE: u32 = 1 << 2;

/// Attaches an XDP program to a device for as long as the result lives.
fn attach_xdp(ns: &Namespace, dev: &str, mode: u32, code: &[sys::bpf_insn]) -> OwnedFd {
    let program = load(sys::BPF_PROG_TYPE_XDP, sys::BPF_XDP, code);
    ns.enter(|| {
        let options = sys::bpf_link_create_opts {
            sz: size_of::<sys::bpf_link_create_opts>() as u64,
            flags: mode,
            ..Default::default()
        };
        let ifindex = nix::net::if_::if_nametoindex(dev).expect("it is there") as i32;
        let fd = program.as_raw_fd();
        // SAFETY: the options are valid for the call.
        owned(unsafe { sys::bpf_link_create(fd, ifindex, sys::BPF_XDP, &options) })
    })
}

const XDP_PASS: i32 = 2;

fn xdp_passes(mode: u32) {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let _there = [from, to].map(|host| attach_xdp(&host.ns, "eth0", mode, &returns(XDP_PASS)));
    compare(Ends::of(from, to), || two_flows(from, to)).assert_held();
}

pub fn behind_generic_xdp_flows_are_held() {
    xdp_passes(GENERIC);
}

pub fn behind_native_xdp_flows_are_held() {
    xdp_passes(NATIVE);
}

/// An XDP program that sends all frames out of another device.
fn to_device(ns: &Namespace, dev: &str) -> Vec<sys::bpf_insn> {
    let ifindex = ns.enter(|| nix::net::if_::if_nametoindex(dev).expect("it is there"));
    let mut to = code(0xb7, ifindex as i32); // r1 = ifindex
    to.set_dst_reg(1);
    let mut flags = code(0xb7, 0); // r2 = 0
    flags.set_dst_reg(2);
    vec![to, flags, code(0x85, 23), code(EXIT, 0)] // call bpf_redirect
}

/// A pod has the addresses of the second host, whose device sends it all frames before the stack sees them. What XDP takes
/// from veth has no checksum left to complete, so the ends complete theirs.
fn pod_behind_xdp(from: &Host, node: &Host) -> (Host, [OwnedFd; 2]) {
    for line in [
        "ip netns add pod",
        "ip -n h2 link add pod0 type veth peer name eth0 address 02:00:00:00:00:02 netns pod",
        "ip -n h2 link set pod0 up",
        "ip -n pod link set eth0 up",
        "ip -n pod addr add 10.0.0.2/24 dev eth0",
        "ip -n pod addr add fd00::2/64 dev eth0 nodad",
        "ip netns exec pod ethtool -K eth0 tx off gro on",
        "ip netns exec switch ethtool -K p2 gro on",
    ] {
        shell(line);
    }
    from.ns.run("ethtool -K eth0 tx off");
    let attach = |dev, to| attach_xdp(&node.ns, dev, NATIVE, &to_device(&node.ns, to));
    let links = [attach("eth0", "pod0"), attach("pod0", "eth0")];
    let pod = Host {
        ns: Namespace("pod".into()),
        ..node.clone()
    };
    pod.ns.sysctl("net.ipv4.tcp_rmem", "4096 2000000 8000000");
    (pod, links)
}

/// The daemon of the node sees none of its packets. One in the pod does.
pub fn what_xdp_redirects_is_held_where_an_agent_sees_it() {
    let star = Star::build(&Plan::USUAL);
    let (from, node) = star.pair();
    let (pod, _links) = pod_behind_xdp(from, node);
    let beside = compare(Ends::of(from, node), || two_flows(from, &pod));
    beside.assert_unheld();
    assert!(beside.sender.get("flows_created") > 0);
    assert_eq!(beside.receiver.get("oracks_sent"), 0);
    compare(Ends::of(from, &pod), || two_flows(from, &pod)).assert_held();
}

/// A firewall of a host that knows connections, and lets TCP alone in and out.
const CLOSED: &[&str] = &[
    "add table inet f",
    "add chain inet f in { type filter hook input priority 0 ; policy drop ; }",
    "add rule inet f in ct state invalid drop",
    "add rule inet f in ct state established,related accept",
    "add rule inet f in icmpv6 type nd-neighbor-solicit accept",
    "add rule inet f in meta l4proto tcp ct state new accept",
    "add chain inet f out { type filter hook output priority 0 ; policy drop ; }",
    "add rule inet f out ct state established,related accept",
    "add rule inet f out meta l4proto tcp ct state new accept",
];

/// OR-ACKs are made behind the one and end before the other.
pub fn with_firewalls_on_the_hosts_flows_are_held() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    for host in [from, to] {
        nft(&host.ns, CLOSED);
    }
    compare(Ends::of(from, to), || two_flows(from, to)).assert_held();
}

/// What leaves: the kernel shows it to nft before it shows it to On-Ramp's programs.
const AT_EGRESS: &[&str] = &[
    "add table netdev f",
    "add chain netdev f out { type filter hook egress device eth0 priority 0 ; }",
];

/// Packets that each rule with a counter has seen, in their order.
fn counted_by_nft(host: &Host) -> Vec<u64> {
    let text = host.ns.run("/job/nft list table netdev f");
    let counts = text.split("counter packets ").skip(1);
    let number = |rest: &str| rest.split(' ').next().and_then(|word| word.parse().ok());
    counts.filter_map(number).collect()
}

pub fn with_a_filter_of_nft_at_egress_flows_are_held() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    for host in [from, to] {
        nft(&host.ns, AT_EGRESS);
        let rule = "add rule netdev f out meta mark set 7 counter accept";
        nft(&host.ns, &[rule]);
    }
    let compared = compare(Ends::of(from, to), || two_flows(from, to));
    compared.assert_held();
    assert!(compared.sender.get("kicks") > 0);
    assert!(counted_by_nft(from)[0] > 1000, "the filter sees data");
    for counter in ["oracks_intercepted", "oracks_strayed", "oracks_muted"] {
        assert_eq!(compared.receiver.get(counter), 0, "{counter}");
    }
}

/// Requests and responses of 1 kB, one after the other; their goodput in one direction, Mbit/s. Data answers data, so an
/// OR-ACK is a clone of data.
fn exchange(from: &Host, to: &Host) -> f64 {
    const BYTES: usize = 1000;
    const TIMES: usize = 5000;
    let listener = to.ns.enter(|| TcpListener::bind((to.v4, 0)));
    let listener = listener.expect("a free port");
    let mut client = connect(from, listener.local_addr().expect("it is bound"));
    let (mut server, _) = listener.accept().expect("it is connected");
    let started = Instant::now();
    let answers = thread::spawn(move || {
        let mut buffer = vec![0; BYTES];
        for _ in 0..TIMES {
            server.read_exact(&mut buffer).expect("it arrives");
            server.write_all(&buffer).expect("it is connected");
        }
    });
    for number in 0..TIMES {
        let request = vec![number as u8; BYTES];
        client.write_all(&request).expect("it is connected");
        let mut response = vec![0; BYTES];
        client.read_exact(&mut response).expect("it arrives");
        assert!(response == request, "other bytes than were sent");
    }
    answers.join().expect("it succeeds");
    (TIMES * BYTES) as f64 * 8e-6 / started.elapsed().as_secs_f64()
}

/// The kernel does not show it again what a program of tc has sent. So a filter against foreign addresses drops no clone,
/// which has the peer's, and none against OR-ACKs works here.
pub fn a_filter_of_nft_at_egress_sees_neither_clones_nor_oracks() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    for (host, own) in [(from, from.v4), (to, to.v4)] {
        nft(&host.ns, AT_EGRESS);
        let foreign = format!("add rule netdev f out ip saddr != {own} counter drop");
        let oracks = "add rule netdev f out udp dport 5199 counter drop";
        nft(
            &host.ns,
            &[&foreign, oracks, "add rule netdev f out counter"],
        );
    }
    let compared = compare(Ends::of(from, to), || exchange(from, to));
    compared.assert_kept();
    for daemon in [&compared.sender, &compared.receiver] {
        assert!(daemon.get("oracks_used") > 100);
        assert_eq!(daemon.get("oracks_intercepted"), 0);
    }
    for host in [from, to] {
        let counted = counted_by_nft(host);
        println!("foreign, OR-ACKs, all: {counted:?}");
        assert!(counted[..2] == [0, 0] && counted[2] > 1000, "{counted:?}");
    }
}

/// This process is in a cgroup with a program at the egress of its sockets.
struct Limited(OwnedFd, File);

impl Limited {
    fn begin(code: &[sys::bpf_insn]) -> Self {
        let path = format!("{CGROUPS}/limited");
        std::fs::create_dir_all(&path).expect("a cgroup of version 2");
        let members = format!("{path}/cgroup.procs");
        std::fs::write(members, std::process::id().to_string()).expect("root may move it");
        let egress = sys::BPF_CGROUP_INET_EGRESS;
        let program = load(sys::BPF_PROG_TYPE_CGROUP_SKB, egress, code);
        let cgroup = File::open(path).expect("it is there");
        // SAFETY: two descriptors.
        let error =
            unsafe { sys::bpf_prog_attach(program.as_raw_fd(), cgroup.as_raw_fd(), egress, 0) };
        assert_eq!(error, 0, "{}", std::io::Error::from_raw_os_error(-error));
        Self(program, cgroup)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let (program, cgroup) = (self.0.as_raw_fd(), self.1.as_raw_fd());
        // SAFETY: two descriptors.
        unsafe { sys::bpf_prog_detach2(program, cgroup, sys::BPF_CGROUP_INET_EGRESS) };
        let _ = std::fs::write(
            format!("{CGROUPS}/cgroup.procs"),
            std::process::id().to_string(),
        );
    }
}

/// A program that returns `rare` for one packet in 256, and 1, which lets it pass, for the others.
fn rarely(rare: i32) -> Vec<sys::bpf_insn> {
    let mut skip = code(0x55, 0); // if r0 != 0: the next but one
    skip.off = 2;
    vec![
        code(0x85, 7),   // call bpf_get_prandom_u32
        code(0x57, 255), // r0 &= 255
        skip,
        code(0xb7, rare),
        code(EXIT, 0),
        code(0xb7, 1),
        code(EXIT, 0),
    ]
}

/// As limiters of hosts do: drop a packet, or pass it and tell TCP of congestion.
pub fn programs_at_the_egress_of_cgroups_do_as_before() {
    const DROP: i32 = 0;
    const PASS_AND_TELL: i32 = 3;
    for what in [DROP, PASS_AND_TELL] {
        let star = Star::build(&Plan::USUAL);
        let (from, to) = star.pair();
        let limited = Limited::begin(&rarely(what));
        let compared = compare(Ends::of(from, to), || {
            finish_all(transfers(from, to, Load::seconds(4.0), 4))
        });
        assert!(compared.off > 0.9 * compared.without, "holding nothing");
        assert!(compared.held > 0.9 * compared.without, "holding");
        assert!(compared.sender.get("oracks_used") > 50);
        drop(limited);
    }
}

/// As QUIC sends: 12 kB in a call, of which the kernel makes datagrams of 1,200 B; 19 Mbit/s. Part of them that arrives,
/// in order.
fn datagrams(from: &Host, to: &Host) -> f64 {
    const BYTES: usize = 1200;
    const EACH: usize = 10;
    const TIMES: usize = 200;
    let (socket, receiver) = (udp_of(from), udp_of(to));
    let size = BYTES as u32;
    // SAFETY: the value has this size.
    let error = unsafe {
        let value = (&raw const size).cast();
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            value,
            4,
        )
    };
    assert_eq!(error, 0);
    let address = receiver.local_addr().expect("it is bound");
    let reader = thread::spawn(move || read_numbers(&receiver, (TIMES * EACH) as u32));
    for time in 0..TIMES {
        let numbers = (time * EACH..(time + 1) * EACH).flat_map(|number| {
            let mut datagram = vec![7; BYTES];
            datagram[..4].copy_from_slice(&(number as u32).to_ne_bytes());
            datagram
        });
        let all: Vec<u8> = numbers.collect();
        socket.send_to(&all, address).expect("a route");
        thread::sleep(Duration::from_millis(5));
    }
    f64::from(reader.join().expect("it reads")) / (TIMES * EACH) as f64
}

/// How many datagrams have come when the last one has, or none for a second.
fn read_numbers(receiver: &UdpSocket, all: u32) -> u32 {
    receiver
        .set_read_timeout(Some(Duration::from_secs(1)))
        .expect("above zero");
    let mut buffer = [0; 2048];
    let (mut came, mut next) = (0, 0);
    while next < all {
        let Ok(size) = receiver.recv(&mut buffer) else {
            break;
        };
        let number = u32::from_ne_bytes(buffer[..4].try_into().expect("4 bytes"));
        assert!(size == 1200 && number >= next, "{size} B, {number}");
        next = number + 1;
        came += 1;
    }
    came
}

/// Beside held TCP datagrams leave at their time, and lose no more than beside TCP alone: the port's queue is shorter.
pub fn datagrams_of_quic_lose_less_beside_held_flows() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let alone = datagrams(from, to);
    let beside = || {
        let flows = transfers(from, to, Load::seconds(1.5), 2);
        let arrived = datagrams(from, to);
        (arrived, finish_all(flows))
    };
    let without = beside();
    let sender = Agent::start(from, &[]);
    let _receiver = Agent::start(to, &[]);
    let with = beside();
    let counters = Counters::of(&sender);
    println!("arrived {alone:.3} alone; beside TCP {without:?} without, {with:?} with On-Ramp");
    assert_eq!(alone, 1.0);
    assert!(counters.get("holds") > 0);
    assert!(with.0 >= without.0, "datagrams");
    assert!(with.1 > 0.9 * without.1, "TCP");
    sender.assert_harmless();
}

/// netem on the device itself: a daemon that holds would have to replace it, and refuses. One that observes sees its delay.
pub fn an_emulator_on_the_device_is_observed_and_not_replaced() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    from.ns
        .run("tc qdisc add dev eth0 root netem delay 10ms limit 1000");
    let without = two_flows(from, to);
    let refused = Agent::refuse(from, USUAL);
    println!("{}", refused.text);
    assert!(refused.text.contains("netem"));
    let sender = Agent::observe(from);
    let _receiver = Agent::observe(to);
    let observed = two_flows(from, to);
    let delay_ms = sender.owd_ms(to);
    println!("without {without:.1} Mbit/s, observed {observed:.1}; delay {delay_ms:.1} ms");
    assert!(observed > 0.97 * without);
    assert!(delay_ms > 10.0);
    assert_eq!(from.ns.qdisc("eth0").expect("netem")["kind"], "netem");
}
