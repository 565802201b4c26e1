// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the data path does with the error of its clock: nothing is held for a T that the error can reach, and a starved host
//! whose clock is wrong, which nobody knows yet, is held as long as guard and cap allow, and no longer than the lease.
use std::{collections::BTreeSet, time::Duration};

use bytemuck::pod_read_unaligned;
use libbpf_rs::{MapCore, MapFlags};
use nix::sys::signal::Signal;
use onramp_law::abi::onr_ctl;
use onramp_status::Clock;

use super::huygens::{pause_s, Fleet, CLOCKS};
use crate::{
    agent::{Agent, USUAL},
    maps::{clock, map, now_mono_ns, set_clock, Counters},
    net::{Host, Plan, Star},
    tcp::{finish_all, transfers, Load, Transfer},
};

const MS: i64 = 1_000_000;
/// Sigma is small after five windows, and a lease later it is relied on.
const SOON: Duration = Duration::from_secs(25);
const USUAL_T: &str = "5 ms";
/// Below the error of two clocks whose sigma is known for a few windows only: half of the shortest delay, 7 us. Above that of
/// clocks that are known for longer.
const LOW: &str = "20 us";
/// Below the error of any two clocks: sigma is above 17 ns.
const TOO_LOW: &str = "100 ns";

fn file(host: &Host) -> String {
    format!("/tmp/{}.toml", host.ns.0)
}

/// T of all flows; those to ports from 8000 on have a T of their own.
fn configure(host: &Host, t: &str) {
    let text = format!(
        "devices = [\"eth0\"]\n[law]\nthreshold = \"{t}\"\n\
         [[class]]\nname = \"low\"\nports = [\"8000-8099\"]\nthreshold = \"{LOW}\"\n"
    );
    std::fs::write(file(host), text).expect("/tmp is writable");
}

/// A daemon with Huygens and a configuration file.
fn start(star: &Star, number: usize) -> Agent {
    let host = &star.hosts[number];
    configure(host, USUAL_T);
    let usual = USUAL.chunks(2).filter(|option| option[0] != "--threshold");
    let file = file(host);
    let options = ["--config", &file, "--shape", "200Mbit/s"];
    let fleet = ["--clock", "huygens", "--member", "10.0.0.1,10.0.0.2"];
    let wrong = ["--synthetic-clock", CLOCKS[number]];
    let all = [usual.flatten().copied().collect(), options.to_vec()].concat();
    Agent::start_exactly(host, &[&all[..], &fleet, &wrong].concat())
}

/// Two flows to a port of this range; how often they were held, and OR-ACKs that came.
fn traffic(star: &Star, sender: &Agent, ports: &str) -> (u64, u64) {
    let (_, to) = star.pair();
    to.ns.sysctl("net.ipv4.ip_local_port_range", ports);
    let oracks = sender.counter("oracks_received");
    let (mbit_per_s, holds) = sender.traffic(to);
    assert!(mbit_per_s > 1.0, "{mbit_per_s} Mbit/s");
    (holds, sender.counter("oracks_received") - oracks)
}

const OTHERS: &str = "9000 9099";
const OF_CLASS: &str = "8000 8099";

fn has_lease(clock: &Clock) -> bool {
    clock.lease_left_ns > 0
}

/// At first sigma is large, and the T of a class too low, until sigma is known to be small. Then the T of all flows is too
/// low: at the sender, then at the receiver.
pub fn nothing_is_held_for_a_threshold_below_it() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let (sender, receiver) = (start(&star, 0), start(&star, 1));
    let below = || {
        let list = sender.status().health.thresholds_below_error.into_iter();
        list.map(|below| below.threshold).collect::<Vec<_>>()
    };
    sender.await_clock(SOON, has_lease);
    receiver.await_clock(SOON, has_lease);
    let began = now_mono_ns();
    pause_s(1.1); // the next look changes the rules
    println!("{:?}", sender.status().health);
    assert_eq!(below(), ["the threshold of class low"]);
    assert!(traffic(&star, &sender, OTHERS).0 > 0);
    let (holds, oracks) = traffic(&star, &sender, OF_CLASS);
    assert!(holds == 0 && oracks > 0, "{holds} holds, {oracks} OR-ACKs");
    sender.await_clock(SOON, |_| below().is_empty());
    let took_ms = (now_mono_ns() - began) / MS;
    println!("T of {LOW} is used after {took_ms} ms");
    assert!(sender
        .text()
        .contains("good enough for the threshold of class low again"));
    pause_s(1.1);
    assert!(traffic(&star, &sender, OF_CLASS).0 > 0);

    let set = |agent: &Agent, host: &Host, t: &str, wanted: bool| {
        configure(host, t);
        agent.signal(Signal::SIGHUP);
        let clock = agent.await_clock(SOON, |clock| has_lease(clock) == wanted);
        println!(
            "T {t}: sigma {} ns, {:?}",
            clock.sigma_ns,
            agent.status().health
        );
    };
    set(&sender, from, TOO_LOW, false);
    assert_eq!(below(), ["law.threshold"]);
    let unused = sender.counter("oracks_no_lease");
    assert_eq!(traffic(&star, &sender, OTHERS).0, 0);
    assert!(sender.counter("oracks_no_lease") > unused, "no OR-ACK came");
    let says = "nothing is held for law.threshold: it is 100 ns";
    let text = sender.text();
    assert_eq!(text.matches(says).count(), 1, "{text}");
    set(&sender, from, USUAL_T, true);
    assert!(below().is_empty());
    assert_eq!(sender.status().health.times_below_error, 2);

    set(&receiver, to, TOO_LOW, false);
    let (holds, oracks) = traffic(&star, &sender, OTHERS);
    assert_eq!((holds, oracks), (0, 0), "the receiver tells no time");
    set(&receiver, to, USUAL_T, true);
    assert!(traffic(&star, &sender, OTHERS).0 > 0);
    sender.assert_harmless();
    receiver.assert_harmless();
}

/// How wrong the clock of the starved host is: 18 times T, and nearly the cap.
const WRONG_NS: i64 = 90 * MS;
const GUARD_MS: i64 = 50;
/// The usual options.
const MAX_PAUSE_MS: i64 = 100;
/// The port's buffer takes so long to send.
const QUEUE_MS: i64 = 48;
/// The guard judges a flow at the first OR-ACK after a window: that of a packet that was held for the cap, and waited in the
/// queue. In its first window a flow may not have been held often enough yet.
const RAISED_WITHIN_MS: i64 = 2 * (GUARD_MS + MAX_PAUSE_MS + QUEUE_MS);
/// Its sigma is small enough for T when the estimates of the time of starvation are forgotten.
const RECOVERED_WITHIN_MS: i64 = 100_000;
/// What the guard leaves a flow at least beside flows that are held rightly, as a part of its share (docs/law.md).
const LEAST_PART: f64 = 0.45;

/// Three hosts send to the fourth, again and again.
struct Incast {
    fleet: Fleet,
    counters: Vec<Counters>,
}

impl Incast {
    fn start() -> Incast {
        let mut fleet = Fleet::unborn(4);
        fleet.name_members(false);
        let guard = format!("{GUARD_MS}ms");
        for n in 0..4 {
            fleet.launch(n, &["--shape", "200Mbit/s", "--guard", &guard]);
        }
        fleet.await_synchrony();
        let counters = fleet.running().map(Counters::of).collect();
        Incast { fleet, counters }
    }

    /// By host.
    fn counts(&self, name: &str) -> Vec<u64> {
        self.counters.iter().map(|host| host.get(name)).collect()
    }

    /// Two flows of each sender.
    fn flows(&self, seconds: f64) -> Vec<Vec<Transfer>> {
        let to = &self.fleet.star.hosts[3];
        let senders = self.fleet.star.hosts[..3].iter();
        let of_sender = |from| transfers(from, to, Load::seconds(seconds), 2);
        senders.map(of_sender).collect()
    }

    /// Waits for the flows. They fill the port, and no sender had less than the guard leaves it.
    fn finish(&self, what: &str, flows: Vec<Vec<Transfer>>) {
        let rates: Vec<f64> = flows.into_iter().map(finish_all).collect();
        let (holds, raises) = (self.counts("holds"), self.counts("guard_raises"));
        println!("{what}: {rates:.1?} Mbit/s, holds {holds:?}, guard raises {raises:?}");
        let share = rates.iter().sum::<f64>() / rates.len() as f64;
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        assert!(share > 25.0, "{what}: {rates:?} Mbit/s through 100");
        assert!(least > LEAST_PART * share, "{what}: {rates:?} Mbit/s");
    }

    /// Whether the guard has raised T of these flows of a sender above the error.
    fn is_guarded(&self, sender: usize, flows: &[Transfer]) -> bool {
        let ctls = map(self.fleet.agent(sender), "ctls");
        let entry = |key: Vec<u8>| ctls.lookup(&key, MapFlags::ANY).expect("a map of ours");
        let all = ctls.keys().filter_map(entry);
        let all: Vec<onr_ctl> = all.map(|value| pod_read_unaligned(&value)).collect();
        let is_guarded = |flow: &Transfer| {
            let is_it = |ctl: &&onr_ctl| u16::from_be(ctl.key.sport) == flow.from_port;
            let t_ns = all.iter().find(is_it).map(|ctl| ctl.law.guard_threshold_ns);
            t_ns.is_some_and(|t_ns| t_ns > WRONG_NS)
        };
        flows.iter().all(is_guarded)
    }

    /// Waits until the guard has seen that the flows of these senders are held in vain.
    fn await_guard(&self, held: &[usize], flows: &[Vec<Transfer>]) {
        let began = now_mono_ns();
        let took_ms = || (now_mono_ns() - began) / MS;
        while !held
            .iter()
            .all(|sender| self.is_guarded(*sender, &flows[*sender]))
        {
            let raises = self.counts("guard_raises");
            assert!(took_ms() < RAISED_WITHIN_MS, "not in time: {raises:?}");
            pause_s(0.005);
        }
        println!("guarded in {} ms", took_ms());
    }

    /// The daemon of this host is stopped, and the line that it has left is wrong: delays to or from there are too long.
    /// Returns the end of the lease.
    fn starve(&self, victim: usize) -> i64 {
        let agent = self.fleet.agent(victim);
        agent.signal(Signal::SIGSTOP);
        let mut line = clock(agent);
        line.offset_ns += if victim == 3 { WRONG_NS } else { -WRONG_NS };
        set_clock(agent, line);
        line.lease_expires_mono_ns
    }

    /// The processor comes back a little at a time, then for good.
    fn feed(&self, victim: usize) {
        let agent = self.fleet.agent(victim);
        let flows = self.flows(3.0);
        for _ in 0..3 {
            agent.signal(Signal::SIGCONT);
            pause_s(0.1);
            agent.signal(Signal::SIGSTOP);
            pause_s(0.4);
        }
        agent.signal(Signal::SIGCONT);
        self.finish("fed", flows);
    }

    /// Until all data paths have a lease. As long as the victim's has none, its status says why.
    fn await_leases(&self, victim: usize) {
        let agent = self.fleet.agent(victim);
        let deadline_ns = now_mono_ns() + RECOVERED_WITHIN_MS * MS;
        let (mut reasons, mut unsaid) = (BTreeSet::new(), 0);
        while !self
            .fleet
            .running()
            .all(|agent| has_lease(&agent.status().clock))
        {
            let why = reason(agent);
            // Between a new fleet time and the renewal of the lease, a quarter of a second at most, none is right.
            unsaid = if why.as_deref() == Some("synchronised") {
                unsaid + 1
            } else {
                0
            };
            assert!(unsaid < 2, "{:?}", agent.status());
            reasons.extend(why);
            assert!(now_mono_ns() < deadline_ns, "no lease: {reasons:?}");
            pause_s(0.5);
        }
        println!("no lease while: {reasons:?}");
    }

    /// No packet was held beyond the cap, and with right clocks flows are held again.
    fn end(self) {
        let before = self.counts("holds");
        self.finish("right again", self.flows(1.0));
        let after = self.counts("holds");
        let mut senders = after.iter().zip(&before).take(3);
        assert!(senders.all(|(after, before)| after > before), "{after:?}");
        self.fleet.running().for_each(Agent::assert_harmless);
    }
}

/// Why the data path has no lease, if it has none.
fn reason(agent: &Agent) -> Option<String> {
    let status = agent.status();
    let is_below = !status.health.thresholds_below_error.is_empty();
    match has_lease(&status.clock) {
        true => None,
        false if is_below => Some("T is below the error".to_owned()),
        false => Some(agent.clock_status().state),
    }
}

/// `held`: the senders whose flows are held because the clock of the victim is wrong. New flows begin, because of older ones
/// the guard may have raised T before.
fn starved(victim: usize, held: &[usize]) {
    let incast = Incast::start();
    incast.finish("right", incast.flows(1.0));
    assert!(incast.counts("holds")[..3].iter().all(|holds| *holds > 0));

    let lease_end = incast.starve(victim);
    let flows = incast.flows(2.0);
    incast.await_guard(held, &flows);
    assert!(now_mono_ns() < lease_end, "it was not held until then");
    incast.finish("wrong", flows);

    let left_ns = lease_end - now_mono_ns();
    pause_s(left_ns.max(0) as f64 / 1e9);
    let counts = || ["holds", "oracks_no_lease", "oracks_sent"].map(|n| incast.counts(n)[victim]);
    let [holds, unused, sent] = counts();
    incast.finish("without a lease", incast.flows(1.0));
    let [still_held, still_unused, still_sent] = counts();
    assert_eq!((still_held, still_sent), (holds, sent));
    assert_eq!(still_unused > unused, victim < 3, "{still_unused}");
    incast.feed(victim);
    incast.await_leases(victim);
    incast.end();
}

pub fn a_starved_sender_of_an_incast_is_held_as_guard_and_cap_allow() {
    starved(1, &[1]);
}

pub fn a_starved_receiver_of_an_incast_holds_its_peers_as_guard_and_cap_allow() {
    starved(3, &[0, 1, 2]);
}
