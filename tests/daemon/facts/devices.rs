// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One daemon on several devices, and on a bond, whose slaves it follows.
use std::{thread, time::Duration};

use nix::sys::signal::Signal;
use onramp_status::Device;
use serde_json::Value;

use crate::{
    agent::{Agent, USUAL},
    net::{shell, Host, Plan, Star},
    tcp::{finish_all, transfers, Load, Transfer},
};

const BOTH: &[&str] = &["--dev", "eth0,eth1"];

/// Two hosts, of which the first has a second device, eth1 with 10.0.1.1. The second host has 10.0.1.2 besides.
pub fn with_two_devices() -> (Star, Host) {
    let star = Star::build(&Plan::USUAL);
    for line in [
        "ip link add eth1 netns h1 address 02:00:00:00:01:01 type veth peer name p1b netns switch",
        "ip -n switch link set p1b master sw up",
        "ip netns exec switch tc qdisc add dev p1b root netem rate 100mbit limit 400",
        "ip netns exec h1 ethtool -K eth1 tso off gro off",
        "ip -n h1 link set eth1 up",
        "ip -n h1 addr add 10.0.1.1/24 dev eth1",
        "ip -n h2 addr add 10.0.1.2/24 dev eth0",
    ] {
        shell(line);
    }
    for name in ["all", "eth0", "eth1"] {
        let host = &star.hosts[0].ns;
        host.sysctl(&format!("net.ipv4.conf.{name}.rp_filter"), "0");
        host.sysctl(&format!("net.ipv4.conf.{name}.arp_ignore"), "1");
    }
    let second = Host {
        v4: [10, 0, 1, 2].into(),
        ..star.hosts[1].clone()
    };
    (star, second)
}

/// Kinds and options of the root qdiscs of both devices; none for the kernel's default of a veth.
fn qdiscs(host: &Host) -> [Option<(Value, Value)>; 2] {
    let root = |dev| host.ns.qdisc(dev);
    ["eth0", "eth1"].map(|dev| root(dev).map(|q| (q["kind"].clone(), q["options"].clone())))
}

fn device(agent: &Agent, name: &str) -> Device {
    let found = agent.status().devices.into_iter().find(|d| d.name == name);
    found.unwrap_or_else(|| panic!("no {name}: {}", agent.text()))
}

fn counter(agent: &Agent, dev: &str, name: &str) -> u64 {
    device(agent, dev).counters[name]
}

/// A counter of eth0 and of eth1.
fn of_both(agent: &Agent, name: &str) -> [u64; 2] {
    ["eth0", "eth1"].map(|dev| counter(agent, dev, name))
}

pub fn one_daemon_holds_on_each() {
    each_is_held("edge");
}

pub fn with_edt_one_daemon_holds_on_each() {
    each_is_held("edt");
}

/// Each device's numbers are its own, and their sum is the daemon's.
fn each_is_held(path: &str) {
    let (star, second) = with_two_devices();
    let (from, to) = star.pair();
    let sender = Agent::start(from, &[BOTH, &["--path", path]].concat());
    let receiver = Agent::start(to, &[]);
    let by_eth0 = transfers(from, to, Load::seconds(1.5), 2);
    let by_eth1 = transfers(from, &second, Load::seconds(1.5), 2);
    let mbit_per_s = finish_all(by_eth0) + finish_all(by_eth1);
    println!("{mbit_per_s:.1} Mbit/s");
    for name in ["holds", "oracks_used", "flows_created"] {
        let [eth0, eth1] = of_both(&sender, name);
        println!("{name}: {eth0} and {eth1}");
        assert!(eth0 > 0 && eth1 > 0, "{name}: {eth0} and {eth1}");
        assert_eq!(sender.counter(name), eth0 + eth1);
    }
    assert_eq!(sender.counter("flows_created"), 4);
    let table = from.ns.run("/job/onramp status");
    let head = format!("eth0, eth1: path {path}");
    assert_eq!(table.matches(&head).count(), 1, "{table}");
    sender.assert_harmless();
    receiver.assert_harmless();
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
}

/// The transmit queues of all devices have numbers of their own, by which kicks find them.
pub fn each_of_several_queues_of_both_has_a_qdisc_that_holds() {
    let (star, second) = with_two_devices();
    let (from, to) = star.pair();
    for line in [
        "ip -n h1 link del eth1",
        "ip link add eth1 netns h1 address 02:00:00:00:01:01 numtxqueues 4 numrxqueues 4 type veth peer name p1b netns switch numtxqueues 4 numrxqueues 4",
        "ip -n switch link set p1b master sw up",
        "ip netns exec h1 ethtool -K eth1 tso off gro off",
        "ip -n h1 link set eth1 up",
        "ip -n h1 addr add 10.0.1.1/24 dev eth1",
    ] {
        shell(line);
    }
    let sender = Agent::start(from, BOTH);
    let _receiver = Agent::start(to, &[]);
    assert_eq!(from.ns.qdisc("eth1").expect("mq")["kind"], "mq");
    let by_eth0 = transfers(from, to, Load::seconds(1.5), 2);
    let by_eth1 = transfers(from, &second, Load::seconds(1.5), 4);
    let mbit_per_s = finish_all(by_eth0) + finish_all(by_eth1);
    let [holds, kicks] = ["holds", "kicks"].map(|name| of_both(&sender, name));
    println!("{mbit_per_s:.1} Mbit/s, holds {holds:?}, kicks {kicks:?}");
    assert!(
        holds.iter().chain(&kicks).all(|n| *n > 0),
        "{holds:?} {kicks:?}"
    );
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
}

/// Data leave by eth1; ACKs and OR-ACKs come back on eth0, and wake the qdisc of eth1.
pub fn an_orack_may_come_back_on_the_other() {
    let (star, second) = with_two_devices();
    let (from, to) = star.pair();
    to.ns
        .run(&format!("ip route add 10.0.1.1/32 via {}", from.v4));
    let sender = Agent::start(from, BOTH);
    let _receiver = Agent::start(to, &[]);
    let mbit_per_s = finish_all(transfers(from, &second, Load::seconds(1.5), 2));
    let count = |dev, name| counter(&sender, dev, name);
    let (holds, kicks) = (count("eth1", "holds"), count("eth1", "kicks"));
    let used = of_both(&sender, "oracks_used");
    println!("{mbit_per_s:.1} Mbit/s, {holds} holds, {kicks} kicks, OR-ACKs {used:?}");
    assert_eq!(count("eth0", "flows_created"), 0);
    assert_eq!(count("eth0", "oracks_unknown_flow"), 0);
    // Where ACKs are rare, the receiver answers a frame with a clone of it, which leaves where the frame came in.
    assert!(used[0] > 50 && used[1] < used[0] / 10, "{used:?}");
    assert!(holds > 0 && kicks > 0, "{holds} holds, {kicks} kicks");
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
}

/// Data come in by eth1, and ACKs leave by eth0 with the OR-ACKs.
pub fn an_orack_may_leave_by_the_other() {
    let (star, second) = with_two_devices();
    let (from, to) = star.pair();
    from.ns
        .run("ip route add 10.0.1.2/32 via 10.0.0.2 dev eth0 src 10.0.1.1");
    let receiver = Agent::start(from, BOTH);
    let sender = Agent::start(to, &["--peers", "10.0.0.0/8"]);
    let behind = Host {
        v4: [10, 0, 1, 1].into(),
        ..from.clone()
    };
    let mbit_per_s = finish_all(transfers(&second, &behind, Load::seconds(1.5), 2));
    let sent = of_both(&receiver, "oracks_sent");
    let (used, holds) = (sender.counter("oracks_used"), sender.counter("holds"));
    println!("{mbit_per_s:.1} Mbit/s, OR-ACKs {sent:?}, {used} used, {holds} holds");
    assert!(sent[0] > 50, "{sent:?}");
    assert!(used > 50 && holds > 0, "{used} used, {holds} holds");
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
}

/// Stopped, it restores both; killed under load, both forward, and its successor restores both.
pub fn both_get_back_what_they_had() {
    let (star, second) = with_two_devices();
    let (from, to) = star.pair();
    from.ns
        .run("tc qdisc replace dev eth0 root fq limit 777 flow_limit 55");
    let before = qdiscs(from);
    let sender = Agent::start(from, BOTH);
    assert_ne!(qdiscs(from)[1], before[1]);
    let ended = sender.stop(Signal::SIGTERM);
    for dev in ["eth0", "eth1"] {
        let says = format!("{dev} has its former qdisc again");
        assert!(ended.text.contains(&says), "{ended:?}");
    }
    assert_eq!(qdiscs(from), before);

    let sender = Agent::start(from, BOTH);
    let _receiver = Agent::start(to, &[]);
    let mut all = transfers(from, to, Load::seconds(2.0), 1);
    all.extend(transfers(from, &second, Load::seconds(2.0), 1));
    thread::sleep(Duration::from_millis(700));
    sender.stop(Signal::SIGKILL);
    let mbit_per_s = finish_all(all);
    println!("{mbit_per_s:.1} Mbit/s");
    assert!(mbit_per_s > 60.0, "{mbit_per_s} Mbit/s");
    let successor = Agent::start(from, BOTH);
    assert_eq!(successor.stop(Signal::SIGTERM).code, Some(0));
    assert_eq!(qdiscs(from), before);
}

/// The operator asked for both, so none is taken.
pub fn one_that_cannot_be_held_is_named_and_none_is_taken() {
    let (star, _) = with_two_devices();
    let from = &star.hosts[0];
    from.ns
        .run("tc qdisc replace dev eth1 root netem delay 1ms");
    let before = qdiscs(from);
    let ended = Agent::refuse(from, &[USUAL, BOTH].concat());
    for part in ["cannot attach to eth1", "netem", "tc qdisc del"] {
        assert!(ended.text.contains(part), "{part}: {}", ended.text);
    }
    assert_eq!(qdiscs(from), before);
    let ended = Agent::refuse(from, &["--dev", "eth0,eth0"]);
    assert!(ended.text.contains("given twice"), "{}", ended.text);
}

/// While eth1 is gone eth0 is held on; when it is back, it is held too.
pub fn one_that_is_removed_and_comes_back_is_held_again() {
    let (star, second) = with_two_devices();
    let (from, to) = star.pair();
    let sender = Agent::start(from, BOTH);
    let _receiver = Agent::start(to, &[]);
    from.ns.run("ip link del eth1");
    sender.wait_for("gone", || sender.status().devices.len() == 1);
    finish_all(transfers(from, to, Load::seconds(1.0), 2));
    assert!(counter(&sender, "eth0", "holds") > 0);
    for line in [
        "ip link add eth1 netns h1 address 02:00:00:00:01:01 type veth peer name p1b netns switch",
        "ip -n switch link set p1b master sw up",
        "ip -n h1 link set eth1 up",
        "ip -n h1 addr add 10.0.1.1/24 dev eth1",
    ] {
        shell(line);
    }
    sender.wait_for("back", || sender.status().devices.len() == 2);
    finish_all(transfers(from, &second, Load::seconds(1.0), 2));
    assert!(counter(&sender, "eth1", "holds") > 0);
    assert_eq!(sender.stop(Signal::SIGTERM).code, Some(0));
}

/// The first host's two devices are slaves of bond0, which has its address.
fn with_bond(mode: &str) -> Star {
    let (star, _) = with_two_devices();
    let run = |line: &str| star.hosts[0].ns.run(line);
    run("ip addr flush dev eth1");
    run("ip addr flush dev eth0");
    run(&format!(
        "ip link add bond0 type bond miimon 20 updelay 0 mode {mode}"
    ));
    for dev in ["eth0", "eth1"] {
        run(&format!("ip link set {dev} down"));
        run(&format!("ip link set {dev} master bond0"));
    }
    run("ip link set bond0 up");
    run("ip addr add 10.0.0.1/24 dev bond0");
    thread::sleep(Duration::from_millis(200));
    star
}

const BOND: &[&str] = &["--dev", "bond0"];

/// Flows move from one slave to the other when the link fails, and are held on either.
pub fn a_bond_with_a_backup_is_held_on_the_slave_that_sends() {
    let star = with_bond("active-backup");
    let (from, to) = star.pair();
    let sender = Agent::start(from, BOND);
    let _receiver = Agent::start(to, &[]);
    let flow = Transfer::start(from, to, Load::seconds(3.0));
    let other = Transfer::start(from, to, Load::seconds(3.0));
    thread::sleep(Duration::from_millis(1500));
    let first = of_both(&sender, "holds");
    shell("ip -n switch link set p1 down");
    let mbit_per_s = flow.finish().mbit_per_s() + other.finish().mbit_per_s();
    let after = of_both(&sender, "holds");
    println!("{mbit_per_s:.1} Mbit/s, holds {first:?}, then {after:?}");
    assert!(first[0] > 0 && first[1] == 0, "{first:?}");
    assert!(after[1] > 0, "{after:?}");
    assert!(mbit_per_s > 60.0, "{mbit_per_s} Mbit/s");
}

/// ACKs come back on whichever slave the switch has learnt last.
pub fn a_bond_that_balances_is_held_on_both_slaves() {
    let star = with_bond("balance-xor xmit_hash_policy layer3+4");
    let (from, to) = star.pair();
    let sender = Agent::start(from, BOND);
    let _receiver = Agent::start(to, &[]);
    let mbit_per_s = finish_all(transfers(from, to, Load::seconds(2.0), 8));
    let holds = of_both(&sender, "holds");
    let used = of_both(&sender, "oracks_used");
    println!("{mbit_per_s:.1} Mbit/s, holds {holds:?}, OR-ACKs {used:?}");
    assert!(holds.iter().all(|holds| *holds > 0), "{holds:?}");
    assert_eq!(sender.counter("oracks_unknown_flow"), 0);
    assert!(mbit_per_s > 70.0, "{mbit_per_s} Mbit/s");
}

/// A slave that leaves its bond gets its qdisc back; one that joins is held.
pub fn slaves_are_followed() {
    let star = with_bond("active-backup");
    let (from, to) = star.pair();
    let before = qdiscs(from);
    let sender = Agent::start(from, BOND);
    let _receiver = Agent::start(to, &[]);
    from.ns.run("ip link set eth1 nomaster");
    sender.wait_for("left", || sender.status().devices.len() == 1);
    assert_eq!(qdiscs(from)[1], before[1]);
    from.ns.run("ip link set eth1 down");
    from.ns.run("ip link set eth1 master bond0");
    sender.wait_for("joined", || sender.status().devices.len() == 2);
    from.ns.run("ip link set eth0 nomaster");
    sender.wait_for("left", || sender.status().devices.len() == 1);
    finish_all(transfers(from, to, Load::seconds(1.0), 2));
    assert!(counter(&sender, "eth1", "holds") > 0);
    from.ns.run("ip link set eth1 nomaster");
    sender.wait_for("empty", || sender.status().devices.is_empty());
    assert_eq!(sender.stop(Signal::SIGTERM).code, Some(0));
    assert_eq!(qdiscs(from), before);
    let ended = Agent::refuse(from, BOND);
    assert!(
        ended.text.contains("a bond without slaves"),
        "{}",
        ended.text
    );
}
