// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Hosts that join a fleet: their neighbours place them, and they move nobody.
//!
//! A newcomer's first lines span less than a window, so they are much less exact than those of the others, and the
//! common least squares takes them for outliers: it excludes the newcomer, or takes its offset from some of its edges
//! and its drift from none.

use onramp_units::{Fleet as FleetTime, Time};

use super::{component_of_most, faster, Found, WHOLE_DRIFT, WHOLE_NS};
use crate::{
    correction::Error,
    fleet::{median, Clock, Lost, Report, FIRST_DRIFT_SIGMA, FIRST_SIGMA_NS},
    line::WINDOWS,
    mesh::{self, Edge, MAD_TO_SIGMA},
    probe::Near,
};

/// A host whose edges differ by more standard deviations of an edge's error contradicts itself.
const CONTRADICTORY: f64 = 5.0;

/// By host: whether it joins. Nobody does if most hosts are new, as at the start of a fleet, or if some old hosts are
/// connected by new ones only.
pub(super) fn who(edges: &[Edge], clocks: &[Clock]) -> Vec<bool> {
    let hosts = clocks.len();
    let mut spoken_of: Vec<usize> = edges
        .iter()
        .flat_map(|edge| [edge.near, edge.far])
        .collect();
    spoken_of.sort_unstable();
    spoken_of.dedup();
    let is_new = |host: usize| clocks[host].windows < WINDOWS;
    let (new, old): (Vec<usize>, Vec<usize>) =
        spoken_of.into_iter().partition(|host| is_new(*host));
    let mut joins = vec![false; hosts];
    if new.is_empty() || new.len() >= old.len() {
        return joins;
    }
    let parts = |edges: &[Edge]| {
        let components = mesh::connected(hosts, edges);
        let mut parts: Vec<usize> = old.iter().map(|host| components[*host]).collect();
        parts.sort_unstable();
        parts.dedup();
        parts.len()
    };
    let is_old = |edge: &&Edge| !is_new(edge.near) && !is_new(edge.far);
    let old_edges: Vec<Edge> = edges.iter().filter(is_old).copied().collect();
    if parts(&old_edges) == parts(edges) {
        new.into_iter().for_each(|host| joins[host] = true);
    }
    joins
}

/// What an edge says of a host by the clock of its neighbour.
struct Claim {
    /// At the common instant, ns.
    offset_ns: f64,
    drift: f64,
    /// Time from the middle of the line to the common instant, ns.
    age_ns: f64,
    /// How exact its line says that both are.
    sigma_ns: f64,
    drift_sigma: f64,
}

/// Places the hosts that join, and those whose drift no edge of the least squares tells, by the median of their edges.
pub(super) fn place(
    found: &mut Found,
    joins: &[bool],
    edges: &[Edge],
    reports: &[Report],
    clocks: &[Clock],
    at: Time<FleetTime>,
) {
    let members = (0..clocks.len()).filter(|host| found.is_member(*host));
    let known = component_of_most(&found.drifts.components, members);
    let is_adrift = |host: usize| found.is_member(host) && found.drifts.components[host] != known;
    let mut open: Vec<usize> = (0..clocks.len())
        .filter(|host| joins[*host] || is_adrift(*host))
        .collect();
    if open.is_empty() {
        return;
    }
    open.iter()
        .for_each(|host| found.lost[*host] = Some(Lost::Apart));
    // Neighbours of those that are placed are next.
    loop {
        let claims = |host: &usize| (*host, claims(found, *host, edges, reports, clocks, at));
        let all: Vec<(usize, Vec<Claim>)> = open.iter().map(claims).collect();
        if all.iter().all(|(_, claims)| claims.is_empty()) {
            break;
        }
        for (host, claims) in all.iter().filter(|(_, claims)| !claims.is_empty()) {
            found.put(*host, claims, clocks[*host].windows);
        }
        open.retain(|host| found.lost[*host] == Some(Lost::Apart));
    }
    let offsets = &mut found.offsets;
    for (edge, residual) in edges.iter().zip(&mut offsets.residuals) {
        *residual = edge.ahead - (offsets.offsets[edge.far] - offsets.offsets[edge.near]);
    }
}

/// What the edges between a host and members say of it.
fn claims(
    found: &Found,
    host: usize,
    edges: &[Edge],
    reports: &[Report],
    clocks: &[Clock],
    at: Time<FleetTime>,
) -> Vec<Claim> {
    let claim = |(edge, report): (&Edge, &Report)| {
        let (sign, other) = match host {
            h if h == edge.far => (1.0, edge.near),
            h if h == edge.near => (-1.0, edge.far),
            _ => return None,
        };
        let reads = Time::<Near>::from_ticks(clocks[edge.near].reads(at).0);
        (edge.weight > 0.0 && found.is_member(other)).then(|| Claim {
            offset_ns: found.offsets.offsets[other] + sign * edge.ahead,
            drift: found.drifts.offsets[other] + sign * faster(report, clocks),
            age_ns: (reads - report.line.at).as_ns() as f64,
            sigma_ns: report.line.sigma_at(reads),
            drift_sigma: report.line.drift_sigma,
        })
    };
    edges.iter().zip(reports).filter_map(claim).collect()
}

impl Found {
    /// Makes a host of so many windows a member, unless its edges contradict each other.
    fn put(&mut self, host: usize, claims: &[Claim], windows: usize) {
        let drift = median(claims.iter().map(|claim| claim.drift));
        // As far as the common instant is from the lines, all agree on one drift.
        let then = |claim: &Claim| claim.offset_ns + (drift - claim.drift) * claim.age_ns;
        let offset_ns = median(claims.iter().map(then));
        let apart_ns = spread(claims.iter().map(|claim| then(claim) - offset_ns));
        let lines_ns = together(claims.iter().map(|claim| claim.sigma_ns));
        if apart_ns > CONTRADICTORY * self.edge_sigma_ns().max(lines_ns).max(FIRST_SIGMA_NS) {
            self.lost[host] = Some(Lost::Contradictory);
            return;
        }
        let apart = spread(claims.iter().map(|claim| claim.drift - drift));
        // The error of a line's drift falls with the power 1.5 of its length: half a window, then a window more.
        let first = FIRST_DRIFT_SIGMA / libm::pow(1.0 + 2.0 * windows as f64, 1.5);
        let count = claims.len() as f64;
        let sigma = |first: f64, apart: f64| libm::hypot(first / count, apart / count.sqrt());
        let drifts = together(claims.iter().map(|claim| claim.drift_sigma));
        self.offsets.offsets[host] = offset_ns;
        self.drifts.offsets[host] = drift;
        self.lost[host] = None;
        self.placed[host] = Some(Error {
            sigma_ns: [lines_ns, WHOLE_NS]
                .into_iter()
                .fold(sigma(FIRST_SIGMA_NS, apart_ns), libm::hypot),
            drift_sigma: libm::hypot(sigma(first, apart), drifts),
            wander_per_s: 0.0,
        });
    }
}

/// Standard deviation of the weighted mean of values with these.
fn together(sigmas: impl Iterator<Item = f64>) -> f64 {
    let fixed: f64 = sigmas.map(|sigma| sigma.max(WHOLE_DRIFT).powi(-2)).sum();
    fixed.sqrt().recip()
}

/// Standard deviation of values from their median, which a few outliers do not change.
fn spread(from_median: impl Iterator<Item = f64>) -> f64 {
    MAD_TO_SIGMA * median(from_median.map(f64::abs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fleet::{Fleet, Host, Wander, Window, WAITS},
        line::Line,
        synthetic::gaussian,
    };
    use onramp_units::Mono;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    /// Drift of a host, ppm. Hosts 0 to 2 are old.
    const PPM: [f64; 4] = [0.0, 7.0, 14.0, 30.0];
    const NEW: usize = 3;

    fn reads(host: usize, at_s: f64) -> i64 {
        (at_s * 1e9 * (1.0 + PPM[host] / 1e6)) as i64
    }

    /// A line whose middle is at `at_s`, with these errors of its offset and its drift.
    fn report(near: usize, far: usize, at_s: f64, off_ns: f64, drift: f64) -> Report {
        let ppm = PPM[far] - PPM[near];
        let line = Line {
            at: Time::from_ticks(reads(near, at_s)),
            about_ns: (at_s * 1e3 * ppm) as i64,
            ahead_ns: off_ns,
            drift: ppm / 1e6 + drift,
            delay_ns: 5_000.0,
            points: 40,
            sigma_ns: 100.0,
            drift_sigma: 2e-8,
        };
        Report { near, far, line }
    }

    /// The reports of the old hosts: lines of 6 s.
    fn old(at_s: f64, noise: &mut ChaCha8Rng) -> Vec<Report> {
        let pairs = (0..NEW).flat_map(|a| (0..NEW).map(move |b| (a, b)));
        let edge = |(a, b)| report(a, b, at_s, 100.0 * gaussian(noise), 2e-8 * gaussian(noise));
        pairs.filter(|(a, b)| a != b).map(edge).collect()
    }

    /// Difference of the newcomer's fleet time from host 0's at `at_s`, and its sigma, ns.
    fn off(window: &Window, at_s: f64) -> (f64, f64) {
        let own = |host: usize| Time::<Mono>::from_ticks(reads(host, at_s));
        let of = |host: usize| window.corrections[host].expect("a member");
        let fleet = |host: usize| of(host).fleet(own(host)).ticks();
        ((fleet(NEW) - fleet(0)) as f64, of(NEW).sigma_at(own(NEW)))
    }

    /// Lines of 0.7 s, whose drifts are 50 times less exact than those of the others; the common instant is 3 s ago.
    #[test]
    fn a_newcomer_is_right_within_its_sigma_and_moves_nobody() {
        let mut noise = ChaCha8Rng::seed_from_u64(1);
        for edges in [1, 2, 3, 4, 6].repeat(50) {
            let mut fleet = Fleet::new(Wander::default());
            for n in 1..5 {
                fleet.window(NEW, &old(2.0 * f64::from(n), &mut noise));
            }
            let others = old(10.0, &mut noise);
            let new = (0..edges).map(|n| {
                let (old, off_ns, drift) = (
                    n % NEW,
                    300.0 * gaussian(&mut noise),
                    1e-6 * gaussian(&mut noise),
                );
                let (near, far) = if n < NEW { (NEW, old) } else { (old, NEW) };
                report(near, far, 13.0, off_ns, drift)
            });
            let all: Vec<Report> = others.iter().copied().chain(new).collect();
            let without = fleet.clone().window(NEW, &others);
            // With one edge it has waited for a second one.
            fleet.hosts.push(Host {
                waited: if edges == 1 { WAITS } else { 0 },
                ..Host::default()
            });
            let window = fleet.window(NEW + 1, &all);
            // Only the common instant may be another one.
            for (old, same) in window.corrections.iter().zip(&without.corrections) {
                let (old, same) = (old.expect("a member"), same.expect("a member"));
                let own = old.reference;
                assert!(
                    (old.offset_at(own) - same.offset_at(own)).abs() < 300,
                    "{old:?} {same:?}"
                );
            }
            let (off_ns, sigma_ns) = off(&window, 13.3);
            assert!(
                off_ns.abs() < sigma_ns.min(3_000.0),
                "{edges}: {off_ns} ns, sigma {sigma_ns}"
            );
            assert!(sigma_ns < 20_000.0, "{edges}: sigma {sigma_ns} ns");
        }
    }

    /// In one window its lines' drifts are outliers, so no edge tells its drift.
    #[test]
    fn an_old_host_whose_drift_nobody_knows_goes_on() {
        let mut noise = ChaCha8Rng::seed_from_u64(2);
        for _ in 0..100 {
            let mut fleet = Fleet::new(Wander::default());
            let mut window = |at_s: f64, drift: f64| {
                let edges = [(0, drift), (1, -drift)];
                let edges = edges.map(|(far, drift)| report(NEW, far, at_s, 0.0, drift));
                let others = old(at_s, &mut noise);
                fleet.window(NEW + 1, &[&others[..], &edges].concat())
            };
            for n in 1..7 {
                window(2.0 * f64::from(n), 0.0);
            }
            let (off_ns, sigma_ns) = off(&window(14.0, 3e-7), 17.3);
            assert!(
                off_ns.abs() < 3.0 * sigma_ns && off_ns.abs() < 2_000.0,
                "{off_ns} ns, sigma {sigma_ns}"
            );
        }
    }

    /// Somebody sends a silent host's last report again: its lines are this old.
    #[test]
    fn a_replayed_report_moves_nobody() {
        let mut noise = ChaCha8Rng::seed_from_u64(3);
        for age_s in [10, 60, 300, 3_600] {
            let mut fleet = Fleet::new(Wander::default());
            let last = (0..NEW).map(|far| report(NEW, far, 12.0, 50.0, 2e-8));
            let last: Vec<Report> = last.collect();
            let mut at_s = 0.0;
            while at_s < 12.0 + f64::from(age_s) {
                at_s += 2.0;
                let others = old(at_s, &mut noise);
                let edges = if at_s <= 12.0 {
                    (0..NEW)
                        .map(|far| report(NEW, far, at_s, 50.0, 2e-8))
                        .collect()
                } else {
                    vec![]
                };
                fleet.window(NEW + 1, &[others, edges].concat());
            }
            let others = old(at_s + 2.0, &mut noise);
            let without = fleet.clone().window(NEW + 1, &others);
            let with = fleet.window(NEW + 1, &[others, last].concat());
            for (with, without) in with.corrections[..NEW].iter().zip(&without.corrections) {
                let (with, without) = (with.expect("a member"), without.expect("a member"));
                let own = without.reference;
                let moved_ns = with.offset_at(own) - without.offset_at(own);
                println!("{age_s} s: {moved_ns} ns");
                assert!(moved_ns.abs() < 300, "{age_s} s: {moved_ns} ns");
            }
        }
    }

    #[test]
    fn nobody_joins_a_fleet_that_begins_or_that_would_fall_apart() {
        let clock = |windows| Clock {
            windows,
            ..Clock::at(0)
        };
        let edge = |(near, far)| Edge {
            near,
            far,
            ahead: 0.0,
            weight: 1.0,
        };
        let begins = [(0, 1), (1, 2), (2, 0)].map(edge);
        assert_eq!(who(&begins, &[clock(0), clock(0), clock(1)]), [false; 3]);
        assert_eq!(
            who(&begins, &[clock(3), clock(9), clock(2)]),
            [false, false, true]
        );
        assert_eq!(
            who(&begins[..2], &[clock(3), clock(2), clock(9)]),
            [false; 3]
        );
    }
}
