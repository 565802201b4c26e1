//! Bounded resources at their bound: the flow table and the queue.
use std::{io::Write, net::TcpListener, thread, time::Duration};

use crate::{
    agent::{Agent, LATENESS_NS},
    net::{Plan, Star},
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
