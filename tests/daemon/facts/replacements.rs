// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What flows lose when the qdisc of their device is replaced: by a daemon with other BPF programs, and by the kernel's
//! own command.
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use super::successors::{mount_bpffs, pause_s, sent_again, sent_in_vain, GOES_ON, OPTIONS};
use crate::{
    agent::Agent,
    guest::BPFFS,
    net::{Host, Plan, Star},
    tcp::{connect, transfers, Load, Transfer},
};

/// How long the traffic runs; the replacement comes after a part of it.
const SECONDS: f64 = 2.4;
const BEFORE_S: f64 = 0.8;
/// Bytes of a request, and of its response.
const MESSAGE: usize = 1000;
const REQUESTERS: usize = 16;
/// Between a response and the next request.
const REST: Duration = Duration::from_millis(5);
/// The longest pause of agent.rs. TCP's own repair of a lost request takes 200 ms.
const CAP: Duration = Duration::from_millis(100);
/// A qdisc and segments as the daemon gives them, and a queue: two flows have less than the network's rate.
const FQ: &str = "fq maxrate 45mbit";
const GSO_MAX: &str = "ip link set eth0 gso_max_size 16000";

/// What runs while the qdisc is replaced.
#[derive(Clone, Copy, Debug)]
enum Traffic {
    /// Two flows that send as fast as they can.
    Bulk,
    /// Two flows with 32 Mbit/s each at most.
    Half,
    /// Connections that send a request a few milliseconds after the response to the last one.
    Requests,
}

impl Traffic {
    const ALL: [Traffic; 3] = [Traffic::Bulk, Traffic::Half, Traffic::Requests];

    fn start(self, from: &Host, to: &Host) -> Vec<Flow> {
        let bulk = Load::seconds(SECONDS);
        let half = Load {
            write: 8192,
            pause: Duration::from_millis(2),
            ..bulk
        };
        let two = |load| transfers(from, to, load, 2).into_iter();
        match self {
            Traffic::Bulk => two(bulk).map(Flow::Transfer).collect(),
            Traffic::Half => two(half).map(Flow::Transfer).collect(),
            Traffic::Requests => (0..REQUESTERS)
                .map(|_| Flow::Requester(request(from, to)))
                .collect(),
        }
    }
}

enum Flow {
    Transfer(Transfer),
    Requester(JoinHandle<Duration>),
}

impl Flow {
    /// Waits for the end. The longest time without progress.
    fn finish(self) -> Duration {
        match self {
            Flow::Transfer(transfer) => transfer.finish().longest_gap,
            Flow::Requester(requester) => requester.join().expect("it succeeds"),
        }
    }
}

/// Sends requests over a connection; the longest time that one took.
fn request(from: &Host, to: &Host) -> JoinHandle<Duration> {
    let listener = to.ns.enter(|| TcpListener::bind((to.v4, 0)));
    let listener = listener.expect("a free port");
    let stream = connect(from, listener.local_addr().expect("it is bound"));
    let (accepted, _) = listener.accept().expect("it is connected");
    thread::spawn(move || respond(accepted));
    thread::spawn(move || requests(stream))
}

fn respond(mut stream: TcpStream) {
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).is_ok() {
        stream.write_all(&message).expect("the requester reads");
    }
}

fn requests(mut stream: TcpStream) -> Duration {
    let mut message = [7; MESSAGE];
    let started = Instant::now();
    let mut longest = Duration::ZERO;
    while started.elapsed().as_secs_f64() < SECONDS {
        let asked = Instant::now();
        stream.write_all(&message).expect("the responder reads");
        stream.read_exact(&mut message).expect("a response");
        longest = longest.max(asked.elapsed());
        thread::sleep(REST);
    }
    longest
}

/// What flows paid for a replacement.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Segments that the sender sent again.
    again: u64,
    /// Those of them that had arrived or that the network dropped.
    elsewhere: u64,
    /// The longest time without progress of a flow.
    stall: Duration,
}

impl Cost {
    fn of(star: &Star, traffic: Traffic, replace: impl FnOnce()) -> Self {
        let (from, to) = star.pair();
        let counts = || {
            let elsewhere = sent_in_vain(from) + star.drops_towards(to);
            (sent_again(from), elsewhere)
        };
        let before = counts();
        let flows = traffic.start(from, to);
        pause_s(BEFORE_S);
        replace();
        let stalls = flows.into_iter().map(Flow::finish);
        let stall = stalls.max().expect("flows");
        let after = counts();
        Self {
            again: after.0 - before.0,
            elsewhere: after.1 - before.1,
            stall,
        }
    }

    /// Segments that the replacement lost.
    fn lost(&self) -> u64 {
        self.again.saturating_sub(self.elsewhere)
    }
}

/// Makes the pins of a former daemon those of other programs, by the name of their directory.
pub fn pretend_other_programs() {
    let root = Path::new(BPFFS).join("onramp");
    let mut programs = std::fs::read_dir(&root).expect("pins").flatten();
    let programs = programs.next().expect("a directory of programs").path();
    std::fs::rename(programs, root.join("0123456789abcdef")).expect("the same file system");
}

/// A host whose daemon is replaced by one with other programs, again and again.
struct Upgrades<'a> {
    star: &'a Star,
    agent: Option<Agent>,
    _receiver: Agent,
}

impl<'a> Upgrades<'a> {
    fn on(star: &'a Star) -> Self {
        let (from, to) = star.pair();
        Self {
            star,
            agent: Some(Agent::start(from, OPTIONS)),
            _receiver: Agent::start(to, &[]),
        }
    }

    fn cost(&mut self, traffic: Traffic) -> Cost {
        let from = &self.star.hosts[0];
        Cost::of(self.star, traffic, || {
            let former = self.agent.take().expect("it runs");
            former.stop(Signal::SIGUSR2);
            pretend_other_programs();
            let successor = Agent::start(from, OPTIONS);
            let text = successor.text();
            assert!(!text.contains(GOES_ON), "{text}");
            assert!(!text.contains("former qdisc"), "{text}");
            self.agent = Some(successor);
        })
    }
}

fn an_upgrade_loses_nothing(traffic: Traffic, most: Duration) {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let cost = Upgrades::on(&star).cost(traffic);
    println!("{cost:?}");
    assert_eq!(cost.lost(), 0, "{cost:?}");
    assert!(cost.stall < most, "{cost:?}");
}

/// What waits in the former qdisc leaves within the cap; then flows wait for the replacement, and for their turn behind
/// each other's packets.
pub fn an_upgrade_under_load_loses_no_segment() {
    an_upgrade_loses_nothing(Traffic::Bulk, 2 * CAP);
}

/// A refused request has nothing under way that would let it go on: it must be woken.
pub fn an_upgrade_delays_no_request_beyond_the_cap() {
    an_upgrade_loses_nothing(Traffic::Requests, CAP);
}

/// The first daemon of a host takes fq's place, and gives it back when it stops.
pub fn a_start_and_a_stop_under_load_lose_no_segment() {
    mount_bpffs();
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    from.ns.run(GSO_MAX);
    from.ns.run(&format!("tc qdisc replace dev eth0 root {FQ}"));
    let _receiver = Agent::start(to, &[]);
    let mut agent = None;
    let start = Cost::of(&star, Traffic::Bulk, || {
        agent = Some(Agent::start(from, OPTIONS));
    });
    let stop = Cost::of(&star, Traffic::Bulk, || {
        let agent = agent.take().expect("it runs");
        assert_eq!(agent.stop(Signal::SIGTERM).code, Some(0));
    });
    println!("{start:?}, {stop:?}");
    assert_eq!((start.lost(), stop.lost()), (0, 0), "{start:?}, {stop:?}");
    assert!(start.stall.max(stop.stall) < 2 * CAP, "{start:?}, {stop:?}");
}

fn print(traffic: Traffic, replaced: &str, cost: impl FnMut(usize) -> Cost) {
    const TIMES: usize = 3;
    let costs: Vec<Cost> = (0..TIMES).map(cost).collect();
    let lost: Vec<u64> = costs.iter().map(Cost::lost).collect();
    let ms = |cost: &Cost| 1e3 * cost.stall.as_secs_f64();
    let mut stalls: Vec<f64> = costs.iter().map(ms).collect();
    stalls.sort_by(f64::total_cmp);
    println!(
        "| {traffic:?} | {replaced} | {lost:?} | {} | {:.0} | {:.0} |",
        costs.iter().map(|cost| cost.elsewhere).sum::<u64>(),
        stalls[TIMES / 2],
        stalls[TIMES - 1],
    );
}

/// Our replacement beside the kernel's.
pub fn beside_tc() {
    mount_bpffs();
    println!("| traffic | replaced | lost | other losses | median stall, ms | longest, ms |");
    for traffic in Traffic::ALL {
        let star = Star::build(&Plan::USUAL);
        let ns = &star.hosts[0].ns;
        let replace = |n: usize| {
            ns.run(&format!(
                "tc qdisc replace dev eth0 root handle {}: {FQ}",
                1 + n % 2
            ));
        };
        ns.run(GSO_MAX);
        replace(1);
        print(traffic, "nothing, with fq", |_| {
            Cost::of(&star, traffic, || ())
        });
        print(traffic, "fq, by tc", |n| {
            Cost::of(&star, traffic, || replace(n))
        });
        drop(star);
        let star = Star::build(&Plan::USUAL);
        let mut upgrades = Upgrades::on(&star);
        print(traffic, "nothing, with edge", |_| {
            Cost::of(&star, traffic, || ())
        });
        print(traffic, "edge, by the next daemon", |_| {
            upgrades.cost(traffic)
        });
    }
}
