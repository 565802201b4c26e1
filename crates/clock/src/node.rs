// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A host's synchronisation without a thread: whoever has it wakes it, on a real machine or on a simulated one.

use std::{
    io,
    sync::{
        mpsc::{channel, Receiver, Sender},
        Arc, Mutex,
    },
};

use crate::{
    config::Config,
    engine::{Engine, News, Steps},
    keys::Keys,
    machine::Machine,
    members::Members,
    published::Published,
    roster::Roster,
    stamps::SOURCE,
    status::{FleetClock, Membership, OneWayDelays, Status, System},
    system::SystemClock,
};

pub use crate::engine::Begin;

/// A host's synchronisation.
pub struct Node {
    engine: Engine,
    reader: Reader,
}

/// What a host's synchronisation publishes, for any thread.
#[derive(Clone)]
pub struct Reader {
    config: Arc<Config>,
    shared: Arc<Mutex<Published>>,
    keys: Sender<Keys>,
}

impl Node {
    /// A node of the fleet that `rosters` describe.
    ///
    /// # Errors
    /// The host may not set the system clock but should.
    pub fn new(config: Config, rosters: Receiver<Roster>, begin: Begin) -> io::Result<Node> {
        let system = SystemClock::of(&config)?;
        Ok(Node::with(config, rosters, system, Steps::Thread, begin))
    }

    /// The same on a simulated machine: its system clock is computed, and nothing happens on another thread.
    pub fn simulated(config: Config, rosters: Receiver<Roster>, begin: Begin) -> Node {
        let system = SystemClock::computed(0);
        Node::with(config, rosters, system, Steps::Here, begin)
    }

    fn with(
        config: Config,
        rosters: Receiver<Roster>,
        system: SystemClock,
        steps: Steps,
        begin: Begin,
    ) -> Node {
        let shared = Arc::new(Mutex::new(Published::new(config.discipline)));
        let (keys, new_keys) = channel();
        let news = News {
            rosters,
            keys: new_keys,
        };
        let reader = Reader {
            config: Arc::new(config.clone()),
            shared: Arc::clone(&shared),
            keys,
        };
        Node {
            engine: Engine::new(config, system, news, shared, steps, begin),
            reader,
        }
    }

    /// Does what is due. Returns when it wants to be woken next, CLOCK_MONOTONIC in ns; later is no error.
    pub fn wake(&mut self, machine: &mut dyn Machine) -> i64 {
        self.engine.wake(machine)
    }

    /// It will not be woken again: a system clock that it steers keeps the last correct rate.
    pub fn stop(&mut self, now: i64) {
        self.engine.hold_over(now);
    }

    /// What it publishes.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

impl Reader {
    /// Signs and checks messages with these keys from now on.
    pub fn set_keys(&self, keys: Keys) {
        let _ = self.keys.send(keys); // refused after the end alone
    }

    fn published(&self) -> Published {
        let shared = self.shared.lock();
        shared.expect("the synchronisation does not panic").clone()
    }

    /// Fleet time at CLOCK_MONOTONIC `now`, if it may be used.
    pub fn clock(&self, now: i64) -> Option<FleetClock> {
        let published = self.shared.lock();
        let published = published.expect("the synchronisation does not panic");
        let course = published.course.filter(|_| !published.trust.is_withheld);
        course?.clock(&published.scale, published.trust.doubt_ns, now)
    }

    /// The shortest one-way delays of the last half minute to neighbours.
    pub fn delays(&self) -> Vec<OneWayDelays> {
        let own = self.config.own;
        let ways = self.published().ways;
        let from_here = ways.iter().filter(|way| way.from == own);
        from_here.copied().collect()
    }

    /// The members of the fleet, this host included.
    pub fn members(&self) -> Members {
        self.published().members
    }

    /// The status at CLOCK_MONOTONIC `now`, without the fleet in etcd, which the caller knows.
    pub fn status(&self, now: i64) -> Status {
        let config = &self.config;
        let published = self.published();
        let clock = self.clock(now);
        let state = match (clock, published.leader) {
            (None, _) if published.members.all().len() < 2 => "alone",
            (None, None) => "without a leader",
            (None, _) if published.trust.is_withheld => "unconfirmed",
            (None, _) if published.state == "synchronised" => "expired",
            _ => published.state,
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            membership: Membership {
                own: config.own,
                coordinator: published.leader,
                term: published.term,
                members: published.members.all().len(),
                fleet: None,
                other_versions: published.other_versions.into_iter().collect(),
                contradictory: published.contradictory,
            },
            source: SOURCE.to_owned(),
            authenticated: config.authenticated,
            state: state.to_owned(),
            clock,
            doubt_ns: published.trust.doubt_ns,
            starved: published.trust.starved,
            system: System {
                ahead_ns: published.system.ahead_ns.filter(|_| clock.is_some()),
                ..published.system
            },
            edges: published.edges,
            ways: published.ways.to_vec(),
            cost: published.cost,
            counters: published.counters.list(),
        }
    }
}
