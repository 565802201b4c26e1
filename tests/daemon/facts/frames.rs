// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Devices and frames as hosts have them: VLAN tags, tunnels, pods. Flows are held, OR-ACKs arrive, and throughput
//! stays.
use std::{net::IpAddr, thread, time::Duration};

use crate::{
    agent::Agent,
    maps::{step_clock, LONG_LEASE},
    net::{shell, Host, Namespace, Plan, Star},
    tcp::{finish_all, transfers, Load, Transfer},
};

/// The same host at its address inside.
fn inside(host: &Host, number: usize) -> Host {
    Host {
        v4: IpAddr::from([10, 9, 0, number as u8]),
        v6: format!("fd09::{number:x}").parse().expect("an address"),
        ..host.clone()
    }
}

/// Gives each host a device, which the lines make, with an inner address. `{own}` and `{other}` in them stand
/// for the hosts' outer addresses.
pub fn build_inside(star: &Star, device: &str, lines: &[&str]) -> [Host; 2] {
    let (from, to) = star.pair();
    for (number, host, other) in [(1, from, to), (2, to, from)] {
        for line in lines {
            let line = line.replace("{own}", &host.v4.to_string());
            host.ns.run(&line.replace("{other}", &other.v4.to_string()));
        }
        let run = |line: String| host.ns.run(&line);
        run(format!("ip addr add 10.9.0.{number}/24 dev {device}"));
        run(format!(
            "ip addr add fd09::{number:x}/64 dev {device} nodad"
        ));
        run(format!("ip link set {device} up"));
    }
    [inside(from, 1), inside(to, 2)]
}

/// Two flows from the first host to the second, with an agent on eth0 of both: the port's queue takes far more than
/// T = 5 ms, so they are held.
fn assert_held(hosts: &[Host; 2], v6: bool) {
    let peers = ["--peers", if v6 { "fd09::/64" } else { "10.9.0.0/24" }];
    let [sender, receiver] = [0, 1].map(|i| Agent::start(&hosts[i], &peers));
    let load = Load {
        v6,
        ..Load::seconds(1.5)
    };
    let mbit_per_s = finish_all(transfers(&hosts[0], &hosts[1], load, 2));
    sender.assert_harmless();
    receiver.assert_harmless();
    let [created, used, holds] =
        ["flows_created", "oracks_used", "holds"].map(|name| sender.counter(name));
    let sent = receiver.counter("oracks_sent");
    println!("{mbit_per_s:.1} Mbit/s, {holds} holds, {created} flows, {sent} OR-ACKs, {used} used");
    assert_eq!(created, 2);
    assert!(used > 50, "{used} OR-ACKs used");
    assert!(holds > 0, "nothing was held");
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
}

/// The agent is on eth0, and the flows are in VLANs on it.
fn vlans_are_held(device: &str, lines: &[&str]) {
    let star = Star::build(&Plan::USUAL);
    assert_held(&build_inside(&star, device, lines), false);
}

pub fn a_tag_in_metadata() {
    vlans_are_held("in", &["ip link add link eth0 name in type vlan id 5"]);
}

/// The inner tag is in the frame, the outer one in the packet's metadata.
pub fn a_tag_in_the_frame() {
    vlans_are_held(
        "in",
        &[
            "ip link add link eth0 name eth0.5 type vlan proto 802.1ad id 5",
            "ip link set eth0.5 up",
            "ip link add link eth0.5 name in type vlan id 7",
        ],
    );
}

/// They give the name eth0 to another device.
pub const RENAMED: [&str; 3] = [
    "ip link set eth0 down",
    "ip link set eth0 name up0",
    "ip link set up0 up",
];

/// The agent is on the device that the lines make on the former eth0, which is named up0 then.
fn devices_are_held(lines: &[&str], v6: bool) {
    let star = Star::build(&Plan::USUAL);
    let lines = [&RENAMED, lines].concat();
    assert_held(&build_inside(&star, "eth0", &lines), v6);
}

pub fn a_vlan_device() {
    devices_are_held(&["ip link add link up0 name eth0 type vlan id 5"], false);
}

const VXLAN: &str =
    "ip link add eth0 type vxlan id 7 dev up0 local {own} remote {other} dstport 4789";

pub fn a_vxlan_device() {
    devices_are_held(&[VXLAN], false);
}

pub fn a_vxlan_device_with_ipv6() {
    devices_are_held(&[VXLAN], true);
}

pub fn a_geneve_device() {
    devices_are_held(&["ip link add eth0 type geneve id 7 remote {other}"], false);
}

/// It has no link header.
pub fn an_ipip_device() {
    devices_are_held(
        &["ip link add eth0 type ipip local {own} remote {other}"],
        false,
    );
}

/// One daemon is on both: each has its own link header, so frames of either are found.
pub fn a_tunnel_beside_its_ethernet_device() {
    let star = Star::build(&Plan::USUAL);
    let line = "ip link add in type ipip local {own} remote {other}";
    let inside = build_inside(&star, "in", &[line]);
    let (from, to) = star.pair();
    let options = ["--dev", "eth0,in", "--peers", "10.0.0.0/8"];
    let [sender, receiver] = [from, to].map(|host| Agent::start(host, &options));
    let mut all = transfers(from, to, Load::seconds(1.5), 2);
    all.extend(transfers(&inside[0], &inside[1], Load::seconds(1.5), 2));
    let mbit_per_s = finish_all(all);
    println!("{mbit_per_s:.1} Mbit/s");
    for device in sender.status().devices {
        let [created, used, holds] =
            ["flows_created", "oracks_used", "holds"].map(|name| device.counters[name]);
        println!(
            "{}: {created} flows, {used} OR-ACKs used, {holds} holds",
            device.name
        );
        assert_eq!(created, 2, "{}", device.name);
        assert!(used > 50 && holds > 0, "{}", device.name);
    }
    sender.assert_harmless();
    receiver.assert_harmless();
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
}

pub fn an_ipv6_in_ipv4_device() {
    devices_are_held(
        &["ip link add eth0 type sit local {own} remote {other}"],
        true,
    );
}

/// The agent is below a tunnel: what it does not know passes as it does without On-Ramp.
pub fn a_tunnel_passes_unheld() {
    let star = Star::build(&Plan::USUAL);
    let line = "ip link add in type vxlan id 7 dev eth0 local {own} remote {other} dstport 4789";
    let hosts = build_inside(&star, "in", &[line]);
    let sender = Agent::start(&hosts[0], &["--peers", "10.9.0.0/24"]);
    let mbit_per_s = finish_all(transfers(&hosts[0], &hosts[1], Load::seconds(1.0), 2));
    assert_eq!(sender.counter("holds") + sender.counter("flows_created"), 0);
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
}

/// A pod in its own namespace, whose link these lines make: eth0 in the pod, pod0 on its node, the first host. The
/// other host has a route to it.
pub fn build_pod(star: &Star, link: &[&str]) -> Host {
    let (node, other) = star.pair();
    node.ns.sysctl("net.ipv4.ip_forward", "1");
    shell("ip netns add pod");
    link.iter().for_each(|line| shell(line));
    for line in [
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
    let route = format!("ip route add 10.9.0.1/32 via {}", node.v4);
    other.ns.run(&route);
    Host {
        ns: Namespace("pod".into()),
        ..inside(node, 1)
    }
}

/// Its node speaks for the pod. Flows are held in either direction, and every byte arrives.
fn a_pod_behind(link: &[&str]) {
    let star = Star::build(&Plan::USUAL);
    let pod = build_pod(&star, link);
    let (node, other) = star.pair();
    let options = ["--serve", "10.9.0.1/32", "--peers", "10.0.0.0/8"];
    let at_node = Agent::start(node, &options);
    let at_other = Agent::start(other, &options[2..]);
    let sent = finish_all(transfers(&pod, other, Load::seconds(1.5), 2));
    let holds = at_node.counter("holds");
    let received = finish_all(transfers(other, &pod, Load::seconds(1.5), 2));
    println!("sends {sent:.1} Mbit/s, {holds} holds, receives {received:.1}");
    let used = [&at_node, &at_other].map(|agent| agent.counter("oracks_used"));
    assert!(used.iter().all(|used| *used > 50), "{used:?}");
    assert!(holds > 0, "nothing was held");
    assert!(sent > 70.0 && received > 70.0, "{sent} {received} Mbit/s");
}

pub fn a_pod_behind_veth() {
    a_pod_behind(&["ip -n h1 link add pod0 type veth peer name eth0 netns pod"]);
}

/// Median of what waits at a node while four flows of a pod, for which it does not speak, fill its line, bytes; and the
/// packets that CoDel dropped. The node's device had `former` before.
fn waiting_of_a_pod(former: &str) -> (u64, u64) {
    let star = Star::build(&Plan::USUAL);
    let pod = build_pod(
        &star,
        &["ip -n h1 link add pod0 type veth peer name eth0 netns pod"],
    );
    let (node, other) = star.pair();
    let line = format!("tc qdisc replace dev eth0 root {former}");
    node.ns.run(&line);
    let agent = Agent::start(node, &["--shape", "20Mbit/s"]);
    let flows = transfers(&pod, other, Load::seconds(4.0), 4);
    thread::sleep(Duration::from_secs(2));
    let mut waiting: Vec<u64> = (0..20)
        .map(|_| {
            thread::sleep(Duration::from_millis(50));
            let qdisc = node.ns.qdisc("eth0").expect("the qdisc");
            qdisc["backlog"].as_u64().expect("a number of bytes")
        })
        .collect();
    finish_all(flows);
    waiting.sort_unstable();
    let drops = agent.counter("codel_drops");
    println!("{former}: {waiting:?} B wait, CoDel drops {drops}");
    (waiting[waiting.len() / 2], drops)
}

/// Whoever takes the place of fq or fq_codel bounds queues as these did.
pub fn what_is_forwarded_waits_no_longer_than_before() {
    let (usual, none) = waiting_of_a_pod("pfifo limit 1000");
    let (with_fq, _) = waiting_of_a_pod("fq flow_limit 20");
    let (with_codel, drops) = waiting_of_a_pod("fq_codel");
    assert_eq!(none, 0);
    assert!(drops > 0);
    assert!(2 * with_fq < usual, "{with_fq} and {usual} B");
    assert!(2 * with_codel < usual, "{with_codel} and {usual} B");
}

/// The kernel names the other end; this ip does not know netkit's options.
const NETKIT: &[&str] = &[
    "ip -n h1 link add pod0 type netkit",
    "ip -n h1 link set nk0 netns pod",
    "ip -n pod link set nk0 name eth0",
];

pub fn a_pod_behind_netkit() {
    a_pod_behind(NETKIT);
}

/// The agent is on the pod's own end, and its node has none.
pub fn an_agent_in_a_pod_behind_netkit() {
    let star = Star::build(&Plan::USUAL);
    let pod = build_pod(&star, NETKIT);
    let other = &star.hosts[1];
    let peers = ["--peers", "10.0.0.0/8"];
    let (in_pod, _receiver) = (Agent::start(&pod, &peers), Agent::start(other, &peers));
    let mbit_per_s = finish_all(transfers(&pod, other, Load::seconds(1.5), 2));
    let [used, holds] = ["oracks_used", "holds"].map(|name| in_pod.counter(name));
    println!("{mbit_per_s:.1} Mbit/s, {holds} holds, {used} OR-ACKs used");
    assert!(used > 50 && holds > 0, "{used} used, {holds} holds");
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
}

/// Between containers a segment arrives whole: its last byte does not follow the first by the time of a line. Nor does it
/// where the line is faster than configured.
pub fn a_segment_that_arrives_whole_has_no_delay_below_zero() {
    for (tso, line_rate) in [(true, "1Gbit/s"), (false, "100Mbit/s")] {
        let star = Star::build(&Plan {
            port_mbit: None,
            tso,
            gro: tso,
            ..Plan::USUAL
        });
        let (from, to) = star.pair();
        let options = [&["--line-rate", line_rate, "--gso-max", "16kB"], LONG_LEASE].concat();
        let [sender, receiver] = [from, to].map(|host| Agent::start_exactly(host, &options));
        let load = Load {
            write: 30_000,
            pause: Duration::from_millis(1),
            ..Load::bytes(20_000_000)
        };
        Transfer::start(from, to, load).finish();
        let peer = sender.peer(to);
        println!("tso {tso}: {peer:?}, {:?}", sender.status().counters);
        let least_ns = peer.owd_min_ns.expect("it is known");
        assert!(least_ns > 0 && least_ns <= peer.owd_ewma_ns, "{peer:?}");
        sender.wait_for("a threshold", || sender.peer(to).threshold.is_some());
        assert_eq!(sender.counter("oracks_below_zero"), 0);
        assert!(sender.status().health.peers_below_zero.is_empty());

        step_clock(&receiver, -1_000_000);
        Transfer::start(from, to, load).finish();
        assert!(sender.counter("oracks_below_zero") > 0);
        sender.wait_for("named", || {
            sender.status().health.peers_below_zero == [to.v4]
        });
    }
}
