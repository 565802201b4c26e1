// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What is never held: whatever is no TCP segment with data.
use std::{
    net::UdpSocket,
    thread,
    time::{Duration, Instant},
};

use crate::{
    agent::Agent,
    maps::{step_clock, LONG_LEASE},
    net::{Host, Plan, Star},
    tcp::{Load, Transfer},
};

/// Longer than any round trip here, shorter than a hold.
const SOON: Duration = Duration::from_millis(5);
const CAP: &[&str] = &["--max-pause", "200ms"];

/// A host whose flow is held almost all the time: its clock is 900 ms behind, so every OR-ACK
/// tells of a delay of 900 ms, and each head waits for the cap.
fn while_held(load: Load, work: impl FnOnce(&Host, &Host)) {
    // No slow port and a small window: what waits, waits in the host.
    let star = Star::build(&Plan {
        port_mbit: None,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    to.ns.sysctl("net.ipv4.tcp_rmem", "4096 65536 65536");
    let sender = Agent::start(from, &[CAP, LONG_LEASE].concat());
    let _receiver = Agent::start(to, &[CAP, LONG_LEASE].concat());
    step_clock(&sender, -900_000_000);
    let held = Transfer::start(from, to, load);
    thread::sleep(Duration::from_millis(400));
    let before = sender.counter("holds");
    work(from, to);
    assert!(
        sender.counter("holds") > before,
        "nothing was held meanwhile"
    );
    sender.assert_harmless();
    step_clock(&sender, 0);
    held.finish();
}

pub fn what_is_no_segment_with_data_does_not_wait() {
    while_held(Load::seconds(6.0), |from, to| {
        ping_does_not_wait(from);
        udp_does_not_wait(from, to);
        pure_acks_do_not_wait(from, to);
        a_flow_without_samples_does_not_wait(from, to);
    });
}

fn ping_does_not_wait(from: &Host) {
    let text =
        from.ns.run("ping -i 0.1 -c 10 10.0.0.2") + &from.ns.run("ping -i 0.1 -c 10 fd00::2");
    let times = text
        .lines()
        .filter_map(|line| line.split_once("time=")?.1.split(' ').next());
    let times: Vec<f64> = times
        .map(|ms| ms.parse().expect("a number of ms"))
        .collect();
    println!("round trips, ms: {times:?}");
    assert_eq!(times.len(), 20);
    assert!(times.iter().all(|ms| *ms < SOON.as_secs_f64() * 1e3));
}

fn udp_does_not_wait(from: &Host, to: &Host) {
    let echo = to
        .ns
        .enter(|| UdpSocket::bind((to.v4, 7)))
        .expect("nobody uses the port");
    let socket = from
        .ns
        .enter(|| UdpSocket::bind((from.v4, 0)))
        .expect("a free port");
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("above zero");
    for number in 0..20_u32 {
        let sent = Instant::now();
        socket
            .send_to(&number.to_ne_bytes(), (to.v4, 7))
            .expect("a route");
        let mut buffer = [0; 4];
        let (size, peer) = echo.recv_from(&mut buffer).expect("it arrives");
        echo.send_to(&buffer[..size], peer).expect("a route");
        socket.recv(&mut buffer).expect("it comes back");
        assert_eq!(u32::from_ne_bytes(buffer), number);
        assert!(sent.elapsed() < SOON, "{:?}", sent.elapsed());
        thread::sleep(Duration::from_millis(50));
    }
}

/// The held host acknowledges what the other sends at full speed.
fn pure_acks_do_not_wait(from: &Host, to: &Host) {
    let back = Transfer::start(to, from, Load::bytes(4_000_000)).finish();
    println!(
        "against the held direction: {:.1} Mbit/s",
        back.mbit_per_s()
    );
    assert!(back.mbit_per_s() > 80.0);
}

/// Before its first OR-ACK a flow goes as if nothing were there.
fn a_flow_without_samples_does_not_wait(from: &Host, to: &Host) {
    for _ in 0..10 {
        let short = Transfer::start(from, to, Load::bytes(1000)).finish();
        assert!(short.took < SOON, "{:?}", short.took);
        thread::sleep(Duration::from_millis(50));
    }
}
