// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Bounded resources at their bound: the flow table and the queue.
use std::{
    io::Write,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use bytemuck::bytes_of;
use libbpf_rs::{MapCore, MapFlags};
use onramp_law::abi::{onr_addr, onr_least, onr_peer, ONR_MAX_PEERS};

use crate::{
    agent::{Agent, LATENESS_NS},
    maps::{map, now_mono_ns},
    net::{Host, Plan, Star},
    tcp::{connect, finish_all, transfers, Load},
};

pub fn a_full_flow_table_passes_traffic_and_counts_it() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--flows", "16", "--shape", "200Mbit/s"]);
    let receiver = Agent::start(to, &["--flows", "16"]);
    finish_all(transfers(from, to, Load::bytes(100_000), 64));
    println!("{:?}", sender.status().counters);
    assert_eq!(sender.status().flows, 16);
    assert!(sender.counter("flow_table_full") >= 48);
    sender.assert_harmless();
    receiver.assert_harmless();
}

pub fn idle_flows_make_room_for_new_ones() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--flows", "16", "--flow-age", "1s"]);
    let listener = to
        .ns
        .enter(|| TcpListener::bind((to.v4, 0)))
        .expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let open_16 = || {
        let open = (0..16).map(|_| {
            let mut client = connect(from, address);
            client.write_all(b"some data").expect("it is connected");
            (client, listener.accept().expect("it is connected"))
        });
        open.collect::<Vec<_>>()
    };
    let idle = open_16();
    thread::sleep(Duration::from_millis(1500));
    let active = open_16();
    println!("{:?}", sender.status().counters);
    assert_eq!(sender.counter("flows_created"), 32);
    assert_eq!(sender.counter("flows_aged"), 16);
    assert_eq!(sender.counter("flow_table_full"), 0);
    assert_eq!(sender.status().flows, 16);
    sender.assert_harmless();
    drop((idle, active));
}

pub fn a_full_queue_drops_and_counts_and_tcp_recovers() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--limit", "20", "--shape", "20Mbit/s"]);
    let receiver = Agent::start(to, &[]);
    finish_all(transfers(from, to, Load::bytes(60_000), 64));
    let dropped = sender.counter("limit_drops");
    let qdisc = from.ns.qdisc("eth0").expect("the qdisc");
    println!("{dropped} drops; {:?}", sender.status().counters);
    assert!(dropped > 0);
    assert_eq!(qdisc["drops"], dropped, "tc and the daemon agree");
    assert_eq!(
        (&qdisc["qlen"], &qdisc["backlog"]),
        (&0.into(), &0.into()),
        "{qdisc:#}"
    );
    assert!(sender.counter("held_max_ns") <= 100_000_000 + LATENESS_NS);
    receiver.assert_harmless();
}

/// As sch_fq bounds a flow: a sender without congestion control must not push the others out.
pub fn a_flood_fills_its_own_queue_only() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let options = [
        "--limit",
        "300",
        "--flow-limit",
        "50",
        "--shape",
        "20Mbit/s",
    ];
    let sender = Agent::start(from, &options);
    let flows = transfers(from, to, Load::bytes(60_000), 4);
    from.ns.enter(|| {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
        for _ in 0..500 {
            // Fails where the qdisc drops; that is counted below.
            let _ = socket.send_to(&[0; 1000], (to.v4, 9));
        }
    });
    finish_all(flows);
    println!("{:?}", sender.status().counters);
    assert!(sender.counter("flow_limit_drops") > 0);
    assert_eq!(sender.counter("limit_drops"), 0);
    let qdisc = from.ns.qdisc("eth0").expect("the qdisc");
    assert_eq!(
        qdisc["drops"],
        sender.counter("flow_limit_drops"),
        "tc and the daemon agree"
    );
}

/// Sockets of a user who floods the device, more than a few FIFOs for all of them would keep apart.
const FLOODERS: usize = 80;

/// A connection has a queue of its own and is new, so it waits for one packet of the others at most.
pub fn a_flood_of_many_sockets_delays_no_connection() {
    connections_during_a_flood(|_| 9);
}

/// Each datagram to another port is another flow: a user can have thousands with few sockets.
pub fn a_flood_to_many_ports_delays_no_connection() {
    connections_during_a_flood(|sent| 10_000 + sent % 5_000);
}

/// `port`: the destination of a datagram, by its number.
fn connections_during_a_flood(port: impl Fn(u16) -> u16 + Send) {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--shape", "50Mbit/s", "--law", "off"]);
    let bound = to.ns.enter(|| TcpListener::bind((to.v4, 0)));
    let listener = bound.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let ends = AtomicBool::new(false);
    let longest = thread::scope(|scope| {
        scope.spawn(|| flood(from, to, port, &ends));
        thread::sleep(Duration::from_millis(300)); // their queues fill
        let connections = (0..20).map(|_| {
            let started = Instant::now();
            drop(connect(from, address));
            started.elapsed()
        });
        let longest = connections.max().expect("there are some");
        ends.store(true, Ordering::Relaxed);
        longest
    });
    let counters = sender.status().counters;
    println!("the longest set-up took {longest:?}; {counters:?}");
    assert!(longest < Duration::from_millis(10), "{longest:?}");
}

/// All that a user's sockets can send, until it ends.
fn flood(from: &Host, to: &Host, port: impl Fn(u16) -> u16, ends: &AtomicBool) {
    let socket = || {
        let socket = from.ns.enter(|| UdpSocket::bind("0.0.0.0:0"));
        let socket = socket.expect("a free port");
        socket.set_nonblocking(true).expect("a socket");
        socket
    };
    let sockets: Vec<UdpSocket> = (0..FLOODERS).map(|_| socket()).collect();
    let mut sent = 0u16;
    while !ends.load(Ordering::Relaxed) {
        for socket in &sockets {
            while socket.send_to(&[0; 1_400], (to.v4, port(sent))).is_ok() {
                sent = sent.wrapping_add(1);
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// A key in the maps of peers: a host outside the network.
fn host(number: u32) -> onr_addr {
    onr_addr::of(Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 1, 0, 0)) + number).into())
}

/// Makes hosts peers, as their OR-ACKs of some time ago would.
fn hear(agent: &Agent, hosts: Range<u32>, ago: Duration) {
    let peer = onr_peer {
        heard_mono_ns: now_mono_ns() - ago.as_nanos() as i64,
        least: onr_least {
            owd_min_ns: 1_000_000,
            ..onr_least::default()
        },
        ..Default::default()
    };
    let peers = map(agent, "peers");
    for number in hosts {
        let written = peers.update(bytes_of(&host(number)), bytes_of(&peer), MapFlags::ANY);
        written.expect("the oldest peers make room");
    }
}

fn entries(agent: &Agent, name: &str) -> usize {
    map(agent, name).keys().count()
}

/// Longer than the daemon needs to look at its peers.
const A_LOOK: Duration = Duration::from_millis(1_500);
const NOW: Duration = Duration::ZERO;

pub fn more_peers_than_fit_and_silent_peers_harm_nobody() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--threshold", "auto"]);
    let _receiver = Agent::start(to, &[]);
    // A table that takes no threshold: counted, and said once.
    let thresholds = map(&sender, "thresholds");
    let strangers = 20_000..20_000 + ONR_MAX_PEERS;
    for number in strangers.clone() {
        let key = host(number);
        let written = thresholds.update(bytes_of(&key), &1u32.to_ne_bytes(), MapFlags::ANY);
        written.expect("as many fit");
    }
    hear(&sender, 0..10, NOW);
    thread::sleep(2 * A_LOOK);
    assert_eq!(sender.status().health.peers_without_threshold, 10);
    let said = |what| sender.text().matches(what).count();
    assert_eq!(said("cannot set the threshold of 10.1."), 1);
    for number in strangers {
        let removed = thresholds.delete(bytes_of(&host(number)));
        removed.expect("it is there");
    }
    thread::sleep(A_LOOK);
    assert_eq!(sender.status().health.peers_without_threshold, 0);
    assert_eq!(entries(&sender, "thresholds"), 10);

    let most = ONR_MAX_PEERS as usize;
    hear(&sender, 10..3_000, NOW);
    thread::sleep(A_LOOK);
    assert_eq!(entries(&sender, "thresholds"), 3_000);
    hear(&sender, 3_000..9_000, NOW);
    thread::sleep(A_LOOK);
    let known = entries(&sender, "thresholds");
    println!("9,000 peers: {known} thresholds");
    assert!((most / 2..=most).contains(&known), "{known}");

    let silent: Vec<_> = map(&sender, "peers").keys().collect();
    assert!(silent.len() > most / 2, "{}", silent.len());
    hear(&sender, 0..9_000, Duration::from_secs(61));
    thread::sleep(A_LOOK);
    assert_eq!(
        (entries(&sender, "peers"), entries(&sender, "thresholds")),
        (0, 0)
    );
    finish_all(transfers(from, to, Load::bytes(1_000_000), 1));
    thread::sleep(A_LOOK);
    assert!(sender.peer(to).threshold.is_some());
    sender.assert_harmless();
}
