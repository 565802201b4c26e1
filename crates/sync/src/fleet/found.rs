// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The result of a window's reports: all edges reconciled, the excluded hosts, the uncertainty of each host.

mod confirmed;
mod cuts;
mod joining;

use std::cmp::Reverse;

use onramp_units::{Fleet as FleetTime, Time};

use super::{median, Clock, Lost, Report, MOST_LEARNT};
use crate::{
    correction::Error,
    mesh::{self, Agreement, Edge},
    probe::Near,
};

/// A host is excluded if more than this fraction of its edges has little weight.
const CONTRADICTORY: f64 = 0.5;
const LITTLE_TRUST: f64 = 0.1;
/// Error from rounding of stamps and corrections to whole ns.
const WHOLE_NS: f64 = 1.0;
/// The same of a drift, over a line of some seconds.
const WHOLE_DRIFT: f64 = 1e-10;
/// No edge is believed to be more exact than this part of what a quarter of all edges claim: a host that claims to be exact must
/// not outvote the others.
const MOST_EXACT: f64 = 0.5;
/// The residuals of all edges count as so many residuals of a host itself, of which it has few,
const POOLED: f64 = 4.0;
/// unless its own are larger by more than this.
const MODERATE: f64 = 1.5;
/// A path's directions differ by so much that an offset is wrong by its delay at most: so many standard deviations.
const BOUND: f64 = 3.0;
/// 0.27 % of normal errors lie beyond three standard deviations. What lasts is the same in all windows, so whoever is beyond stays
/// there: with so much more variance 0.04 % do.
const LASTS: f64 = 1.4;
/// Rounds in which the uncertainty of a host's neighbours is added to that of its edges.
const ROUNDS: usize = 4;

/// Agreement of all edges on offsets and drifts.
pub(super) struct Found {
    pub offsets: Agreement,
    pub drifts: Agreement,
    /// By report: what its line says of its offset and of its drift, as variances.
    said: Vec<(f64, f64)>,
    /// The variances of both that edges were taken to have beside that.
    lasting: (f64, f64),
    /// By host: the reason of its exclusion, if it is excluded.
    pub lost: Vec<Option<Lost>>,
    /// By host: its uncertainty, if its neighbours alone placed it.
    pub placed: Vec<Option<Error>>,
}

impl Found {
    /// Evaluates the reports relative to the predicted clocks at `at`. `lasting`: variances of offsets and of drifts that all
    /// edges have beside those of their lines.
    pub fn by(
        hosts: usize,
        reports: &[Report],
        clocks: &[Clock],
        at: Time<FleetTime>,
        lasting: (f64, f64),
    ) -> Found {
        let said = said(reports, clocks, at);
        let weights = weights(&said, lasting);
        let both = reports.iter().zip(&weights);
        let edges: Vec<Edge> = both.map(|(r, w)| edge(r, w.0, clocks, at)).collect();
        let joins = joining::who(&edges, clocks);
        let is_old = |edge: &Edge| !joins[edge.near] && !joins[edge.far];
        let old: Vec<usize> = (0..edges.len()).filter(|n| is_old(&edges[*n])).collect();
        let of_old = |n: &usize| (edges[*n], reports[*n]);
        let (old_edges, old_reports): (Vec<Edge>, Vec<Report>) = old.iter().map(of_old).unzip();
        let drift_weights: Vec<f64> = old.iter().map(|n| weights[*n].1).collect();
        let mut found = Found::among(hosts, &old_reports, old_edges, &drift_weights, clocks);
        (found.said, found.lasting) = (said, lasting);
        let is_old: Vec<bool> = edges.iter().map(is_old).collect();
        for agreement in [&mut found.offsets, &mut found.drifts] {
            agreement.trust = by_edge(&agreement.trust, &is_old);
            agreement.residuals = by_edge(&agreement.residuals, &is_old);
        }
        joining::place(&mut found, &joins, &edges, reports, clocks, at);
        found
    }

    /// All hosts that these reports connect.
    fn among(
        hosts: usize,
        reports: &[Report],
        edges: Vec<Edge>,
        drift_weights: &[f64],
        clocks: &[Clock],
    ) -> Found {
        let all = mesh::agree(hosts, &edges);
        let liars = contradictory(hosts, &edges, &all.trust);
        let believed = |report: &Report| !liars[report.near] && !liars[report.far];
        let mut offset_edges = edges;
        for (edge, report) in offset_edges.iter_mut().zip(reports) {
            edge.weight *= f64::from(u8::from(believed(report)));
        }
        let offsets = mesh::agree(hosts, &offset_edges);
        let drift_edges: Vec<Edge> = offset_edges
            .iter()
            .zip(reports)
            .zip(offsets.trust.iter().zip(drift_weights))
            .map(|((edge, report), (trust, weight))| Edge {
                ahead: faster(report, clocks),
                weight: if edge.weight > 0.0 {
                    weight * trust
                } else {
                    0.0
                },
                ..*edge
            })
            .collect();
        let drifts = mesh::agree(hosts, &drift_edges);
        let mut spoken_of = vec![false; hosts];
        let trusted = offset_edges.iter().zip(&offsets.trust);
        for (edge, _) in trusted.filter(|(_, trust)| **trust > 0.0) {
            spoken_of[edge.near] = true;
            spoken_of[edge.far] = true;
        }
        let is_known = |host: &usize| clocks[*host].windows > 0;
        let known = (0..hosts).filter(is_known).filter(|host| spoken_of[*host]);
        // Whose clocks are known may all be excluded: then nobody goes on.
        let goes_on = known.clone().next().is_some() || !(0..hosts).any(|host| is_known(&host));
        let fleet = goes_on.then(|| component_of_most(&offsets.components, known));
        let lost = |host: usize| match liars[host] {
            true => Some(Lost::Contradictory),
            false if spoken_of[host] && Some(offsets.components[host]) == fleet => None,
            false => Some(Lost::Apart),
        };
        Found {
            lost: (0..hosts).map(lost).collect(),
            placed: vec![None; hosts],
            said: vec![],
            lasting: (0.0, 0.0),
            offsets,
            drifts,
        }
    }

    /// Whether it is in the connected component that continues as the fleet.
    pub fn is_member(&self, host: usize) -> bool {
        self.lost[host].is_none()
    }

    /// Uncertainty of each host. `scales`: standard deviations of edges in units of what their lines say, of offsets and of
    /// drifts.
    pub fn errors(&self, hosts: usize, reports: &[Report], scales: (f64, f64)) -> Vec<Error> {
        let said = |of: fn(&(f64, f64)) -> f64| self.said.iter().map(of).collect::<Vec<f64>>();
        let (offsets, drifts) = (said(|said| said.0), said(|said| said.1));
        let unequal = |report: &Report| (report.line.delay_ns.max(0.0) / BOUND).powi(2);
        let offsets = Variances {
            said: &offsets,
            lasting: self.lasting.0,
            most: reports.iter().map(unequal).collect(),
        };
        let drifts = Variances {
            said: &drifts,
            lasting: self.lasting.1,
            most: vec![f64::INFINITY; reports.len()],
        };
        let offsets = uncertainties(hosts, reports, offsets, &self.offsets, scales.0);
        let drifts = uncertainties(hosts, reports, drifts, &self.drifts, scales.1);
        let error = |host: usize| {
            self.placed[host].unwrap_or(Error {
                sigma_ns: libm::hypot(offsets[host], WHOLE_NS),
                drift_sigma: drifts[host],
                wander_per_s: 0.0,
            })
        };
        (0..hosts).map(error).collect()
    }

    /// The variances that all edges seem to have beside those of their lines, of offsets and of drifts, from the residuals of this
    /// window alone; none without redundant edges.
    pub fn lasting(&self) -> (Option<f64>, Option<f64>) {
        let (offsets, drifts) = (|said: &(f64, f64)| said.0, |said: &(f64, f64)| said.1);
        (
            excess(&self.offsets, self.said.iter().map(offsets), self.lasting.0),
            excess(&self.drifts, self.said.iter().map(drifts), self.lasting.1),
        )
    }

    /// Standard deviation of a typical edge, ns.
    pub fn edge_sigma_ns(&self) -> f64 {
        (self.usually_said().0 + self.lasting.0).sqrt()
    }

    /// The variances that a typical line says, of its offset and of its drift.
    pub fn usually_said(&self) -> (f64, f64) {
        let said = self.said.iter().filter(|said| said.0.is_finite());
        let middle =
            |of: fn(&(f64, f64)) -> f64| median(said.clone().map(of)).max(f64::MIN_POSITIVE);
        (middle(|said| said.0), middle(|said| said.1))
    }
}

/// The variances of edges: those that their lines claim, and the one that all have beside that.
struct Variances<'a> {
    said: &'a [f64],
    lasting: f64,
    /// By edge: what lasts cannot be more, however few residuals show it.
    most: Vec<f64>,
}

/// What the edges say of one host that are trusted.
#[derive(Debug, Clone, Copy, Default)]
struct Own {
    trust: f64,
    /// Sums of the squares of their residuals, of the variances that were learnt, and of those that their lines say, in units of
    /// those that they may have.
    squares: f64,
    learnt: f64,
    said: f64,
    /// The most that can last of one, as a variance.
    most: f64,
}

/// By host: standard deviation of what the edges agree on.
fn uncertainties(
    hosts: usize,
    reports: &[Report],
    edges: Variances,
    agreed: &Agreement,
    scale: f64,
) -> Vec<f64> {
    let few = few(agreed.free).powi(2);
    let lasting = edges.lasting;
    let unsure = |most: &f64| (LASTS * few * lasting).min(*most).max(lasting);
    let each = edges.said.iter().zip(&edges.most).zip(&agreed.trust);
    let weights = each.map(|((said, most), trust)| trust / (said + unsure(most)));
    let weights: Vec<f64> = weights.collect();
    let mut own = vec![Own::default(); hosts];
    let each = reports.iter().zip(&weights).enumerate();
    for (edge, (report, weight)) in each.filter(|(_, (_, weight))| **weight > 0.0) {
        for host in [report.near, report.far] {
            let own = &mut own[host];
            own.trust += agreed.trust[edge];
            own.squares += weight * agreed.residuals[edge].powi(2);
            own.learnt += weight * (edges.said[edge] + lasting);
            own.said += weight * edges.said[edge];
            own.most = own.most.max(edges.most[edge]);
        }
    }
    let fixed = fixed(hosts, reports, &weights).into_iter().zip(own);
    fixed
        .map(|(variance, own)| own.sigma(variance, scale, few))
        .collect()
}

/// By host: the variance that is left by edges of these weights, 1 / variance. The edges of a host fix it as well as they are, and as
/// well as the hosts at their other ends are fixed.
fn fixed(hosts: usize, reports: &[Report], weights: &[f64]) -> Vec<f64> {
    let mut variances = vec![0.0; hosts];
    for _ in 0..ROUNDS {
        let mut fixed = vec![0.0; hosts];
        for (report, weight) in reports.iter().zip(weights).filter(|(_, w)| **w > 0.0) {
            for (host, other) in [(report.near, report.far), (report.far, report.near)] {
                fixed[host] += 1.0 / (1.0 / weight + variances[other]);
            }
        }
        variances = fixed.into_iter().map(|fixed| 1.0 / fixed).collect();
    }
    let least = cuts::least_variances(hosts, reports, weights);
    variances
        .into_iter()
        .zip(least)
        .map(|(v, least)| v.max(least))
        .collect()
}

impl Own {
    /// Standard deviation of a host that its edges leave this variance. `scale`: standard deviations of all edges in units of what
    /// was learnt; `few`: what is learnt from few residuals may be larger by this.
    fn sigma(&self, variance: f64, scale: f64, few: f64) -> f64 {
        let trust = self.trust.max(f64::MIN_POSITIVE);
        // Residuals are smaller than errors by what the host's own offset took of them.
        let free = f64::max(self.trust - 1.0, 0.5);
        let common = scale * scale * self.learnt / trust;
        let pooled = (POOLED * common + self.squares) / (POOLED + free);
        let own = self.squares / free / (MODERATE * MODERATE);
        let beyond = f64::max(pooled, own) - 1.0;
        // Small residuals show that lines are better than they say, not that what lasts is less.
        let beyond = beyond.max(beyond * self.said / trust);
        let unknown = f64::min((few - 1.0) * beyond.max(0.0) * variance, self.most);
        f64::sqrt((1.0 + beyond) * variance + unknown)
    }
}

/// What edges differ by beyond what their lines say is lasting: paths that are longer in one direction. It is known from so many
/// residuals only, and by this factor three standard deviations of Student's t distribution are more than those of the normal one:
/// the first terms of its expansion (Abramowitz and Stegun, 26.7.5).
fn few(free: f64) -> f64 {
    let free = free.max(1.0);
    1.0 + 2.5 / free + 5.75 / free.powi(2)
}

/// By how much the variance of residuals exceeds what lines claim: the mean over the edges that the agreement trusts, so that a host
/// that lies does not make its lies usual. `before`: what it was taken for.
fn excess(agreed: &Agreement, said: impl Iterator<Item = f64>, before: f64) -> Option<f64> {
    let trusted: f64 = agreed.trust.iter().sum();
    // Of E residuals only E - V + C are free.
    let free = agreed.free / trusted;
    let each = agreed.residuals.iter().zip(&agreed.trust).zip(said);
    let (mut sum, mut weights) = (0.0, 0.0);
    for ((residual, trust), said) in each.filter(|(_, said)| said.is_finite()) {
        let weight = trust * (said + before).powi(-2);
        sum += weight * (residual.powi(2) / free - said).min(MOST_LEARNT * (said + before));
        weights += weight;
    }
    (agreed.free >= 0.5 && weights > 0.0).then(|| sum / weights)
}

/// By report: what its line says of its offset at fleet time `at` and of its drift, as variances. They are infinite if packets would
/// arrive before they leave.
fn said(reports: &[Report], clocks: &[Clock], at: Time<FleetTime>) -> Vec<(f64, f64)> {
    let sigmas = |report: &Report| {
        let reads = Time::<Near>::from_ticks(clocks[report.near].reads(at).0);
        let line = &report.line;
        (line.sigma_at(reads), line.drift_sigma)
    };
    let sigmas: Vec<(f64, f64)> = reports.iter().map(sigmas).collect();
    let exact = |of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = sigmas.iter().map(of).collect();
        let quarter = all.len() / 4;
        let is_some = !all.is_empty();
        is_some.then(|| MOST_EXACT * *all.select_nth_unstable_by(quarter, f64::total_cmp).1)
    };
    let least_ns = exact(|sigma| sigma.0).unwrap_or(0.0).max(WHOLE_NS);
    let least_drift = exact(|sigma| sigma.1).unwrap_or(0.0).max(WHOLE_DRIFT);
    let variances = |(report, (offset, drift)): (&Report, &(f64, f64))| {
        let is_line = report.line.delay_ns >= 0.0;
        let square = |sigma: f64| {
            if is_line {
                sigma.powi(2)
            } else {
                f64::INFINITY
            }
        };
        (square(offset.max(least_ns)), square(drift.max(least_drift)))
    };
    reports.iter().zip(&sigmas).map(variances).collect()
}

/// By report: the weights of its offset and its drift, 1 / variance.
fn weights(said: &[(f64, f64)], lasting: (f64, f64)) -> Vec<(f64, f64)> {
    let weight = |(offset, drift): &(f64, f64)| {
        let offset = (offset + lasting.0).recip();
        (offset, (drift + lasting.1).recip())
    };
    said.iter().map(weight).collect()
}

/// A report as an edge between the hosts' small offsets at fleet time `at`.
fn edge(report: &Report, weight: f64, clocks: &[Clock], at: Time<FleetTime>) -> Edge {
    let (near, far) = (&clocks[report.near], &clocks[report.far]);
    let ((reads, near_base), (_, far_base)) = (near.reads(at), far.reads(at));
    let between = far_base.saturating_sub(near_base);
    let about = report.line.about_ns.saturating_sub(between) as f64;
    Edge {
        near: report.near,
        far: report.far,
        ahead: about + report.line.ahead_at(Time::<Near>::from_ticks(reads)),
        weight,
    }
}

/// What the far clock gains on the near one, ns a ns of fleet time.
fn faster(report: &Report, clocks: &[Clock]) -> f64 {
    report.line.drift * (1.0 + clocks[report.near].state().drift)
}

/// The connected component that has most of these hosts; the largest one if several have.
fn component_of_most(components: &[usize], hosts: impl Iterator<Item = usize>) -> usize {
    let mut counts = vec![0usize; components.len().max(1)];
    hosts.for_each(|host| counts[components[host]] += 1);
    let largest =
        (0..counts.len()).max_by_key(|component| (counts[*component], Reverse(*component)));
    largest.unwrap_or(0)
}

/// `values` of the edges that count, and 0 of those that do not.
pub(super) fn by_edge(values: &[f64], counts: &[bool]) -> Vec<f64> {
    let mut values = values.iter().copied();
    let value = |counts: &bool| if *counts { values.next() } else { None };
    counts
        .iter()
        .map(value)
        .map(Option::unwrap_or_default)
        .collect()
}

/// Hosts most of whose edges are excluded.
fn contradictory(hosts: usize, edges: &[Edge], trust: &[f64]) -> Vec<bool> {
    let mut counts = vec![(0.0, 0.0); hosts];
    for (edge, trust) in edges.iter().zip(trust) {
        let is_lost = edge.weight > 0.0 && *trust < LITTLE_TRUST;
        for host in [edge.near, edge.far] {
            counts[host].0 += f64::from(u8::from(is_lost));
            counts[host].1 += 1.0;
        }
    }
    counts
        .into_iter()
        .map(|(lost, all)| lost > CONTRADICTORY * all)
        .collect()
}
