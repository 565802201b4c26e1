// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Clocks that step, drift or end. A wrong clock may cost delay up to the cap; nothing else.
use std::{thread, time::Duration};

use nix::{
    sys::{signal::Signal, time::TimeSpec},
    time::{clock_gettime, clock_settime, ClockId},
};

use onramp_law::abi::onr_clock_params;

use crate::{
    agent::Agent,
    maps::{now_mono_ns, set_clock, step_clock, Counters, LONG_LEASE},
    net::{Host, Plan, Star},
    tcp::{finish_all, transfers, Load, Transfer},
};

const MS: i64 = 1_000_000;
const S: i64 = 1000 * MS;

fn pause_s(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}

/// A loaded pair whose daemons leave their clocks to the test.
fn pair(options: &[&str]) -> (Star, Agent, Agent) {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let options = [options, LONG_LEASE, &["--shape", "200Mbit/s"]].concat();
    let agents = (Agent::start(from, &options), Agent::start(to, &options));
    (star, agents.0, agents.1)
}

/// Steps the clock of one end by +-1 s and +-1 h under load, each for a while.
fn steps(at_sender: bool) {
    let (star, sender, receiver) = pair(&[]);
    let (from, to) = star.pair();
    let stepped = if at_sender { &sender } else { &receiver };
    let flows = transfers(from, to, Load::seconds(1.9), 2);
    pause_s(0.3);
    for step in [S, -S, 3600 * S, -3600 * S] {
        let before = sender.counter("holds");
        step_clock(stepped, step);
        pause_s(0.15);
        let ignored = sender.counter("oracks_stale") + sender.counter("oracks_absurd");
        let paused = sender.counter("holds") - before;
        println!(
            "{} s: {ignored} OR-ACKs ignored so far, {paused} holds",
            step / S
        );
        step_clock(stepped, 0);
        pause_s(0.15);
    }
    let ignored = sender.counter("oracks_stale") + sender.counter("oracks_absurd");
    assert!(ignored > 100, "{ignored} OR-ACKs ignored");
    let used = sender.counter("oracks_used");
    let held = sender.counter("holds");
    let goodput = finish_all(flows);
    println!("{goodput:.1} Mbit/s");
    assert!(goodput > 60.0, "{goodput} Mbit/s");
    assert!(
        sender.counter("oracks_used") > used + 50,
        "no sample after the clock was right again"
    );
    assert!(sender.counter("holds") > held);
    sender.assert_harmless();
}

pub fn steps_at_the_sender_are_ignored() {
    steps(true);
}

pub fn steps_at_the_receiver_are_ignored() {
    steps(false);
}

/// Too small to be absurd: 30 ms of delay that is none.
pub fn small_steps_cost_the_cap_at_most() {
    let (star, sender, _receiver) = pair(&["--max-pause", "10ms"]);
    let (from, to) = star.pair();
    step_clock(&sender, -30 * MS);
    let late = finish_all(transfers(from, to, Load::seconds(0.6), 2));
    let held = sender.counter("holds");
    step_clock(&sender, 100 * MS);
    let early = finish_all(transfers(from, to, Load::seconds(0.6), 2));
    println!("{late:.1} Mbit/s at 30 ms too much, {early:.1} Mbit/s at 100 ms too little");
    assert!(held > 0 && late > 1.0);
    assert_eq!(
        sender.counter("holds"),
        held,
        "a negative delay holds nothing"
    );
    assert!(early > 80.0);
    sender.assert_harmless();
}

/// 900 ppm for 10 s are 9 ms.
pub fn drift_is_applied() {
    let (star, sender, _receiver) = pair(&["--law", "off"]);
    let (from, to) = star.pair();
    let now = now_mono_ns();
    let drift_q32 = (900e-6 * 2f64.powi(32)) as i64;
    let clock = |drift_q32| onr_clock_params {
        drift_q32,
        reference_mono_ns: now,
        lease_expires_mono_ns: now + 3600 * S,
        ..Default::default()
    };
    set_clock(&sender, clock(drift_q32));
    pause_s(10.0);
    Transfer::start(from, to, Load::bytes(15_000)).finish();
    let owd = |agent: &Agent| agent.status().peers[0].owd_last_ns;
    let drifted = owd(&sender);
    set_clock(&sender, clock(0));
    Transfer::start(from, to, Load::bytes(15_000)).finish();
    let right = owd(&sender);
    println!("one-way delay {right} ns, with drift {drifted} ns");
    assert!(
        (right - drifted - 9 * MS).abs() < MS,
        "{right} ns, {drifted} ns"
    );
}

/// Load, and a sender whose lease lasts 0.5 s.
fn leased() -> (Star, Agent, Agent) {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--lease", "500ms", "--shape", "200Mbit/s"]);
    let receiver = Agent::start(to, &[]);
    (star, sender, receiver)
}

fn rate_mbit(from: &Host, to: &Host) -> f64 {
    finish_all(transfers(from, to, Load::seconds(0.5), 2))
}

pub fn without_a_lease_nothing_is_held_until_it_is_renewed() {
    let (star, sender, _receiver) = leased();
    let (from, to) = star.pair();
    let counters = Counters::of(&sender);
    let flows = transfers(from, to, Load::seconds(2.6), 2);
    pause_s(0.4);
    assert!(counters.get("holds") > 0, "nothing was held to begin with");

    sender.signal(Signal::SIGSTOP);
    pause_s(0.7);
    let (held, unused) = (counters.get("holds"), counters.get("oracks_no_lease"));
    let arrived = flows[0].received() + flows[1].received();
    pause_s(0.5);
    let arrived = flows[0].received() + flows[1].received() - arrived;
    println!(
        "{arrived} B in 0.5 s without a lease, {} holds refused",
        counters.get("holds_refused_lease")
    );
    assert_eq!(counters.get("holds"), held, "holds without a lease");
    assert!(counters.get("oracks_no_lease") > unused + 100);
    assert!(arrived > 5_500_000, "{arrived} B in 0.5 s at 100 Mbit/s");

    sender.signal(Signal::SIGCONT);
    pause_s(1.0);
    assert!(counters.get("holds") > held, "nothing is held again");
    finish_all(flows);
    sender.assert_harmless();
}

/// A pause that is on when the lease ends, ends with it: nobody waits for a dead clock.
pub fn a_pause_ends_with_the_lease() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let options = [LONG_LEASE, &["--max-pause", "30s", "--max-owd", "60s"]].concat();
    let sender = Agent::start(from, &options);
    let _receiver = Agent::start(to, &options);
    let lease = now_mono_ns() + 2 * S;
    set_clock(
        &sender,
        onr_clock_params {
            offset_ns: -20 * S,
            lease_expires_mono_ns: lease,
            ..Default::default()
        },
    );
    let flow = Transfer::start(from, to, Load::bytes(1_000_000));
    pause_s(1.5);
    assert!(!flow.is_finished(), "20 s of delay hold nothing");
    let took = flow.finish().took;
    println!("{took:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    let counter = |name| sender.counter(name);
    assert!(counter("holds_refused_lease") > 0);
    assert!(counter("held_max_ns") < 2_100_000_000);
}

/// When the receiver's daemon stops, no OR-ACK tells a time that may be wrong.
pub fn a_receiver_without_a_lease_sends_no_oracks() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--shape", "200Mbit/s"]);
    let receiver = Agent::start(to, &["--lease", "500ms"]);
    let counters = Counters::of(&receiver);
    receiver.signal(Signal::SIGSTOP);
    pause_s(0.6);
    let goodput = rate_mbit(from, to);
    assert_eq!(counters.get("oracks_sent"), 0);
    assert_eq!(sender.counter("holds"), 0);
    assert!(goodput > 80.0, "{goodput} Mbit/s");
    receiver.signal(Signal::SIGCONT);
    pause_s(0.2);
    rate_mbit(from, to);
    assert!(counters.get("oracks_sent") > 0);
    assert!(sender.counter("holds") > 0);
    sender.assert_harmless();
}

/// Tells the kernel that its clock is synchronised, as chrony does, or that it is not.
fn set_synchronised(is_synchronised: bool) {
    // SAFETY: plain numbers; adjtimex reads and writes no more than this.
    let mut change: libc::timex = unsafe { std::mem::zeroed() };
    change.modes = libc::ADJ_STATUS | libc::ADJ_MAXERROR | libc::ADJ_ESTERROR;
    change.status = if is_synchronised { 0 } else { libc::STA_UNSYNC };
    // SAFETY: as above.
    assert!(unsafe { libc::adjtimex(&mut change) } >= 0, "root may");
}

/// Two hosts that take the system clock for fleet time, right within 5 us.
fn by_system_clock(of_sender: &[&str]) -> (Star, Agent, Agent) {
    // A kernel changes its source of time about a second after boot, and calls its clock unsynchronised then.
    pause_s((3e9 - now_mono_ns() as f64).max(0.0) / 1e9);
    set_synchronised(true);
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let options = ["--clock", "system", "--clock-bound", "5us", "--lease", "1s"];
    let shaped = [&options[..], &["--shape", "200Mbit/s"], of_sender].concat();
    let sender = Agent::start(from, &shaped);
    let receiver = Agent::start(to, &options);
    (star, sender, receiver)
}

/// Not synchronised or stepped, it is doubted, and nothing is held until it is right again.
pub fn a_system_clock_is_used_while_it_is_believed() {
    let (star, sender, _receiver) = by_system_clock(&[]);
    let (_, to) = star.pair();
    let held_by_traffic = || sender.traffic(to).1;
    let clock = sender.status().clock;
    assert_eq!((clock.source.as_str(), clock.sigma_ns), ("system", 5_000));
    assert!(held_by_traffic() > 0);
    let owd = sender.peer(to).owd_min_ns;
    assert!((0..20 * MS).contains(&owd.expect("a delay")), "{owd:?}");

    set_synchronised(false);
    pause_s(0.5);
    assert_eq!(held_by_traffic(), 0);
    let clock = sender.status().clock;
    println!("{clock:?}");
    assert!(clock.lease_left_ns < 0 && clock.doubts == 1, "{clock:?}");
    assert!(clock
        .doubt
        .is_some_and(|doubt| doubt.contains("not synchronised")));
    set_synchronised(true);
    pause_s(0.5);
    assert!(held_by_traffic() > 0);

    let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("a clock");
    let leapt = TimeSpec::new(now.tv_sec() + 3600, 0);
    clock_settime(ClockId::CLOCK_REALTIME, leapt).expect("root may");
    set_synchronised(true); // a step ends it
    pause_s(0.4);
    let clock = sender.status().clock;
    println!("{clock:?}");
    assert!(clock.lease_left_ns < 0 && clock.doubts == 2, "{clock:?}");
    pause_s(1.5);
    assert!(held_by_traffic() > 0);
    assert_eq!(sender.status().clock.doubt, None);
    sender.assert_harmless();
}

/// The sender's clock is 100 ms ahead of the receiver's, and the bound is 5 us. `start` starts both with these options of the
/// sender.
pub fn proves_the_bound_wrong(start: fn(&[&str]) -> (Star, Agent, Agent)) {
    let (star, sender, receiver) = start(&["--synthetic-clock", "offset=100ms"]);
    let (from, to) = star.pair();
    finish_all(transfers(from, to, Load::seconds(2.5), 2));
    let clock = sender.status().clock;
    println!("{clock:?}");
    assert!(clock.lease_left_ns < 0 && clock.doubts == 1, "{clock:?}");
    let doubt = clock.doubt.expect("a reason");
    assert!(doubt.contains(&to.v4.to_string()), "{doubt}");
    sender.assert_open(to);
    assert_eq!(receiver.status().clock.doubts, 0);
}

pub fn an_impossible_delay_proves_the_bound_of_a_system_clock_wrong() {
    proves_the_bound_wrong(by_system_clock);
}

/// Two hosts with T of their own, and a delay on the way to the second.
fn far_pair(ms: u32) -> (Star, Agent, Agent) {
    let (star, sender, receiver) = pair(&["--threshold", "auto"]);
    delay(&star, ms);
    (star, sender, receiver)
}

fn delay(star: &Star, ms: u32) {
    star.switch.run(&format!(
        "tc qdisc replace dev p2 root netem delay {ms}ms rate 100mbit limit 400"
    ));
}

/// A few OR-ACKs over some time; what the daemon then takes for the least delay, ms.
fn least_ms(star: &Star, sender: &Agent, seconds: f64) -> i64 {
    let (from, to) = star.pair();
    for _ in 0..(2.0 * seconds) as usize {
        Transfer::start(from, to, Load::bytes(30_000)).finish();
        pause_s(0.5);
    }
    pause_s(1.1);
    sender.peer(to).threshold.map_or(-1, |t| t.min_ns / MS)
}

/// For a quarter of a second the receiver is behind: by more than the way takes, which is noticed, and by a
/// little less, which is forgotten.
pub fn an_automatic_threshold_outlives_a_glitch_of_the_clock() {
    let (star, sender, receiver) = far_pair(45);
    assert_eq!(least_ms(&star, &sender, 2.0), 45);
    let glitch = |ms: i64| {
        step_clock(&receiver, -ms * MS);
        Transfer::start(star.pair().0, star.pair().1, Load::bytes(30_000)).finish();
        step_clock(&receiver, 0);
    };
    glitch(60);
    assert_eq!(least_ms(&star, &sender, 1.0), 45);
    glitch(40);
    assert_eq!(least_ms(&star, &sender, 1.0), 5);
    assert_eq!(least_ms(&star, &sender, 30.0), 45);
}

pub fn an_automatic_threshold_follows_a_route_that_grows() {
    let (star, sender, _receiver) = far_pair(2);
    assert_eq!(least_ms(&star, &sender, 2.0), 2);
    delay(&star, 20);
    assert_eq!(least_ms(&star, &sender, 31.0), 20);
    let (from, to) = star.pair();
    let goodput = finish_all(transfers(from, to, Load::seconds(2.0), 2));
    println!("{goodput:.1} Mbit/s");
    assert!(goodput > 60.0, "{goodput} Mbit/s");
    sender.assert_harmless();
}
