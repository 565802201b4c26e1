// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Holding works: two long flows into a slow port wait at their sender instead of in the switch,
//! under every law, over IPv4 and IPv6, whatever the size of segments and frames.
use super::unloaded;
use crate::{
    agent::Agent,
    net::{Plan, Star},
    orack::Orack,
    tcp::{finish_all, Load, Transfer},
    wire::Wire,
};

/// Mean one-way delay of two CUBIC flows from two hosts when nothing is held, at least: the port's
/// buffer of 400 frames takes 48 ms, and CUBIC leaves it half empty at times.
const UNHELD_MS: f64 = 20.0;
/// And when they are held with T = 5 ms, at most. How near T a law comes is the benchmarks' affair.
const HELD_MS: f64 = 15.0;
/// Hosts have a line as fast as the port, and the gate averages over as many OR-ACKs as it would
/// in 1 ms at 10 Gbit/s.
const OPTIONS: &[&str] = &["--shape", "100Mbit/s", "--gate-tau", "20ms"];
const PLAN: Plan = Plan {
    hosts: 3,
    ..Plan::USUAL
};

struct Outcome {
    owd_ms: f64,
    mbit_per_s: f64,
    holds: u64,
}

/// A flow from each of two hosts to the third for 2 s, under a law.
fn two_flows(star: &Star, law: &str, load: Load) -> Outcome {
    two_flows_with(star, law, load, &[])
}

fn two_flows_with(star: &Star, law: &str, load: Load, options: &[&str]) -> Outcome {
    let options = [OPTIONS, &["--law", law], options].concat();
    let agents: Vec<Agent> = star
        .hosts
        .iter()
        .map(|host| Agent::start(host, &options))
        .collect();
    let to = &star.hosts[2];
    let flows = star.hosts[..2]
        .iter()
        .map(|from| Transfer::start(from, to, load))
        .collect();
    let mbit_per_s = finish_all(flows);
    agents.iter().for_each(Agent::assert_harmless);
    let owd_ms = (agents[0].owd_ms(to) + agents[1].owd_ms(to)) / 2.0;
    let holds = agents.iter().map(|agent| agent.counter("holds")).sum();
    println!("{law}: one-way delay {owd_ms:.1} ms, {mbit_per_s:.1} Mbit/s, {holds} holds");
    Outcome {
        owd_ms,
        mbit_per_s,
        holds,
    }
}

fn assert_held(outcome: &Outcome) {
    assert!(outcome.holds > 0);
    assert!(
        outcome.owd_ms < HELD_MS,
        "one-way delay {} ms",
        outcome.owd_ms
    );
    assert!(
        outcome.mbit_per_s > 70.0,
        "{} Mbit/s of 100",
        outcome.mbit_per_s
    );
}

pub fn law_off_measures_and_holds_nothing() {
    let outcome = two_flows(&Star::build(&PLAN), "off", Load::seconds(2.0));
    assert_eq!(outcome.holds, 0);
    assert!(
        outcome.owd_ms > UNHELD_MS,
        "one-way delay {} ms",
        outcome.owd_ms
    );
}

pub fn the_strawman_brings_the_delay_down() {
    let outcome = two_flows(&Star::build(&PLAN), "strawman", Load::seconds(2.0));
    assert!(outcome.holds > 0);
    assert!(
        outcome.owd_ms < HELD_MS,
        "one-way delay {} ms",
        outcome.owd_ms
    );
}

pub fn the_final_law_brings_the_delay_down() {
    assert_held(&two_flows(&Star::build(&PLAN), "final", Load::seconds(2.0)));
}

pub fn the_gate_brings_the_delay_down() {
    assert_held(&two_flows(&Star::build(&PLAN), "gate", Load::seconds(2.0)));
}

pub fn ipv6_is_held_as_ipv4_is() {
    let load = Load {
        v6: true,
        ..Load::seconds(2.0)
    };
    assert_held(&two_flows(&Star::build(&PLAN), "final", load));
}

pub fn gro_at_the_receiver_keeps_the_samples() {
    let plan = Plan { gro: true, ..PLAN };
    assert_held(&two_flows(&Star::build(&plan), "final", Load::seconds(2.0)));
}

/// Such a segment takes 5.2 ms of the port's time, and T is above it. Unheld, CUBIC fills 100 to
/// 300 ms of buffer: a factor of five and more, from machine to machine.
pub fn segments_of_64_kb_are_held() {
    let star = Star::build(&Plan {
        tso: true,
        buffer_packets: 800,
        ..PLAN
    });
    for host in &star.hosts[..2] {
        host.ns.sysctl("net.ipv4.tcp_min_tso_segs", "44");
    }
    let options = &["--gso-max", "64kB", "--threshold", "12ms"];
    let unheld = two_flows_with(&star, "off", Load::seconds(2.0), options);
    let oracks = Wire::open(&star.switch, &star.hosts[2].port);
    let held = two_flows_with(&star, "final", Load::seconds(2.0), options);
    let longest = oracks
        .drain()
        .iter()
        .map(|frame| Orack::parse(frame).len)
        .max();
    assert!(
        longest > Some(60_000),
        "longest segment that was acknowledged: {longest:?} B"
    );
    assert!(held.holds > 0);
    assert!(
        held.owd_ms < unheld.owd_ms / 2.0,
        "{} ms, {} ms unheld",
        held.owd_ms,
        unheld.owd_ms
    );
    assert!(held.mbit_per_s > 70.0, "{} Mbit/s of 100", held.mbit_per_s);
}

pub fn frames_of_9000_bytes_are_held() {
    let plan = Plan {
        mtu: 9000,
        buffer_packets: 70,
        ..PLAN
    };
    assert_held(&two_flows(&Star::build(&plan), "final", Load::seconds(2.0)));
}

/// What the law has held of twelve flows leaves at one time, unless TCP's pace spreads it.
pub fn paced_flows_do_not_overflow_a_port_together() {
    let star = Star::build(&PLAN);
    let to = &star.hosts[2];
    let lost = |pace: &[&str]| {
        let options = [OPTIONS, &["--gso-max", "64kB"], pace].concat();
        let agents: Vec<Agent> = star
            .hosts
            .iter()
            .map(|host| Agent::start(host, &options))
            .collect();
        let before = star.drops_towards(to);
        for _ in 0..2 {
            let flows = (0..12)
                .map(|i| Transfer::start(&star.hosts[i % 2], to, Load::seconds(0.7)))
                .collect();
            let mbit_per_s = finish_all(flows);
            assert!(mbit_per_s > 80.0, "{mbit_per_s} Mbit/s of 100");
        }
        agents.iter().for_each(Agent::assert_harmless);
        let drops = star.drops_towards(to) - before;
        println!("{pace:?}: {drops} drops");
        drops
    };
    // One round drops 190 to 339 unpaced and 93 to 132 paced.
    let (unpaced, paced) = (lost(&[]), lost(&["--pace", "on"]));
    assert!(4 * paced < 3 * unpaced, "{paced} drops, {unpaced} unpaced");
}

/// TCP's pace spreads the window of a flow that waits for acknowledgements, so that its segments are received while others
/// leave. A burst would follow each acknowledgement if the wait counted as lateness.
pub fn a_flow_that_waits_for_acknowledgements_is_spaced() {
    let star = unloaded::build(&unloaded::USUAL, &unloaded::NETWORKS[0]);
    let (from, to) = star.pair();
    let load = Load::bytes(unloaded::TRANSFERRED / 2);
    let median = |pace: &str| {
        let options = [unloaded::DAEMON, &["--threshold", "5ms", "--pace", pace]].concat();
        let _agent = Agent::start_exactly(from, &options);
        let rates = (0..5).map(|_| Transfer::start(from, to, load).finish().mbit_per_s());
        unloaded::at(&unloaded::in_order(rates), 0.5)
    };
    let (unpaced, paced) = (median("off"), median("on"));
    println!("{unpaced:.1} Mbit/s unpaced, {paced:.1} paced");
    // 326 and 409; the wait as lateness: 326 twice.
    assert!(paced > 1.1 * unpaced, "{paced} and {unpaced} Mbit/s");
}

/// Such a T holds in vain. Without a guard `final` leaves half of the throughput, and `gate` a twentieth.
pub fn a_threshold_below_the_path_costs_no_throughput() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let port = &to.port;
    star.switch.run(&format!(
        "tc qdisc replace dev {port} root netem delay 2ms rate 100mbit limit 400"
    ));
    let mbit_per_s = |law: &str| {
        let options = [
            OPTIONS,
            &["--law", law, "--threshold", "50us", "--guard", "50ms"],
        ]
        .concat();
        let agents = [from, to].map(|host| Agent::start(host, &options));
        let flow = Transfer::start(from, to, Load::seconds(2.0));
        let goodput = finish_all(vec![flow]);
        let beyond = agents[0].status().health.peers_beyond_threshold;
        let holds = law != "off";
        assert_eq!(beyond == [to.v4], holds, "{law}: {beyond:?}");
        let text = agents[0].text();
        assert_eq!(text.contains("is above --threshold"), holds, "{text}");
        goodput
    };
    let off = mbit_per_s("off");
    for law in ["final", "gate"] {
        let held = mbit_per_s(law);
        println!("{law}: {held:.1} Mbit/s, {off:.1} without On-Ramp");
        assert!(
            held > 0.9 * off,
            "{law}: {held} Mbit/s, {off} without On-Ramp"
        );
    }
}
