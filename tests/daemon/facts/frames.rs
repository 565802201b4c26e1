//! Frames as hosts have them: VLAN tags, tunnels, bonds, pods. The flow inside is held, its OR-ACKs arrive, and
//! it is as fast as with the law off.
use std::net::IpAddr;

use crate::{
    agent::Agent,
    net::{shell, Host, Namespace, Plan, Star},
    tcp::{finish_all, transfers, Load},
};

/// A line as fast as the port; peers are the inner addresses.
const INSIDE: &[&str] = &[
    "--peers",
    "10.9.0.0/24",
    "--shape",
    "100Mbit/s",
    "--gate-tau",
    "20ms",
];

/// The same host at its address inside.
fn inside(host: &Host, number: usize) -> Host {
    Host {
        v4: IpAddr::from([10, 9, 0, number as u8]),
        v6: format!("fd09::{number:x}").parse().expect("an address"),
        ..host.clone()
    }
}

/// Gives each host a device of this type on eth0, named `in`, with an inner address. `{other}` in the lines
/// stands for the other host's outer address.
fn build_inside(star: &Star, lines: &[&str]) -> [Host; 2] {
    let (from, to) = star.pair();
    for (number, host, other) in [(1, from, to), (2, to, from)] {
        for line in lines {
            let line = line
                .replace("{other}", &other.v4.to_string())
                .replace("{own}", &host.v4.to_string());
            host.ns.run(&line);
        }
        let run = |line: String| host.ns.run(&line);
        run(format!("ip addr add 10.9.0.{number}/24 dev in"));
        run(format!("ip addr add fd09::{number:x}/64 dev in nodad"));
        run("ip link set in up".into());
    }
    [inside(from, 1), inside(to, 2)]
}

struct Outcome {
    mbit_per_s: f64,
    holds: u64,
    used: u64,
    created: u64,
}

fn two_flows(hosts: &[Host; 2], law: &str, options: &[&str], load: Load) -> Outcome {
    let options = [options, &["--law", law]].concat();
    let [sender, receiver] = [0, 1].map(|i| Agent::start(&hosts[i], &options));
    let mbit_per_s = finish_all(transfers(&hosts[0], &hosts[1], load, 2));
    sender.assert_harmless();
    receiver.assert_harmless();
    let outcome = Outcome {
        mbit_per_s,
        holds: sender.counter("holds"),
        used: sender.counter("oracks_used"),
        created: sender.counter("flows_created"),
    };
    let (sent, unsent) = (
        receiver.counter("oracks_sent"),
        receiver.counter("oracks_unsent"),
    );
    println!(
        "law {law}: {mbit_per_s:.1} Mbit/s, {} holds, {} flows, OR-ACKs: {sent} sent, {unsent} not, {} used",
        outcome.holds, outcome.created, outcome.used
    );
    outcome
}

/// The port's queue takes 48 ms and T is 5 ms, so a recognised flow is held.
fn assert_held(hosts: &[Host; 2], options: &[&str], load: Load) {
    let off = two_flows(hosts, "off", options, load);
    let on = two_flows(hosts, "final", options, load);
    assert_eq!(on.created, 2);
    assert!(on.used > 50, "{} OR-ACKs used", on.used);
    assert!(on.holds > 0, "nothing was held");
    let (on, off) = (on.mbit_per_s, off.mbit_per_s);
    assert!(on > 0.9 * off, "{on} Mbit/s, {off} with the law off");
}

fn flows_inside_are_held(lines: &[&str], v6: bool) {
    let star = Star::build(&Plan::USUAL);
    let hosts = build_inside(&star, lines);
    let load = Load {
        v6,
        ..Load::seconds(1.5)
    };
    let peers = ["--peers", if v6 { "fd09::/64" } else { "10.9.0.0/24" }];
    assert_held(&hosts, &[INSIDE, &peers].concat(), load);
}

pub fn one_tag_in_metadata() {
    flows_inside_are_held(&["ip link add link eth0 name in type vlan id 5"], false);
}

pub fn two_tags() {
    flows_inside_are_held(
        &[
            "ip link add link eth0 name eth0.5 type vlan id 5",
            "ip link set eth0.5 up",
            "ip link add link eth0.5 name in type vlan id 7",
        ],
        false,
    );
}

/// Without offloads and with its header unordered, the kernel writes tags into the frame.
pub fn two_tags_in_the_frame() {
    flows_inside_are_held(
        &[
            "ethtool -K eth0 tx-vlan-hw-insert off rx-vlan-hw-parse off",
            "ip link add link eth0 name eth0.5 type vlan id 5 reorder_hdr off",
            "ip link set eth0.5 up",
            "ip link add link eth0.5 name in type vlan id 7",
        ],
        false,
    );
}

/// The agent on the VLAN's device itself, which is named eth0 here.
pub fn a_vlan_sub_interface() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    for (number, host) in [(1, from), (2, to)] {
        for line in [
            "ip link set eth0 down",
            "ip link set eth0 name up0",
            "ip addr flush dev up0",
            "ip link set up0 up",
            "ip link add link up0 name eth0 type vlan id 5",
            &format!("ip addr add 10.9.0.{number}/24 dev eth0"),
            "ip link set eth0 up",
        ] {
            host.ns.run(line);
        }
    }
    let hosts = [inside(from, 1), inside(to, 2)];
    assert_held(&hosts, INSIDE, Load::seconds(1.5));
}

pub fn a_bond() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    for (number, host) in [(1, from), (2, to)] {
        for line in [
            "ip link set eth0 down",
            "ip link set eth0 name up0",
            "ip addr flush dev up0",
            "ip link add up1 type veth peer name spare1",
            "ip link add eth0 type bond mode active-backup miimon 100",
            "ip link set up0 master eth0",
            "ip link set up1 master eth0",
            &format!("ip addr add 10.9.0.{number}/24 dev eth0"),
            "ip link set eth0 up",
        ] {
            host.ns.run(line);
        }
    }
    let hosts = [inside(from, 1), inside(to, 2)];
    assert_held(&hosts, INSIDE, Load::seconds(1.5));
}

const VXLAN: &str =
    "ip link add in type vxlan id 7 dev eth0 local {own} remote {other} dstport 4789";

pub fn vxlan() {
    flows_inside_are_held(&[VXLAN], false);
}

pub fn vxlan_with_ipv6_inside() {
    flows_inside_are_held(&[VXLAN], true);
}

/// The outer UDP checksum is left out of OR-ACKs.
pub fn vxlan_with_checksums() {
    flows_inside_are_held(&[&format!("{VXLAN} udpcsum")], false);
}

pub fn vxlan_on_a_vlan() {
    flows_inside_are_held(
        &[
            "ip link add link eth0 name eth0.5 type vlan id 5",
            "ip addr flush dev eth0",
            "ip addr add {own}/24 dev eth0.5",
            "ip link set eth0.5 up",
            "ip link add in type vxlan id 7 dev eth0.5 local {own} remote {other} dstport 4789",
        ],
        false,
    );
}

pub fn geneve() {
    flows_inside_are_held(&["ip link add in type geneve id 7 remote {other}"], false);
}

pub fn ipip() {
    flows_inside_are_held(
        &["ip link add in type ipip local {own} remote {other}"],
        false,
    );
}

pub fn ipv6_in_ipv4() {
    flows_inside_are_held(
        &["ip link add in type sit local {own} remote {other}"],
        true,
    );
}

/// A tunnel over IPv6 is not entered: its flows pass as they do without On-Ramp.
pub fn vxlan_over_ipv6_passes_unheld() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let line = |own: &Host, other: &Host| {
        let line = "ip link add in type vxlan id 7 dev eth0 dstport 4789";
        own.ns
            .run(&format!("{line} local {} remote {}", own.v6, other.v6));
    };
    line(from, to);
    line(to, from);
    let hosts = build_inside(&star, &[]);
    let off = two_flows(&hosts, "off", INSIDE, Load::seconds(1.0));
    let on = two_flows(&hosts, "final", INSIDE, Load::seconds(1.0));
    assert_eq!((on.holds, on.used, on.created), (0, 0, 0));
    assert!(on.mbit_per_s > 0.9 * off.mbit_per_s);
}

/// A pod in its own namespace behind a veth pair; its node speaks for it.
pub fn a_pod_behind_veth() {
    let star = Star::build(&Plan::USUAL);
    let (node, other) = star.pair();
    node.ns.sysctl("net.ipv4.ip_forward", "1");
    for line in [
        "ip netns add pod",
        "ip -n h1 link add pod0 type veth peer name eth0 netns pod",
        "ip -n h1 addr add 10.9.0.254/32 dev pod0",
        "ip -n h1 link set pod0 up",
        "ip -n h1 route add 10.9.0.1/32 dev pod0",
        "ip -n pod link set eth0 up",
        "ip -n pod addr add 10.9.0.1/32 dev eth0",
        "ip -n pod route add 10.9.0.254 dev eth0",
        "ip -n pod route add default via 10.9.0.254",
    ] {
        shell(line);
    }
    other
        .ns
        .run(&format!("ip route add 10.9.0.1/32 via {}", node.v4));
    let pod = Host {
        ns: Namespace("pod".into()),
        ..inside(node, 1)
    };
    let options = ["--serve", "10.9.0.1/32", "--peers", "10.0.0.0/8"];
    let run = |law: &str| {
        let options = [&options[..], &["--law", law]].concat();
        let at_node = Agent::start(node, &options);
        let at_other = Agent::start(other, &options[2..]);
        let sent = finish_all(transfers(&pod, other, Load::seconds(1.5), 2));
        let held = at_node.counter("holds");
        let received = finish_all(transfers(other, &pod, Load::seconds(1.5), 2));
        println!("law {law}: pod sends {sent:.1} Mbit/s, {held} holds, receives {received:.1}");
        let used = (
            at_node.counter("oracks_used"),
            at_other.counter("oracks_used"),
        );
        assert!(used.0 > 50 && used.1 > 50, "{used:?}");
        (sent, received, held)
    };
    let (off, on) = (run("off"), run("final"));
    assert!(on.2 > 0, "nothing was held");
    assert!(on.0 > 0.9 * off.0 && on.1 > 0.9 * off.1, "{on:?} {off:?}");
}
