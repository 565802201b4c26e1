// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Real drivers with a queue of their own behind the qdisc: virtio cards that send a frame each 120 us, 100 Mbit/s,
//! at one hub. A hub has no queue, so all that waits waits in the sender's own host.
use std::{
    net::UdpSocket,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::links::copies;
use crate::{
    agent::{Agent, USUAL},
    net::{shell, Host, Namespace},
    tcp::{Load, Transfer},
};

/// Most bytes that BQL lets the driver have: 4 ms.
const NIC_BYTES: u32 = 50_000;

/// Two hosts with a card each. Dropped, it gives the cards back.
struct Cards([Host; 2]);

impl Cards {
    fn take() -> Cards {
        Cards([1, 2].map(host_with_card))
    }
}

impl Drop for Cards {
    fn drop(&mut self) {
        for host in &self.0 {
            shell(&format!("ip netns delete {}", host.ns.0));
        }
    }
}

/// The name of card `number` in the first namespace, to which it comes back from a deleted one some time later.
fn name_of_card(number: u8) -> String {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        for entry in Path::new("/sys/class/net").read_dir().expect("sysfs") {
            let entry = entry.expect("sysfs");
            let address = std::fs::read_to_string(entry.path().join("address"));
            if address.is_ok_and(|a| a.trim() == format!("02:00:00:00:01:{:02x}", number - 1)) {
                return entry.file_name().to_string_lossy().into_owned();
            }
        }
        assert!(Instant::now() < deadline, "no card {number}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn host_with_card(number: u8) -> Host {
    let (card, ns) = (name_of_card(number), Namespace(format!("h{number}")));
    shell(&format!("ip netns add {}", ns.0));
    shell(&format!("ip link set {card} down"));
    shell(&format!("ip link set {card} netns {} name eth0", ns.0));
    ns.run("ip link set lo up");
    ns.run(&format!("ip addr add 10.0.0.{number}/24 dev eth0"));
    ns.run(&format!("ip addr add fd00::{number}/64 dev eth0 nodad"));
    ns.run("ip link set eth0 up");
    // BQL grows its limit when the card is idle for a moment, and keeps it from fact to fact.
    let file = "/sys/class/net/eth0/queues/tx-0/byte_queue_limits/limit_max";
    let line = format!("echo {NIC_BYTES} > {file}");
    let status = ns.command(&["sh", "-c", &line]).status();
    assert!(status.is_ok_and(|status| status.success()), "{line}");
    ns.sysctl("net.ipv4.tcp_rmem", "4096 2000000 8000000");
    ns.sysctl("net.ipv4.tcp_wmem", "4096 2000000 8000000");
    Host {
        v4: format!("10.0.0.{number}").parse().expect("an address"),
        v6: format!("fd00::{number}").parse().expect("an address"),
        ns,
        port: String::new(),
    }
}

/// Sends datagrams as fast as its socket takes them, to where nobody listens.
fn flood(from: &Host, to: &Host, stop: &AtomicBool) {
    let socket = from.ns.enter(|| UdpSocket::bind((from.v4, 0)));
    let socket = socket.expect("a free port");
    while !stop.load(Ordering::Relaxed) {
        // Refused: an ICMP answer came back.
        let _ = socket.send_to(&[0; 1400], (to.v4, 9));
    }
}

/// What a flow experiences, and what the sender's daemon knows of it.
struct Outcome {
    mbit_per_s: f64,
    /// Means of the one-way delay and of the wait in the NIC, ms.
    owd_ms: f64,
    nic_ms: f64,
    holds: u64,
}

/// A flow, alone or beside datagrams.
fn flow(law: &str, beside_datagrams: bool) -> Outcome {
    let cards = Cards::take();
    let [from, to] = &cards.0;
    let options = ["--law", law, "--threshold", "1ms"];
    let (sender, receiver) = (Agent::start(from, &options), Agent::start(to, &options));
    let stop = AtomicBool::new(!beside_datagrams);
    let (received, owds_ms) = thread::scope(|scope| {
        scope.spawn(|| flood(from, to, &stop));
        let flow = Transfer::start(from, to, Load::seconds(2.0));
        let look = |_| {
            thread::sleep(Duration::from_millis(90));
            sender.owd_ms(to)
        };
        let owds_ms: Vec<f64> = (0..20).map(look).collect();
        let received = flow.finish();
        stop.store(true, Ordering::Relaxed);
        (received, owds_ms)
    });
    sender.assert_harmless();
    receiver.assert_harmless();
    let outcome = Outcome {
        mbit_per_s: received.mbit_per_s(),
        owd_ms: owds_ms.iter().sum::<f64>() / owds_ms.len() as f64,
        nic_ms: sender.counter("nic_wait_ns") as f64 / 1e6 / sender.counter("nic_waits") as f64,
        holds: sender.counter("holds"),
    };
    let Outcome {
        mbit_per_s,
        owd_ms,
        nic_ms,
        holds,
    } = outcome;
    println!(
        "{law}, datagrams {beside_datagrams}: {mbit_per_s:.1} Mbit/s, delay {owd_ms:.2} ms, NIC {nic_ms:.2} ms, \
         {holds} holds"
    );
    assert_eq!(sender.counter("oracks_reordered"), 0);
    outcome
}

/// A rate that the driver reports later is used, and one that it does not report while the link is down stays.
pub fn the_line_rate_is_the_one_that_the_driver_reports_now() {
    let cards = Cards::take();
    let host = &cards.0[0];
    let usual = USUAL.chunks(2).filter(|option| option[0] != "--line-rate");
    let agent = Agent::start_exactly(host, &usual.flatten().copied().collect::<Vec<_>>());
    let wait_for = |text: &str| {
        agent.wait_for(text, || {
            agent.text().lines().any(|line| line.ends_with(text))
        });
    };
    let byte_ns_q16 = || copies(&agent)[0].1;
    assert_eq!(byte_ns_q16(), 0, "unknown");
    host.ns.run("ethtool -s eth0 speed 1000 duplex full");
    wait_for("eth0: line rate 1 Gbit/s, was unknown");
    assert_eq!(byte_ns_q16(), 8 << 16);
    host.ns.run("ip link set eth0 down");
    host.ns.run("ip link set eth0 mtu 1400");
    wait_for("eth0: MTU 1400 B, was 1500");
    assert_eq!(byte_ns_q16(), 8 << 16);
    host.ns.run("ip link set eth0 mtu 1500"); // cards come back to the machine as they are
}

/// The hub has no queue and no delay. What a segment waits in its own host is in no sample.
pub fn the_wait_in_the_own_nic_is_no_delay_of_the_network() {
    let lone = flow("off", false);
    assert!((85.0..100.0).contains(&lone.mbit_per_s));
    assert!(lone.nic_ms > 0.5);
    assert!(lone.owd_ms.abs() < 0.3);
}

/// Datagrams are never held, so they keep the NIC full whatever a held flow does: it would be held for ever.
pub fn a_nic_that_others_fill_does_not_hold_a_flow() {
    let held = flow("final", true);
    assert!(held.nic_ms > 1.5, "above T");
    assert!(held.holds < 10);
    assert!(held.owd_ms < 1.0);
}
