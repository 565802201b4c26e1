// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The daemon's life: what it finds it puts back; killed, it leaves traffic flowing; the device
//! may go down, come up and disappear.
use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use onramp_status::{socket_path, RootQdisc, Status};
use serde_json::Value;

use crate::{
    agent::{onramp, write_keys, Agent, Ended, USUAL},
    maps::{clock, now_mono_ns},
    net::{leave_subnets, shell, Host, Plan, Star},
    tcp::{finish_all, transfers, Load},
};

fn pause_s(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}

/// Kind and options of the root qdisc; none for the kernel's default of a veth, which has none.
fn root(host: &Host) -> Option<(Value, Value)> {
    host.ns.qdisc("eth0").map(|mut q| {
        if let Some(options) = q["options"].as_object_mut() {
            options.remove("direct_packets_stat"); // of htb: packets so far
        }
        (q["kind"].clone(), q["options"].clone())
    })
}

/// Largest GSO segment of eth0, bytes.
fn gso_max(host: &Host) -> u64 {
    let links = host.ns.run("ip -j -d link show dev eth0");
    let links: Value = serde_json::from_str(&links).expect("ip prints JSON");
    links[0]["gso_max_size"].as_u64().expect("a size")
}

fn assert_ours(host: &Host) {
    let (kind, _) = root(host).expect("a qdisc");
    assert!(
        kind.as_str().is_some_and(|k| k.starts_with("onr")),
        "{kind}"
    );
}

fn assert_clean(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.text.contains("eth0 has its former qdisc again"),
        "{ended:?}"
    );
}

/// Starts a daemon on the first host, stops it, and compares the device.
fn comes_back(signal: Signal) {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let before = (root(host), gso_max(host));
    let agent = Agent::start(host, &[]);
    assert_ours(host);
    assert!(gso_max(host) < before.1, "GSO segments are limited");
    assert_clean(&agent.stop(signal));
    assert_eq!((root(host), gso_max(host)), before);
}

pub fn sigterm_puts_the_default_back() {
    comes_back(Signal::SIGTERM);
}

pub fn sigint_puts_the_default_back() {
    comes_back(Signal::SIGINT);
}

/// The qdisc and every option of it, as tc shows them.
pub fn a_configured_qdisc_comes_back_with_its_options() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    for qdisc in [
        "fq limit 777 flow_limit 55 quantum 4000 initial_quantum 20000 buckets 256 horizon 3s",
        "fq_codel limit 888 flows 64 target 7ms interval 90ms quantum 1000 memory_limit 1Mb noecn",
    ] {
        host.ns
            .run(&format!("tc qdisc replace dev eth0 root {qdisc}"));
        let before = root(host);
        let agent = Agent::start(host, &[]);
        assert_ours(host);
        assert_clean(&agent.stop(Signal::SIGTERM));
        println!("{before:?}");
        assert!(before.is_some());
        assert_eq!(root(host), before);
    }
}

/// Classful and emulating qdiscs cannot be restored from a dump, so the daemon does not replace them.
pub fn a_qdisc_that_could_not_come_back_is_left_alone() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    for (kind, qdisc) in [
        ("htb", "htb default 1"),
        ("netem", "netem delay 1ms limit 500"),
    ] {
        host.ns
            .run(&format!("tc qdisc replace dev eth0 root {qdisc}"));
        let before = root(host);
        let ended = Agent::refuse(host, USUAL);
        for part in ["eth0", kind, "could not restore", "tc qdisc del"] {
            assert!(
                ended.text.contains(part),
                "{part} is missing: {}",
                ended.text
            );
        }
        assert_eq!(root(host), before);
        host.ns.run("tc qdisc del dev eth0 root");
    }
}

/// Waits until the status names this owner of the root qdisc.
fn await_owner(agent: &Agent, owner: &RootQdisc) {
    let deadline = Instant::now() + Duration::from_secs(3);
    while agent.status().devices[0].root_qdisc != *owner {
        assert!(Instant::now() < deadline, "{:?}", agent.status().health);
        pause_s(0.1);
    }
}

/// Two programs that replace each other's qdisc would drop packets without end; so the daemon says what has
/// happened, once, and takes nothing away that is not its own.
pub fn what_another_program_makes_of_the_root_qdisc_stays() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    from.ns
        .run("tc qdisc replace dev eth0 root fq limit 777 quantum 4000");
    let agent = Agent::start(from, &[]);
    assert_eq!(agent.status().devices[0].root_qdisc, RootQdisc::Own);
    from.ns
        .run("tc qdisc replace dev eth0 root fq_codel limit 888");
    from.ns.run("ip link set dev eth0 gso_max_size 30000");
    let theirs = (root(from), gso_max(from));
    await_owner(&agent, &RootQdisc::Foreign("fq_codel".to_owned()));
    pause_s(2.5);
    let says = "another program made fq_codel the root qdisc of eth0";
    assert_eq!(agent.text().matches(says).count(), 1, "{}", agent.text());
    assert!(agent.text().contains("restart the daemon"));
    finish_all(transfers(from, to, Load::bytes(1_000_000), 2));
    let ended = agent.stop(Signal::SIGTERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let says = "eth0 keeps the fq_codel qdisc of another program";
    assert!(ended.text.contains(says), "{ended:?}");
    assert_eq!((root(from), gso_max(from)), theirs);
}

pub fn a_removed_qdisc_is_noticed_and_the_former_one_comes_back() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    host.ns
        .run("tc qdisc replace dev eth0 root fq limit 777 quantum 4000");
    let before = (root(host), gso_max(host));
    let agent = Agent::start(host, &[]);
    host.ns.run("tc qdisc del dev eth0 root");
    await_owner(&agent, &RootQdisc::Default);
    let says = "another program removed On-Ramp's qdisc from eth0";
    assert!(agent.text().contains(says), "{}", agent.text());
    assert_clean(&agent.stop(Signal::SIGTERM));
    assert_eq!((root(host), gso_max(host)), before);
}

/// SIGTERM under load: what was held leaves or is sent again; nothing is stuck.
pub fn stopping_under_load_loses_no_transfer() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--shape", "200Mbit/s"]);
    let receiver = Agent::start(to, &[]);
    let flows = transfers(from, to, Load::seconds(1.0), 2);
    pause_s(0.4);
    assert!(sender.counter("holds") > 0);
    assert_clean(&sender.stop(Signal::SIGTERM));
    assert_clean(&receiver.stop(Signal::SIGTERM));
    let goodput = finish_all(flows);
    println!("{goodput:.1} Mbit/s");
    assert!(goodput > 60.0, "{goodput} Mbit/s");
}

pub fn killed_under_load_it_leaves_traffic_flowing_and_its_successor_takes_over() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    from.ns
        .run("tc qdisc replace dev eth0 root fq limit 777 quantum 4000");
    let before = (root(from), gso_max(from));
    let options = &["--shape", "200Mbit/s"];
    let sender = Agent::start(from, options);
    let _receiver = Agent::start(to, &[]);
    let flows = transfers(from, to, Load::seconds(1.2), 2);
    pause_s(0.4);
    assert!(sender.counter("holds") > 0);
    let ended = sender.stop(Signal::SIGKILL);
    assert_eq!(ended.code, None);
    let goodput = finish_all(flows);
    println!("{goodput:.1} Mbit/s");
    assert!(goodput > 80.0, "{goodput} Mbit/s");
    assert_ours(from);

    let successor = Agent::start(from, options);
    pause_s(1.0); // for a second the receiver sends no OR-ACKs to a host that has refused one
    finish_all(transfers(from, to, Load::seconds(0.5), 2));
    assert!(successor.counter("holds") > 0, "the successor holds");
    successor.assert_harmless();
    assert_clean(&successor.stop(Signal::SIGTERM));
    assert_eq!((root(from), gso_max(from)), before);
}

pub fn down_and_up_under_load_loses_no_transfer() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--shape", "200Mbit/s"]);
    let receiver = Agent::start(to, &[]);
    let flows = transfers(from, to, Load::seconds(2.5), 2);
    for host in [from, to, from] {
        pause_s(0.3);
        shell(&format!("ip -n {} link set eth0 down", host.ns.0));
        pause_s(0.1);
        shell(&format!("ip -n {} link set eth0 up", host.ns.0));
    }
    let held = sender.counter("holds");
    println!("{:.1} Mbit/s", finish_all(flows));
    assert!(
        sender.counter("holds") > held,
        "nothing is held after the device was down"
    );
    let qdisc = from.ns.qdisc("eth0").expect("the qdisc is still there");
    assert_eq!(
        (&qdisc["qlen"], &qdisc["backlog"]),
        (&0.into(), &0.into()),
        "{qdisc:#}"
    );
    let held_max = sender.counter("held_max_ns");
    assert!(held_max <= 102_000_000, "{held_max} ns");
    assert_clean(&sender.stop(Signal::SIGTERM));
    assert_clean(&receiver.stop(Signal::SIGTERM));
}

pub fn a_daemon_without_peers_names_the_option_that_mends_it() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let says = "no host is a peer, so nothing is held: eth0 has no subnet";
    leave_subnets(host, 1);
    let agent = Agent::start(host, &[]);
    let text = agent.text();
    assert!(
        text.contains(says) && text.contains("add --peers"),
        "{text}"
    );
    agent.stop(Signal::SIGTERM);
    let agent = Agent::start(host, &["--peers", "10.0.0.0/24"]);
    assert!(!agent.text().contains(says), "{}", agent.text());
}

/// Each of its threads; detaching needs no more.
pub fn it_keeps_the_capabilities_that_it_needs_and_no_others() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let member = ["--member", "10.0.0.1,10.0.0.2"];
    let agent = Agent::start(host, &[&["--clock", "huygens"], &member[..]].concat());
    const NET_ADMIN: u64 = 1 << 12;
    const PERFMON: u64 = 1 << 38;
    const BPF: u64 = 1 << 39;
    let tasks = format!("/proc/{}/task", agent.pid());
    let mut threads = 0;
    for task in std::fs::read_dir(&tasks).expect("it runs").flatten() {
        let status = std::fs::read_to_string(task.path().join("status")).expect("it runs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            u64::from_str_radix(line.expect("a field").trim(), 16).expect("hexadecimal")
        };
        for set in ["CapEff:", "CapPrm:"] {
            assert_eq!(field(set), NET_ADMIN | PERFMON | BPF, "{status}");
        }
        assert_eq!(field("NoNewPrivs:"), 1);
        threads += 1;
    }
    assert!(
        threads >= 3,
        "{threads}: the main one, the clock's and netlink's"
    );
    assert_clean(&agent.stop(Signal::SIGTERM));
}

/// Keys are changed host by host; a file that is refused changes nothing.
pub fn sighup_reads_the_keys_again() {
    const OLD: &str = "0 000102030405060708090a0b0c0d0e0f\n";
    const NEW: &str = "1 f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\n";
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let start = |host: &Host, file: &str| {
        write_keys(file, OLD);
        Agent::start(host, &["--key-file", file])
    };
    let (sender, receiver) = (start(from, "/tmp/from-keys"), start(to, "/tmp/to-keys"));
    let change = |agent: &Agent, file: &str, keys: &str| {
        write_keys(file, keys);
        agent.signal(Signal::SIGHUP);
        // For a second no OR-ACKs go to a host that has refused one, as one does that does not believe them.
        pause_s(1.2);
    };
    // OR-ACKs that the sender believes, and others, of one transfer.
    let counts = || {
        let of = |name| sender.counter(name);
        let before = (of("oracks_used"), of("oracks_bad_tag"));
        finish_all(transfers(from, to, Load::bytes(1_000_000), 1));
        (
            of("oracks_used") - before.0,
            of("oracks_bad_tag") - before.1,
        )
    };
    let is_believed = |(used, bad)| used > 10 && bad == 0;
    assert!(is_believed(counts()));
    change(&receiver, "/tmp/to-keys", NEW);
    let (used, bad) = counts();
    assert!(used == 0 && bad > 0, "{used} used, {bad} bad");
    change(&sender, "/tmp/from-keys", &[NEW, OLD].concat());
    assert!(is_believed(counts()));
    change(&sender, "/tmp/from-keys", "1 zz\n");
    let text = sender.text();
    let says = ["the key has 2 hex digits", "the former configuration stays"];
    assert!(says.iter().all(|part| text.contains(part)), "{text}");
    assert!(is_believed(counts()));
    change(&sender, "/tmp/from-keys", OLD);
    assert!(counts().0 == 0, "a removed key is believed");
    assert_clean(&sender.stop(Signal::SIGTERM));
}

pub fn status_tells_of_a_daemon_and_of_none() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let onramp = |words: &[&str]| onramp(host, words);
    let agent = Agent::start(host, &[]);
    let (code, json, _) = onramp(&["status", "--json"]);
    let status: Status = serde_json::from_str(&json).expect("JSON of its type");
    assert_eq!((code, status.pid), (Some(0), agent.pid()));
    let (code, text, _) = onramp(&["status", "--dev", "eth0"]);
    assert!(code == Some(0) && text.contains("eth0"), "{text}");
    assert_clean(&agent.stop(Signal::SIGTERM));
    for words in [
        &["status"][..],
        &["status", "--dev", "eth0"],
        &["clock", "status"],
    ] {
        let (code, text, error) = onramp(words);
        let names_the_fix = error.contains("start one: onramp agent run --dev DEV");
        assert!(
            code == Some(1) && text.is_empty() && names_the_fix,
            "{words:?}: {code:?} {error}"
        );
    }
}

/// One client at the status socket writes a byte now and then; others ask the port of the metrics for the impossible. The lease is
/// renewed all the time, and both doors answer afterwards.
pub fn slow_clients_and_hostile_ones_hold_up_no_lease() {
    let star = Star::build(&Plan::USUAL);
    let (host, other) = star.pair();
    let agent = Agent::start(host, &["--metrics", "10.0.0.1:9464"]);
    let socket = socket_path(host.ns.inode(), "eth0");
    let metrics = |request: &[u8]| {
        other.ns.enter(|| {
            let mut stream = TcpStream::connect((host.v4, 9464)).expect("the port is open");
            let _ = stream.write_all(request); // it may be closed before all is read
            stream
        })
    };
    let mut slow: Option<UnixStream> = None;
    let mut hostile = vec![];
    for round in 0..100 {
        let is_open = slow
            .as_mut()
            .is_some_and(|slow| slow.write_all(b"s").is_ok());
        if !is_open {
            slow = Some(UnixStream::connect(&socket).expect("the daemon listens"));
        }
        if round % 5 == 0 {
            hostile.push(metrics(
                b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            ));
            hostile.push(metrics(&[b'x'; 100_000]));
            hostile.push(metrics(b""));
        }
        pause_s(0.1);
        assert!(
            clock(&agent).lease_expires_mono_ns > now_mono_ns(),
            "round {round}"
        );
    }
    drop(slow);
    let mut text = String::new();
    let mut scrape = metrics(b"GET /metrics HTTP/1.0\r\n\r\n");
    scrape.read_to_string(&mut text).expect("it answers");
    assert!(text.starts_with("HTTP/1.0 200"), "{text}");
    let pid = agent.status().pid;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().strip_suffix(" kB"));
    let peak_kb: u64 = peak
        .and_then(|kb| kb.parse().ok())
        .expect("the kernel counts");
    println!("at most {peak_kb} kB");
    assert!(peak_kb < 100_000, "{peak_kb} kB");
    agent.assert_harmless();
}
