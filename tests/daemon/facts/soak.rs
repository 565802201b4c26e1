// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A soak: three hosts move data for hours of virtual time while faults of all kinds happen in random order.
//! Between bursts they are idle, which costs a virtual machine nothing.
//!
//! ONRAMP_SOAK_S sets its length (default: 7200 s), ONRAMP_SOAK_SEED its sequence. `tools/record soak` writes
//! docs/results/soak.md. The hosts share a clock, which faults step; faults of `--clock huygens` are facts of
//! huygens.rs.
use std::{
    thread,
    time::{Duration, Instant},
};

use nix::sys::{
    signal::Signal,
    socket::{setsockopt, sockopt},
};

use super::{
    faults::{forge, Draws},
    hosts::{attach_in_front, udp_of},
    successors::{sent_again, sent_in_vain},
};
use crate::{
    agent::{write_keys, Agent},
    maps::{step_clock, Program},
    net::{Host, Plan, Star},
    orack::Orack,
    tcp::{finish_all, transfers, Load, Transfer},
    wire::Wire,
};

mod ledger;
use ledger::Ledger;

const HOSTS: u8 = 3;
/// The daemon of this host runs from the beginning to the end.
const STAYS: usize = 2;
const KEYS: &str = "/tmp/soak-keys";
/// What a reload changes.
const CONFIGURATION: &str = "/tmp/soak.toml";
/// Besides the usual ones. The guard is on, as in the daemon's defaults.
const OPTIONS: &[&str] = &[
    "--guard",
    "2s",
    "--shape",
    "200Mbit/s",
    "--key-file",
    KEYS,
    "--dev",
    "eth0",
    "--config",
    CONFIGURATION,
    "--flow-age",
    "30s",
];
/// A port of the switch without a fault.
const PORT: &str = "netem rate 100mbit limit 400";
/// From the end of a step to the next, at random between these.
const IDLE_S: std::ops::Range<u64> = 60..120;

macro_rules! faults {
    ($($name:ident,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Fault { $($name,)+ }
        impl Fault {
            const ALL: &[Fault] = &[$(Fault::$name,)+];
        }
    };
}

faults! {
    Nothing,
    DaemonKilled,
    DaemonRestarted,
    DaemonStopped,
    KeysChanged,
    Reloaded,
    Renamed,
    QdiscReplaced,
    ProgramInFront,
    ClockStepped,
    Loss,
    Reordering,
    LongerRoute,
    LinkDown,
    SmallerMtu,
    ForeignMarks,
    ForgedOracks,
    NewPeers,
    PeerVanished,
    ManyConnections,
}

impl Fault {
    /// Is only the switch's full port to blame for the packets that are lost meanwhile? The others lose some with the
    /// host's own qdisc, too, or change the port's count.
    fn loses_nothing(self) -> bool {
        !matches!(
            self,
            Fault::QdiscReplaced
                | Fault::Loss
                | Fault::Reordering
                | Fault::LongerRoute
                | Fault::LinkDown
                | Fault::SmallerMtu
                | Fault::PeerVanished
        )
    }
}

/// A number of the environment, or its default.
fn setting(name: &str, default: u64) -> u64 {
    let parse = |text: String| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is not a number: {text}"))
    };
    std::env::var(name).map_or(default, parse)
}

fn pause_s(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}

struct Soak {
    // Before the star: daemons end before their namespaces do.
    agents: Vec<Agent>,
    star: Star,
    draws: Draws,
    ledger: Ledger,
}

pub fn random_faults_for_hours() {
    let length = Duration::from_secs(setting("ONRAMP_SOAK_S", 7200));
    let seed = setting("ONRAMP_SOAK_SEED", 1);
    let started = Instant::now();
    let mut soak = Soak::start(seed);
    soak.sample(started);
    let mut round: Vec<Fault> = vec![];
    while started.elapsed() < length {
        if round.is_empty() {
            round = soak.draws.shuffled(Fault::ALL);
        }
        let fault = round.pop().expect("a fault");
        soak.step(fault, started);
        let idle = IDLE_S.start + soak.draws.below(IDLE_S.end - IDLE_S.start);
        pause_s(idle as f64);
        soak.sample_if_due(started);
    }
    if !soak.ledger.is_complete() {
        soak.sample(started);
    }
    soak.ledger.print(length, seed);
    soak.ledger.assert_flat_and_harmless();
}

/// The first key signs. The second is another one each time.
fn write_new_keys(draws: &mut Draws) {
    let other = draws.below(u64::MAX);
    let first = "1 0123456789abcdef0123456789abcdef";
    write_keys(KEYS, &format!("{first}\n2 {other:016x}{other:016x}\n"));
}

/// A class of its own for some ports, with another threshold each time.
fn write_new_class(draws: &mut Draws) {
    let threshold_ms = 3 + draws.below(5);
    let class = format!(
        "[[class]]\nname = \"some\"\nports = [\"1-40000\"]\nthreshold = \"{threshold_ms} ms\"\n"
    );
    std::fs::write(CONFIGURATION, class).expect("/tmp is writable");
}

fn start_daemon(host: &Host, number: usize) -> Agent {
    let threshold: &[&str] = match number {
        0 => &["--threshold", "auto"],
        _ => &[],
    };
    Agent::start(host, &[OPTIONS, threshold].concat())
}

impl Soak {
    fn start(seed: u64) -> Soak {
        let mut draws = Draws::new(seed);
        write_new_keys(&mut draws);
        write_new_class(&mut draws);
        let star = Star::build(&Plan {
            hosts: HOSTS,
            ..Plan::USUAL
        });
        let hosts = star.hosts.iter().enumerate();
        Soak {
            agents: hosts.map(|(n, host)| start_daemon(host, n)).collect(),
            star,
            draws,
            ledger: Ledger::default(),
        }
    }

    fn sample(&mut self, started: Instant) {
        let at = started.elapsed();
        self.ledger.sample(at, &self.agents, &self.star.hosts);
    }

    fn sample_if_due(&mut self, started: Instant) {
        if self.ledger.is_due(started.elapsed()) {
            self.sample(started);
        }
    }

    /// Two flows, a fault while they run, and a flow after it.
    fn step(&mut self, fault: Fault, started: Instant) {
        let from = self.draws.below(u64::from(HOSTS)) as usize;
        let to = (from + 1 + self.draws.below(2) as usize) % usize::from(HOSTS);
        let (source, sink) = (self.star.hosts[from].clone(), self.star.hosts[to].clone());
        let lost_before = self.lost(&source, &sink);
        let flows = transfers(&source, &sink, Load::seconds(0.8), 2);
        pause_s(0.2);
        self.cause(fault, from, to);
        let during = finish_all(flows);
        pause_s(1.5); // for a second no OR-ACKs go to a host that has refused one
        let after = Transfer::start(&source, &sink, Load::bytes(2_000_000)).finish();
        self.ledger.step(after.mbit_per_s());
        if fault.loses_nothing() {
            let lost = (self.lost(&source, &sink) - lost_before).max(0) as u64;
            self.ledger.lost += lost;
            println!("{fault:?}: {lost} segments lost that the port did not drop");
        }
        println!(
            "{:.0} s: {fault:?}, {} -> {}: {during:.1} Mbit/s, then {:.1}",
            started.elapsed().as_secs_f64(),
            source.ns.0,
            sink.ns.0,
            after.mbit_per_s()
        );
    }

    /// Segments that the sender has sent again although they had not arrived, less what the switch has dropped: grows
    /// by those that were lost elsewhere.
    fn lost(&self, source: &Host, sink: &Host) -> i64 {
        let [again, in_vain] = [sent_again(source), sent_in_vain(source)];
        again as i64 - in_vain as i64 - self.star.drops_towards(sink) as i64
    }

    /// Causes a fault and ends it.
    fn cause(&mut self, fault: Fault, from: usize, to: usize) {
        match fault {
            Fault::Nothing => (),
            Fault::DaemonKilled => self.replace_daemon(Signal::SIGKILL),
            Fault::DaemonRestarted => self.replace_daemon(Signal::SIGTERM),
            Fault::DaemonStopped => self.stop_daemon(from),
            Fault::KeysChanged => self.change_keys(),
            Fault::Reloaded => self.reload(),
            Fault::Renamed => self.rename(from),
            Fault::QdiscReplaced => self.replace_qdisc(),
            Fault::ProgramInFront => {
                let _link = attach_in_front(&self.star.hosts[to]);
                pause_s(1.5);
            }
            Fault::ClockStepped => self.step_clock(from, to),
            Fault::Loss => self.impair(to, "loss 1%", 1.0),
            Fault::Reordering => self.impair(to, "delay 2ms reorder 25% 50%", 1.0),
            Fault::LongerRoute => self.impair(to, "delay 20ms", 3.0),
            Fault::LinkDown => self.take_link_down(from),
            Fault::SmallerMtu => self.shrink_mtu(),
            Fault::ForeignMarks => self.send_marked(from, to),
            Fault::ForgedOracks => self.forge(from, to),
            Fault::NewPeers => self.add_peers(from, to),
            Fault::PeerVanished => self.hide(3 - from - to),
            Fault::ManyConnections => self.connect_often(from, to),
        }
    }

    /// A host whose daemon may end.
    fn mortal(&mut self) -> usize {
        self.draws.below(STAYS as u64) as usize
    }

    fn replace_daemon(&mut self, signal: Signal) {
        let n = self.mortal();
        let host = self.star.hosts[n].clone();
        let agent = self.agents.remove(n);
        self.ledger.retire(&agent);
        agent.stop(signal);
        pause_s(0.3);
        self.agents.insert(n, start_daemon(&host, n));
    }

    /// Another program takes the qdisc. The daemon stays without it until it is restarted.
    fn replace_qdisc(&mut self) {
        let n = self.mortal();
        let host = self.star.hosts[n].clone();
        host.ns.run("tc qdisc replace dev eth0 root fq_codel");
        pause_s(1.5);
        let agent = self.agents.remove(n);
        self.ledger.retire(&agent);
        agent.stop(Signal::SIGTERM);
        host.ns.run("tc qdisc del dev eth0 root");
        self.agents.insert(n, start_daemon(&host, n));
    }

    /// For 1 to 8 s; its lease is 6 s.
    fn stop_daemon(&mut self, n: usize) {
        self.agents[n].signal(Signal::SIGSTOP);
        pause_s(1.0 + self.draws.below(7_000) as f64 / 1e3);
        self.agents[n].signal(Signal::SIGCONT);
    }

    fn change_keys(&mut self) {
        write_new_keys(&mut self.draws);
        for agent in &self.agents {
            agent.signal(Signal::SIGHUP);
        }
    }

    fn reload(&mut self) {
        write_new_class(&mut self.draws);
        for agent in &self.agents {
            agent.signal(Signal::SIGHUP);
        }
    }

    /// The device has another name for two seconds.
    fn rename(&self, n: usize) {
        let ns = &self.star.hosts[n].ns;
        ns.run("ip link set eth0 name eth7");
        pause_s(2.0);
        ns.run("ip link set eth7 name eth0");
    }

    /// The clock of one end is wrong for 2 s. Its daemon is stopped, or it would mend the clock.
    fn step_clock(&mut self, from: usize, to: usize) {
        const MS: i64 = 1_000_000;
        let steps = [20, -20, 200, -200, 1000, -1000, 3_600_000, -3_600_000];
        let step = steps[self.draws.below(steps.len() as u64) as usize];
        let wrong = &self.agents[if self.draws.below(2) == 0 { from } else { to }];
        wrong.signal(Signal::SIGSTOP);
        step_clock(wrong, step * MS);
        pause_s(2.0);
        wrong.signal(Signal::SIGCONT);
    }

    /// Changes the port towards a host for some time.
    fn impair(&self, to: usize, how: &str, seconds: f64) {
        let (switch, port) = (&self.star.switch, &self.star.hosts[to].port);
        switch.run(&format!("tc qdisc replace dev {port} root {PORT} {how}"));
        pause_s(seconds);
        switch.run(&format!("tc qdisc replace dev {port} root {PORT}"));
    }

    fn take_link_down(&mut self, n: usize) {
        let ns = &self.star.hosts[n].ns;
        ns.run("ip link set eth0 down");
        pause_s(0.1 + self.draws.below(1_900) as f64 / 1e3);
        ns.run("ip link set eth0 up");
    }

    fn shrink_mtu(&self) {
        for mtu in [1400, 1500] {
            for host in &self.star.hosts {
                host.ns.run(&format!("ip link set eth0 mtu {mtu}"));
            }
            pause_s(1.0);
        }
    }

    /// Datagrams with the marks by which our programs know their own packets.
    fn send_marked(&self, from: usize, to: usize) {
        let sink = udp_of(&self.star.hosts[to]);
        let socket = udp_of(&self.star.hosts[from]);
        let address = sink.local_addr().expect("it is bound");
        for mark in [0x4f52_4b49, 0x4f52_4143] {
            setsockopt(&socket, sockopt::Mark, &mark).expect("root may");
            for _ in 0..50 {
                socket.send_to(&[0; 500], address).expect("a route");
            }
        }
    }

    /// Forgeries of OR-ACKs of a flow, beside the genuine ones of others.
    fn forge(&mut self, from: usize, to: usize) {
        let hosts = &self.star.hosts;
        let wire = Wire::open(&self.star.switch, &hosts[to].port);
        Transfer::start(&hosts[from], &hosts[to], Load::bytes(500_000)).finish();
        let is_v4 = |orack: &Orack| orack.to == hosts[from].v4;
        let genuine = wire.drain();
        let genuine = genuine.iter().map(|frame| Orack::parse(frame));
        let genuine: Vec<Orack> = genuine.filter(is_v4).collect();
        if genuine.is_empty() {
            return; // its daemon has no lease yet
        }
        let program = Program::of(&self.agents[from], "orack_ingress");
        let draws = &mut self.draws;
        hosts[from].ns.enter(|| {
            for _ in 0..5_000 {
                let orack = &genuine[draws.below(genuine.len() as u64) as usize];
                let (_, payload) = forge(orack, draws);
                program.receive(&orack.frame_with(&payload));
            }
        });
    }

    /// Hosts of the subnet that appear, get data and vanish.
    fn add_peers(&mut self, from: usize, to: usize) {
        let (source, sink) = (&self.star.hosts[from], &self.star.hosts[to]);
        let first = 16 + 8 * self.draws.below(28) as u8;
        for last in first..first + 8 {
            sink.ns
                .run(&format!("ip addr add 10.0.0.{last}/24 dev eth0"));
            let peer = Host {
                v4: std::net::Ipv4Addr::new(10, 0, 0, last).into(),
                ..sink.clone()
            };
            Transfer::start(source, &peer, Load::bytes(100_000)).finish();
            sink.ns
                .run(&format!("ip addr del 10.0.0.{last}/24 dev eth0"));
        }
    }

    /// A host that takes no part loses its cable for 15 s.
    fn hide(&self, n: usize) {
        let (switch, port) = (&self.star.switch, &self.star.hosts[n].port);
        switch.run(&format!("ip link set {port} down"));
        pause_s(15.0);
        switch.run(&format!("ip link set {port} up"));
    }

    fn connect_often(&self, from: usize, to: usize) {
        let (source, sink) = (&self.star.hosts[from], &self.star.hosts[to]);
        for number in 0..60 {
            let load = Load {
                v6: number % 2 == 0,
                ..Load::bytes(20_000)
            };
            Transfer::start(source, sink, load).finish();
        }
    }
}
