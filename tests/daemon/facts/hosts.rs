// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Hosts as they are: other BPF programs, routers, strangers, resets, paces, hosts without the agent.
use std::{
    io::{IoSlice, Read, Write},
    net::{Shutdown, SocketAddrV4, TcpListener, UdpSocket},
    os::fd::{AsRawFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use libbpf_rs::libbpf_sys as sys;
use nix::sys::socket::{sendmsg, setsockopt, sockopt, ControlMessage, MsgFlags, SockaddrIn};

use super::own::{attach_at_egress, code};
use crate::{
    agent::Agent,
    maps::{now_mono_ns, step_clock, LONG_LEASE},
    net::{Host, Plan, Star},
    tcp::{connect, finish_all, transfers, Load, Transfer},
    wire::{data_frame, Wire},
};

const SAMPLE_BYTES: u64 = onramp_law::SAMPLE_BYTES as u64;

/// Options of a daemon that holds nothing.
const OBSERVER: &[&str] = &["--law", "off"];

/// Attaches a tcx program that ends its chain, in front of all others at the egress of eth0, as agents of
/// networks and rate limiters do.
pub fn attach_in_front(host: &Host) -> OwnedFd {
    let pass = [code(0xb7, 0), code(0x95, 0)]; // r0 = TCX_PASS; exit
    attach_at_egress(host, &pass, sys::BPF_F_BEFORE)
}

/// Copies of data would leave with the other host's address, and TCP would starve.
pub fn a_program_in_front_that_ends_the_chain_costs_oracks_not_traffic() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, OBSERVER);
    let receiver = Agent::start(to, OBSERVER);
    let usual = Transfer::start(from, to, Load::bytes(5_000_000)).finish();
    let before = sender.counter("oracks_used");
    assert!(before > 0);

    // The daemon looks five times in its lease of 5 s; the transfer begins before that.
    let _link = attach_in_front(to);
    let beside = Transfer::start(from, to, Load::bytes(5_000_000)).finish();
    println!("usually {usual:?}, beside the other program {beside:?}");
    println!("{:?}", receiver.status().counters);
    assert!(beside.mbit_per_s() > 0.95 * usual.mbit_per_s());
    assert!(receiver.counter("oracks_intercepted") >= 1);
    assert_eq!(
        receiver.counter("oracks_strayed"),
        receiver.counter("oracks_intercepted"),
        "every copy ends at the device"
    );

    thread::sleep(Duration::from_secs(2));
    let text = receiver.text();
    assert!(text.contains("On-Ramp's is the first again"), "{text}");
    let before = sender.counter("oracks_used");
    Transfer::start(from, to, Load::bytes(1_000_000)).finish();
    assert!(sender.counter("oracks_used") > before, "they come again");
}

/// A reset behind held data waits for it, as in fq.
pub fn a_reset_does_not_overtake_held_data() {
    resets_stay_behind("edge");
}

pub fn with_edt_a_reset_does_not_overtake_held_data() {
    resets_stay_behind("edt");
}

fn resets_stay_behind(path: &str) {
    let star = Star::build(&Plan {
        port_mbit: None,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    let cap = [LONG_LEASE, &["--max-pause", "50ms", "--path", path]].concat();
    let sender = Agent::start(from, &cap);
    let _receiver = Agent::start(to, &cap);
    let listener = from
        .ns
        .enter(|| TcpListener::bind((from.v4, 0)))
        .expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let whole = (0..10).filter(|_| {
        step_clock(&sender, 0);
        let mut client = connect(to, address);
        let (mut server, _) = listener.accept().expect("it is connected");
        let mut begin = vec![0; 4 * SAMPLE_BYTES as usize];
        server.write_all(&begin).expect("it is connected");
        client.read_exact(&mut begin).expect("it arrives");
        // From now on each OR-ACK tells of a delay of 900 ms, so every head waits for the cap.
        step_clock(&sender, -900_000_000);
        server.write_all(&begin).expect("it is connected");
        client.read_exact(&mut begin).expect("it arrives");
        client.write_all(b"unread").expect("it is connected");
        thread::sleep(Duration::from_millis(20));
        server.write_all(&[1; 2000]).expect("it is connected");
        drop(server);
        let mut rest = vec![];
        let _ = client.read_to_end(&mut rest); // fails with the reset, after the data
        rest.len() == 2000
    });
    let whole = whole.count();
    println!("{:?}", sender.status().counters);
    assert!(sender.counter("holds") > 10, "nothing was held");
    assert_eq!(whole, 10);
}

/// The first host's way to the third, and back, is through the second.
pub fn route_through_the_second(star: &Star) {
    let [first, second, third] = &star.hosts[..] else {
        panic!("three hosts")
    };
    for host in [first, second, third] {
        host.ns.sysctl("net.ipv4.conf.all.send_redirects", "0");
        host.ns.sysctl("net.ipv4.conf.eth0.send_redirects", "0");
        host.ns.sysctl("net.ipv4.conf.all.accept_redirects", "0");
    }
    second.ns.sysctl("net.ipv4.ip_forward", "1");
    let via = |host: &Host, to: &Host| {
        let line = format!("ip route add {}/32 via {}", to.v4, second.v4);
        host.ns.run(&line);
    };
    via(first, third);
    via(third, first);
}

pub fn a_router_leaves_oracks_and_flows_to_the_ends() {
    let star = Star::build(&Plan {
        hosts: 3,
        ..Plan::USUAL
    });
    route_through_the_second(&star);
    let [sender, router, receiver] = [0, 1, 2].map(|i| Agent::start(&star.hosts[i], OBSERVER));
    Transfer::start(&star.hosts[0], &star.hosts[2], Load::bytes(2_000_000)).finish();
    println!("{:?}", router.status().counters);
    for name in ["oracks_sent", "oracks_received", "flows_created"] {
        assert_eq!(router.counter(name), 0, "{name}");
    }
    let sent = receiver.counter("oracks_sent");
    assert!(sent > 100);
    assert_eq!(sender.counter("oracks_received"), sent, "all pass");
    assert!(sender.counter("oracks_used") + 1 >= sent);
}

pub fn a_host_speaks_for_the_pods_that_it_serves() {
    let star = Star::build(&Plan {
        hosts: 3,
        ..Plan::USUAL
    });
    route_through_the_second(&star);
    let pod = star.hosts[2].v4.to_string();
    let sender = Agent::start(&star.hosts[0], OBSERVER);
    let node = Agent::start(&star.hosts[1], &["--law", "off", "--serve", &pod]);
    let (outside, pod) = (&star.hosts[0], &star.hosts[2]);
    Transfer::start(outside, pod, Load::bytes(2_000_000)).finish();
    assert!(node.counter("oracks_sent") > 100);
    assert!(sender.counter("oracks_used") > 100);
    Transfer::start(pod, outside, Load::bytes(2_000_000)).finish();
    println!("{:?}", node.status().counters);
    assert!(node.counter("oracks_used") > 100, "for what the pod sends");
}

pub fn flows_to_strangers_take_no_room() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--peers", "192.0.2.0/24"]);
    finish_all(transfers(from, to, Load::bytes(100_000), 20));
    let status = sender.status();
    println!("{:?}", status.counters);
    assert_eq!((status.flows, sender.counter("flows_created")), (0, 0));
    assert_eq!(sender.counter("flow_table_full"), 0);
}

/// A server with many short connections must not wait for entries to age.
pub fn flows_leave_the_table_with_their_connections() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--flows", "16"]);
    for _ in 0..100 {
        Transfer::start(from, to, Load::bytes(20_000)).finish();
    }
    println!("{:?}", sender.status().counters);
    assert_eq!(sender.counter("flow_table_full"), 0);
    assert_eq!(sender.counter("flows_created"), 100);
    assert!(sender.counter("flows_ended") >= 84);
    assert_eq!(sender.counter("flows_aged"), 0);
    sender.assert_harmless();
}

/// What On-Ramp would do is known before it does anything.
pub fn an_observer_measures_and_changes_nothing() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    from.ns.run("tc qdisc replace dev eth0 root fq limit 777");
    let device = || {
        let qdisc = from.ns.qdisc("eth0").expect("fq");
        let link = from.ns.run("ip -j -d link show dev eth0");
        let link: serde_json::Value = serde_json::from_str(&link).expect("ip prints JSON");
        let gso = link[0]["gso_max_size"].clone();
        (
            qdisc["kind"].clone(),
            qdisc["options"]["limit"].clone(),
            gso,
        )
    };
    let before = device();
    let sender = Agent::observe(from);
    let receiver = Agent::observe(to);
    let goodput = finish_all(transfers(from, to, Load::seconds(1.0), 2));
    let status = sender.status();
    println!("{goodput:.1} Mbit/s: {status:?}");
    assert_eq!(device(), before);
    assert!(goodput > 85.0, "{goodput} Mbit/s");
    assert!(sender.counter("oracks_used") > 100);
    assert!(sender.owd_ms(to) > 5.0, "the queue is seen");
    assert_eq!(sender.counter("holds"), 0);
    // The port's queue stands above T from slow start on, so each OR-ACK would have made a pause.
    assert!(sender.counter("would_hold") > 0);
    let would_hold_s = sender.counter("would_hold_ns") as f64 / 1e9;
    assert!((0.2..3.0).contains(&would_hold_s), "{would_hold_s} s");
    for agent in [sender, receiver] {
        let ended = agent.stop(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.text.contains("no longer observed"), "{ended:?}");
    }
    assert_eq!(device(), before);
}

/// A UDP socket of a host, whose reads end after 5 s.
pub fn udp_of(host: &Host) -> UdpSocket {
    let socket = host
        .ns
        .enter(|| UdpSocket::bind((host.v4, 0)))
        .expect("a free port");
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("above zero");
    socket
}

/// Whoever takes the place of fq keeps the paces that it kept.
pub fn a_pace_that_an_application_has_set_is_kept() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let _sender = Agent::start(from, OBSERVER);
    let (socket, receiver) = (udp_of(from), udp_of(to));
    set_pace(socket.as_raw_fd(), 1_000_000);
    let address = receiver.local_addr().expect("it is bound");
    let started = Instant::now();
    for _ in 0..100 {
        socket.send_to(&[0; 958], address).expect("a route");
    }
    let mut payload = [0; 1000];
    for _ in 0..100 {
        receiver.recv(&mut payload).expect("it arrives");
    }
    println!("100 kB at 1 MB/s: {:?}", started.elapsed());
    assert!(started.elapsed() > Duration::from_millis(95));
}

/// TCP leaves the spacing to fq for good once fq has served a socket.
pub fn a_paced_connection_keeps_its_pace_when_fq_goes() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    from.ns.run("tc qdisc replace dev eth0 root fq");
    let listener = to
        .ns
        .enter(|| TcpListener::bind((to.v4, 0)))
        .expect("a free port");
    let mut client = connect(from, listener.local_addr().expect("it is bound"));
    set_pace(client.as_raw_fd(), 1_000_000);
    let (mut server, _) = listener.accept().expect("it is connected");
    let reader = thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        while server.read(&mut buffer).expect("it is connected") > 0 {}
    });
    client.write_all(&[0; 100_000]).expect("it is connected");
    let _sender = Agent::start(from, &["--pace", "off", "--law", "off"]);
    let started = Instant::now();
    client.write_all(&vec![0; 3_000_000]).expect("connected");
    client.shutdown(Shutdown::Write).expect("it is connected");
    reader.join().expect("it reads all");
    println!("3 MB at 1 MB/s: {:?}", started.elapsed());
    assert!(started.elapsed() > Duration::from_millis(2500));
}

/// fq spaces the segments of a window, and CUBIC knows that it does; it must know it of us, or it takes the length of the
/// train for the end of the path's capacity and leaves slow start.
pub fn slow_start_is_as_with_the_fq_that_edge_replaces() {
    let star = Star::build(&Plan {
        port_mbit: None,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    for host in [from, to] {
        let port = &host.port;
        let path = "netem rate 400mbit delay 25ms limit 20000";
        star.switch
            .run(&format!("tc qdisc add dev {port} root {path}"));
    }
    from.ns.run("tc qdisc replace dev eth0 root fq");
    let trains = || from.counted("netstat", "TcpExt:", "TCPHystartTrainDetect");
    let one = || {
        let before = trains();
        let received = Transfer::start(from, to, Load::bytes(4_000_000)).finish();
        (received.took, trains() - before)
    };
    let fq = one();
    let sender = Agent::start(from, &["--law", "off"]);
    let edge = one();
    println!("time and trains: {fq:?} with fq, {edge:?} with edge");
    let text = sender.text();
    assert!(!text.contains("does not space"), "{text}");
    assert_eq!(edge.1, fq.1);
    assert!(edge.0 < fq.0.mul_f64(1.05));
    drop(sender);
    let again = one();
    println!("and with fq again: {again:?}");
    assert!(again.0 < fq.0.mul_f64(1.05)); // a train at the end of slow start costs nothing
}

fn set_pace(socket: i32, bytes_per_s: u64) {
    let size = size_of::<u64>() as u32;
    let value = (&raw const bytes_per_s).cast();
    // SAFETY: the value has this size.
    let error = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            value,
            size,
        )
    };
    assert_eq!(error, 0);
}

/// SO_TXTIME, and limits by time of departure as BPF programs set them.
pub fn packets_leave_at_the_time_that_they_name() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, OBSERVER);
    let (socket, receiver) = (udp_of(from), udp_of(to));
    let txtime = libc::sock_txtime {
        clockid: libc::CLOCK_MONOTONIC,
        flags: 0,
    };
    setsockopt(&socket, sockopt::TxTime, &txtime).expect("the kernel has it");
    let address: SocketAddrV4 = match receiver.local_addr().expect("it is bound") {
        std::net::SocketAddr::V4(v4) => v4,
        other => panic!("{other} is no IPv4"),
    };
    let send_in = |ms: i64, number: u8| {
        let time = (now_mono_ns() + ms * 1_000_000) as u64;
        let payload = [number];
        let to = SockaddrIn::from(address);
        let (data, when) = ([IoSlice::new(&payload)], [ControlMessage::TxTime(&time)]);
        let fd = socket.as_raw_fd();
        sendmsg(fd, &data, &when, MsgFlags::empty(), Some(&to)).expect("a route");
    };
    let started = Instant::now();
    send_in(300, 3);
    send_in(100, 1);
    send_in(200, 2);
    send_in(3_600_000, 0); // no time of this clock
    let arrivals = (0..4).map(|_| {
        let mut payload = [0];
        receiver.recv(&mut payload).expect("it arrives");
        (payload[0], started.elapsed().as_millis())
    });
    let arrivals: Vec<_> = arrivals.collect();
    println!("{arrivals:?}");
    for (index, (number, ms)) in arrivals.into_iter().enumerate() {
        assert_eq!(usize::from(number), index);
        let wanted = 100 * u128::from(number);
        assert!((wanted..wanted + 20).contains(&ms), "{number}: {ms} ms");
    }
    assert_eq!(sender.counter("departures_ignored"), 1);
}

pub fn a_host_without_the_agent_is_sent_no_more_oracks() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    for v6 in [false, true] {
        let receiver = Agent::start(to, OBSERVER);
        let load = Load {
            v6,
            ..Load::bytes(3_000_000)
        };
        Transfer::start(from, to, load).finish();
        println!("{:?}", receiver.status().counters);
        let sent = receiver.counter("oracks_sent");
        let unwanted = receiver.counter("oracks_unwanted");
        assert!(receiver.counter("oracks_refused") > 0);
        assert!(sent < unwanted / 4, "{sent} sent, {unwanted} not");
        thread::sleep(Duration::from_secs(1)); // the daemon looks once a second
        let by = if v6 { from.v6 } else { from.v4 };
        assert_eq!(receiver.status().health.refusing_peers, [by]);
        let text = receiver.text();
        assert!(text.contains(&format!("{by} refuses OR-ACKs")), "{text}");
    }
}

/// Who can send packets but sees none must not obtain signed times.
pub fn a_segment_that_tcp_would_drop_is_not_acknowledged() {
    // Of so many guesses at most one is in a window of 8 MB.
    const GUESSES: u32 = 256;
    // The port has room for all frames: a fast program sends them before the first has left.
    let star = Star::build(&Plan {
        buffer_packets: 2 * GUESSES + 100,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    let receiver = Agent::start(to, OBSERVER);
    let _sender = Agent::start(from, OBSERVER);
    let listener = to
        .ns
        .enter(|| TcpListener::bind((to.v4, 0)))
        .expect("a free port");
    let to_port = listener.local_addr().expect("it is bound").port();
    let client = connect(from, (to.v4, to_port).into());
    let from_port = client.local_addr().expect("it is connected").port();
    let (_server, _) = listener.accept().expect("it is connected");
    let wire = Wire::open(&star.switch, &to.port);
    for guess in 0..GUESSES {
        let seq = (guess << 24) - (guess << 24) % SAMPLE_BYTES as u32;
        wire.send(&data_frame(from_port, to_port, seq));
        wire.send(&data_frame(from_port + 1, to_port, seq));
    }
    thread::sleep(Duration::from_millis(100));
    let counters = receiver.status().counters;
    println!("{counters:?}");
    let oracks = receiver.counter("oracks_sent") + receiver.counter("oracks_unsent");
    assert!(oracks <= 1, "{oracks}");
}
