// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Hosts, the network between them, and the loop of events in true time.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{atomic::AtomicBool, mpsc::channel, Arc},
};

use onramp_clock::{
    config::{Config, USUAL_LEASE},
    keys::Keys,
    members::{Members, USUAL_DEGREE},
    node::{Begin, Node},
    registration::Answer,
    roster::Roster,
    status::{self, Status},
};
use onramp_sync::synthetic::{uniform, Synthetic};
use onramp_units::Span;
use rand_chacha::ChaCha8Rng;

use crate::{
    clock::Clock,
    etcd::Etcd,
    exponential_ns,
    machine::{Host, Running, Simulated},
    network::Network,
    spec::Spec,
    starvation::{Bursts, Starvation},
    stream,
};

/// True time at which worlds begin: machines have booted long before.
pub const BEGIN_NS: i64 = 1_000_000_000_000;
/// A timer ends late by this on average, ns.
const TIMER_NS: f64 = 5_000.0;

/// What a host's fleet time was at an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Number of the host.
    pub host: usize,
    /// Its fleet time, ns.
    pub fleet_ns: i64,
    /// What it says of its error, ns.
    pub sigma_ns: i64,
}

/// A running world.
pub struct World {
    /// True time, ns.
    pub(crate) now: i64,
    spec: Spec,
    network: Network,
    pub(crate) hosts: Vec<Host>,
    numbers: BTreeMap<SocketAddr, usize>,
    /// By true time, and by number: events of one time happen in the order in which they were made.
    events: BTreeMap<(i64, u64), Event>,
    order: u64,
    /// Where hosts register, if they do, and random numbers for the delays of its messages.
    pub(crate) etcd: Option<(Etcd, ChaCha8Rng)>,
    /// When the next event of etcd is due.
    pub(crate) etcd_at: i64,
}

pub(crate) enum Event {
    /// The host's present process is to run.
    Wake { host: usize, process: u32 },
    /// A registration's time has come.
    Register { host: usize, process: u32 },
    /// etcd's answer has arrived.
    Answer {
        host: usize,
        process: u32,
        answer: Answer,
    },
    /// etcd has something to do.
    Etcd,
    /// The host hears of another fleet.
    Roster { host: usize, roster: Roster },
}

impl World {
    /// All hosts run, and none knows of a fleet.
    pub fn new(spec: Spec) -> World {
        let mut world = World::bare(spec, None);
        (0..spec.hosts).for_each(|host| world.start(host));
        world
    }

    /// No host runs. Those that are started register in etcd.
    pub fn with_etcd(spec: Spec) -> World {
        let delays = stream(spec.seed, 5);
        World::bare(spec, Some((Etcd::default(), delays)))
    }

    fn bare(spec: Spec, etcd: Option<(Etcd, ChaCha8Rng)>) -> World {
        let mut world = World {
            now: BEGIN_NS,
            spec,
            network: Network::new(spec.paths, spec.seed),
            hosts: vec![],
            numbers: BTreeMap::new(),
            events: BTreeMap::new(),
            order: 0,
            etcd,
            etcd_at: i64::MAX,
        };
        for number in 0..spec.hosts {
            world.hosts.push(Host::new(number, &spec));
            world.numbers.insert(world.hosts[number].address, number);
        }
        world
    }

    /// True time, ns.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The address of a host.
    pub fn address(&self, host: usize) -> SocketAddr {
        self.hosts[host].address
    }

    /// The network.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// The clock of a host, to change what it does from now on.
    pub fn clock(&mut self, host: usize) -> &mut Clock {
        &mut self.hosts[host].clock
    }

    /// From now on a host's machine loses its processor: also its kernel's stamps are late.
    pub fn steal(&mut self, host: usize, starvation: Starvation) {
        let rng = stream(self.spec.seed, 200_000 + host as u64);
        self.hosts[host].stolen = Bursts::new(starvation, self.now, rng);
    }

    /// From now on a host's process loses its processor; its kernel stamps in time.
    pub fn starve(&mut self, host: usize, starvation: Starvation) {
        let rng = stream(self.spec.seed, 300_000 + host as u64);
        self.hosts[host].starved = Bursts::new(starvation, self.now, rng);
    }

    /// The process of a host is stopped for `for_ns` from now on; its kernel goes on.
    pub fn pause(&mut self, host: usize, for_ns: i64) {
        let until = self.now + for_ns;
        self.hosts[host].starved.add(self.now, until);
    }

    /// A host is suspended for `for_ns` from now on: its CLOCK_MONOTONIC stands still. `is_seen`: its CLOCK_BOOTTIME goes on, so
    /// it can know.
    pub fn suspend(&mut self, host: usize, for_ns: i64, is_seen: bool) {
        let until = self.now + for_ns;
        let host = &mut self.hosts[host];
        host.stolen.add(self.now, until);
        host.clock.stop(self.now, until);
        host.is_suspended |= is_seen;
    }

    /// Ends the process of a host at once.
    pub fn kill(&mut self, host: usize) {
        if let Some((etcd, _)) = &mut self.etcd {
            etcd.disconnect(host);
        }
        let host = &mut self.hosts[host];
        host.running = None;
        host.inbox.clear();
        host.left.clear();
    }

    /// Starts a process on a host, which knows of no fleet.
    pub fn start(&mut self, host: usize) {
        let (now, interval) = (self.now, Span::from_ms(20));
        let machine = &mut self.hosts[host];
        let (rosters, heard) = channel();
        let unfit = Arc::new(AtomicBool::new(false));
        let config = Config {
            own: machine.address,
            keys: Keys::well_known(),
            authenticated: false,
            degree: USUAL_DEGREE,
            interval,
            lease: USUAL_LEASE,
            discipline: self.spec.discipline,
            unfit: Arc::clone(&unfit),
            synthetic: Synthetic::default(),
        };
        // Numbers grow over restarts, as those of the wall clock do.
        let begin = Begin {
            mono_ns: machine.clock.read(now),
            seq: now as u64 >> 10,
            epoch: host as u32,
        };
        let node = Node::simulated(config, heard, begin);
        machine.process += 1;
        machine.running = Some(Running {
            node,
            rosters,
            unfit,
            registration: None,
            shown: status::Fleet::default(),
        });
        let process = machine.process;
        // Not all at once.
        let at = now + (interval.as_ns() as f64 * uniform(&mut machine.rng)) as i64;
        self.push(at, Event::Wake { host, process });
        if self.etcd.is_some() {
            self.register(host);
        }
    }

    /// Whether the process of a host runs.
    pub fn is_running(&self, host: usize) -> bool {
        self.hosts[host].running.is_some()
    }

    /// These hosts are the fleet. Each of them hears of it within 0.1 s.
    pub fn gather(&mut self, hosts: &[usize], leader: usize, term: u64) {
        let members = hosts.iter().map(|host| self.address(*host)).collect();
        let roster = Roster {
            members: Members::registered(members),
            leader: Some(self.address(leader)),
            term,
            certain: true,
        };
        for host in hosts {
            let wait_ns = 1e8 * uniform(&mut self.hosts[*host].rng);
            let roster = roster.clone();
            let host = *host;
            self.push(self.now + wait_ns as i64, Event::Roster { host, roster });
        }
    }

    /// Lets `for_ns` pass.
    pub fn run(&mut self, for_ns: i64) {
        let until = self.now + for_ns;
        while let Some(next) = self.events.first_entry() {
            let at = next.key().0;
            if at > until {
                break;
            }
            let event = next.remove();
            self.now = at;
            match event {
                Event::Wake { host, process } => self.wake(host, process),
                Event::Register { host, process } => self.pass_time(host, process),
                Event::Answer {
                    host,
                    process,
                    answer,
                } => self.answer(host, process, answer),
                Event::Etcd => self.run_etcd(),
                Event::Roster { host, roster } => {
                    if let Some(running) = &self.hosts[host].running {
                        let _ = running.rosters.send(roster);
                    }
                }
            }
        }
        self.now = until;
    }

    /// Number of hosts, whether they run or not.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Number of hosts that run and have a processor now.
    pub fn awake(&mut self) -> usize {
        let now = self.now;
        let is_awake =
            |host: &mut Host| host.running.is_some() && host.stolen.runs_from(now) == now;
        self.hosts
            .iter_mut()
            .map(|host| usize::from(is_awake(host)))
            .sum()
    }

    /// Fleet time of all hosts that run now and have one.
    pub fn samples(&mut self) -> Vec<Sample> {
        let now = self.now;
        let sample = |(number, host): (usize, &mut Host)| {
            let running = host.running.as_ref()?;
            if host.stolen.runs_from(now) > now {
                return None;
            }
            let mono_ns = host.clock.read(now);
            let clock = running.node.reader().clock(mono_ns)?;
            Some(Sample {
                host: number,
                fleet_ns: clock.fleet(mono_ns).ticks(),
                sigma_ns: clock.sigma_ns,
            })
        };
        let hosts = self.hosts.iter_mut().enumerate();
        hosts.filter_map(sample).collect()
    }

    /// The status of a host whose process runs.
    ///
    /// # Panics
    /// It does not run.
    pub fn status(&self, host: usize) -> Status {
        let host = &self.hosts[host];
        let running = host.running.as_ref().expect("its process runs");
        let mut status = running.node.reader().status(host.clock.read(self.now));
        let is_registered = running.registration.is_some();
        status.membership.fleet = is_registered.then(|| running.shown.clone());
        status
    }

    /// A counter of a host.
    ///
    /// # Panics
    /// There is none of this name, or the process does not run.
    pub fn count(&self, host: usize, name: &str) -> u64 {
        let counters = self.status(host).counters;
        let found = counters.into_iter().find(|(counter, _)| counter == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }

    pub(crate) fn push(&mut self, at: i64, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    fn wake(&mut self, number: usize, process: u32) {
        let host = &mut self.hosts[number];
        if host.process != process || host.running.is_none() {
            return;
        }
        let runs_from = host.runs_from(self.now);
        if runs_from > self.now {
            let host = number;
            return self.push(runs_from, Event::Wake { host, process });
        }
        let Some(mut running) = host.running.take() else {
            return;
        };
        let mut machine = Simulated {
            host,
            at: self.now,
            outbox: vec![],
        };
        let wants = running.node.wake(&mut machine);
        let (at, outbox) = (machine.at, machine.outbox);
        host.running = Some(running);
        let late_ns = exponential_ns(TIMER_NS, &mut host.rng);
        let next = host.clock.when(wants, at) + late_ns;
        let host = number;
        self.push(next, Event::Wake { host, process });
        for (left_at, to, bytes) in outbox {
            self.deliver(number, left_at, to, bytes);
        }
    }

    fn deliver(&mut self, from: usize, left_at: i64, to: SocketAddr, bytes: Vec<u8>) {
        let Some(number) = self.numbers.get(&to).copied() else {
            return;
        };
        let Some(at) = self.network.arrives(from, number, left_at) else {
            return;
        };
        let from = self.hosts[from].address;
        self.order += 1;
        self.hosts[number].take(from, bytes, at, self.order);
    }
}
