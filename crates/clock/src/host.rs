//! Synchronisation on one host: starts its thread and reads what the thread publishes.

use std::{
    io,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{channel, Receiver, Sender},
        Arc, Mutex,
    },
    thread::JoinHandle,
};

use crate::{
    config::Config,
    engine::{Engine, News},
    keys::Keys,
    members::Members,
    published::Published,
    roster::Roster,
    stamps::{now_mono_ns, Socket, SOURCE},
    status::{FleetClock, Membership, Status, System, Way},
    system::SystemClock,
};

/// A running synchronisation; it ends when dropped.
pub struct Host {
    config: Config,
    shared: Arc<Mutex<Published>>,
    keys: Sender<Keys>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Starts to take part, on a socket bound to the host's address, in the fleet that `rosters` describe.
    ///
    /// # Errors
    /// The thread cannot be created, or the host may not set the system clock but should.
    pub fn start(config: Config, socket: Socket, rosters: Receiver<Roster>) -> io::Result<Host> {
        let shared = Arc::new(Mutex::new(Published::new(config.discipline)));
        let stop = Arc::new(AtomicBool::new(false));
        let system = SystemClock::of(&config)?;
        let (keys, new_keys) = channel();
        let news = News {
            rosters,
            keys: new_keys,
        };
        let mut engine = Engine::new(config.clone(), system, news, Arc::clone(&shared));
        let stopped = Arc::clone(&stop);
        let run = move || engine.run(socket, &stopped);
        let thread = std::thread::Builder::new()
            .name("clock".into())
            .spawn(run)?;
        Ok(Host {
            config,
            shared,
            keys,
            stop,
            thread: Some(thread),
        })
    }

    /// Signs and checks messages with these keys from now on.
    pub fn set_keys(&self, keys: Keys) {
        let _ = self.keys.send(keys); // the thread lives as long as this
    }

    fn published(&self) -> Published {
        self.shared
            .lock()
            .expect("the thread does not panic")
            .clone()
    }

    /// Fleet time now, if it may be used.
    pub fn clock(&self) -> Option<FleetClock> {
        let told = self.published();
        told.course?.clock(&told.scale, now_mono_ns())
    }

    /// The shortest one-way delays of the last half minute to neighbours.
    pub fn delays(&self) -> Vec<Way> {
        let own = self.config.own;
        let ways = self.published().ways;
        let from_here = ways.iter().filter(|way| way.from == own);
        from_here.copied().collect()
    }

    /// The members of the fleet, this host included.
    pub fn members(&self) -> Members {
        self.published().members
    }

    /// The status now, without the fleet in etcd, which the caller knows.
    pub fn status(&self) -> Status {
        let config = &self.config;
        let told = self.published();
        let clock = self.clock();
        let state = match (clock, told.leader) {
            (None, _) if told.members.all().len() < 2 => "alone",
            (None, None) => "without a leader",
            (None, _) if told.state == "synchronised" => "expired",
            _ => told.state,
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            membership: Membership {
                own: config.own,
                coordinator: told.leader,
                term: told.term,
                members: told.members.all().len(),
                fleet: None,
                other_versions: told.other_versions.into_iter().collect(),
                contradictory: told.contradictory,
            },
            source: SOURCE.to_owned(),
            authenticated: config.authenticated,
            state: state.to_owned(),
            clock,
            system: System {
                ahead_ns: told.system.ahead_ns.filter(|_| clock.is_some()),
                ..told.system
            },
            edges: told.edges,
            ways: told.ways.to_vec(),
            cost: told.cost,
            counters: told.counters.list(),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
