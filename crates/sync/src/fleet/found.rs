//! The result of a window's reports: all edges reconciled, the excluded hosts, the uncertainty of each host.

mod joining;

use onramp_units::{Fleet as FleetTime, Time};

use super::{Clock, Lost, Report};
use crate::{
    correction::Error,
    line::Line,
    mesh::{self, Agreement, Edge},
    probe::Near,
};

/// A host is excluded if more than this fraction of its edges has little weight.
const CONTRADICTORY: f64 = 0.5;
const LITTLE_TRUST: f64 = 0.1;
/// Error from rounding of stamps and corrections to whole ns.
const WHOLE_NS: f64 = 1.0;
/// Number of points beyond which the weight of a line does not grow.
const ENOUGH_POINTS: usize = 50;

/// Weight of a line. It is 0 if packets would arrive before they leave.
fn say(line: &Line) -> f64 {
    if line.delay_ns < 0.0 {
        return 0.0;
    }
    line.points.min(ENOUGH_POINTS) as f64 / ENOUGH_POINTS as f64
}

/// Agreement of all edges on offsets and drifts.
pub(super) struct Found {
    pub offsets: Agreement,
    pub drifts: Agreement,
    /// By host: the reason of its exclusion, if it is excluded.
    pub lost: Vec<Option<Lost>>,
    /// By host: its uncertainty, if its neighbours alone placed it.
    pub placed: Vec<Option<Error>>,
}

impl Found {
    /// Evaluates the reports relative to the predicted clocks at `at`.
    pub fn by(hosts: usize, reports: &[Report], clocks: &[Clock], at: Time<FleetTime>) -> Found {
        let edges: Vec<Edge> = reports.iter().map(|r| edge(r, clocks, at)).collect();
        let joins = joining::who(&edges, clocks);
        let is_old = |edge: &Edge| !joins[edge.near] && !joins[edge.far];
        let both = edges.iter().copied().zip(reports.iter().copied());
        let (old_edges, old_reports): (Vec<Edge>, Vec<Report>) =
            both.filter(|(edge, _)| is_old(edge)).unzip();
        let mut found = Found::among(hosts, &old_reports, old_edges, clocks);
        let is_old: Vec<bool> = edges.iter().map(is_old).collect();
        found.offsets.trust = by_edge(&found.offsets.trust, &is_old);
        found.offsets.residuals = by_edge(&found.offsets.residuals, &is_old);
        joining::place(&mut found, &joins, &edges, reports, clocks, at);
        found
    }

    /// All hosts that these reports connect.
    fn among(hosts: usize, reports: &[Report], edges: Vec<Edge>, clocks: &[Clock]) -> Found {
        let all = mesh::agree(hosts, &edges);
        let liars = contradictory(hosts, reports, &all.trust);
        let believed = |report: &Report| !liars[report.near] && !liars[report.far];
        let mut offset_edges = edges;
        for (edge, report) in offset_edges.iter_mut().zip(reports) {
            edge.weight *= f64::from(u8::from(believed(report)));
        }
        let offsets = mesh::agree(hosts, &offset_edges);
        let drift_edges: Vec<Edge> = offset_edges
            .iter()
            .zip(reports)
            .zip(&offsets.trust)
            .map(|((edge, report), trust)| Edge {
                ahead: faster(report, clocks),
                weight: edge.weight * trust,
                ..*edge
            })
            .collect();
        let drifts = mesh::agree(hosts, &drift_edges);
        let mut spoken_of = vec![false; hosts];
        for edge in offset_edges.iter().filter(|edge| edge.weight > 0.0) {
            spoken_of[edge.near] = true;
            spoken_of[edge.far] = true;
        }
        let lost = |host: usize| match (liars[host], offsets.components[host]) {
            (true, _) => Some(Lost::Contradictory),
            (false, 0) if spoken_of[host] => None,
            _ => Some(Lost::Apart),
        };
        Found {
            lost: (0..hosts).map(lost).collect(),
            placed: vec![None; hosts],
            offsets,
            drifts,
        }
    }

    /// Whether it is in the connected component that continues as the fleet.
    pub fn is_member(&self, host: usize) -> bool {
        self.lost[host].is_none()
    }

    /// Uncertainty of each host: the error of an edge, divided by the square root of the host's number of edges.
    pub fn errors(&self, hosts: usize, reports: &[Report]) -> Vec<Error> {
        let mut say = vec![0.0; hosts];
        let mut squares = vec![0.0; hosts];
        let each = reports
            .iter()
            .zip(&self.offsets.trust)
            .zip(&self.offsets.residuals);
        for ((report, trust), residual) in each {
            for host in [report.near, report.far] {
                say[host] += trust;
                squares[host] += trust * residual * residual;
            }
        }
        let error = |host: usize| {
            if let Some(error) = self.placed[host] {
                return error;
            }
            let say = f64::max(say[host], 1e-9);
            // Residuals are smaller than errors by what the host's own offset took of them.
            let own = (squares[host] / f64::max(say - 1.0, 0.5)).sqrt();
            let edge = f64::max(self.offsets.sigma, own);
            // A standard deviation from so few residuals is itself uncertain: say rather too much.
            let unsure = 1.0 + 1.0 / (2.0 * say).sqrt();
            Error {
                sigma_ns: (unsure * edge / say.sqrt()).hypot(WHOLE_NS),
                drift_sigma: unsure * self.drifts.sigma / say.sqrt(),
                wander_per_s: 0.0,
            }
        };
        (0..hosts).map(error).collect()
    }
}

/// A report as an edge between the hosts' small offsets at fleet time `at`.
fn edge(report: &Report, clocks: &[Clock], at: Time<FleetTime>) -> Edge {
    let (near, far) = (&clocks[report.near], &clocks[report.far]);
    let ((reads, near_base), (_, far_base)) = (near.reads(at), far.reads(at));
    let between = far_base.saturating_sub(near_base);
    let about = report.line.about_ns.saturating_sub(between) as f64;
    Edge {
        near: report.near,
        far: report.far,
        ahead: about + report.line.ahead_at(Time::<Near>::from_ticks(reads)),
        weight: say(&report.line),
    }
}

/// What the far clock gains on the near one, ns a ns of fleet time.
fn faster(report: &Report, clocks: &[Clock]) -> f64 {
    report.line.drift * (1.0 + clocks[report.near].state().drift)
}

/// `values` of the edges that count, and 0 of those that do not.
fn by_edge(values: &[f64], counts: &[bool]) -> Vec<f64> {
    let mut values = values.iter().copied();
    let value = |counts: &bool| if *counts { values.next() } else { None };
    counts
        .iter()
        .map(value)
        .map(Option::unwrap_or_default)
        .collect()
}

/// Hosts most of whose edges are excluded.
fn contradictory(hosts: usize, reports: &[Report], trust: &[f64]) -> Vec<bool> {
    let mut edges = vec![(0.0, 0.0); hosts];
    for (report, trust) in reports.iter().zip(trust) {
        for host in [report.near, report.far] {
            edges[host].0 += f64::from(u8::from(*trust < LITTLE_TRUST));
            edges[host].1 += 1.0;
        }
    }
    edges
        .into_iter()
        .map(|(lost, all)| lost > CONTRADICTORY * all)
        .collect()
}
