// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The central step: computes all hosts' corrections from all time stamps of a window, and their errors.

use super::probes::{Four, ABSENT};
use super::Edge;
use crate::host::clock::Clocks;
use crate::host::config::Probing;
use crate::host::site::Site;
use onramp_sync::correction::Correction;
use onramp_sync::fleet::{Fleet, Report, Wander};
use onramp_sync::line::{self, Softness};
use onramp_sync::probe::{points, pure, Far, Near, Pair, Probe};
use onramp_sync::synthetic::FleetErrors;
use onramp_units::{Clock, Sim, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// The result of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockWindow {
    /// When it ended.
    pub end: Time<Sim>,
    /// Errors of the hosts with fleet time at the end of the window, when their corrections are oldest.
    pub errors: FleetErrors,
    /// Hosts without a correction after it.
    pub lost: usize,
    /// Pairs of probes and of answers with all time stamps, and the pure ones among them.
    pub pairs: usize,
    /// As above.
    pub pure: usize,
    /// Standard deviation of an edge's error, as estimated, ns.
    pub edge_sigma_ns: f64,
}

/// The coordinator, which corrects clocks.
pub(crate) struct Synchroniser {
    probing: Probing,
    edges: Arc<[Edge]>,
    hosts: Vec<u32>,
    fleet: Fleet,
    /// Time stamps of the windows to which a line is fitted, by edge, the last window last.
    stamps: VecDeque<Vec<Vec<Four>>>,
    /// When the window ends.
    pub end: Time<Sim>,
    pub windows: Vec<ClockWindow>,
}

impl Synchroniser {
    pub fn new(probing: Probing, edges: Arc<[Edge]>, hosts: Vec<u32>) -> Synchroniser {
        Synchroniser {
            edges,
            hosts,
            fleet: Fleet::new(Wander::default()),
            stamps: VecDeque::new(),
            end: Time::ZERO + probing.window,
            windows: Vec::new(),
            probing,
        }
    }

    /// Ends the window at all `sites`, with all events until then.
    pub fn synchronise(&mut self, sites: &mut [&mut Site]) {
        // The next window begins with complete pairs.
        let mut first = vec![0; self.edges.len()];
        for site in sites.iter() {
            let next = site.prober.iter().flat_map(|prober| prober.next());
            for (first, next) in first.iter_mut().zip(next) {
                *first = u64::max(*first, next.next_multiple_of(2));
            }
        }
        let mut stamps: Vec<Vec<Four>> = vec![Vec::new(); first.len()];
        for site in sites.iter_mut() {
            let Some(prober) = &mut site.prober else {
                continue;
            };
            let taken = prober.end_window(&first);
            for (all, some) in stamps.iter_mut().zip(taken) {
                merge(all, &some);
            }
        }
        let corrections = self.end_window(&sites[0].clocks, stamps);
        for site in sites.iter_mut() {
            for (host, correction) in &corrections {
                site.clocks.correct(*host, *correction);
            }
        }
    }

    /// Ends the window: measures the errors of `clocks`, and returns the corrections by host.
    fn end_window(
        &mut self,
        clocks: &Clocks,
        stamps: Vec<Vec<Four>>,
    ) -> Vec<(u32, Option<Correction>)> {
        let now = self.end;
        let errors = self.errors(clocks, now);
        self.stamps.push_back(stamps);
        if self.stamps.len() > line::WINDOWS {
            self.stamps.pop_front();
        }
        let (reports, pairs, pure) = self.reports();
        self.fleet.pass(self.probing.window);
        let found = self.fleet.window(self.hosts.len(), &reports);
        let corrected = self.hosts.iter().zip(&found.corrections);
        let corrections: Vec<(u32, Option<Correction>)> = corrected
            .map(|(&host, found)| {
                let steered = found.ok().map(|target| match clocks.correction(host) {
                    Some(old) => old.steer(&target, clocks.reads(host, now), self.probing.window),
                    None => target,
                });
                (host, steered)
            })
            .collect();
        self.windows.push(ClockWindow {
            end: now,
            errors,
            lost: corrections.iter().filter(|(_, c)| c.is_none()).count(),
            pairs,
            pure,
            edge_sigma_ns: found.edge_sigma_ns,
        });
        self.end += self.probing.window;
        corrections
    }

    /// Errors of the hosts with fleet time.
    fn errors(&self, clocks: &Clocks, now: Time<Sim>) -> FleetErrors {
        let known = |&host: &u32| {
            let (correction, reads) = (clocks.correction(host)?, clocks.reads(host, now));
            let fleet_ns = correction.fleet(reads).ticks();
            Some((fleet_ns, correction.sigma_at(reads)))
        };
        FleetErrors::of(&self.hosts.iter().filter_map(known).collect::<Vec<_>>())
    }

    /// The fitted line of each edge, with the number of its pairs and of the pure ones.
    fn reports(&self) -> (Vec<Report>, usize, usize) {
        let place = |host: u32| self.hosts.binary_search(&host).expect("hosts are sorted");
        let purity = self.probing.stamps.purity();
        let (mut reports, mut pairs, mut kept) = (vec![], 0, 0);
        for (number, edge) in self.edges.iter().enumerate() {
            let stamps = || self.stamps.iter().map(|window| &window[number]);
            let out: Vec<Pair<Near, Far>> = stamps().flat_map(|s| pairs_of(s, 0)).collect();
            let back: Vec<Pair<Far, Near>> = stamps().flat_map(|s| pairs_of(s, 2)).collect();
            pairs += out.len() + back.len();
            let (out, back) = (pure(out, purity), pure(back, purity));
            kept += out.len() + back.len();
            let line = line::fit(
                &points(&out),
                &points(&back),
                Softness::of(self.probing.stamps),
            );
            reports.extend(line.map(|line| Report {
                near: place(edge.near),
                far: place(edge.far),
                line,
            }));
        }
        (reports, pairs, kept)
    }
}

/// The pairs with all four stamps: stamp `from` (sent) and the next one (received).
fn pairs_of<From: Clock, To: Clock>(stamps: &[Four], from: usize) -> Vec<Pair<From, To>> {
    let probe = |four: &Four| {
        let (sent, received) = (four[from], four[from + 1]);
        (sent != ABSENT && received != ABSENT).then(|| Probe {
            sent: Time::from_ticks(sent),
            received: Time::from_ticks(received),
        })
    };
    let pair = |two: &[Four]| {
        Some(Pair {
            first: probe(&two[0])?,
            second: probe(&two[1])?,
        })
    };
    stamps.chunks_exact(2).filter_map(pair).collect()
}

/// Adds another domain's stamps of the same probes.
fn merge(all: &mut Vec<Four>, some: &[Four]) {
    all.resize(all.len().max(some.len()), [ABSENT; 4]);
    for (all, some) in all.iter_mut().zip(some) {
        for (all, some) in all.iter_mut().zip(some) {
            *all = i64::max(*all, *some);
        }
    }
}
