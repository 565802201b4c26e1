// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What lies between hosts: NAT and firewalls that know connections, tunnels with ciphers, policers, paths that reorder
//! and paths whose MTU shrinks. Each fact begins without On-Ramp.
//! machine: its time is virtual (main.rs).
use std::{
    net::{IpAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use super::{
    frames::{build_inside, RENAMED},
    hosts::route_through_the_second,
};
use crate::{
    agent::{write_keys, Agent},
    compare::{compare, two_flows, Ends},
    net::{Host, Namespace, Plan, Star},
    tcp::{connect, finish_all, transfers, Load, Transfer},
    wire::Wire,
};

/// Rules of nft, a line each.
pub fn nft(namespace: &Namespace, lines: &[&str]) {
    for line in lines {
        namespace.run(&format!("/job/nft {line}"));
    }
}

/// Three hosts; the second is the router between the others.
fn routed(plan: Plan) -> Star {
    let star = Star::build(&Plan { hosts: 3, ..plan });
    route_through_the_second(&star);
    star
}

fn ends_of(star: &Star) -> Ends<'_> {
    Ends::of(&star.hosts[0], &star.hosts[2])
}

/// A connection that the first opens.
fn opened(from: &Host, to: &Host) -> (TcpStream, TcpStream) {
    let listener = to.ns.enter(|| TcpListener::bind((to.v4, 0)));
    let listener = listener.expect("a free port");
    let stream = connect(from, listener.local_addr().expect("it is bound"));
    let (accepted, _) = listener.accept().expect("it is connected");
    (stream, accepted)
}

/// Two flows towards the host that opens the connections.
fn two_flows_back(client: &Host, server: &Host) -> f64 {
    let one = |_| {
        let (client, server) = opened(client, server);
        Transfer::over(server, client, Load::seconds(1.5))
    };
    finish_all((0..2).map(one).collect())
}

const MASQUERADE: &[&str] = &[
    "add table ip nat",
    "add chain ip nat out { type nat hook postrouting priority 100 ; }",
    "add rule ip nat out ip saddr 10.0.0.1 masquerade",
];

/// The receiver's OR-ACKs go to the router, and the sender of data to the router gets OR-ACKs whose tag names another
/// host.
pub fn behind_a_router_that_masquerades_flows_pass_unheld() {
    let star = routed(Plan::USUAL);
    let [inside, router, outside] = &star.hosts[..] else {
        panic!("three hosts")
    };
    nft(&router.ns, MASQUERADE);
    let up = compare(ends_of(&star), || two_flows(inside, outside));
    up.assert_unheld();
    assert!(up.sender.get("flows_created") > 0);
    assert!(up.receiver.get("oracks_sent") > 0);

    let down = compare(Ends::of(outside, inside), || {
        two_flows_back(inside, outside)
    });
    down.assert_unheld();
    assert!(down.sender.get("oracks_bad_tag") > 0);

    // A router with an agent has not sent what is acknowledged.
    let at_router = Agent::start(router, &["--law", "off"]);
    let beside = compare(ends_of(&star), || two_flows(inside, outside));
    beside.assert_unheld();
    println!("router: {:?}", at_router.status().counters);
    assert_eq!(at_router.counter("flows_created"), 0);
    assert!(at_router.counter("oracks_unknown_flow") > 0);
}

const TCP_ALONE: &[&str] = &[
    "add table ip f",
    "add chain ip f through { type filter hook forward priority 0 ; policy drop ; }",
    "add rule ip f through ct state invalid drop",
    "add rule ip f through ct state established,related accept",
    "add rule ip f through tcp flags syn ct state new accept",
];

/// OR-ACKs are new connections to it: it has to let them pass.
pub fn a_firewall_between_hosts_decides_about_oracks() {
    let star = routed(Plan::USUAL);
    let [from, router, to] = &star.hosts[..] else {
        panic!("three hosts")
    };
    nft(&router.ns, TCP_ALONE);
    let closed = compare(ends_of(&star), || two_flows(from, to));
    closed.assert_unheld();
    assert!(closed.receiver.get("oracks_sent") > 0);
    nft(&router.ns, &["add rule ip f through udp dport 5199 accept"]);
    compare(ends_of(&star), || two_flows(from, to)).assert_held();
}

/// As wg has made them for this fact: private and public.
const KEYS: [(&str, &str); 2] = [
    (
        "0Oh9oSK9eIZOV7dZEhl/DEJR65TdBp9beXw7J4yA8UY=",
        "yJxRS9wmtfx6Atb4si04y6ayxXQyQUpuBSs0dfc6XEs=",
    ),
    (
        "UM7vvnACKSTYI4UXNE4MN9KFRQ8Cy9NmrzVGXf8UZm8=",
        "Mo68Uv4OeqisT/QEzEjQ5OOw8r0CLpsE2AdFSXdsAkQ=",
    ),
];

/// Hosts at their addresses in a WireGuard tunnel, whose device these lines make.
fn in_wireguard(star: &Star, device: &str, lines: &[&str]) -> [Host; 2] {
    let hosts = build_inside(star, device, lines);
    for (own, other) in [(0, 1), (1, 0)] {
        let file = format!("/tmp/key{own}");
        write_keys(&file, KEYS[own].0);
        let (peer, at) = (KEYS[other].1, star.hosts[other].v4);
        hosts[own].ns.run(&format!(
            "/job/wg set {device} listen-port 51820 private-key {file} peer {peer} \
             allowed-ips 10.9.0.0/24,fd09::/64 endpoint {at}:51820"
        ));
    }
    hosts
}

pub fn on_a_wireguard_device_flows_are_held() {
    let star = Star::build(&Plan::USUAL);
    let add = ["ip link add eth0 type wireguard"];
    let [from, to] = in_wireguard(&star, "eth0", &[&RENAMED[..], &add].concat());
    let peers = &["--peers", "10.9.0.0/24"][..];
    let ends = Ends {
        at_sender: peers,
        at_receiver: peers,
        ..Ends::of(&from, &to)
    };
    compare(ends, || two_flows(&from, &to)).assert_held();
}

pub fn below_a_wireguard_device_flows_pass_unheld() {
    let star = Star::build(&Plan::USUAL);
    let [from, to] = in_wireguard(&star, "in", &["ip link add in type wireguard"]);
    let peers = &["--peers", "10.0.0.0/8"][..];
    let ends = Ends {
        at_sender: peers,
        at_receiver: peers,
        ..Ends::of(&from, &to)
    };
    let compared = compare(ends, || two_flows(&from, &to));
    compared.assert_unheld();
    assert_eq!(compared.sender.get("flows_created"), 0);
    assert_eq!(compared.receiver.get("oracks_sent"), 0);
}

const CIPHER: &str = "aead rfc4106(gcm(aes)) 0x000102030405060708090a0b0c0d0e0f10111213 128";

/// The ciphers of this machine leave no 100 Mbit/s.
const SLOW: Plan = Plan {
    port_mbit: Some(20),
    buffer_packets: 80,
    ..Plan::USUAL
};

/// The first two hosts send each other ESP alone, for traffic between these networks, or between the hosts.
fn add_ipsec(star: &Star, mode: &str, inside: Option<&str>, more: &str) {
    let (one, two) = star.pair();
    for (host, other) in [(one, two), (two, one)] {
        let run = |line: String| host.ns.run(&line);
        for (spi, from, to) in [(1, one.v4, two.v4), (2, two.v4, one.v4)] {
            run(format!(
                "ip xfrm state add src {from} dst {to} proto esp spi {spi} mode {mode} {CIPHER} {more}"
            ));
        }
        for (dir, from, to) in [("out", host.v4, other.v4), ("in", other.v4, host.v4)] {
            let of = |host: &IpAddr| inside.map_or(host.to_string(), str::to_owned);
            run(format!(
                "ip xfrm policy add src {} dst {} dir {dir} {more} \
                 tmpl src {from} dst {to} proto esp mode {mode}",
                of(&from),
                of(&to)
            ));
        }
    }
}

/// The ends of the flow see its segments, and the device sees ESP. No OR-ACK may tell in clear what that hides.
fn passes_in_ipsec(mode: &str) {
    let star = Star::build(&SLOW);
    add_ipsec(&star, mode, None, "");
    let (from, to) = star.pair();
    let wire = Wire::open(&star.switch, &to.port);
    let compared = compare(Ends::of(from, to), || two_flows(from, to));
    compared.assert_unheld();
    assert_eq!(compared.sender.get("flows_created"), 0);
    assert_eq!(compared.receiver.get("oracks_sent"), 0);
    assert_eq!(wire.drain().len(), 0, "OR-ACKs in clear");
}

pub fn in_ipsec_transport_flows_pass_unheld() {
    passes_in_ipsec("transport");
}

/// The kernel receives the packet of a tunnel a second time, on the same device.
pub fn in_an_ipsec_tunnel_flows_pass_unheld_and_nothing_tells_of_them_in_clear() {
    passes_in_ipsec("tunnel");
}

/// A packet that comes in by such a device still begins with the link header of the device below, which the programs do not
/// look for where there should be none.
pub fn on_an_xfrm_device_flows_pass_unheld() {
    let star = Star::build(&SLOW);
    let lines = [
        "ip link add eth0 type xfrm dev up0 if_id 7",
        "ip link set eth0 mtu 1400",
    ];
    let [from, to] = build_inside(&star, "eth0", &[&RENAMED[..], &lines].concat());
    add_ipsec(&star, "tunnel", Some("10.9.0.0/24"), "if_id 7");
    let wire = Wire::open(&star.switch, &star.hosts[1].port);
    let peers = &["--peers", "10.9.0.0/24"][..];
    let ends = Ends {
        at_sender: peers,
        at_receiver: peers,
        ..Ends::of(&from, &to)
    };
    compare(ends, || two_flows(&from, &to)).assert_unheld();
    assert_eq!(wire.drain().len(), 0, "OR-ACKs in clear");
}

/// It has no queue, so there is no delay to act on.
pub fn a_policer_that_drops_without_delay_sees_the_same_traffic() {
    let star = Star::build(&Plan {
        port_mbit: None,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    star.switch.run("tc qdisc add dev p1 clsact");
    star.switch.run(
        "tc filter add dev p1 ingress matchall action police rate 50mbit burst 500k conform-exceed drop",
    );
    let compared = compare(Ends::of(from, to), || {
        finish_all(transfers(from, to, Load::seconds(4.0), 8))
    });
    assert!(compared.without > 25.0, "the baseline itself");
    assert!(compared.off > 0.9 * compared.without, "holding nothing");
    assert!(compared.held > 0.9 * compared.without, "holding");
    assert!(compared.sender.get("oracks_used") > 50);
    assert_eq!(compared.sender.get("guard_raises"), 0);
}

/// A third of the packets wait for a millisecond, and eight others overtake each of them.
pub fn a_path_that_reorders_sees_the_same_traffic() {
    let star = routed(Plan::USUAL);
    let [from, router, to] = &star.hosts[..] else {
        panic!("three hosts")
    };
    router
        .ns
        .run("tc qdisc add dev eth0 root netem delay 1ms reorder 66% limit 1000");
    let seen = |name| to.counted("netstat", "TcpExt:", name);
    let before = seen("TCPOFOQueue");
    let compared = compare(ends_of(&star), || two_flows(from, to));
    assert!(seen("TCPOFOQueue") > before + 1000, "nothing is reordered");
    compared.assert_held();
    assert_eq!(compared.sender.get("oracks_absurd"), 0);
}

/// From frames of 9000 B to a path of 1400 B in the middle of a transfer. Segments that are held then are too long.
pub fn a_path_whose_mtu_shrinks_sees_the_same_traffic() {
    let star = routed(Plan {
        mtu: 9000,
        buffer_packets: 70,
        ..Plan::USUAL
    });
    let [from, router, to] = &star.hosts[..] else {
        panic!("three hosts")
    };
    let route = |more: &str| {
        let line = format!("ip route replace {}/32 dev eth0 {more}", to.v4);
        router.ns.run(&line)
    };
    let refusals = || router.counted("snmp", "Icmp:", "OutDestUnreachs");
    let traffic = || {
        route("");
        from.ns.run("ip route flush cache");
        let before = refusals();
        let flows = transfers(from, to, Load::seconds(2.0), 2);
        thread::sleep(Duration::from_millis(700));
        route("mtu 1400");
        let goodput = finish_all(flows);
        assert!(refusals() > before, "the router says so");
        goodput
    };
    compare(ends_of(&star), traffic).assert_held();
}
