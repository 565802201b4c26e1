// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The synchronisation of a host: probes, acks, reports, steers, and does the central step if this host is the
//! coordinator.
//!
//! It is woken for each tick, and once within it. In a tick it processes the packets that arrived since the last one,
//! which the kernel has stamped, and sends a pair to every neighbour. No sockets, clocks or threads: a
//! [`Machine`] has them.

mod central;
mod check;
mod fresh;
mod pairs;
mod reports;
mod roster;
mod starved;
mod system;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::SocketAddr,
    sync::{atomic::Ordering, mpsc::Receiver, Arc, Mutex},
};

use onramp_sync::correction::Correction;
use onramp_units::{Mono, Span, Time};
use tracing::{info, warn};

use crate::{
    config::Config,
    coordinator::is_possible,
    exchange::{FarEnd, NearEnd},
    keys::Keys,
    machine::{Machine, Stamped},
    own::OwnClock,
    published::{Course, Published},
    roster::Roster,
    status::{Edge, OneWayDelays},
    system::SystemClock,
    window::{self, WINDOW_NS, WORST_SIGMA_NS},
    wire::{Body, Delays, EdgeReport, Message, Refused, State, Verdict},
};

use central::Central;
pub(crate) use central::Steps;
use check::{Check, Noise};
use fresh::{Age, Fresh, Recent};
use starved::Starved;

/// Time after the end of a window in which the coordinator waits for reports.
const GATHER_NS: i64 = 300_000_000;
/// A correction whose reference is further from now is not of this window.
const OLD_NS: i64 = 10_000_000_000;
/// Repeats of a report or a verdict, so that fleet time survives the loss of half of the packets.
const REPEATS: u32 = 2;

/// The packet that a transmit stamp belongs to.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Probe { edge: usize, seq: u64 },
    Ack { to: SocketAddr, seq: u64 },
}

/// An edge that this host probes.
struct Probed {
    far: SocketAddr,
    end: NearEnd,
}

impl Probed {
    /// An edge of which nothing is known.
    fn to(far: SocketAddr) -> Probed {
        Probed {
            far,
            end: NearEnd::default(),
        }
    }
}

/// A host that may probe us, report to us, or be our coordinator.
#[derive(Default)]
struct Member {
    end: FarEnd,
    probes: Fresh,
    reports: Fresh,
    verdicts: Fresh,
}

/// What others tell the synchronisation.
pub(crate) struct News {
    /// Every change of the fleet.
    pub rosters: Receiver<Roster>,
    /// Every change of the keys.
    pub keys: Receiver<Keys>,
}

/// The state in which a synchronisation begins.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    /// CLOCK_MONOTONIC, ns.
    pub mono_ns: i64,
    /// Above all numbers of messages that this host has ever sent.
    pub seq: u64,
    /// Another number after each boot of the machine, because then its clock is another one.
    pub epoch: u32,
}

/// The state of a host's synchronisation.
pub(crate) struct Engine {
    config: Config,
    own: OwnClock,
    system: SystemClock,
    /// Change of the system clock's rate that it needs, without slewing.
    needed: f64,
    news: News,
    roster: Roster,
    shared: Arc<Mutex<Published>>,
    published: Published,
    probed: Vec<Probed>,
    members: HashMap<SocketAddr, Member>,
    /// Members whose pairs are not acked yet.
    acks: VecDeque<SocketAddr>,
    sent: VecDeque<(u32, Sent)>,
    seq: u64,
    recent: Recent,
    id: u32,
    /// The present window: its number, by fleet time or the own clock, and its start.
    window: i64,
    began_mono_ns: i64,
    started_mono_ns: i64,
    central: Option<Central>,
    step_mono_ns: Option<i64>,
    /// The reports of the last window, for a new leader that lacks them, and when to send them.
    last_edges: Vec<EdgeReport>,
    tell_mono_ns: Option<i64>,
    /// A host of an older term, which gets one notice per tick, and the number of its message.
    outdated: Option<(SocketAddr, u64)>,
    /// Reports and verdicts to repeat, and how often; receivers ignore duplicates.
    again: Vec<(SocketAddr, Vec<u8>, u32)>,
    /// When it was woken last.
    woken_mono_ns: i64,
    /// When the next tick begins.
    tick_mono_ns: i64,
    /// The second packets of the pairs whose first ones this tick has sent.
    seconds: Vec<(SocketAddr, Vec<u8>)>,
    starved: Starved,
    /// Epoch of the own clock: another number when it is another clock.
    epoch: u32,
    /// By neighbour.
    checks: BTreeMap<SocketAddr, Check>,
    /// When the last verdict was taken, on the own clock.
    verdict_own_ns: i64,
    /// Deviations of fleet time that mean nothing.
    noise: Noise,
    steps: Steps,
}

impl Engine {
    /// The state of a host that has not started and knows no members.
    pub fn new(
        config: Config,
        system: SystemClock,
        news: News,
        shared: Arc<Mutex<Published>>,
        steps: Steps,
        begin: Begin,
    ) -> Engine {
        Engine {
            news,
            roster: Roster::unknown(),
            published: Published::new(config.discipline),
            probed: vec![],
            members: HashMap::new(),
            acks: VecDeque::new(),
            sent: VecDeque::new(),
            seq: begin.seq,
            recent: Recent::since(begin.seq),
            id: 0,
            window: 0,
            began_mono_ns: begin.mono_ns,
            started_mono_ns: begin.mono_ns,
            central: None,
            step_mono_ns: None,
            last_edges: vec![],
            tell_mono_ns: None,
            outdated: None,
            again: vec![],
            woken_mono_ns: begin.mono_ns,
            tick_mono_ns: begin.mono_ns,
            seconds: vec![],
            starved: Starved::since(begin.mono_ns),
            epoch: begin.epoch,
            checks: BTreeMap::new(),
            verdict_own_ns: 0,
            noise: Noise::default(),
            steps,
            own: OwnClock::new(&config.synthetic, config.own),
            system,
            needed: 0.0,
            config,
            shared,
        }
    }

    /// Does what is due. Returns when it wants to be woken next, CLOCK_MONOTONIC in ns; later is no error.
    pub fn wake(&mut self, machine: &mut dyn Machine) -> i64 {
        let now = machine.now_mono_ns();
        if now < self.woken_mono_ns {
            self.go_back(now);
        }
        self.woken_mono_ns = now;
        if !self.seconds.is_empty() {
            self.send_seconds(machine);
            return self.tick_mono_ns;
        }
        self.starved.woken(self.tick_mono_ns, now);
        if machine.was_suspended() {
            warn!("clock: this host was suspended: no fleet time until the next verdict");
            self.published.counters.suspensions += 1;
            self.begin_anew();
        }
        if let Some(beside) = machine.beside() {
            self.own.scale.follow(beside);
        }
        if self.take_news(now) {
            let ports = self.roster.members.all().iter().map(SocketAddr::port);
            machine.hear(&ports.collect());
        }
        self.published.counters.dropped = machine.dropped();
        self.repeat(machine);
        self.correct(machine);
        self.turn(machine, now);
        let second_at = self.send_firsts(machine);
        self.check(now);
        self.publish_clock();
        // Jitter of an eighth avoids lockstep with periodic traffic.
        let interval_ns = self.config.interval.as_ns();
        let spread_ns = (interval_ns / 8).max(1);
        let jitter_ns = self.random() as i64 % spread_ns - spread_ns / 2;
        self.tick_mono_ns = (self.tick_mono_ns + interval_ns + jitter_ns).max(now);
        match self.seconds.is_empty() {
            true => self.tick_mono_ns,
            false => second_at,
        }
    }

    /// The clock reads less than before, which CLOCK_MONOTONIC never should.
    fn go_back(&mut self, now: i64) {
        let by_ns = self.woken_mono_ns.saturating_sub(now);
        warn!(
            "clock: CLOCK_MONOTONIC went back by {}: no fleet time until the next verdict",
            Span::from_ns(by_ns)
        );
        self.published.counters.clock_backwards += 1;
        self.begin_anew();
        (self.began_mono_ns, self.tick_mono_ns) = (now, now);
        self.step_mono_ns = self.step_mono_ns.map(|_| now);
        self.tell_mono_ns = self.tell_mono_ns.map(|_| now);
    }

    /// Takes up keys and rosters that came. Says whether there is another roster.
    fn take_news(&mut self, now: i64) -> bool {
        let mut is_other = false;
        while let Ok(keys) = self.news.keys.try_recv() {
            self.config.keys = keys;
        }
        while let Ok(roster) = self.news.rosters.try_recv() {
            self.adopt(roster, now);
            is_other = true;
        }
        is_other
    }

    // ---- what comes in ----

    fn arrived(&mut self, from: SocketAddr, bytes: &[u8], stamped: Option<Stamped>, now: i64) {
        let at = self.past(stamped).map(|ns| self.own.received(ns));
        let message = Message::decode(bytes, &self.config.keys, from, self.config.own);
        let counters = &mut self.published.counters;
        let message = match message {
            Ok(message) => message,
            Err(Refused::Malformed) => return counters.malformed += 1,
            Err(Refused::BadTag) => return counters.bad_tag += 1,
            Err(Refused::Version(version)) => return self.speaks_otherwise(from, version),
        };
        let Some(member) = self.members.get_mut(&from) else {
            // The number of an ack is not its sender's.
            let is_own = !matches!(message.body, Body::Ack(_));
            if self.roster.certain && message.term < self.roster.term && is_own {
                self.outdated = Some((from, message.seq));
            }
            return counters.strangers += 1;
        };
        let leads = self.central.is_some();
        let is_led = self.roster.leader == Some(from) && message.term == self.roster.term;
        match &message.body {
            Body::Verdict(_) if message.term < self.roster.term => return counters.old_terms += 1,
            Body::Verdict(_) if !is_led => return counters.strangers += 1,
            Body::Report(_) if !leads => return counters.strangers += 1,
            Body::Verdict(Verdict { answers, .. }) | Body::Notice { answers }
                if !self.recent.has(*answers, self.seq) =>
            {
                return counters.stale += 1;
            }
            _ => {}
        }
        let age = match &message.body {
            Body::Probe(probe) => {
                let number = message.seq << 1 | u64::from(probe.index);
                member.probes.accept(number, now)
            }
            Body::Ack(_) => Age::New, // the edge checks whether it waits for it
            Body::Report(_) => member.reports.accept(message.seq, now),
            Body::Verdict(_) => member.verdicts.accept(message.seq, now),
            Body::Notice { .. } => Age::New, // it answers a message of ours
        };
        match age {
            Age::New => {}
            Age::Repeated => return counters.repeated += 1,
            Age::Stale => return counters.stale += 1,
        }
        match message.body {
            Body::Probe(probe) => {
                counters.unstamped += u64::from(at.is_none());
                if member.end.probe(&probe, at) && !self.acks.contains(&from) {
                    self.acks.push_back(from);
                }
            }
            Body::Ack(ack) => {
                counters.unstamped += u64::from(at.is_none());
                let edge = self.probed.iter_mut().find(|edge| edge.far == from);
                if !edge.is_some_and(|edge| edge.end.ack(&ack, at)) {
                    counters.unasked += 1;
                }
            }
            Body::Report(report) => self.take_report(from, report, now),
            Body::Verdict(verdict) => self.follow(&verdict, now),
            Body::Notice { .. } => self.step_down(message.term, now),
        }
    }

    // ---- what goes out ----

    fn encode(&self, to: SocketAddr, seq: u64, body: Body) -> Vec<u8> {
        let term = self.roster.term;
        Message { seq, term, body }.encode(&self.config.keys, self.config.own, to)
    }

    /// A number that changes with every call's state; for jitter, not for secrets.
    fn random(&self) -> u64 {
        (self.seq ^ u64::from(self.id) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }

    fn say(&mut self, machine: &mut dyn Machine, to: SocketAddr, body: Body) {
        let seq = self.next_seq();
        let datagram = self.encode(to, seq, body);
        self.send(machine, &datagram, to);
        self.again.push((to, datagram, REPEATS));
    }

    /// Repeats the reports and verdicts of earlier ticks.
    fn repeat(&mut self, machine: &mut dyn Machine) {
        for (to, datagram, times) in std::mem::take(&mut self.again) {
            self.send(machine, &datagram, to);
            if times > 1 {
                self.again.push((to, datagram, times - 1));
            }
        }
    }

    fn next_id(&mut self) -> u32 {
        self.id = self.id.wrapping_add(1);
        self.id
    }

    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    // ---- windows ----

    /// Ends the window when it is due, and does the central step once reports had time to arrive.
    fn turn(&mut self, machine: &mut dyn Machine, now: i64) {
        let own = self.own.read(now);
        let fleet_ns = match &self.published.course {
            Some(course) => course.at(own).fleet(own).ticks(),
            None => own.ticks(),
        };
        let window = fleet_ns.div_euclid(WINDOW_NS);
        if window != self.window && now - self.began_mono_ns > WINDOW_NS / 2 {
            (self.window, self.began_mono_ns) = (window, now);
            self.end_window(machine, now);
        }
        if self.tell_mono_ns.is_some_and(|at| at <= now) {
            self.tell_mono_ns = None;
            self.report(machine, now);
        }
        if self.step_mono_ns.is_some_and(|at| at <= now) {
            self.step_mono_ns = None;
            if let Some(central) = &mut self.central {
                central.begin(now);
            }
        }
        self.tell_verdicts(machine, now);
    }

    fn end_window(&mut self, machine: &mut dyn Machine, now: i64) {
        if self.fleet_clock(now).is_none() {
            self.hold_over(now);
        }
        self.published.counters.windows += 1;
        self.judge(machine, now);
        self.recent.end_window(self.seq);
        let (mut edges, mut reports) = (vec![], vec![]);
        let until = Time::from_ticks(self.own.read(now).ticks());
        for probed in &mut self.probed {
            let found = window::close(&mut probed.end, until);
            self.published.counters.edges_unsupported += u64::from(found.is_unsupported);
            edges.push(edge(probed.far, &found));
            let far = probed.far;
            let far_epoch = probed.end.far_epoch.unwrap_or(0);
            reports.extend(found.line.map(|(line, delays)| EdgeReport {
                far,
                far_epoch,
                line,
                delays,
            }));
        }
        self.published.counters.edges_fitted += reports.len() as u64;
        self.published.counters.edges_unfitted += (edges.len() - reports.len()) as u64;
        self.published.edges = edges;
        let sigmas_ns = reports.iter().map(|edge: &EdgeReport| edge.line.sigma_ns);
        self.end_checks(sigmas_ns.collect());
        self.last_edges = reports;
        self.report(machine, now);
        self.step_mono_ns = self.central.is_some().then_some(now + GATHER_NS);
        self.published.cost.cpu_ns = machine.cpu_ns();
        self.publish(now);
    }

    /// Notes whether this host lacked a processor in the window that ends.
    fn judge(&mut self, machine: &mut dyn Machine, now: i64) {
        let window = self.starved.end_window(machine.lacked(), now);
        self.published.counters.windows_starved += u64::from(window.is_starved());
        self.published.counters.windows_unwatched += u64::from(window.is_silent);
        self.published.trust.starved = window.is_starved().then_some(window.part);
        self.config
            .unfit
            .store(window.is_unfit(), Ordering::Relaxed);
    }

    /// Follows a verdict of the coordinator.
    fn follow(&mut self, verdict: &Verdict, now: i64) {
        let own = self.own.read(now);
        match verdict.state {
            State::Synchronised(target) if believable(&target, own) => {
                self.published.counters.verdicts_taken += 1;
                self.steer(target, own, now);
                self.become_state("synchronised");
                self.compare(verdict.wall.as_ref(), now);
            }
            State::Synchronised(_) => self.published.counters.verdicts_refused += 1,
            State::Apart => self.become_state("apart"),
            State::Contradictory => {
                self.published.course = None;
                self.become_state("contradictory");
            }
        }
        let own = self.config.own;
        let ways = |(neighbour, delays): &(SocketAddr, Delays)| {
            OneWayDelays::both(own, *neighbour, delays)
        };
        self.published.ways = match &self.central {
            Some(central) => central.ways(),
            None => verdict.delays.iter().flat_map(ways).collect(),
        };
        self.publish(now);
    }

    fn steer(&mut self, target: Correction, own: Time<Mono>, now: i64) {
        let over = Span::from_ns(WINDOW_NS);
        let steered = match &self.published.course {
            Some(course) => course.at(own).steer(&target, own, over),
            None => target,
        };
        if self.published.course.is_some() && steered == target {
            warn!("clock: fleet time steps on this host, because it was too far off to steer");
            self.published.counters.fleet_steps += 1;
        }
        self.verdict_own_ns = own.ticks();
        // A delayed verdict does not extend the lease.
        let of = now - (own - target.reference).as_ns();
        self.published.course = Some(Course {
            steered,
            target,
            met_at: own + over,
            heard_mono_ns: now,
            valid_until_mono_ns: now.min(of + 2 * WINDOW_NS) + self.config.lease.as_ns(),
        });
    }

    fn become_state(&mut self, state: &'static str) {
        if self.published.state != state {
            info!("clock: {state}");
            self.published.state = state;
        }
    }

    /// What readers need of each tick: fleet time, and how much it is doubted.
    fn publish_clock(&mut self) {
        let mut shared = self.shared.lock().expect("readers do not panic");
        (shared.course, shared.trust) = (self.published.course, self.published.trust);
        shared.scale = self.own.scale;
    }

    fn publish(&mut self, now: i64) {
        self.published.cost.wall_ns = now - self.started_mono_ns;
        self.published.members = self.roster.members.clone();
        self.published.leader = self.roster.leader;
        self.published.term = self.roster.term;
        self.published.scale = self.own.scale;
        *self.shared.lock().expect("readers do not panic") = self.published.clone();
    }
}

/// Whether a verdict's clock is plausible and current.
fn believable(correction: &Correction, own: Time<Mono>) -> bool {
    let sigma_ns = correction.error.sigma_ns;
    let age_ns = own.ticks().saturating_sub(correction.reference.ticks());
    (0.0..WORST_SIGMA_NS).contains(&sigma_ns)
        && correction.error.drift_sigma >= 0.0
        && correction.error.wander_per_s >= 0.0
        && is_possible(correction)
        && age_ns.unsigned_abs() < OLD_NS as u64
}

fn edge(neighbour: SocketAddr, found: &window::Found) -> Edge {
    let line = found.line.map(|(line, _)| line);
    Edge {
        neighbour,
        pairs_out: found.pairs_out,
        pairs_back: found.pairs_back,
        offset_ns: line.map(|line| line.about_ns + line.ahead_ns.round() as i64),
        drift: line.map(|line| line.drift),
        delay_ns: line.map(|line| line.delay_ns.round() as i64),
        sigma_ns: line.map(|line| line.sigma_ns.round() as i64),
    }
}

#[cfg(test)]
mod tests;
