// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What hosts notice of On-Ramp where nothing is congested. The same hosts carry the same load without daemons, with
//! them, and without them again.
use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use nix::sys::{
    resource::{setrlimit, Resource},
    signal::Signal,
};

use super::frames::build_pod;
use crate::{
    agent::Agent,
    net::{Host, Plan, Star},
    tcp::{connect, Load, Transfer},
};

/// A network without a limit of its rate.
pub struct Network {
    /// In either direction, with netem.
    delay: &'static str,
    /// Above any delay of the network.
    threshold: &'static str,
}

/// The emulated processor executes an instruction a nanosecond, about a tenth of what a real one does, so the networks are
/// slower than a rack's, too. In the second, the processor's time is a tenth as much of a round trip: there a processor
/// ten times as fast as the first's would be.
pub const NETWORKS: [Network; 2] = [
    Network {
        delay: "1ms",
        threshold: "5ms",
    },
    Network {
        delay: "10ms",
        threshold: "50ms",
    },
];
/// Least, usual and greatest bytes of the receiver's buffer, half of which is window: a transfer is bound by the round trip.
const BUFFER: &str = "4096 131072 131072";
/// Bytes of a request, and of its answer.
const MESSAGE: usize = 100;
const ROUND_TRIPS: usize = 1_000;
/// Bytes of a transfer, and how many there are: the median counts.
pub const TRANSFERRED: u64 = 12_000_000;
const TRANSFERS: usize = 7;
/// Descriptors of 11,000 connections, both ends.
const FILES: u64 = 30_000;
/// An active flow sends a message so often.
const EVERY: Duration = Duration::from_secs(2);
/// For a network that is ten times as slow as those that the defaults are for.
pub const DAEMON: &[&str] = &["--line-rate", "1Gbit/s", "--max-owd", "1s"];

/// One row of the table.
pub struct Case {
    name: &'static str,
    plan: Plan,
    /// What the hosts' eth0 has before a daemon comes; `{}` of `tc qdisc replace dev eth0 root {}`.
    qdisc: &'static str,
    /// Bytes of a GSO segment over IPv6.
    big: Option<u32>,
    idle: usize,
    active: usize,
    pod: bool,
}

const PLAN: Plan = Plan {
    port_mbit: None,
    tso: true,
    gro: true,
    ..Plan::USUAL
};

pub const USUAL: Case = Case {
    name: "fq",
    plan: PLAN,
    qdisc: "fq",
    big: None,
    idle: 0,
    active: 0,
    pod: false,
};

const CASES: [Case; 8] = [
    USUAL,
    Case {
        name: "fq_codel",
        qdisc: "fq_codel",
        ..USUAL
    },
    Case {
        name: "mq, 4 queues",
        plan: Plan { queues: 4, ..PLAN },
        qdisc: "mq",
        ..USUAL
    },
    Case {
        name: "fq, no offloads",
        plan: Plan {
            tso: false,
            gro: false,
            ..PLAN
        },
        ..USUAL
    },
    Case {
        name: "fq, MTU 9000",
        plan: Plan { mtu: 9000, ..PLAN },
        ..USUAL
    },
    Case {
        name: "fq, BIG TCP",
        big: Some(200_000),
        ..USUAL
    },
    Case {
        name: "fq, 10,000 idle and 1,000 active flows",
        idle: 10_000,
        active: 1_000,
        ..USUAL
    },
    Case {
        name: "fq, a pod forwarded",
        pod: true,
        ..USUAL
    },
];

/// What a host had, or has.
struct Measured {
    mbit_per_s: f64,
    p50_us: f64,
    p99_us: f64,
}

/// Prints the tables of docs/unloaded.md.
pub fn a_host_before_with_and_after_daemons() {
    setrlimit(Resource::RLIMIT_NOFILE, FILES, FILES).expect("root may");
    for network in &NETWORKS {
        println!("\n{} in either direction", network.delay);
        table(network);
    }
}

fn table(network: &Network) {
    println!("| hosts have | Mbit/s before | with On-Ramp | after | RTT p50 before, us | with On-Ramp | after | RTT p99 before, us | with On-Ramp | after | holds |");
    println!("|---|{}", "---|".repeat(10));
    // To connect thousands of flows one after the other takes minutes over the long delay.
    let in_time = |case: &&Case| case.idle == 0 || network.delay == NETWORKS[0].delay;
    CASES
        .iter()
        .filter(in_time)
        .for_each(|case| row(case, network));
}

fn row(case: &Case, network: &Network) {
    let star = build(case, network);
    let pod = case.pod.then(|| {
        build_pod(
            &star,
            &["ip -n h1 link add pod0 type veth peer name eth0 netns pod"],
        )
    });
    let (node, to) = star.pair();
    let from = pod.as_ref().unwrap_or(node);
    let stop = AtomicBool::new(false);
    let (before, with, holds, after) = thread::scope(|scope| {
        let _idle = connections(from, to, case.idle);
        let (active, _unread) = connections(from, to, case.active);
        let keeping = scope.spawn(|| keep_active(active, &stop));
        measure(case, from, to); // caches and the routes' metrics are warm
        let before = measure(case, from, to);
        let peers = ["--peers", "10.0.0.0/8"];
        let peers: &[&str] = if case.pod { &peers } else { &[] };
        let options = [DAEMON, &["--threshold", network.threshold], peers].concat();
        let agents = [node, to].map(|host| Agent::start_exactly(host, &options));
        let with = measure(case, from, to);
        let holds: u64 = agents.iter().map(|agent| agent.counter("holds")).sum();
        drop(agents);
        thread::sleep(Duration::from_secs(1));
        let after = measure(case, from, to);
        stop.store(true, Ordering::Relaxed);
        keeping.join().expect("the kernel takes all");
        (before, with, holds, after)
    });
    let cells = |of: fn(&Measured) -> f64| {
        let [a, b, c] = [&before, &with, &after].map(of);
        format!("{a:.1} | {b:.1} ({:+.2} %) | {c:.1}", 100.0 * (b / a - 1.0))
    };
    println!(
        "| {} | {} | {} | {} | {holds} |",
        case.name,
        cells(|m| m.mbit_per_s),
        cells(|m| m.p50_us),
        cells(|m| m.p99_us),
    );
}

pub fn build(case: &Case, network: &Network) -> Star {
    let star = Star::build(&case.plan);
    for host in &star.hosts {
        let port = &host.port;
        star.switch.run(&format!(
            "tc qdisc add dev {port} root netem delay {} limit 100000",
            network.delay
        ));
        host.ns
            .run(&format!("tc qdisc replace dev eth0 root {}", case.qdisc));
        host.ns.sysctl("net.ipv4.tcp_rmem", BUFFER);
        if let Some(bytes) = case.big {
            host.ns.run(&format!(
                "ip link set eth0 gso_max_size {bytes} gro_max_size {bytes}"
            ));
        }
    }
    star
}

fn measure(case: &Case, from: &Host, to: &Host) -> Measured {
    let rates = rates(case, from, to);
    let us = round_trips(from, to);
    Measured {
        mbit_per_s: at(&rates, 0.5),
        p50_us: at(&us, 0.5),
        p99_us: at(&us, 0.99),
    }
}

/// Of transfers, Mbit/s, in order.
fn rates(case: &Case, from: &Host, to: &Host) -> Vec<f64> {
    let load = Load {
        v6: case.big.is_some(),
        ..Load::bytes(TRANSFERRED)
    };
    let transfer = |_| Transfer::start(from, to, load).finish().mbit_per_s();
    in_order((0..TRANSFERS).map(transfer))
}

/// Which part of On-Ramp costs throughput where the processor is slow: prints a table of docs/unloaded.md.
pub fn throughput_by_part_of_on_ramp() {
    let network = &NETWORKS[0];
    println!("| the hosts have | daemons | Mbit/s, least | median | most | change of the median |");
    println!("|---|---|---|---|---|---|");
    for name in ["fq", "fq, no offloads", "fq, BIG TCP"] {
        let case = CASES.iter().find(|case| case.name == name);
        parts(case.expect("a case"), network);
    }
}

fn parts(case: &Case, network: &Network) {
    let star = build(case, network);
    let (from, to) = star.pair();
    rates(case, from, to); // caches and the routes' metrics are warm
    let without = rates(case, from, to);
    let say = |daemons: &str, rates: &[f64]| {
        let [least, median, most] = [0.0, 0.5, 0.999].map(|part| at(rates, part));
        let change = 100.0 * (median / at(&without, 0.5) - 1.0);
        println!(
            "| {} | {daemons} | {least:.1} | {median:.1} | {most:.1} | {change:+.2} % |",
            case.name
        );
    };
    say("none", &without);
    let parts: [(&str, &[&Host], &[&str]); 6] = [
        ("at the sender", &[from], &[]),
        ("at the receiver", &[to], &[]),
        ("at both", &[from, to], &[]),
        ("at both, law off", &[from, to], &["--law", "off"]),
        (
            "at both, an OR-ACK each MB",
            &[from, to],
            &["--orack-every", "1MB"],
        ),
        ("at both, --pace off", &[from, to], &["--pace", "off"]),
    ];
    for (daemons, hosts, options) in parts {
        let options = [DAEMON, &["--threshold", network.threshold], options].concat();
        let agents = hosts
            .iter()
            .map(|host| Agent::start_exactly(host, &options));
        let agents: Vec<Agent> = agents.collect();
        say(daemons, &rates(case, from, to));
        for agent in agents {
            assert_eq!(agent.stop(Signal::SIGTERM).code, Some(0));
        }
    }
    say("none again", &rates(case, from, to));
}

pub fn in_order(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// A quantile.
pub fn at(values: &[f64], part: f64) -> f64 {
    values[(values.len() as f64 * part) as usize]
}

/// Connections, and their other ends.
fn connections(from: &Host, to: &Host, number: usize) -> (Vec<TcpStream>, Vec<TcpStream>) {
    let bind = || TcpListener::bind((to.v4, 0)).expect("a free port");
    let listener = to.ns.enter(bind);
    let address = listener.local_addr().expect("it is bound");
    (0..number)
        .map(|_| {
            let stream = connect(from, address);
            (stream, listener.accept().expect("it is connected").0)
        })
        .unzip()
}

/// Each flow sends a message every `EVERY`, which nobody reads: the kernel acknowledges it.
fn keep_active(mut flows: Vec<TcpStream>, stop: &AtomicBool) {
    let rest = EVERY / flows.len().max(1) as u32;
    while !flows.is_empty() && !stop.load(Ordering::Relaxed) {
        for flow in &mut flows {
            flow.write_all(&[1; MESSAGE]).expect("it fits the buffer");
            thread::sleep(rest);
        }
    }
}

/// Times of requests on one connection, us, in order of length.
fn round_trips(from: &Host, to: &Host) -> Vec<f64> {
    let (mut client, mut server) = connections(from, to, 1);
    let (mut client, mut server) = (client.remove(0), server.remove(0));
    client.set_nodelay(true).expect("an option of TCP");
    server.set_nodelay(true).expect("an option of TCP");
    let answering = thread::spawn(move || {
        let mut message = [0; MESSAGE];
        while server.read_exact(&mut message).is_ok() {
            server.write_all(&message).expect("it is connected");
        }
    });
    let round_trip = |_| {
        let started = Instant::now();
        let mut message = [2; MESSAGE];
        client.write_all(&message).expect("it is connected");
        client.read_exact(&mut message).expect("it answers");
        started.elapsed().as_secs_f64() * 1e6
    };
    let us = in_order((0..ROUND_TRIPS).map(round_trip));
    drop(client);
    answering.join().expect("it answers until the end");
    us
}

/// A transfer on a new connection, over a path that nobody else uses.
struct Lone {
    qdisc: &'static str,
    cc: &'static str,
    /// Delay of the path in either direction, us.
    delay_us: u64,
    bytes: u64,
}

/// Rate of the path, Mbit/s: the emulated hosts can send and receive as much.
const PATH_MBIT: u32 = 400;
const LONE_BYTES: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Prints rows of docs/unloaded.md: slow start and all that follows it.
fn lone_transfers(qdisc: &'static str, cc: &'static str) {
    println!("| the host has | congestion control | RTT, ms | bytes | without, ms | law off | final | gate | level |");
    println!("|---|{}", "---|".repeat(8));
    for delay_us in [50, 500, 5_000, 50_000] {
        for bytes in LONE_BYTES {
            if bytes <= 10_000_000 || cc == "cubic" && delay_us <= 5_000 {
                lone_row(&Lone {
                    qdisc,
                    cc,
                    delay_us,
                    bytes,
                });
            }
        }
    }
}

pub fn lone_transfers_of_cubic_with_fq() {
    lone_transfers("fq", "cubic");
}

pub fn lone_transfers_of_reno_with_fq() {
    lone_transfers("fq", "reno");
}

pub fn lone_transfers_of_bbr_with_fq() {
    lone_transfers("fq", "bbr");
}

/// A namespace may have DCTCP only if the machine allows it to everybody.
pub fn lone_transfers_of_dctcp_with_fq() {
    let list = |name: &str| format!("/proc/sys/net/ipv4/tcp_{name}_congestion_control");
    let available = fs::read(list("available")).expect("every kernel has it");
    fs::write(list("allowed"), available).expect("root may");
    lone_transfers("fq", "dctcp");
}

pub fn lone_transfers_of_cubic_with_fq_codel() {
    lone_transfers("fq_codel", "cubic");
}

pub fn lone_transfers_of_bbr_with_fq_codel() {
    lone_transfers("fq_codel", "bbr");
}

fn lone_row(case: &Lone) {
    let star = Star::build(&PLAN);
    for host in &star.hosts {
        let (port, delay_us) = (&host.port, case.delay_us);
        star.switch.run(&format!(
            "tc qdisc add dev {port} root netem rate {PATH_MBIT}mbit delay {delay_us}us limit 20000"
        ));
        host.ns
            .run(&format!("tc qdisc replace dev eth0 root {}", case.qdisc));
        host.ns.sysctl("net.ipv4.tcp_congestion_control", case.cc);
        host.ns.sysctl("net.ipv4.tcp_no_metrics_save", "1");
        for buffer in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
            host.ns.sysctl(buffer, "4096 131072 67108864");
        }
    }
    let (from, to) = star.pair();
    let repeats = if case.bytes > 1_000_000 { 1 } else { 5 };
    let median_ms = || {
        let one = |_| Transfer::start(from, to, Load::bytes(case.bytes)).finish();
        at(
            &in_order((0..repeats).map(one).map(|t| t.took.as_secs_f64() * 1e3)),
            0.5,
        )
    };
    median_ms(); // the addresses of the link are known
    let without = median_ms();
    let with = ["off", "final", "gate", "level"].map(|law| {
        let line_rate = format!("{PATH_MBIT}Mbit/s");
        let options = ["--max-owd", "1s", "--line-rate", &line_rate, "--law", law];
        let _agents = [from, to].map(|host| Agent::start_exactly(host, &options));
        let ms = median_ms();
        format!("{ms:.2} ({:+.1} %)", 100.0 * (ms / without - 1.0))
    });
    println!(
        "| {} | {} | {:.1} | {} | {without:.2} | {} |",
        case.qdisc,
        case.cc,
        case.delay_us as f64 / 500.0,
        case.bytes,
        with.join(" | ")
    );
}
