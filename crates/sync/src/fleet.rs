// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The fleet's clocks from window to window: the central step, which the leader does every 2 s.
//!
//! Fleet time is not the clock of one host. It advances at the median rate of all hosts, so it does not jump
//! when a host leaves. A host's clock reads, at fleet time t,
//!
//!   t + base + offset + drift (t - at)
//!
//! where base is a whole number of ns (hosts boot years apart) and the rest is small.

mod clock;
mod followers;
mod found;

use onramp_units::{Fleet as FleetTime, Time};

use crate::{
    correction::{Correction, Error},
    filter::{Filter, Measured, BEND_TIME_S},
    line::{Line, WINDOWS},
};
pub(crate) use clock::Clock;
use clock::FIRST_WALK;
use found::{by_edge, Found};

/// A host's measurement of one neighbour in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// The host that reports, from 0. The line is on its clock.
    pub near: usize,
    /// Its neighbour.
    pub far: usize,
    /// The neighbour's clock relative to its own.
    pub line: Line,
}

/// Why a host has no correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// It has no edge to the connected component that continues as the fleet; or it is new and one host alone speaks for it; or
    /// nobody is told anything, because others may still follow a fleet time that nobody here knows.
    Apart,
    /// Most of its edges contradict the other hosts.
    Contradictory,
}

/// Result of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// By host: its correction, or the reason why it has none.
    pub corrections: Vec<Result<Correction, Lost>>,
    /// By report: its residual, the reported minus the agreed offset, ns.
    pub residuals_ns: Vec<f64>,
    /// By report: its weight, from 0 (excluded) to 1.
    pub trust: Vec<f64>,
    /// Standard deviation of an edge's error, ns.
    pub edge_sigma_ns: f64,
}

/// Model of a clock's behaviour between windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wander {
    /// Largest change of a clock's drift in a second.
    pub per_s: f64,
}

impl Default for Wander {
    /// Temperature: a few 10^-9 a second, and somewhat more for a virtual machine.
    fn default() -> Self {
        Wander { per_s: 1e-8 }
    }
}

/// Standard deviation of a host's first corrections at least, ns: its drift is that of a window or two.
const FIRST_SIGMA_NS: f64 = 1_000.0;
/// Standard deviation of the drift of a host's first line at least, which may span half a window of software stamps.
const FIRST_DRIFT_SIGMA: f64 = 3e-6;
/// Standard deviation of all drifts at least while no host is settled: until then the rate of fleet time itself may change from
/// window to window, and a host that misses a verdict goes on at the former rate.
const YOUNG_DRIFT_SIGMA: f64 = 1.5e-6;
/// Part of the median drift that a window takes off: fleet time has the rate of the median clock within the hour, and no window
/// changes it much.
const LEAK: f64 = 0.002;
/// So far off are oscillators, typically.
const TYPICAL_DRIFT: f64 = 2e-5;
/// Windows after which neither a host's lines, nor what was predicted from them, have its first pairs. These meet caches that
/// are cold, and may all have met a queue.
const SETTLED: usize = WINDOWS + 1;
/// Weight of the newest prediction error in its mean square. Prediction errors show what the residuals of the
/// mesh do not: errors of an edge that is in no loop, and errors common to all edges of a host.
const SURPRISE_GAIN: f64 = 0.25;
/// Weight of a window in the scale of residuals, and the smallest scale: few windows of few edges agree by chance.
const SCALE_GAIN: f64 = 0.1;
const LEAST_SCALE: f64 = 0.2;
/// A window whose residuals are larger than usual by this factor counts as it is,
const UNUSUAL: f64 = 1.5;
/// and teaches no more than if its mean square were larger by this: one strange window is soon forgotten.
const MOST_LEARNT: f64 = 9.0;

/// For so long a host may follow its last correction, if nobody says otherwise, s: a lease of 6 s, and a verdict that comes two
/// windows late.
const FOLLOWED_S: f64 = 10.0;

/// Windows that a new host waits for a second one that speaks for it.
const WAITS: u32 = 3;

/// Weight of a host in the median clock at least.
const LEAST_SAY: f64 = 0.25;

/// What is known of a host.
#[derive(Debug, Clone, Copy, Default)]
struct Host {
    clock: Option<Clock>,
    /// For so long it may still follow its last correction, s.
    follows_s: f64,
    /// Windows in which one other host alone spoke for it.
    waited: u32,
}

/// The last estimates of the hosts' clocks.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    hosts: Vec<Host>,
    at: Option<Time<FleetTime>>,
    wander: Wander,
    /// For so long a host may follow its last correction, s.
    followed_s: f64,
    /// For so long hosts that have left may still follow theirs, s.
    gone_follow_s: f64,
    /// For so long more hosts have waited for a fleet time than had it, s; none if there are not more.
    outnumbered_s: Option<f64>,
    /// No host was settled at the last window.
    is_young: bool,
    /// Mean squares of the edges' residuals in units of what their lines say, of offsets and of drifts: what lines say is right but
    /// for a factor that all have in common. None before the first window.
    scales: Option<(f64, f64)>,
    /// Mean variances of offsets, ns^2, and of drifts that edges have beside those of their lines: paths that are longer in one
    /// direction. They last, and do not depend on how exact a line is.
    lasting: (f64, f64),
}

impl Fleet {
    /// A fleet without any estimate.
    pub fn new(wander: Wander) -> Fleet {
        Fleet {
            wander,
            followed_s: FOLLOWED_S,
            ..Fleet::default()
        }
    }

    /// A host still follows this correction of an earlier leader: fleet time continues from it. For use before the
    /// first window.
    pub fn recall(&mut self, host: usize, correction: &Correction) {
        let reference = correction.fleet(correction.reference);
        let at = *self.at.get_or_insert(reference);
        let drift = -correction.drift / (1.0 + correction.drift);
        let elapsed_ns = at.ticks().saturating_sub(reference.ticks()) as f64;
        if self.hosts.len() <= host {
            self.hosts.resize(host + 1, Host::default());
        }
        self.hosts[host] = Host {
            clock: Some(Clock {
                base_ns: correction.offset_ns.saturating_neg(),
                offset_ns: drift * elapsed_ns,
                drift,
                bend: -correction.bend,
                known: None,
                surprise: None,
                walk: FIRST_WALK.powi(2),
                windows: SETTLED,
            }),
            follows_s: self.followed_s,
            waited: 0,
        };
    }

    /// A host's clock is another one than before.
    pub fn forget(&mut self, host: usize) {
        if let Some(known) = self.hosts.get_mut(host) {
            *known = Host::default();
        }
    }

    /// Members changed: host n is the host that was `old[n]`, or a new one.
    pub fn renumber(&mut self, old: &[Option<usize>]) {
        self.see_off(old);
        let known = |host: &Option<usize>| host.and_then(|n| self.hosts.get(n).copied());
        let hosts = old.iter().map(known).map(Option::unwrap_or_default);
        self.hosts = hosts.collect();
    }

    /// Processes a window's reports from hosts 0 to `hosts` - 1. Deterministic in their order.
    ///
    /// # Panics
    /// A report names a host that does not exist.
    pub fn window(&mut self, hosts: usize, reports: &[Report]) -> Window {
        self.hosts.resize(hosts, Host::default());
        let guess = self.bases(reports);
        let has_base = |report: &Report| guess[report.near].is_some();
        let counts: Vec<bool> = reports.iter().map(has_base).collect();
        let counted: Vec<Report> = reports.iter().copied().filter(has_base).collect();
        let guess: Vec<Clock> = guess
            .iter()
            .map(|clock| clock.unwrap_or(Clock::at(0)))
            .collect();
        let mut window = self.reconcile(guess, &counted);
        window.residuals_ns = by_edge(&window.residuals_ns, &counts);
        window.trust = by_edge(&window.trust, &counts);
        self.note_followers(&window);
        self.count_waiting(reports, &counts, &window);
        window
    }

    /// Reports of hosts whose bases are known.
    fn reconcile(&mut self, mut guess: Vec<Clock>, reports: &[Report]) -> Window {
        let hosts = guess.len();
        if reports.is_empty() {
            return Window {
                corrections: vec![Err(Lost::Apart); hosts],
                residuals_ns: vec![],
                trust: vec![],
                edge_sigma_ns: 0.0,
            };
        }
        let at = self.middle(&guess, reports);
        self.advance(&mut guess, at);
        let predicted = guess.clone();
        // The first pass finds where the clocks stand at the common instant, the second uses it.
        let mut first = Found::by(hosts, reports, &guess, at, self.lasting);
        self.hold_back(&mut first, reports, &guess);
        self.settle(&mut guess, &first, reports);
        let mut found = Found::by(hosts, reports, &guess, at, self.lasting);
        let waits = self.hold_back(&mut found, reports, &guess);
        self.settle(&mut guess, &found, reports);
        let scales = self.rescale(&found);
        self.learn_lasting(&found);
        let errors = found.errors(hosts, reports, scales);
        let is_settled = |clock: &Clock| clock.windows >= SETTLED;
        self.is_young = !predicted.iter().any(is_settled);
        self.filter(&mut guess, &predicted, &errors, self.elapsed_s(at));
        rest(&mut guess, &found);
        let window = self.tell(&guess, &found, &errors, reports, at);
        let known = |host: usize| match window.corrections[host] {
            Ok(_) => Some(guess[host]),
            Err(_) => predicted[host].remembered(),
        };
        // Whatever makes a number none is not carried on.
        let is_one = |clock: &Clock| (clock.offset_ns + clock.drift).is_finite();
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.clock = known(number).filter(is_one);
            host.waited = if waits[number] { host.waited + 1 } else { 0 };
        }
        self.at = Some(at);
        window
    }

    /// Takes out new hosts for which one other host alone speaks, for a few windows. Returns by host whether it is one.
    fn hold_back(&self, found: &mut Found, reports: &[Report], clocks: &[Clock]) -> Vec<bool> {
        let mut waits = found.unconfirmed(reports, clocks);
        for (waits, host) in waits.iter_mut().zip(&self.hosts) {
            *waits &= host.waited < WAITS;
        }
        let lost = found.lost.iter_mut().zip(&waits);
        lost.filter(|(_, waits)| **waits)
            .for_each(|(lost, _)| *lost = Some(Lost::Apart));
        waits
    }

    /// The middle of the window in fleet time: the median of the hosts' estimates.
    fn middle(&self, clocks: &[Clock], reports: &[Report]) -> Time<FleetTime> {
        let at = |report: &Report| {
            let clock = &clocks[report.near];
            let small = clock.offset_ns as i64;
            report
                .line
                .at
                .ticks()
                .saturating_sub(clock.base_ns)
                .saturating_sub(small)
        };
        let mut times: Vec<i64> = reports.iter().map(at).collect();
        let middle = times.len() / 2;
        let median = times
            .get(middle)
            .is_some()
            .then(|| *times.select_nth_unstable(middle).1);
        Time::from_ticks(median.unwrap_or(0))
    }

    /// Time since the last window. It is negative after [`Fleet::recall`]: the reference of a correction that hosts
    /// follow is after the middle of the next window's pairs.
    fn elapsed_s(&self, at: Time<FleetTime>) -> f64 {
        self.at.map_or(0.0, |before| (at - before).as_s_f64())
    }

    /// Extrapolates the clocks to `at`.
    fn advance(&self, clocks: &mut [Clock], at: Time<FleetTime>) {
        let elapsed_s = self.elapsed_s(at);
        for clock in clocks {
            clock.set(clock.state().later(elapsed_s));
            // Nobody is known better than before, whatever reports say of the time.
            let later_s = elapsed_s.max(0.0);
            let known = clock.known.filter(|_| later_s < BEND_TIME_S);
            clock.known = known.map(|known| known.later(later_s, self.wander.per_s, clock.walk()));
        }
    }

    /// Sets the clocks of the connected component that continues as the fleet. The mesh gives only differences, so
    /// the median host keeps its clock, where a host counts by how well its clock is predicted and measured; while all are new, it
    /// has the rate of fleet time.
    fn settle(&self, clocks: &mut [Clock], found: &Found, reports: &[Report]) {
        let hosts = clocks.len();
        let errors = found.errors(hosts, reports, (1.0, 1.0));
        let before = |host: &usize| self.hosts[*host].clock;
        let members: Vec<usize> = (0..hosts).filter(|h| found.is_member(*h)).collect();
        let is_anchor = |host: &usize| before(host).is_some() && found.placed[*host].is_none();
        let old: Vec<usize> = members.iter().copied().filter(is_anchor).collect();
        let anchors = if old.is_empty() { &members } else { &old };
        let predicted = |host: usize| clocks[host].known.map(|known| known.error(0.0));
        let offset = weighted_median(anchors.iter().map(|host| {
            let sigma_ns = predicted(*host).map_or(FIRST_SIGMA_NS, |error| error.sigma_ns);
            let ahead_ns = clocks[*host].offset_ns - found.offsets.offsets[*host];
            (ahead_ns, libm::hypot(sigma_ns, errors[*host].sigma_ns))
        }));
        let keep_rate = anchors
            .iter()
            .any(|host| before(host).is_some_and(|clock| clock.keeps_rate()));
        let rate = |host: &usize| if keep_rate { clocks[*host].drift } else { 0.0 };
        let drift = weighted_median(anchors.iter().map(|host| {
            let sigma = predicted(*host).map_or(FIRST_DRIFT_SIGMA, |error| error.drift_sigma);
            let faster = rate(host) - found.drifts.offsets[*host];
            (faster, libm::hypot(sigma, errors[*host].drift_sigma))
        }));
        for host in members {
            clocks[host].offset_ns = found.offsets.offsets[host] + offset;
            clocks[host].drift = found.drifts.offsets[host] + drift;
        }
    }

    /// Learns how much more, or less, the edges differ than their lines say; returns the factors of offsets and drifts.
    fn rescale(&mut self, found: &Found) -> (f64, f64) {
        let square = |scale: f64, before: Option<f64>| match (scale, before) {
            (0.0, before) => before.unwrap_or(1.0), // no edge is redundant
            (scale, None) => scale.powi(2).clamp(1.0, MOST_LEARNT),
            (scale, Some(before)) => {
                before + SCALE_GAIN * (scale.powi(2).min(MOST_LEARNT * before) - before)
            }
        };
        let offsets = square(found.offsets.scale, self.scales.map(|scales| scales.0));
        let drifts = square(found.drifts.scale, self.scales.map(|scales| scales.1));
        self.scales = Some((offsets, drifts));
        let factor = |square: f64, now: f64| {
            let usual = square.sqrt().max(LEAST_SCALE);
            if now > UNUSUAL * usual {
                now
            } else {
                usual
            }
        };
        (
            factor(offsets, found.offsets.scale),
            factor(drifts, found.drifts.scale),
        )
    }

    /// Learns what edges differ by beside what their lines say.
    fn learn_lasting(&mut self, found: &Found) {
        let learn = |before: f64, now: Option<f64>| {
            let now = now.unwrap_or(before);
            f64::max(before + SCALE_GAIN * (now - before), 0.0)
        };
        let (offset, drift) = found.lasting();
        let before = self.lasting;
        self.lasting = (learn(before.0, offset), learn(before.1, drift));
        // Residuals that are now known to last are no longer more than what is said.
        let said = found.usually_said();
        if let Some((offsets, drifts)) = &mut self.scales {
            *offsets *= (said.0 + before.0) / (said.0 + self.lasting.0);
            *drifts *= (said.1 + before.1) / (said.1 + self.lasting.1);
        }
    }

    /// Combines measured and predicted clocks, weighted by their uncertainties.
    fn filter(&self, clocks: &mut [Clock], predicted: &[Clock], errors: &[Error], elapsed_s: f64) {
        for ((clock, predicted), error) in clocks.iter_mut().zip(predicted).zip(errors) {
            // Lines share all pairs but one window's: each says a part of what it seems to.
            let shared = (clock.windows + 1).min(WINDOWS) as f64;
            let found = Measured {
                offset_ns: clock.offset_ns,
                drift: clock.drift,
                offset_variance: shared * error.sigma_ns.powi(2),
                drift_variance: shared * error.drift_sigma.powi(2),
            };
            // Of what a host followed under another leader nobody knows how exact it is, but a jump away from it is a surprise.
            if predicted.windows > 0 {
                let off = (found.offset_ns - predicted.offset_ns).powi(2);
                let before = predicted.surprise.filter(|_| clock.windows > SETTLED);
                let mean = before.unwrap_or(off);
                clock.surprise = Some(mean + SURPRISE_GAIN * (off - mean));
            }
            // A host's first packets take longer than others: they are forgotten with the first lines.
            let known = predicted.known.filter(|_| clock.windows >= WINDOWS);
            match known {
                Some(known) => {
                    clock.learn_walk(&known, predicted.state(), &found, elapsed_s);
                    match known.with(predicted.state(), &found) {
                        Some((known, state)) => {
                            clock.set(state);
                            clock.known = Some(known);
                        }
                        None => clock.begin_anew(&found, self.wander),
                    }
                }
                None => clock.known = Some(Filter::new(&found, self.wander.per_s)),
            }
            clock.windows = clock.windows.saturating_add(1);
        }
    }

    fn tell(
        &self,
        clocks: &[Clock],
        found: &Found,
        errors: &[Error],
        reports: &[Report],
        at: Time<FleetTime>,
    ) -> Window {
        let elapsed_s = self.elapsed_s(at);
        let shortest_ns = shortest_ns(clocks.len(), reports);
        let error = |(host, clock): (usize, &Clock)| {
            let window = &errors[host];
            let known = clock.known.map(|known| known.error(elapsed_s));
            let known = known.unwrap_or_default();
            // Two errors make a surprise; lines share all pairs but one window's, so it shows only a part.
            let surprise_ns = clock
                .surprise
                .map(|square| (square * WINDOWS as f64 / 2.0).sqrt());
            // Of a host's first line one only knows that it lies between the clouds: its error is below the delay. A host
            // that followed a former leader has no surprise either, but its line is not the first.
            let least_ns = match clock.windows {
                1 => f64::max(FIRST_SIGMA_NS, shortest_ns[host] / 2.0),
                2..=SETTLED => FIRST_SIGMA_NS,
                _ => 0.0,
            };
            let surprise_ns = surprise_ns.unwrap_or(FIRST_SIGMA_NS);
            let sigma_ns = window.sigma_ns.max(surprise_ns).max(least_ns);
            let turned = match clock.windows {
                1 => FIRST_DRIFT_SIGMA,
                _ if self.is_young => YOUNG_DRIFT_SIGMA,
                _ => 0.0,
            };
            Error {
                sigma_ns: known.sigma_ns.max(sigma_ns),
                drift_sigma: known.drift_sigma.max(turned),
                ..known
            }
        };
        // What is no number is nothing to follow.
        let is_told = |published: &Correction| {
            let numbers = [
                published.drift,
                published.bend,
                published.error.sigma_ns,
                published.error.drift_sigma,
            ];
            numbers.iter().all(|number| number.is_finite())
        };
        let correction = |(host, clock): (usize, &Clock)| match found.lost[host] {
            Some(lost) => Err(lost),
            None => Some(clock.correction(at, error((host, clock))))
                .filter(is_told)
                .ok_or(Lost::Apart),
        };
        Window {
            corrections: clocks.iter().enumerate().map(correction).collect(),
            residuals_ns: found.offsets.residuals.clone(),
            trust: found.offsets.trust.clone(),
            edge_sigma_ns: found.edge_sigma_ns()
                * self.scales.map_or(1.0, |(square, _)| square.sqrt()),
        }
    }
}

/// The mesh gives only differences, so nothing measures what all clocks have in common: without this the fleet's rate would wander
/// off with the noise of its filters. The median clock does not bend against fleet time, and its rate becomes that of fleet
/// time: slowly, or by as much as the drifts are uncertain where these say less of it than that oscillators are alike.
fn rest(clocks: &mut [Clock], found: &Found) {
    let members: Vec<usize> = (0..clocks.len())
        .filter(|host| found.is_member(*host))
        .collect();
    let of_median =
        |value: fn(&Clock) -> f64| median(members.iter().map(|host| value(&clocks[*host])));
    let bend = of_median(|clock| clock.bend);
    let drift = of_median(|clock| clock.drift);
    let drift_sigma = of_median(Clock::drift_sigma);
    let says_little = drift / (1.0 + (TYPICAL_DRIFT / drift_sigma).powi(2));
    let drift = LEAK * drift + says_little.max(-drift_sigma).min(drift_sigma);
    for host in members {
        clocks[host].bend -= bend;
        clocks[host].drift -= drift;
    }
}

/// By host: the shortest delay of its edges, ns; 0 without edges.
fn shortest_ns(hosts: usize, reports: &[Report]) -> Vec<f64> {
    let mut shortest = vec![f64::INFINITY; hosts];
    for report in reports {
        for host in [report.near, report.far] {
            shortest[host] = f64::min(shortest[host], report.line.delay_ns.max(0.0));
        }
    }
    let known = |ns: f64| if ns.is_finite() { ns } else { 0.0 };
    shortest.into_iter().map(known).collect()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    let middle = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// The median of values with these standard deviations. The more exact half counts alike, and no value counts less than a quarter of
/// that: few values that claim to be exact are not the median of all.
fn weighted_median(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut values: Vec<(f64, f64)> = values.collect();
    let exact = -median(values.iter().map(|(_, sigma)| -sigma));
    let weight = |sigma: f64| {
        if sigma > exact {
            (exact / sigma).powi(2).max(LEAST_SAY)
        } else {
            1.0
        }
    };
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = values.iter().map(|(_, sigma)| weight(*sigma)).sum();
    let mut below = 0.0;
    let is_middle = |(_, sigma): &&(f64, f64)| {
        below += weight(*sigma);
        below > all / 2.0
    };
    values
        .iter()
        .find(is_middle)
        .map_or(0.0, |(value, _)| *value)
}

#[cfg(test)]
mod tests;
