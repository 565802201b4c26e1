// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The law `level` on real kernels: requests beside long flows, a flow beside one that nobody holds,
//! and hosts whose OR-ACKs say nothing of their ports.
use std::{thread, time::Duration};

use crate::{
    agent::Agent,
    net::{Host, Plan, Star},
    orack::Orack,
    tcp::{finish_all, Load, Transfer},
    wire::{Middlebox, Wire},
};

/// As for the other laws (holding.rs). The line of a host is as fast as the port.
const OPTIONS: &[&str] = &["--shape", "100Mbit/s", "--gate-tau", "20ms"];
/// Bytes of each of three answers, which take four times T together.
const ANSWER: u64 = 85_000;
const REQUESTS: usize = 12;

fn star(hosts: u8) -> Star {
    Star::build(&Plan {
        hosts,
        ..Plan::USUAL
    })
}

fn start(hosts: &[Host], options: &[&str]) -> Vec<Agent> {
    let options = [OPTIONS, options].concat();
    let start = |host| Agent::start(host, &options);
    hosts.iter().map(start).collect()
}

fn sum(agents: &[Agent], counter: &str) -> u64 {
    agents.iter().map(|agent| agent.counter(counter)).sum()
}

/// What requests and long flows got.
#[derive(Debug, Clone, Copy)]
struct Shared {
    median_ms: f64,
    longest_ms: f64,
    mbit_per_s: f64,
    drops: u64,
}

/// Two long flows, and requests that three hosts answer together, on one port.
fn incast(law: &str) -> Shared {
    let star = star(4);
    let to = &star.hosts[3];
    let agents = start(&star.hosts, &["--law", law]);
    let drops = star.drops_towards(to);
    let long = star.hosts[..2]
        .iter()
        .map(|from| Transfer::start(from, to, Load::seconds(6.0)))
        .collect();
    thread::sleep(Duration::from_secs(1)); // the long flows fill the port
    let request = |_| {
        thread::sleep(Duration::from_millis(250));
        let answers: Vec<Transfer> = star.hosts[..3]
            .iter()
            .map(|from| Transfer::start(from, to, Load::bytes(ANSWER)))
            .collect();
        let took = answers.into_iter().map(|answer| answer.finish().took);
        took.max().expect("three answers").as_secs_f64() * 1e3
    };
    let mut took_ms: Vec<f64> = (0..REQUESTS).map(request).collect();
    took_ms.sort_by(f64::total_cmp);
    let mbit_per_s = finish_all(long);
    agents.iter().for_each(Agent::assert_harmless);
    let shared = Shared {
        median_ms: took_ms[REQUESTS / 2],
        longest_ms: took_ms[REQUESTS - 1],
        mbit_per_s,
        drops: star.drops_towards(to) - drops,
    };
    println!("{law}: {shared:.1?}, {} let go", sum(&agents, "let_go"));
    shared
}

/// Requests take no longer than under the better of these, and no more is dropped than under gate.
fn assert_no_worse(level: Shared, gate: Shared, others: &[Shared]) {
    let least = |ms: fn(&Shared) -> f64| others.iter().map(ms).fold(f64::MAX, f64::min);
    assert!(
        level.median_ms < 1.05 * least(|other| other.median_ms),
        "{level:?}"
    );
    assert!(
        level.longest_ms < 1.05 * least(|other| other.longest_ms),
        "{level:?}"
    );
    assert!(level.drops <= gate.drops.max(5), "{level:?}, {gate:?}");
}

pub fn requests_beside_long_flows_take_no_longer_than_under_gate() {
    let [gate, level] = ["gate", "level"].map(incast);
    assert_no_worse(level, gate, &[gate]);
    assert!(level.mbit_per_s > 0.97 * gate.mbit_per_s, "{level:?}");
}

pub fn requests_beside_long_flows_take_no_longer_than_under_gate_and_final() {
    let [off, best, gate, level] = ["off", "final", "gate", "level"].map(incast);
    assert_no_worse(level, gate, &[gate, best]);
    assert!(level.median_ms < off.median_ms / 2.0, "{level:?}, {off:?}");
    assert!(level.mbit_per_s > 0.97 * off.mbit_per_s, "{level:?}");
}

/// Mbit/s of a flow of host 1 and one of host 3, which has no agent, to host 2, in 12 s after the first 6.
fn beside(law: &str) -> [f64; 2] {
    let star = star(3);
    let to = &star.hosts[1];
    let agents = start(&star.hosts[..2], &["--law", law]);
    let flows = [0, 2].map(|i| Transfer::start(&star.hosts[i], to, Load::seconds(18.5)));
    let received = |wait_s| {
        thread::sleep(Duration::from_secs(wait_s));
        flows.each_ref().map(Transfer::received)
    };
    let (before, after) = (received(6), received(12));
    let rate = |i: usize| (after[i] - before[i]) as f64 * 8e-6 / 12.0;
    let rates = [rate(0), rate(1)];
    println!(
        "{law}: {rates:.1?} Mbit/s, {} holds, {} let go",
        sum(&agents, "holds"),
        sum(&agents, "let_go")
    );
    finish_all(flows.into());
    rates
}

pub fn a_flow_beside_one_that_nobody_holds_has_its_share() {
    let [own, other] = beside("level");
    let share = 2.0 * own / (own + other);
    println!("share: {share:.2}");
    // One pair of CUBIC's in 12 s: 0.72, 0.79, 0.86 and 1.07 in four builds. gate: 0.23 to 0.25.
    assert!(share >= 0.6, "{share}");
}

/// A daemon that does not know the bits sends none, as one does whose law does not use them; and takes those of others
/// for a part of the length, which is under the tag.
pub fn hosts_that_do_not_count_are_not_held_and_understand_those_that_do() {
    let star = star(3);
    let to = &star.hosts[2];
    let hints = |laws: [&str; 2]| {
        let wire = Wire::open(&star.switch, &to.port);
        let start = |host, law| Agent::start(host, &[OPTIONS, &["--law", law]].concat());
        let _receiver = start(to, laws[1]);
        let agents = [0, 1].map(|i| start(&star.hosts[i], laws[0]));
        let flows = [0, 1].map(|i| Transfer::start(&star.hosts[i], to, Load::seconds(1.5)));
        let mbit_per_s = finish_all(flows.into());
        assert!(mbit_per_s > 85.0, "{laws:?}: {mbit_per_s} Mbit/s");
        let oracks: Vec<u16> = wire
            .drain()
            .iter()
            .map(|frame| Orack::parse(frame).hint)
            .collect();
        let of = |name: &str| sum(&agents, name);
        assert!(of("oracks_used") > 100, "{laws:?}");
        assert_eq!(of("oracks_bad_tag") + of("oracks_malformed"), 0, "{laws:?}");
        println!("{laws:?}: {mbit_per_s:.1} Mbit/s, {} holds", of("holds"));
        (oracks, of("holds"), of("oracks_without_hint"))
    };
    let (oracks, holds, unknown) = hints(["level", "final"]);
    assert!(oracks.iter().all(|hint| *hint == 0));
    assert!(holds == 0 && unknown > 100, "{holds} holds");
    let (oracks, holds, unknown) = hints(["final", "level"]);
    assert!(oracks.iter().all(|hint| hint >> 11 > 0));
    assert!(holds > 0 && unknown == 0);
    let (oracks, holds, unknown) = hints(["level", "level"]);
    // Both flows are managed, and fill the line.
    let full = oracks
        .iter()
        .filter(|hint| **hint >> 11 >= 28 && (**hint & 255) == 2);
    let number = full.count();
    assert!(2 * number > oracks.len(), "{number} of {}", oracks.len());
    assert!(holds > 0 && unknown == 0);
}

/// Bits at random under a right tag: they let flows go or have them held, never longer than the cap.
pub fn a_receiver_that_lies_holds_no_flow_beyond_the_cap() {
    let star = star(3);
    let (from, to) = (&star.hosts[0], &star.hosts[2]);
    let agents = start(&star.hosts, &["--law", "level"]);
    let mut draw = 7_u32;
    let middlebox = Middlebox::between(&star, to, from, move |frame| {
        let mut orack = Orack::parse(frame);
        draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        orack.hint = (draw >> 16) as u16;
        vec![(Duration::ZERO, orack.signed().frame())]
    });
    let flows = [0, 1].map(|i| Transfer::start(&star.hosts[i], to, Load::seconds(2.0)));
    let mbit_per_s = finish_all(flows.into());
    middlebox.finish();
    println!("{mbit_per_s:.1} Mbit/s, {} holds", sum(&agents, "holds"));
    agents.iter().for_each(Agent::assert_harmless);
    assert!(mbit_per_s > 80.0, "{mbit_per_s} Mbit/s");
}
