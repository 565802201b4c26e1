// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A device with several transmit queues: each has a qdisc of its own under mq, and all hold together. The
//! machine of these facts has as many processors as the hosts have transmit queues.
use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use onramp_status::RootQdisc;
use serde_json::Value;

use super::own::{strays, watch_strays, HELD};
use crate::{
    agent::Agent,
    net::{Host, Plan, Star},
    tcp::{finish_all, transfers, Load, Transfer},
};

const QUEUES: usize = 4;
const PLAN: Plan = Plan {
    hosts: 3,
    queues: QUEUES as u8,
    ..Plan::USUAL
};
fn pause_s(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}

/// Kind and options of each configured qdisc, by its parent; the root's is "".
fn qdiscs(host: &Host) -> BTreeMap<String, (String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |q: Value| (text(&q["parent"]), (text(&q["kind"]), q["options"].clone()));
    let all = host.ns.qdiscs("eth0").into_iter();
    // Those that the kernel has created have the handle 0.
    all.filter(|q| q["handle"] != "0:").map(entry).collect()
}

/// The packets that On-Ramp's qdisc of each transmit queue has sent, in the order of the queues.
fn leaves(host: &Host) -> Vec<u64> {
    let all = host.ns.qdiscs("eth0").into_iter();
    let is_leaf = |q: &Value| {
        q["kind"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("onr"))
    };
    let sent = |q: &Value| q["packets"].as_u64().expect("a count");
    let of_queue = |q: Value| (q["parent"].to_string(), sent(&q));
    let by_queue: BTreeMap<String, u64> = all.filter(is_leaf).map(of_queue).collect();
    by_queue.into_values().collect()
}

/// Sets which processors send on each transmit queue (XPS), as masks.
fn steer(host: &Host, masks: [&str; QUEUES]) {
    for (queue, mask) in masks.iter().enumerate() {
        let file = format!("/sys/class/net/eth0/queues/tx-{queue}/xps_cpus");
        let line = format!("echo {mask} > {file}");
        let status = host.ns.command(&["sh", "-c", &line]).status();
        assert!(status.is_ok_and(|status| status.success()), "{line}");
    }
}

/// What four flows from each of two hosts to the third experience.
struct Outcome {
    /// Mean over the run, as the first host knows it.
    owd_ms: f64,
    mbit_per_s: f64,
    kicks: u64,
    /// Packets of the first host by transmit queue.
    packets: Vec<u64>,
}

fn eight_flows(star: &Star, law: &str) -> Outcome {
    let to = &star.hosts[2];
    let start = |host| Agent::start(host, &["--law", law]);
    let agents: Vec<Agent> = star.hosts.iter().map(start).collect();
    let four = |from: &Host| transfers(from, to, Load::seconds(3.0), 4);
    let flows: Vec<Transfer> = star.hosts[..2].iter().flat_map(four).collect();
    let mut owds_ms = vec![];
    for _ in 0..20 {
        pause_s(0.125);
        owds_ms.push(agents[0].owd_ms(to));
    }
    let outcome = Outcome {
        owd_ms: owds_ms.iter().sum::<f64>() / owds_ms.len() as f64,
        mbit_per_s: finish_all(flows),
        kicks: agents.iter().map(|agent| agent.counter("kicks")).sum(),
        packets: leaves(&star.hosts[0]),
    };
    agents.iter().for_each(Agent::assert_harmless);
    let Outcome {
        owd_ms,
        mbit_per_s,
        kicks,
        packets,
    } = &outcome;
    println!("{law}: {mbit_per_s:.1} Mbit/s, {owd_ms:.1} ms, {kicks} kicks, packets {packets:?}");
    outcome
}

fn assert_held(star: &Star) -> Outcome {
    let (off, held) = (eight_flows(star, "off"), eight_flows(star, "final"));
    assert!(held.kicks > 0, "no flow was released early");
    assert!(
        held.owd_ms < 0.85 * off.owd_ms,
        "{} of {} ms",
        held.owd_ms,
        off.owd_ms
    );
    assert!(held.mbit_per_s > 70.0, "{} Mbit/s of 100", held.mbit_per_s);
    held
}

pub fn each_has_a_qdisc_that_holds() {
    let star = Star::build(&PLAN);
    let agent = Agent::start(&star.hosts[0], &[]);
    let text = agent.text();
    assert!(text.contains("each of the 4 transmit queues"), "{text}");
    let root = star.hosts[0].ns.qdisc("eth0").expect("a qdisc");
    assert_eq!(root["kind"], "mq");
    assert_eq!(leaves(&star.hosts[0]).len(), QUEUES);
    assert_eq!(agent.status().devices[0].root_qdisc, RootQdisc::Own);
    drop(agent);
    let held = assert_held(&star);
    let busy = held.packets.iter().filter(|packets| **packets > 100);
    assert!(busy.count() > 1, "packets by queue: {:?}", held.packets);
}

pub fn what_they_had_comes_back() {
    let star = Star::build(&PLAN);
    let (host, other) = star.pair();
    let flows = transfers(host, other, Load::seconds(8.0), 4);
    let fresh = qdiscs(host);
    let agent = Agent::start(host, &[]);
    assert_eq!(leaves(host).len(), QUEUES);
    agent.stop(Signal::SIGTERM);
    assert_eq!(qdiscs(host), fresh);

    host.ns.run("tc qdisc replace dev eth0 root handle 77: mq");
    for (queue, qdisc) in [(1, "fq limit 777"), (3, "fq_codel limit 888")] {
        let line = format!("tc qdisc replace dev eth0 parent 77:{queue} {qdisc}");
        host.ns.run(&line);
    }
    let before = qdiscs(host);
    let agent = Agent::start(host, &[]);
    assert_eq!(leaves(host).len(), QUEUES);
    agent.stop(Signal::SIGKILL);
    assert_eq!(leaves(host).len(), QUEUES, "they forward without a daemon");
    let next = Agent::start(host, &[]);
    assert_eq!(leaves(host).len(), QUEUES);
    let ended = next.stop(Signal::SIGTERM);
    assert_eq!(qdiscs(host), before, "{ended:?}");
    // Each of the five exchanges drops what waits, and some flows then wait for a timeout of TCP.
    let goodput = finish_all(flows);
    assert!(goodput > 30.0, "{goodput} Mbit/s of 100");
}

pub fn a_qdisc_that_another_program_gives_to_one_stays() {
    let star = Star::build(&PLAN);
    let (from, to) = star.pair();
    let agent = Agent::start(from, &[]);
    from.ns
        .run("tc qdisc replace dev eth0 parent 4f52:2 fq limit 777");
    let deadline = Instant::now() + Duration::from_secs(3);
    while agent.status().devices[0].root_qdisc != RootQdisc::Foreign("fq".into()) {
        assert!(Instant::now() < deadline, "{:?}", agent.status().health);
        pause_s(0.1);
    }
    let ended = agent.stop(Signal::SIGTERM);
    assert!(ended.text.contains("of another program"), "{ended:?}");
    let after = qdiscs(from);
    assert_eq!(after["4f52:2"].0, "fq");
    assert!(leaves(from).is_empty(), "{after:?}");
    let goodput = finish_all(transfers(from, to, Load::seconds(1.0), 4));
    assert!(goodput > 70.0, "{goodput} Mbit/s of 100");
}

/// A connection between two hosts, its two ends.
fn connection(from: &Host, to: &Host) -> (TcpStream, TcpStream) {
    let listener = to.ns.enter(|| TcpListener::bind((to.v4, 0)));
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let sender = from.ns.enter(|| TcpStream::connect(address));
    let (receiver, _) = listener.accept().expect("it connects");
    (sender.expect("it connects"), receiver)
}

pub fn a_connection_that_changes_its_queue_keeps_its_state() {
    let star = Star::build(&PLAN);
    let (from, to) = star.pair();
    let _receiving = Agent::start(to, &[]);
    let agent = Agent::start(from, &[]);
    let (mut sender, mut receiver) = connection(from, to);
    let burst: Vec<u8> = (0..2_000_000_u32).map(|i| (i % 251) as u8).collect();
    for (round, queue) in [0, 2, 3].into_iter().enumerate() {
        let mut masks = ["0"; QUEUES];
        masks[queue] = "f";
        steer(from, masks);
        let before = (leaves(from), agent.counter("oracks_used"));
        let arrived = thread::scope(|scope| {
            scope.spawn(|| sender.write_all(&burst).expect("it is connected"));
            let mut arrived = vec![0; burst.len()];
            receiver.read_exact(&mut arrived).expect("it is connected");
            arrived
        });
        assert!(arrived == burst, "other bytes arrived");
        let after = (leaves(from), agent.counter("oracks_used"));
        println!("packets by queue and OR-ACKs used before {before:?}, after {after:?}");
        assert!(
            after.0[queue] > before.0[queue] + 100,
            "round {round}: it has not moved"
        );
        assert!(after.1 > before.1 + 10, "round {round}: it is not known");
        pause_s(0.3);
    }
    assert!(agent.counter("holds") > 0);
    println!(
        "{} OR-ACKs without a record",
        agent.counter("oracks_unmatched")
    );
    assert_eq!(agent.counter("flows_created"), 1);
    assert_eq!(agent.status().flows, 1);
    agent.assert_harmless();
}

/// A processor sends on its own transmit queue, as most drivers arrange it. So a kick runs the qdisc of the
/// processor that got the OR-ACK, and not that of the flow.
pub fn a_kick_that_runs_another_queue_is_found() {
    let star = Star::build(&PLAN);
    for host in &star.hosts {
        steer(host, ["1", "2", "4", "8"]);
    }
    assert_held(&star);
}

pub fn one_rate_for_all_needs_one_qdisc() {
    let star = Star::build(&PLAN);
    let agent = Agent::start(&star.hosts[0], &["--shape", "100Mbit/s"]);
    let text = agent.text();
    assert!(text.contains("because of --shape"), "{text}");
    assert_eq!(leaves(&star.hosts[0]).len(), 1);
}

/// The processors of the machine run in turns, so timers fire late. A pace must not add the delays up.
pub fn late_timers_do_not_slow_a_paced_flow() {
    let star = Star::build(&Plan { queues: 1, ..PLAN });
    let (from, to) = star.pair();
    from.ns.run("tc qdisc replace dev eth0 root fq");
    let one = || finish_all(transfers(from, to, Load::seconds(3.0), 1));
    let fq = one();
    let agent = Agent::start(from, &["--law", "off", "--pace", "on"]);
    let edge = one();
    drop(agent);
    println!("{fq:.1} Mbit/s with fq, {edge:.1} with edge");
    assert!(edge > 0.8 * fq, "{edge} and {fq} Mbit/s");
}

/// Where processors contend for a qdisc, one puts the packets of others into it (Linux 6.19 and later).
pub fn no_kick_leaves_while_processors_contend() {
    let star = Star::build(&Plan { queues: 1, ..PLAN });
    let (from, to) = star.pair();
    watch_strays(&star);
    let sender = Agent::start(from, HELD);
    let _receiver = Agent::start(to, HELD);
    let mbit_per_s = finish_all(transfers(from, to, Load::seconds(3.0), 8));
    println!("{mbit_per_s:.1} Mbit/s, {:?}", sender.status().counters);
    assert!(sender.counter("kicks") > 0);
    assert_eq!(strays(&star), 0);
}
