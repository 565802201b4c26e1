// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The central step: reports in, verdicts out. Keeps nothing that it could not learn again in two
//! windows. No sockets, no clocks.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
};

use onramp_sync::{
    correction::Correction,
    fleet::{Fleet, Lost, Report, Wander, Window},
};
use onramp_units::Span;

use crate::{
    members::Members,
    status::OneWayDelays,
    window::WINDOW_NS,
    wire::{self, Delays, EdgeReport, State, Verdict, MOST_NEIGHBOURS},
};

/// Windows over which a delay is the minimum: a path that has become longer is believed after half a
/// minute.
const MEMORY: u64 = 16;
/// Largest plausible drift, and largest plausible change of a drift in a second.
pub(crate) const STEEPEST: f64 = 1e-3;
const MOST_BENT: f64 = 1e-6;
/// Hosts are taken to follow a verdict for so long at most, whatever the lease: as long as a follower says so.
const MOST_FOLLOWED: Span = Span::from_s(60);
/// A delay that is negative by more standard deviations of an edge's error shows that a clock was wrong.
const PLAUSIBLE_SIGMAS: f64 = 4.0;

/// An edge by the numbers of its ends.
type Ends = (usize, usize);

/// The shortest delays of an edge in a window.
struct Shortest {
    window: u64,
    out_ns: i64,
    back_ns: i64,
}

/// The coordinator of a fleet.
pub struct Coordinator {
    members: Members,
    fleet: Fleet,
    /// No step has told anybody a fleet time.
    is_new: bool,
    /// What was reported since the last step.
    reports: BTreeMap<Ends, EdgeReport>,
    /// The epochs of the members' clocks, as far as they have reported.
    epochs: BTreeMap<SocketAddr, u32>,
    /// Number of steps so far.
    windows: u64,
    /// The shortest delays of each edge in of the last windows.
    shortest: BTreeMap<Ends, VecDeque<Shortest>>,
    /// One-way delays after the last step.
    ways: BTreeMap<Ends, Delays>,
}

impl Coordinator {
    /// The coordinator of a fleet of which nothing is known.
    pub fn new(members: Members) -> Coordinator {
        let mut fleet = Fleet::new(Wander::default());
        fleet.suspect(members.all().len());
        Coordinator {
            members,
            fleet,
            is_new: true,
            reports: BTreeMap::new(),
            epochs: BTreeMap::new(),
            windows: 0,
            shortest: BTreeMap::new(),
            ways: BTreeMap::new(),
        }
    }

    /// The same coordinator, whose members follow a verdict for `lease` at most.
    pub fn leasing(self, lease: Span) -> Coordinator {
        // A verdict may be taken two windows late.
        let followed = Span::from_ns(lease.as_ns().saturating_add(2 * WINDOW_NS));
        let mut fleet = self.fleet.followed_for(followed.min(MOST_FOLLOWED));
        fleet.suspect(self.members.all().len());
        Coordinator { fleet, ..self }
    }

    /// Members have come or gone; what is known of those that stay is kept.
    pub fn renumber(&mut self, members: Members) {
        let old = |member: &SocketAddr| self.members.number(*member);
        let old: Vec<Option<usize>> = members.all().iter().map(old).collect();
        self.fleet.renumber(&old);
        let mut new = vec![None; self.members.all().len()];
        for (number, host) in old.iter().enumerate() {
            if let Some(host) = host {
                new[*host] = Some(number);
            }
        }
        renumber(&mut self.reports, &new);
        renumber(&mut self.shortest, &new);
        renumber(&mut self.ways, &new);
        self.epochs
            .retain(|host, _| members.number(*host).is_some());
        self.members = members;
    }

    /// Takes in what a member says. A repeated report replaces itself; edges to strangers, and edges
    /// that this member should not speak of as it is itself their end, say nothing.
    /// Before the first step, what members follow is where fleet time goes on.
    pub fn take(&mut self, near: SocketAddr, report: &wire::Report) {
        let address = near;
        let Some(near) = self.members.number(near) else {
            return;
        };
        let before = self.epochs.insert(address, report.epoch);
        if before.is_some_and(|before| before != report.epoch) {
            // What is known of it is of its former clock.
            self.fleet.forget(near);
            self.reports.retain(|(end, _), _| *end != near);
        }
        match &report.follows {
            Some(follows) if self.is_new && is_possible(follows) => {
                self.fleet.recall(near, follows)
            }
            None if self.is_new => self.fleet.acquit(near),
            _ => {}
        }
        for edge in &report.edges {
            match self.members.number(edge.far) {
                Some(far) if far != near && plausible(edge) => {
                    self.reports.insert((near, far), *edge);
                }
                _ => {}
            }
        }
    }

    /// So much time has passed since the last step.
    pub fn pass(&mut self, time: Span) {
        self.fleet.pass(time);
    }

    /// Ends the window; what to tell whom, but for the leader's wall clock and the reports that are answered. Members of whom nobody spoke are told nothing.
    pub fn step(&mut self) -> Vec<(SocketAddr, Verdict)> {
        let mut taken = std::mem::take(&mut self.reports);
        let epoch = |far: &SocketAddr| self.epochs.get(far).copied();
        taken.retain(|_, edge| epoch(&edge.far).is_none_or(|epoch| epoch == edge.far_epoch));
        if taken.is_empty() {
            return vec![];
        }
        let report = |((near, far), edge): (&Ends, &EdgeReport)| Report {
            near: *near,
            far: *far,
            line: edge.line,
        };
        let reports: Vec<Report> = taken.iter().map(report).collect();
        let hosts = self.members.all().len();
        let window = self.fleet.window(hosts, &reports);
        self.is_new &= window.corrections.iter().all(Result::is_err);
        self.measure(&taken, &window);
        let mut spoken_of = vec![false; hosts];
        for report in &reports {
            spoken_of[report.near] = true;
            spoken_of[report.far] = true;
        }
        let delays = self.delays_by_host();
        let each = delays.into_iter().zip(&window.corrections).zip(spoken_of);
        each.enumerate()
            .filter(|(_, (_, spoken_of))| *spoken_of)
            .map(|(host, ((delays, found), _))| (self.members.all()[host], verdict(*found, delays)))
            .collect()
    }

    /// By host, its neighbours and the delays between it and them.
    fn delays_by_host(&self) -> Vec<Vec<(SocketAddr, Delays)>> {
        let name = |host: usize| self.members.all()[host];
        let mut delays_by_host = vec![vec![]; self.members.all().len()];
        for ((near, far), delays) in &self.ways {
            delays_by_host[*near].push((name(*far), *delays));
            delays_by_host[*far].push((name(*near), turned(delays)));
        }
        delays_by_host
    }

    /// One-way delays of all edges, both ways.
    pub fn ways(&self) -> Vec<OneWayDelays> {
        let name = |host: usize| self.members.all()[host];
        let both = |((near, far), delays): (&Ends, &Delays)| {
            [
                OneWayDelays {
                    from: name(*near),
                    to: name(*far),
                    min_ns: delays.out_min_ns,
                    now_ns: delays.out_now_ns,
                },
                OneWayDelays {
                    from: name(*far),
                    to: name(*near),
                    min_ns: delays.back_min_ns,
                    now_ns: delays.back_now_ns,
                },
            ]
        };
        let mut ways: Vec<OneWayDelays> = self.ways.iter().flat_map(both).collect();
        ways.sort_by_key(|way| (way.from, way.to));
        ways
    }

    /// Delays by the clocks that were agreed upon: what an edge's own line says of its offset is
    /// wrong by the edge's residual.
    fn measure(&mut self, taken: &BTreeMap<Ends, EdgeReport>, window: &Window) {
        self.windows += 1;
        let since = self.windows.saturating_sub(MEMORY);
        self.shortest.retain(|_, shortest| {
            shortest.retain(|past| past.window > since);
            !shortest.is_empty()
        });
        let least_ns = -(PLAUSIBLE_SIGMAS * window.edge_sigma_ns) as i64;
        self.ways.clear();
        for ((ends, edge), residual) in taken.iter().zip(&window.residuals_ns) {
            let wrong = residual.round() as i64;
            let out = |ns: i64| ns.saturating_add(wrong);
            let back = |ns: i64| ns.saturating_sub(wrong);
            let now = Shortest {
                window: self.windows,
                out_ns: out(edge.delays.out_min_ns),
                back_ns: back(edge.delays.back_min_ns),
            };
            let shortest = self.shortest.entry(*ends).or_default();
            if now.out_ns.min(now.back_ns) >= least_ns {
                shortest.push_back(now);
            }
            let (outs, backs) = (
                shortest.iter().map(|past| past.out_ns),
                shortest.iter().map(|past| past.back_ns),
            );
            let (Some(out_min_ns), Some(back_min_ns)) = (outs.min(), backs.min()) else {
                continue;
            };
            let delays = Delays {
                out_min_ns,
                back_min_ns,
                out_now_ns: out(edge.delays.out_now_ns),
                back_now_ns: back(edge.delays.back_now_ns),
            };
            self.ways.insert(*ends, delays);
        }
    }
}

fn verdict(found: Result<Correction, Lost>, mut delays: Vec<(SocketAddr, Delays)>) -> Verdict {
    delays.truncate(MOST_NEIGHBOURS);
    let state = match found {
        Ok(correction) => State::Synchronised(correction),
        Err(Lost::Apart) => State::Apart,
        Err(Lost::Contradictory) => State::Contradictory,
    };
    Verdict {
        answers: 0,
        state,
        wall: None,
        delays,
    }
}

/// Edges whose ends both stay keep what is known of them.
fn renumber<T>(edges: &mut BTreeMap<Ends, T>, new: &[Option<usize>]) {
    let renumbered = |((near, far), value)| Some(((new[near]?, new[far]?), value));
    *edges = std::mem::take(edges)
        .into_iter()
        .filter_map(renumbered)
        .collect();
}

/// As the other end has it.
fn turned(delays: &Delays) -> Delays {
    Delays {
        out_min_ns: delays.back_min_ns,
        back_min_ns: delays.out_min_ns,
        out_now_ns: delays.back_now_ns,
        back_now_ns: delays.out_now_ns,
    }
}

/// Whether a clock can be such: who lies must not make the numbers of others none.
pub(crate) fn is_possible(correction: &Correction) -> bool {
    correction.drift.abs() <= STEEPEST
        && correction.bend.abs() <= MOST_BENT
        && correction.offset_ns.unsigned_abs() < 1 << 62
        && correction.reference.ticks().unsigned_abs() < 1 << 62
}

/// Clocks differ by what they like, but not by the age of the universe, and a day is no delay.
fn plausible(edge: &EdgeReport) -> bool {
    const DAY_NS: f64 = 86_400e9;
    let line = &edge.line;
    line.points > 0
        && line.about_ns.unsigned_abs() < 1 << 62
        && line.at.ticks().unsigned_abs() < 1 << 62
        && line.ahead_ns.abs() < DAY_NS
        && line.delay_ns.abs() < DAY_NS
        && line.drift.abs() <= STEEPEST
        && (0.0..DAY_NS).contains(&line.sigma_ns)
        && (0.0..=1e-3).contains(&line.drift_sigma)
}

#[cfg(test)]
mod tests;
