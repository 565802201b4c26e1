// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A simulated machine: its clock, its processors, the packets that its kernel has, and its process.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
        Arc,
    },
};

use onramp_clock::{
    machine::{Beside, Lacked, Machine, Received, Stamped, Transmitted},
    node::Node,
    registration::Registration,
    roster::Roster,
    status, wire,
};
use onramp_sync::{
    probe::Stamps,
    synthetic::{uniform, Oscillator},
};
use onramp_units::Span;
use rand_chacha::ChaCha8Rng;

use crate::{clock::Clock, exponential_ns, spec::Spec, starvation::Bursts, stream};

/// A system call takes this, ns.
const CALL_NS: i64 = 1_500;
/// From the stamp of a packet that leaves to the wire, ns.
const WIRE_NS: i64 = 300;
/// Two clocks are read beside each other within this, ns.
const BESIDE_NS: f64 = 30.0;
/// After a machine was starved, its kernel stamps the packets that waited one by one, ns.
const BACKLOG_NS: f64 = 1_500.0;

/// A machine and its process.
pub(crate) struct Host {
    pub address: SocketAddr,
    pub clock: Clock,
    /// Noise of its stamps, in multiples of that of software stamps.
    noise: f64,
    /// The machine has no processor: its kernel stamps nothing.
    pub stolen: Bursts,
    /// The process has none; the kernel stamps.
    pub starved: Bursts,
    pub process: u32,
    pub running: Option<Running>,
    pub is_suspended: bool,
    /// Packets by the time at which the kernel has them.
    pub inbox: BTreeMap<(i64, u64), Arrival>,
    pub left: Vec<(u32, u8, i64)>,
    pub rng: ChaCha8Rng,
}

pub(crate) struct Running {
    pub node: Node,
    pub rosters: Sender<Roster>,
    pub unfit: Arc<AtomicBool>,
    /// In a world with etcd.
    pub registration: Option<Registration>,
    /// What the registration shows.
    pub shown: status::Fleet,
}

impl Running {
    /// Whether the host says that it lacks a processor for too long to lead.
    pub fn is_unfit(&self) -> bool {
        self.unfit.load(Ordering::Relaxed)
    }
}

pub(crate) struct Arrival {
    from: SocketAddr,
    bytes: Vec<u8>,
    stamp_mono_ns: i64,
}

impl Host {
    pub fn new(number: usize, spec: &Spec) -> Host {
        let mut rng = stream(spec.seed, 100_000 + number as u64);
        let mut between = |most: f64| most * (2.0 * uniform(&mut rng) - 1.0);
        let oscillator = Oscillator {
            offset: Span::from_ns(between(1e6) as i64),
            drift: between(spec.drift),
            wander: spec.wander,
            period: Span::from_ms(2_100_000 + between(1_500_000.0) as i64),
            phase: between(1.0).abs(),
        };
        Host {
            address: SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], wire::PORT)),
            clock: Clock::new(oscillator),
            noise: spec.noise,
            stolen: Bursts::none(stream(0, 0)),
            starved: Bursts::none(stream(0, 0)),
            process: 0,
            running: None,
            is_suspended: false,
            inbox: BTreeMap::new(),
            left: vec![],
            rng,
        }
    }

    /// Its kernel gets a packet at `at`, the `order`-th of all.
    pub fn take(&mut self, from: SocketAddr, bytes: Vec<u8>, at: i64, order: u64) {
        if self.running.is_none() {
            return;
        }
        let mut stamped_at = self.stolen.runs_from(at);
        if stamped_at > at {
            stamped_at += exponential_ns(BACKLOG_NS, &mut self.rng);
        }
        let noise_ns = self.noise * Stamps::Software.received_noise_ns(&mut self.rng);
        let arrival = Arrival {
            from,
            bytes,
            stamp_mono_ns: self.clock.read(stamped_at) + noise_ns.round() as i64,
        };
        self.inbox.insert((stamped_at, order), arrival);
    }

    /// The first time, `at` or later, at which machine and process have a processor.
    pub fn runs_from(&mut self, at: i64) -> i64 {
        let mut at = at;
        loop {
            let runs = self.starved.runs_from(self.stolen.runs_from(at));
            if runs == at {
                return at;
            }
            at = runs;
        }
    }
}

/// A host's machine while its process is awake.
pub(crate) struct Simulated<'a> {
    pub host: &'a mut Host,
    /// True time, which each system call takes some of.
    pub at: i64,
    /// When each datagram left, to whom.
    pub outbox: Vec<(i64, SocketAddr, Vec<u8>)>,
}

impl Simulated<'_> {
    /// A system call: the processor may be taken away before or during it.
    fn call(&mut self) {
        self.at = self.host.runs_from(self.at + CALL_NS);
    }
}

impl Machine for Simulated<'_> {
    fn now_mono_ns(&mut self) -> i64 {
        self.host.clock.read(self.at)
    }

    fn beside(&mut self) -> Option<Beside> {
        let noise_ns = BESIDE_NS * (2.0 * uniform(&mut self.host.rng) - 1.0);
        Some(Beside {
            mono_ns: self.host.clock.read(self.at),
            raw_ns: self.host.clock.raw(self.at) + noise_ns as i64,
        })
    }

    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> bool {
        self.call();
        if let Some((id, index)) = wire::sent_probe(datagram) {
            let noise_ns = Stamps::Software.sent_noise_ns(&mut self.host.rng) * self.host.noise;
            let stamp = self.host.clock.read(self.at) + noise_ns.round() as i64;
            self.host.left.push((id, index, stamp));
        }
        // The machine may lose its processor between the stamp and the wire.
        let left_at = self.host.stolen.runs_from(self.at + WIRE_NS);
        self.outbox.push((left_at, to, datagram.to_owned()));
        true
    }

    fn receive(&mut self, each: Received<'_>) -> bool {
        self.call();
        let read_mono_ns = self.now_mono_ns();
        let later = self.host.inbox.split_off(&(self.at + 1, 0));
        for arrival in std::mem::replace(&mut self.host.inbox, later).into_values() {
            let stamped = Stamped {
                at_mono_ns: arrival.stamp_mono_ns,
                read_mono_ns,
            };
            each(arrival.from, &arrival.bytes, Some(stamped));
        }
        false
    }

    fn transmitted(&mut self, each: Transmitted<'_>) -> bool {
        self.call();
        let read_mono_ns = self.now_mono_ns();
        for (id, index, at_mono_ns) in std::mem::take(&mut self.host.left) {
            let stamped = Stamped {
                at_mono_ns,
                read_mono_ns,
            };
            each(id, index, stamped);
        }
        false
    }

    fn was_suspended(&mut self) -> bool {
        std::mem::take(&mut self.host.is_suspended)
    }

    fn lacked(&mut self) -> Lacked {
        Lacked {
            waited_ns: Some(self.host.starved.lacked_ns(self.at)),
            stolen_ns: Some(self.host.stolen.lacked_ns(self.at)),
        }
    }

    fn cpu_ns(&mut self) -> i64 {
        0
    }
}
