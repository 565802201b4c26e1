// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A fleet whose hosts register in etcd, and what is true of it at any time.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use onramp_fleets::{
    grid::NOTICE_NS,
    network::Paths,
    spec::Spec,
    world::{Sample, World},
};

pub const S: i64 = 1_000_000_000;
pub const MS: i64 = 1_000_000;
/// A window of the synchronisation.
pub const WINDOW: i64 = 2 * S;
const SEEDS: std::ops::Range<u64> = 0..20;
/// Clocks are unsynchronised by more than this.
const RIGHT_NS: i64 = 10_000;

/// Runs a fact under several seeds.
pub fn each_seed(fact: impl Fn(u64)) {
    let only: Option<u64> = std::env::var("ONRAMP_FLEET_SEED")
        .ok()
        .map(|seed| seed.parse().expect("ONRAMP_FLEET_SEED is a number"));
    let seeds = only.map_or(SEEDS, |seed| seed..seed + 1);
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| fact(seed))) {
            println!("ONRAMP_FLEET_SEED={seed} runs this seed alone");
            resume_unwind(panic);
        }
    }
}

pub struct Fleet {
    pub world: World,
}

impl Fleet {
    /// So many hosts, which have a fleet time.
    pub fn of(hosts: usize, seed: u64) -> Fleet {
        let mut fleet = Fleet::empty(hosts, seed);
        for host in 0..hosts {
            fleet.world.start(host);
            fleet.run(S / 2);
        }
        fleet.settle();
        fleet
    }

    /// None of so many hosts runs.
    pub fn empty(hosts: usize, seed: u64) -> Fleet {
        let paths = Paths {
            load: [0.0, 0.3, 0.6][(seed % 3) as usize],
            ..Paths::default()
        };
        let spec = Spec {
            hosts,
            paths,
            discipline: true,
            seed,
            ..Spec::default()
        };
        Fleet {
            world: World::with_etcd(spec),
        }
    }

    /// Lets time pass. Nobody is wrong meanwhile by more than five sigma, and all can read what they are told.
    pub fn run(&mut self, time: i64) {
        let until = self.world.now() + time;
        while self.world.now() < until {
            self.world.run((until - self.world.now()).min(50 * MS));
            self.look();
        }
    }

    /// The same after a host's clock may have become another one without its knowledge.
    pub fn run_unaware(&mut self, time: i64) {
        self.world.run(NOTICE_NS);
        self.run(time - NOTICE_NS);
    }

    fn look(&mut self) {
        let samples = self.world.samples();
        let sure = samples.iter().min_by_key(|sample| sample.sigma_ns);
        let Some(sure) = sure.map(|sure| sure.fleet_ns) else {
            return;
        };
        for Sample {
            host,
            fleet_ns,
            sigma_ns,
        } in samples
        {
            let unread = self.world.count(host, "malformed");
            assert_eq!(
                unread, 0,
                "host {host} cannot read what others of its version say"
            );
            let off_ns = (fleet_ns - sure).abs();
            assert!(
                off_ns < (5 * sigma_ns).max(RIGHT_NS / 10),
                "host {host} is {off_ns} ns off, sigma {sigma_ns} ns, at {} ns: {:?}",
                self.world.now(),
                self.world.status(host)
            );
        }
    }

    /// Waits, and looks meanwhile. Returns the time that it took.
    pub fn until(&mut self, most: i64, what: &str, is_so: impl Fn(&Fleet) -> bool) -> i64 {
        let since = self.world.now();
        while !is_so(self) {
            let took = self.world.now() - since;
            assert!(took < most, "not within {} s: {what}", most / S);
            self.run(10 * MS);
        }
        self.world.now() - since
    }

    /// Until the fleet is whole and sure, and two windows for what is learnt late.
    pub fn settle(&mut self) {
        self.until(30 * S, "the fleet is whole", |fleet| {
            fleet.is_whole() && fleet.is_sure()
        });
        self.run(2 * WINDOW);
    }

    pub fn running(&self) -> Vec<usize> {
        (0..self.world.hosts())
            .filter(|host| self.world.is_running(*host))
            .collect()
    }

    /// Those that run, but for one.
    pub fn others(&self, one: usize) -> Vec<usize> {
        let running = self.running().into_iter();
        running.filter(|host| *host != one).collect()
    }

    /// Whether all that run are members of one fleet, and have its time.
    pub fn is_whole(&self) -> bool {
        let running = self.running();
        let leader = self.leader(running[0]);
        running.iter().all(|host| {
            let status = self.world.status(*host);
            let is_whole = status.membership.members == running.len();
            status.clock.is_some() && is_whole && self.leader(*host) == leader
        })
    }

    fn is_sure(&self) -> bool {
        let clock = |host: usize| self.world.status(host).clock;
        let is_sure = |host| clock(host).is_some_and(|clock| clock.sigma_ns < RIGHT_NS);
        self.running().into_iter().all(is_sure)
    }

    /// The leader that a host follows, and the term.
    pub fn leader(&self, of: usize) -> Option<(usize, u64)> {
        let membership = self.world.status(of).membership;
        let leader = membership.coordinator?;
        let number = (0..self.world.hosts()).find(|host| self.world.address(*host) == leader)?;
        Some((number, membership.term))
    }

    /// Whether nobody of these has a fleet time.
    pub fn is_timeless(&self, hosts: &[usize]) -> bool {
        hosts
            .iter()
            .all(|host| self.world.status(*host).clock.is_none())
    }

    /// Whether these follow a leader of a later term than this.
    pub fn is_led_anew(&self, hosts: &[usize], term: u64) -> bool {
        hosts.iter().all(|host| {
            let led = self.leader(*host).is_some_and(|(_, now)| now > term);
            led && self.world.status(*host).clock.is_some()
        })
    }

    pub fn is_connected(&self, host: usize) -> bool {
        self.world
            .status(host)
            .membership
            .fleet
            .is_some_and(|fleet| fleet.connected)
    }

    /// Fleet time less true time at this instant, ns.
    pub fn ahead_ns(&mut self, host: usize) -> i64 {
        let now = self.world.now();
        let samples = self.world.samples();
        let sample = samples.iter().find(|sample| sample.host == host);
        sample.expect("it has fleet time").fleet_ns - now
    }

    pub fn steps(&self) -> u64 {
        let steps = |host: usize| self.world.count(host, "fleet_steps");
        self.running().into_iter().map(steps).sum()
    }
}
