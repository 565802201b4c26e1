//! What the data path does with the error of its clock: nothing is held for a T that the error can reach, and a starved host
//! whose clock is wrong, which nobody knows yet, is held as long as guard and cap allow, and no longer than the lease.
use std::{
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use onramp_status::Clock;

use super::huygens::{pause_s, Fleet, CLOCKS};
use crate::{
    agent::{Agent, USUAL},
    maps::{clock, now_mono_ns, set_clock, Counters},
    net::{Host, Plan, Star},
    tcp::{transfers, Load, Transfer},
};

const MS: i64 = 1_000_000;
/// A daemon judges its clock anew within this time: a lease after the clock became good enough, and some.
const SOON: Duration = Duration::from_secs(15);
/// Below the error of any two clocks. Sigma is 100 ns at least here.
const TOO_LOW: &str = "100 ns";

fn file(host: &Host) -> String {
    format!("/tmp/{}.toml", host.ns.0)
}

/// T of all flows, and of those to ports from 8000 on.
fn configure(host: &Host, usual: &str, of_class: &str) {
    let text = format!(
        "devices = [\"eth0\"]\n[law]\nthreshold = \"{usual}\"\n\
         [[class]]\nname = \"fast\"\nports = [\"8000-8099\"]\nthreshold = \"{of_class}\"\n"
    );
    std::fs::write(file(host), text).expect("/tmp is writable");
}

/// A daemon with Huygens and a configuration file.
fn start(star: &Star, number: usize) -> Agent {
    let host = &star.hosts[number];
    configure(host, "5 ms", TOO_LOW);
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
    assert!(mbit_per_s > 60.0, "{mbit_per_s} Mbit/s");
    (holds, sender.counter("oracks_received") - oracks)
}

const OTHERS: &str = "9000 9099";
const OF_CLASS: &str = "8000 8099";

fn has_lease(clock: &Clock) -> bool {
    clock.lease_left_ns > 0
}

/// First the T of a class is too low, then that of all flows: at the sender, then at the receiver.
pub fn nothing_is_held_for_a_threshold_below_it() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let (sender, receiver) = (start(&star, 0), start(&star, 1));
    let below = |agent: &Agent| {
        let list = agent.status().health.thresholds_below_error.into_iter();
        list.map(|below| below.threshold).collect::<Vec<_>>()
    };
    for agent in [&sender, &receiver] {
        agent.await_clock(SOON, has_lease);
    }
    pause_s(1.1); // until the next look
    println!("{:?}", sender.status().health);
    assert_eq!(below(&sender), ["the threshold of class fast"]);
    assert!(traffic(&star, &sender, OTHERS).0 > 0);
    let (holds, oracks) = traffic(&star, &sender, OF_CLASS);
    assert!(holds == 0 && oracks > 0, "{holds} holds, {oracks} OR-ACKs");

    let set = |agent: &Agent, host: &Host, usual: &str, wanted: bool| {
        configure(host, usual, "5 ms");
        agent.signal(Signal::SIGHUP);
        let clock = agent.await_clock(SOON, |clock| has_lease(clock) == wanted);
        println!("{usual}: {clock:?}, {:?}", agent.status().health);
    };
    set(&sender, from, TOO_LOW, false);
    assert_eq!(below(&sender), ["law.threshold"]);
    let unused = sender.counter("oracks_no_lease");
    assert_eq!(traffic(&star, &sender, OTHERS).0, 0);
    assert!(sender.counter("oracks_no_lease") > unused, "no OR-ACK came");
    let says = "nothing is held for law.threshold: law.threshold is 100 ns";
    let text = sender.text();
    assert_eq!(text.matches(says).count(), 1, "{text}");
    set(&sender, from, "5 ms", true);
    assert!(below(&sender).is_empty());
    assert!(sender.text().contains("good enough for law.threshold again"));
    assert_eq!(sender.status().health.times_below_error, 2);

    set(&receiver, to, TOO_LOW, false);
    let (holds, oracks) = traffic(&star, &sender, OTHERS);
    assert_eq!((holds, oracks), (0, 0), "the receiver tells no time");
    set(&receiver, to, "5 ms", true);
    pause_s(1.1);
    assert!(traffic(&star, &sender, OTHERS).0 > 0);
    assert!(traffic(&star, &sender, OF_CLASS).0 > 0);
    sender.assert_harmless();
    receiver.assert_harmless();
}

/// How wrong the clock of the starved host is. Without a guard each OR-ACK holds a flow for nearly so long.
const WRONG_NS: i64 = 60 * MS;

/// Three hosts send to the fourth all the time.
struct Incast {
    fleet: Fleet,
    /// By host.
    flows: Vec<Vec<Transfer>>,
}

impl Incast {
    fn start() -> Incast {
        let mut fleet = Fleet::unborn(4);
        fleet.name_members(false);
        for n in 0..4 {
            fleet.launch(n, &["--shape", "200Mbit/s", "--guard", "50ms"]);
        }
        fleet.await_synchrony();
        let to = &fleet.star.hosts[3];
        let senders = fleet.star.hosts[..3].iter();
        let flows = senders.map(|from| transfers(from, to, Load::seconds(16.0), 2));
        let flows = flows.collect();
        Incast { fleet, flows }
    }

    fn received(&self) -> Vec<u64> {
        let of_host = |flows: &Vec<Transfer>| flows.iter().map(Transfer::received).sum();
        self.flows.iter().map(of_host).collect()
    }

    /// Goodput of each sender over so long, Mbit/s.
    fn mbit_per_s(&self, what: &str, seconds: f64) -> Vec<f64> {
        let (before, began) = (self.received(), Instant::now());
        pause_s(seconds);
        let took_s = began.elapsed().as_secs_f64();
        let rate = |(after, before): (u64, &u64)| (after - before) as f64 * 8e-6 / took_s;
        let rates: Vec<f64> = self.received().into_iter().zip(&before).map(rate).collect();
        println!("{what}: {rates:.1?} Mbit/s");
        rates
    }
}

fn starved(victim: usize) {
    let incast = Incast::start();
    let agent = incast.fleet.agent(victim);
    let counters: Vec<Counters> = incast.fleet.running().map(Counters::of).collect();
    let all = |name: &str| counters.iter().map(|c| c.get(name)).collect::<Vec<_>>();
    incast.mbit_per_s("right", 2.0);
    println!("holds {:?}", all("holds"));

    agent.signal(Signal::SIGSTOP);
    let mut line = clock(agent);
    line.offset_ns += if victim == 3 { WRONG_NS } else { -WRONG_NS };
    set_clock(agent, line);
    let began = now_mono_ns();
    println!("lease {} ms", (line.lease_expires_mono_ns - began) / MS);
    let (raises, held) = (all("guard_raises"), all("held_ns"));
    incast.mbit_per_s("wrong, at first", 0.5);
    println!("raises {raises:?} {:?}, held_ns {held:?} {:?}", all("guard_raises"), all("held_ns"));
    incast.mbit_per_s("wrong", 1.5);
    println!("raises {:?}, held_ns {:?}", all("guard_raises"), all("held_ns"));
    let left_ns = line.lease_expires_mono_ns - now_mono_ns();
    println!("left {} ms", left_ns / MS);
    pause_s((left_ns as f64 / 1e9).max(0.0) + 0.2);
    println!("holds {:?}, no lease {:?}", all("holds"), all("oracks_no_lease"));
    incast.mbit_per_s("without a lease", 1.0);
    println!("holds {:?}, no lease {:?}, refused {:?}", all("holds"), all("oracks_no_lease"), all("holds_refused_lease"));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..8 {
                agent.signal(Signal::SIGCONT);
                pause_s(0.1);
                agent.signal(Signal::SIGSTOP);
                pause_s(0.4);
            }
            agent.signal(Signal::SIGCONT);
        });
        incast.mbit_per_s("starved", 4.0);
    });
    println!("{:?} {:?}", agent.status().clock, agent.status().health);
    incast.mbit_per_s("free", 3.0);
    println!("{:?} {:?}", agent.status().clock, agent.status().health);
    println!("holds {:?}, no lease {:?}", all("holds"), all("oracks_no_lease"));
    println!("held_max {:?}", all("held_max_ns"));
    let mut flows = incast.flows.into_iter().flatten();
    flows.by_ref().for_each(|flow| drop(flow.finish()));
    incast.fleet.running().for_each(Agent::assert_harmless);
}

pub fn a_starved_sender_of_an_incast_is_held_as_guard_and_cap_allow() {
    starved(1);
}

pub fn a_starved_receiver_of_an_incast_holds_its_peers_as_guard_and_cap_allow() {
    starved(3);
}
