// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The path `edt`: departure times that fq obeys. Most facts hold on every kernel from 5.10 on (`ONRAMP_KERNEL`).
use std::{thread, time::Duration};

use nix::sys::signal::Signal;
use onramp_law::abi::onr_clock_params;
use onramp_status::RootQdisc;
use serde_json::Value;

use crate::{
    agent::{Agent, LATENESS_NS, USUAL},
    maps::{now_mono_ns, set_clock},
    net::{Host, Plan, Star},
    tcp::{finish_all, transfers, Load, Transfer},
};

const EDT: &[&str] = &["--path", "edt", "--gate-tau", "20ms"];
const S: i64 = 1_000_000_000;

/// What the switch port towards the last host shows while the others send to it.
struct Outcome {
    queue_ms: f64,
    mbit_per_s: f64,
    holds: u64,
    kicks: u64,
}

/// The time that the bytes queued at the port take, ms.
fn queue_ms(star: &Star, to: &Host) -> f64 {
    let qdisc = star.switch.qdisc(&to.port).expect("the port's queue");
    qdisc["backlog"].as_u64().expect("a size") as f64 * 8.0 / 100e6 * 1e3
}

/// Looks at the port until the flows have ended.
fn watch(star: &Star, to: &Host, flows: &[Transfer]) -> Vec<f64> {
    let mut queues = vec![];
    while !flows.iter().all(Transfer::is_finished) {
        thread::sleep(Duration::from_millis(50));
        queues.push(queue_ms(star, to));
    }
    queues
}

/// Each of `senders` hosts sends to the last one at once.
fn many_to_one(path: &str, law: &str, senders: u8, load: Load) -> Outcome {
    let star = Star::build(&Plan {
        hosts: senders + 1,
        ..Plan::USUAL
    });
    let options = ["--path", path, "--law", law, "--gate-tau", "20ms"];
    let agents: Vec<Agent> = star
        .hosts
        .iter()
        .map(|host| Agent::start(host, &options))
        .collect();
    let (to, from) = star.hosts.split_last().expect("hosts");
    let flows: Vec<Transfer> = from
        .iter()
        .map(|host| Transfer::start(host, to, load))
        .collect();
    let queues = watch(&star, to, &flows);
    let mbit_per_s = finish_all(flows);
    agents.iter().for_each(harmless);
    let sum = |name| agents.iter().map(|agent| agent.counter(name)).sum();
    let outcome = Outcome {
        queue_ms: queues.iter().sum::<f64>() / queues.len() as f64,
        mbit_per_s,
        holds: sum("holds"),
        kicks: sum("kicks"),
    };
    let (holds, kicks) = (outcome.holds, outcome.kicks);
    let (queue_ms, drops) = (outcome.queue_ms, star.drops_towards(to));
    println!("| {path} | {law} | {senders} | {queue_ms:.1} | {mbit_per_s:.1} | {drops} | {holds} | {kicks} |");
    outcome
}

/// As `Agent::assert_harmless`, whatever the qdisc.
fn harmless(agent: &Agent) {
    let status = agent.status();
    let held = status.counter("held_max_ns").expect("a counter");
    assert!(held <= status.max_pause_ns as u64 + LATENESS_NS, "{held}");
}

fn assert_less(what: &str, less: f64, more: f64) {
    assert!(less < more, "{what}: {less}, and {more} without holding");
}

pub fn it_holds_an_incast_and_shortens_the_queue() {
    let off = many_to_one("edt", "off", 3, Load::seconds(1.0));
    let edt = many_to_one("edt", "final", 3, Load::seconds(1.0));
    assert_eq!(off.holds, 0);
    assert!(edt.holds > 0);
    assert_eq!(edt.kicks, 0, "it cannot release early");
    assert_less("queue, ms", 1.2 * edt.queue_ms, off.queue_ms);
}

pub fn every_law_holds_with_it() {
    let load = Load::seconds(2.0);
    let off = many_to_one("edt", "off", 2, load);
    for law in ["strawman", "final", "gate"] {
        let edt = many_to_one("edt", law, 2, load);
        assert_less(law, 1.2 * edt.queue_ms, off.queue_ms);
        assert!(law == "strawman" || edt.mbit_per_s > 70.0);
    }
}

/// The table of docs/kernels.md.
pub fn beside_edge() {
    println!("| path | law | senders | queue ms | Mbit/s | drops | holds | kicks |");
    for (senders, seconds) in [(8, 1.0), (2, 2.0)] {
        let load = Load::seconds(seconds);
        many_to_one("edt", "off", senders, load);
        for law in ["final", "gate", "strawman"] {
            for path in ["edge", "edt"] {
                many_to_one(path, law, senders, load);
            }
        }
    }
}

/// As `clocks::a_pause_ends_with_the_lease`.
pub fn its_holds_end_with_the_lease() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let long = ["--lease", "3600s", "--max-pause", "30s", "--max-owd", "60s"];
    let options = [EDT, &long].concat();
    let sender = Agent::start(from, &options);
    let _receiver = Agent::start(to, &options);
    set_clock(
        &sender,
        onr_clock_params {
            offset_ns: -20 * S,
            lease_expires_mono_ns: now_mono_ns() + 2 * S,
            ..Default::default()
        },
    );
    let flow = Transfer::start(from, to, Load::bytes(1_000_000));
    thread::sleep(Duration::from_millis(1500));
    assert!(!flow.is_finished(), "20 s of delay hold nothing");
    let took = flow.finish().took;
    println!("{took:?}; {:?}", sender.status().counters);
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(sender.counter("holds_refused_lease") > 0);
    assert!(sender.counter("held_max_ns") < 2_100_000_000);
}

fn root(host: &Host) -> Option<(Value, Value)> {
    let qdisc = host.ns.qdisc("eth0");
    qdisc.map(|q| (q["kind"].clone(), q["options"].clone()))
}

fn gso_max(host: &Host) -> u64 {
    let links = host.ns.run("ip -j -d link show dev eth0");
    let links: Value = serde_json::from_str(&links).expect("ip prints JSON");
    links[0]["gso_max_size"].as_u64().expect("a size")
}

/// The device's qdiscs and filters, but for counts.
fn device(host: &Host) -> (Option<(Value, Value)>, u64, String) {
    let ingress = host.ns.run("tc qdisc show dev eth0 ingress");
    (root(host), gso_max(host), ingress)
}

pub fn it_restores_what_it_found() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    for qdisc in [
        "",
        "fq_codel limit 888 flows 64 target 7ms",
        "fq limit 777 flow_limit 55",
    ] {
        if !qdisc.is_empty() {
            host.ns
                .run(&format!("tc qdisc replace dev eth0 root {qdisc}"));
        }
        let before = device(host);
        let agent = Agent::start(host, EDT);
        let (kind, options) = root(host).expect("a qdisc");
        println!("{qdisc}: {kind} {options}");
        assert_eq!(kind, "fq");
        let own = qdisc.starts_with("fq ");
        assert_eq!(own, options["limit"] == 777, "{options}");
        assert_eq!(agent.status().devices[0].root_qdisc, RootQdisc::Own);
        assert_eq!(agent.status().path, "edt");
        assert!(gso_max(host) < before.1, "GSO segments are limited");
        let ended = agent.stop(Signal::SIGTERM);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(device(host), before, "{qdisc}");
    }
}

pub fn its_successor_restores_what_a_killed_one_found() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let options = [EDT, &["--gso-max", "8kB"]].concat();
    for qdisc in ["fq_codel limit 888", "fq limit 888"] {
        from.ns
            .run(&format!("tc qdisc replace dev eth0 root {qdisc}"));
        let before = device(from);
        Agent::start(from, &options).stop(Signal::SIGKILL);
        finish_all(transfers(from, to, Load::bytes(100_000), 4));
        let successor = Agent::start(from, &options);
        finish_all(transfers(from, to, Load::bytes(100_000), 4));
        assert_eq!(successor.status().devices[0].root_qdisc, RootQdisc::Own);
        assert_ne!(device(from).1, before.1, "segments are not limited");
        assert_eq!(successor.stop(Signal::SIGTERM).code, Some(0));
        assert_eq!(device(from).0, before.0);
        assert_eq!(device(from).1, before.1);
    }
}

pub fn a_full_table_passes_traffic_and_counts_it() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let options = [EDT, &["--flows", "16"]].concat();
    let sender = Agent::start(from, &options);
    let _receiver = Agent::start(to, &options);
    finish_all(transfers(from, to, Load::bytes(100_000), 64));
    println!("{:?}", sender.status().counters);
    assert_eq!(sender.status().flows, 16);
    assert!(sender.counter("flow_table_full") >= 48);
    harmless(&sender);
}

pub fn what_it_cannot_do_is_refused() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let shaped = [USUAL, EDT, &["--shape", "20Mbit/s"]].concat();
    let ended = Agent::refuse(host, &shaped);
    assert!(
        ended.text.contains("--shape needs --path edge"),
        "{ended:?}"
    );
    host.ns.run("tc qdisc replace dev eth0 root htb default 1");
    let ended = Agent::refuse(host, &[USUAL, EDT].concat());
    assert!(ended.text.contains("could not restore"), "{ended:?}");
}

pub fn the_path_is_edge_where_the_kernel_has_it() {
    let star = Star::build(&Plan::USUAL);
    let agent = Agent::start(&star.hosts[0], &[]);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release.split(['.', '-', '+']).map(|word| word.parse());
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0u32);
    let expected = match (next(), next()) >= (6, 16) {
        true => "edge",
        false => "edt",
    };
    assert_eq!(agent.status().path, expected, "{release}");
    assert_eq!(agent.text().contains("--path edt"), expected == "edt");
}

/// Each transmit queue gets an fq, under mq; an mq that has them stays.
pub fn each_transmit_queue_gets_fq() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    host.ns.run("ip link del eth0");
    host.ns
        .run("ip link add eth0 numtxqueues 4 numrxqueues 4 type veth peer name other numtxqueues 4 numrxqueues 4");
    host.ns.run("ip link set eth0 up");
    let kinds = || {
        let all = host.ns.run("tc -j qdisc show dev eth0");
        let all: Vec<Value> = serde_json::from_str(&all).expect("tc prints JSON");
        let kind = |q: &Value| q["kind"].as_str().unwrap_or("").to_owned();
        let mut kinds: Vec<String> = all.iter().map(kind).collect();
        kinds.retain(|kind| kind != "clsact");
        kinds
    };
    let before = kinds();
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let agent = Agent::start(host, EDT);
        assert_eq!(kinds(), ["mq", "fq", "fq", "fq", "fq"]);
        assert_eq!(agent.status().devices[0].root_qdisc, RootQdisc::Own);
        agent.stop(signal);
    }
    assert_eq!(kinds(), before);
    host.ns.run("tc qdisc replace dev eth0 root handle 7: mq");
    for queue in 1..=4 {
        host.ns.run(&format!(
            "tc qdisc replace dev eth0 parent 7:{queue} fq limit 777"
        ));
    }
    let before = host.ns.run("tc qdisc show dev eth0 root");
    let agent = Agent::start(host, EDT);
    assert_eq!(agent.status().devices[0].root_qdisc, RootQdisc::Own);
    agent.stop(Signal::SIGTERM);
    assert_eq!(host.ns.run("tc qdisc show dev eth0 root"), before);
}
