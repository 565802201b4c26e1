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
const INCAST: Plan = Plan {
    hosts: 5,
    ..Plan::USUAL
};

/// Requests of an incast, and what each of the hosts answers.
const ROUNDS: usize = 12;
const ANSWER_BYTES: u64 = 150_000;

struct Outcome {
    owd_ms: f64,
    mean_ms: f64,
    slowest_ms: f64,
    drops: u64,
    holds: u64,
    kicks: u64,
}

/// All hosts but the last answer it at once, again and again.
fn incast(path: &str, law: &str) -> Outcome {
    let star = Star::build(&INCAST);
    let options = ["--path", path, "--law", law];
    let agents: Vec<Agent> = star
        .hosts
        .iter()
        .map(|host| Agent::start(host, &options))
        .collect();
    let (to, senders) = star.hosts.split_last().expect("hosts");
    let mut took_ms = vec![];
    for _ in 0..ROUNDS {
        let started = now_mono_ns();
        let flows: Vec<Transfer> = senders
            .iter()
            .map(|from| Transfer::start(from, to, Load::bytes(ANSWER_BYTES)))
            .collect();
        flows.into_iter().for_each(|flow| drop(flow.finish()));
        took_ms.push((now_mono_ns() - started) as f64 / 1e6);
    }
    agents.iter().for_each(harmless);
    let senders = &agents[..senders.len()];
    let sum = |name| senders.iter().map(|agent| agent.counter(name)).sum();
    let outcome = Outcome {
        owd_ms: senders.iter().map(|agent| agent.owd_ms(to)).sum::<f64>() / senders.len() as f64,
        mean_ms: took_ms.iter().sum::<f64>() / took_ms.len() as f64,
        slowest_ms: took_ms.iter().copied().fold(0.0, f64::max),
        drops: star.drops_towards(to),
        holds: sum("holds"),
        kicks: sum("kicks"),
    };
    println!(
        "{path} {law}: delay {:.1} ms, incast {:.1} ms, slowest {:.1} ms, {} drops, {} holds, {} kicks",
        outcome.owd_ms, outcome.mean_ms, outcome.slowest_ms, outcome.drops, outcome.holds, outcome.kicks
    );
    outcome
}

/// As `Agent::assert_harmless`: fq may drop nothing either.
fn harmless(agent: &Agent) {
    let status = agent.status();
    let held = status.counter("held_max_ns").expect("a counter");
    assert!(held <= status.max_pause_ns as u64 + LATENESS_NS, "{held}");
}

fn assert_less(what: &str, less: f64, more: f64) {
    assert!(less < more, "{what}: {less}, and {more} without holding");
}

pub fn it_holds_and_lowers_the_delay_of_an_incast() {
    let off = incast("edt", "off");
    let edt = incast("edt", "final");
    assert_eq!(off.holds, 0);
    assert!(edt.holds > 0);
    assert_eq!(edt.kicks, 0, "it cannot release early");
    assert_less("delay, ms", 2.0 * edt.owd_ms, off.owd_ms);
    assert!(edt.drops <= off.drops, "{} drops", edt.drops);
}

/// Flows of two hosts into one port, as in holding.rs; without `--shape`, which edt does not have.
pub fn the_laws_hold_with_it() {
    let star = Star::build(&Plan {
        hosts: 3,
        ..Plan::USUAL
    });
    let outcome = |law: &str| {
        let options = [EDT, &["--law", law]].concat();
        let agents: Vec<Agent> = star
            .hosts
            .iter()
            .map(|host| Agent::start(host, &options))
            .collect();
        let to = &star.hosts[2];
        let flows = star.hosts[..2]
            .iter()
            .map(|from| Transfer::start(from, to, Load::seconds(2.0)))
            .collect();
        let mbit_per_s = finish_all(flows);
        agents.iter().for_each(harmless);
        let owd_ms = (agents[0].owd_ms(to) + agents[1].owd_ms(to)) / 2.0;
        println!("{law}: one-way delay {owd_ms:.1} ms, {mbit_per_s:.1} Mbit/s");
        (owd_ms, mbit_per_s)
    };
    let (off_ms, _) = outcome("off");
    for law in ["strawman", "final", "gate"] {
        let (owd_ms, mbit_per_s) = outcome(law);
        assert_less(law, 1.5 * owd_ms, off_ms);
        assert!(
            law == "strawman" || mbit_per_s > 70.0,
            "{law}: {mbit_per_s}"
        );
    }
}

/// As `clocks::a_pause_ends_with_the_lease`.
pub fn its_holds_end_with_the_lease() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let long = ["--lease", "1h", "--max-pause", "30s", "--max-owd", "60s"];
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
        assert_eq!(agent.status().health.root_qdisc, RootQdisc::Own);
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
    from.ns
        .run("tc qdisc replace dev eth0 root fq_codel limit 888");
    let before = device(from);
    Agent::start(from, EDT).stop(Signal::SIGKILL);
    finish_all(transfers(from, to, Load::bytes(100_000), 4));
    let successor = Agent::start(from, EDT);
    finish_all(transfers(from, to, Load::bytes(100_000), 4));
    assert_eq!(successor.status().health.root_qdisc, RootQdisc::Own);
    assert_eq!(successor.stop(Signal::SIGTERM).code, Some(0));
    assert_eq!(device(from).0, before.0);
    assert_eq!(device(from).1, before.1);
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
    assert!(ended.text.contains("--shape needs --path edge"), "{ended:?}");
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
