// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Many flows: thousands held at once cost no scan, and all of a host's flows get the same share.
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use onramp_law::abi::onr_clock_params;

use crate::{
    agent::Agent,
    maps::{now_mono_ns, run_time, set_clock},
    net::{Plan, Star},
    tcp::{content, Load, Transfer},
    wire::{data_frame, Wire},
};

const S: i64 = 1_000_000_000;
/// Ten segments: the first window of a connection, which holds a sampled byte wherever it begins.
const FIRST: usize = onramp_law::SAMPLE_BYTES as usize;
const SECOND: usize = 2_000;
const PROBES: u64 = 1000;

/// Guest time of the qdisc's programs with a number of flows held, ns.
#[derive(Debug)]
struct Cost {
    /// Per dequeue, of UDP packets that pass the held flows.
    passing_ns: f64,
    /// Per packet that was held, of all dequeues at the end of the holds.
    releasing_ns: f64,
}

fn cost(held: usize) -> Cost {
    let star = Star::build(&Plan {
        port_mbit: None,
        tso: true,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    let cap: &[&str] = &["--max-pause", "20s", "--max-owd", "60s", "--lease", "6000s"];
    let sender = Agent::start(from, &[cap, &["--flows", "8192"]].concat());
    let _receiver = Agent::start(to, cap);
    // Every OR-ACK tells of a delay of 30 s: each flow pauses for the cap after its first.
    let lease = now_mono_ns() + 3600 * S;
    set_clock(
        &sender,
        onr_clock_params {
            offset_ns: -30 * S,
            lease_expires_mono_ns: lease,
            ..Default::default()
        },
    );
    let (mut outs, mut ins) = connections(&star, held);
    outs.iter_mut().for_each(|out| {
        out.write_all(&content(0)[..FIRST])
            .expect("it fits the buffer");
    });
    thread::sleep(Duration::from_millis(500));
    outs.iter_mut().for_each(|s| {
        s.write_all(&content(FIRST as u64)[..SECOND])
            .expect("it fits the buffer");
    });
    thread::sleep(Duration::from_millis(100));
    let waiting = from.ns.qdisc("eth0").expect("the qdisc")["qlen"]
        .as_u64()
        .expect("a number");
    assert!(
        waiting >= held as u64,
        "{waiting} packets are held, of {held} flows"
    );

    let before = run_time(&sender, "edge_dequeue");
    let probe = from
        .ns
        .enter(|| UdpSocket::bind((from.v4, 0)))
        .expect("a free port");
    let sink = to
        .ns
        .enter(|| UdpSocket::bind((to.v4, 9)))
        .expect("nobody uses the port");
    for _ in 0..PROBES {
        probe.send_to(&[0; 100], (to.v4, 9)).expect("a route");
    }
    drop(sink);
    let passed = run_time(&sender, "edge_dequeue");
    assert!(passed.1 - before.1 >= PROBES, "dequeues are counted");

    ins.iter_mut().for_each(|into| expect(into, FIRST + SECOND));
    let released = run_time(&sender, "edge_dequeue");
    assert!(sender.counter("holds") >= held as u64);
    sender.assert_harmless();
    let per = |from: (u64, u64), to: (u64, u64), n: u64| (to.0 - from.0) as f64 / n as f64;
    Cost {
        passing_ns: per(before, passed, passed.1 - before.1),
        releasing_ns: per(passed, released, waiting),
    }
}

/// Reads what was sent.
fn expect(stream: &mut TcpStream, size: usize) {
    let mut bytes = vec![0; size];
    stream.read_exact(&mut bytes).expect("everything arrives");
    assert!(bytes == content(0)[..size], "other bytes than were sent");
}

/// Connected sockets of both hosts.
fn connections(star: &Star, number: usize) -> (Vec<TcpStream>, Vec<TcpStream>) {
    let (from, to) = star.pair();
    let listener = to
        .ns
        .enter(|| TcpListener::bind((to.v4, 1)))
        .expect("nobody uses the port");
    let accept = thread::spawn(move || {
        (0..number)
            .map(|_| listener.accept().expect("a connection").0)
            .collect::<Vec<_>>()
    });
    let connect = |_| TcpStream::connect((to.v4, 1)).expect("it listens");
    let outs = from.ns.enter(|| (0..number).map(connect).collect());
    (outs, accept.join().expect("all are accepted"))
}

pub fn thousands_of_held_flows_cost_no_scan() {
    std::fs::write("/proc/sys/kernel/bpf_stats_enabled", "1").expect("root may");
    // Segments that nobody reads for 20 s, in pages: more than TCP takes of 1 GiB by itself.
    std::fs::write("/proc/sys/net/ipv4/tcp_mem", "100000 100000 100000").expect("root may");
    let limit = nix::sys::resource::Resource::RLIMIT_NOFILE;
    nix::sys::resource::setrlimit(limit, 20_000, 20_000).expect("root may");
    let (few, many) = (cost(40), cost(4000));
    println!("40 held: {few:.0?}; 4,000 held: {many:.0?}");
    std::fs::write("/proc/sys/kernel/bpf_stats_enabled", "0").expect("root may");
    assert!(many.passing_ns < 1.2 * few.passing_ns, "{few:?}, {many:?}");
    // A heap of 4,000 is 12 levels deep, one of 40 has 6.
    assert!(
        many.releasing_ns < 2.0 * few.releasing_ns,
        "{few:?}, {many:?}"
    );
}

/// Eight flows through one shaped host: small and large segments, small and large writes.
pub fn flows_of_one_host_get_equal_shares() {
    let star = Star::build(&Plan {
        port_mbit: None,
        tso: true,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    from.ns.sysctl("net.ipv4.tcp_wmem", "4096 262144 262144");
    let shape = &["--shape", "80Mbit/s", "--gso-max", "64kB"];
    let sender = Agent::start(from, shape);
    let _receiver = Agent::start(to, &[]);
    let flow = |i: u32| {
        let mss = i.is_multiple_of(2).then_some(536);
        let write = if i < 4 { 65_536 } else { 3000 };
        Transfer::start(
            from,
            to,
            Load {
                mss,
                write,
                ..Load::seconds(1.4)
            },
        )
    };
    let flows: Vec<Transfer> = (0..8).map(flow).collect();
    let arrived = || {
        flows
            .iter()
            .map(|f| f.received() as f64)
            .collect::<Vec<_>>()
    };
    thread::sleep(Duration::from_millis(400));
    let before = arrived();
    thread::sleep(Duration::from_secs(1));
    let share: Vec<f64> = arrived().iter().zip(before).map(|(a, b)| a - b).collect();
    for flow in flows {
        flow.finish();
    }
    let (sum, squares) = share
        .iter()
        .fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    let jain = sum * sum / (share.len() as f64 * squares);
    println!("Jain's index {jain:.3}: {share:.0?} B in 1 s");
    assert!(jain > 0.95, "{jain}: {share:?}");
    sender.assert_harmless();
}

/// Process, maps and programs together have less than 64 MB, and the process 1 % of a core, here of 1 instruction a
/// ns. The work of synchronising clocks is in `huygens`.
pub fn a_daemon_with_16384_flows_is_small() {
    const FLOWS: u16 = 16_384;
    let star = Star::build(&Plan {
        port_mbit: None,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    let flows = FLOWS.to_string();
    let agent = Agent::start(from, &["--flows", &flows, "--flow-age", "60s"]);
    let _receiver = Agent::start(to, &[]);
    let wire = Wire::open(&from.ns, "eth0");
    for port in 0..FLOWS {
        wire.send(&data_frame(1024 + port, 9, 1));
    }
    thread::sleep(Duration::from_secs(1));
    assert_eq!(agent.status().flows, u32::from(FLOWS));
    let before_ns = agent.cpu_ns();
    thread::sleep(Duration::from_secs(5));
    let cpu = (agent.cpu_ns() - before_ns) as f64 / 5e7;
    let (rss_kib, bpf_kib) = (agent.rss_kib(), agent.bpf_bytes() / 1024);
    println!("RSS {rss_kib} KiB, maps and programs {bpf_kib} KiB, {cpu:.2} % of a core");
    assert!(
        rss_kib + bpf_kib < 64_000_000 / 1024,
        "{rss_kib} + {bpf_kib}"
    );
    // What the key limits.flows says of a flow, and 4 MB of the other maps.
    assert!(bpf_kib < (16_384 * 2_000 + 4_000_000) / 1024, "{bpf_kib}");
    assert!(cpu < 1.0, "{cpu}");
    agent.assert_harmless();
}
