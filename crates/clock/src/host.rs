//! Synchronisation on one host: starts the thread that does it, and tells what it has found.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::Receiver,
        Arc, Mutex,
    },
    thread::JoinHandle,
};

use onramp_sync::{correction::Correction, synthetic::Synthetic};
use onramp_units::{Mono, Span, Time};

use crate::{
    engine::Engine,
    keys::Keys,
    own::Scale,
    roster::Roster,
    stamps::{now_mono_ns, Socket, SOURCE},
    status::{Cost, Counters, Edge, FleetClock, Follows, Status, System, Way},
    system::SystemClock,
};

/// How a host takes part. Spans of 0 or less are not checked for here.
#[derive(Debug, Clone)]
pub struct Config {
    /// This host.
    pub own: SocketAddr,
    /// Sign and check messages.
    pub keys: Keys,
    /// False if the keys are the well-known one.
    pub authenticated: bool,
    /// Neighbours of a host.
    pub degree: usize,
    /// Time between two pairs of an edge.
    pub interval: Span,
    /// How long fleet time may be used after the last verdict.
    pub lease: Span,
    /// The system's clock follows the leader's.
    pub discipline: bool,
    /// Right but in tests.
    pub synthetic: Synthetic,
}

/// A running synchronisation; it ends when dropped.
pub struct Host {
    config: Config,
    shared: Arc<Mutex<Published>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread tells.
#[derive(Debug, Clone, Default)]
pub(crate) struct Published {
    pub state: &'static str,
    pub members: usize,
    pub leader: Option<SocketAddr>,
    pub term: u64,
    pub other_versions: BTreeMap<SocketAddr, u8>,
    pub course: Option<Course>,
    pub scale: Scale,
    pub system: System,
    pub edges: Vec<Edge>,
    pub ways: Vec<Way>,
    pub cost: Cost,
    pub counters: Counters,
}

impl Published {
    pub fn new(discipline: bool) -> Published {
        let follows = match discipline {
            true => Follows::Leader,
            false => Follows::Nothing,
        };
        Published {
            state: "starting",
            system: System {
                follows,
                ..System::default()
            },
            ..Published::default()
        }
    }
}

/// Fleet time in force: a line that meets a better one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    pub steered: Correction,
    pub target: Correction,
    pub met_at: Time<Mono>,
    pub heard_mono_ns: i64,
    pub valid_until_mono_ns: i64,
}

impl Course {
    pub fn at(&self, now: Time<Mono>) -> &Correction {
        if now < self.met_at {
            &self.steered
        } else {
            &self.target
        }
    }

    /// As a line over CLOCK_MONOTONIC, told at `now`; none if it may not be used any more.
    pub fn clock(&self, scale: &Scale, now: i64) -> Option<FleetClock> {
        let own = scale.read(now);
        let correction = self.at(own);
        let fast = scale.drift_at(now);
        (now < self.valid_until_mono_ns).then_some(FleetClock {
            reference_mono_ns: now,
            offset_ns: (own.ticks() - now).saturating_add(correction.offset_at(own)),
            drift: fast + correction.drift_at(own) * (1.0 + fast),
            sigma_ns: correction.sigma_at(own).round() as i64,
            heard_mono_ns: self.heard_mono_ns,
            valid_until_mono_ns: self.valid_until_mono_ns,
        })
    }
}

impl Host {
    /// Starts to take part on a socket bound to its address, in a fleet as `rosters` tells of it.
    ///
    /// # Errors
    /// No thread can be made, or the system's clock shall be set and may not be.
    pub fn start(config: Config, socket: Socket, rosters: Receiver<Roster>) -> io::Result<Host> {
        let shared = Arc::new(Mutex::new(Published::new(config.discipline)));
        let stop = Arc::new(AtomicBool::new(false));
        let system = SystemClock::of(&config)?;
        let mut engine = Engine::new(config.clone(), system, rosters, Arc::clone(&shared));
        let stopped = Arc::clone(&stop);
        let run = move || engine.run(socket, &stopped);
        let thread = std::thread::Builder::new()
            .name("clock".into())
            .spawn(run)?;
        Ok(Host {
            config,
            shared,
            stop,
            thread: Some(thread),
        })
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
        ways.into_iter().filter(|way| way.from == own).collect()
    }

    /// Everything.
    pub fn status(&self) -> Status {
        let config = &self.config;
        let told = self.published();
        let clock = self.clock();
        let state = match (clock, told.leader) {
            (None, _) if told.members < 2 => "alone",
            (None, None) => "without a leader",
            (None, _) if told.state == "synchronised" => "expired",
            _ => told.state,
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            own: config.own,
            coordinator: told.leader,
            term: told.term,
            members: told.members,
            fleet: None,
            other_versions: told.other_versions.into_iter().collect(),
            source: SOURCE.to_owned(),
            authenticated: config.authenticated,
            state: state.to_owned(),
            clock,
            system: System {
                ahead_ns: told.system.ahead_ns.filter(|_| clock.is_some()),
                ..told.system
            },
            edges: told.edges,
            ways: told.ways,
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
