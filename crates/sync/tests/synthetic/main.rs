// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The whole estimator against synthetic clocks and a synthetic network, truth known
//! (shared/facts/huygens.md, "Synthetic test"). Every test prints what it measured.
mod world;

use onramp_sync::correction::Correction;
use onramp_sync::fleet::{Fleet, Lost, Report, Wander, Window};
use onramp_sync::probe::Stamps;
use onramp_sync::synthetic::FleetErrors;
use onramp_units::{Mono, Span, Time};
use world::{Spec, World};

/// Windows that count, after those in which a host's clock is first learnt.
const WINDOWS: usize = 4;
const LEARNT: usize = 5;

/// Errors of all hosts, ns, in the middle of the window after the one that was estimated: hosts use
/// a window's corrections while the next one is measured.
struct Errors {
    /// Errors of a host's fleet time less the fleet's median.
    errors_ns: Vec<f64>,
    /// The same in units of the sigma that the host was told.
    in_sigmas: Vec<f64>,
    last: Window,
}

impl Errors {
    fn quantile(&self, part: f64) -> f64 {
        let mut sorted: Vec<f64> = self.errors_ns.iter().map(|e| e.abs()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted[(part * (sorted.len() - 1) as f64) as usize]
    }

    fn mean(&self) -> f64 {
        self.errors_ns.iter().map(|e| e.abs()).sum::<f64>() / self.errors_ns.len() as f64
    }

    /// Part of the errors within two sigmas.
    fn honest(&self) -> f64 {
        let within = self.in_sigmas.iter().filter(|e| e.abs() <= 2.0).count();
        within as f64 / self.in_sigmas.len() as f64
    }
}

fn run(spec: Spec) -> Errors {
    let mut world = World::new(spec);
    let mut fleet = Fleet::new(Wander::default());
    let (mut errors_ns, mut in_sigmas) = (vec![], vec![]);
    let mut last = None;
    for window in 0..LEARNT + WINDOWS {
        let found = fleet.window(spec.hosts, &world.reports(window));
        if window >= LEARNT {
            let now_s = world::WINDOW_S * (window as f64 + 1.5);
            let published: Vec<(f64, f64)> = (0..spec.hosts)
                .filter_map(|host| {
                    let correction = found.corrections[host].ok()?;
                    let mono = Time::<Mono>::from_ticks(world.reads(host, now_s));
                    let fleet_ns = correction.fleet(mono).ticks() as f64;
                    Some((fleet_ns, correction.sigma_at(mono)))
                })
                .collect();
            let mut times: Vec<f64> = published.iter().map(|(time, _)| *time).collect();
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            errors_ns.extend(published.iter().map(|(time, _)| time - median));
            in_sigmas.extend(
                published
                    .iter()
                    .map(|(time, sigma)| (time - median) / sigma),
            );
        }
        last = Some(found);
    }
    let last = last.expect("some window");
    Errors {
        errors_ns,
        in_sigmas,
        last,
    }
}

fn report(what: &str, errors: &Errors) {
    println!(
        "{what}: mean {:.1} ns, median {:.1}, p99 {:.1}; {:.1} % within 2 sigma; an edge {:.1} ns",
        errors.mean(),
        errors.quantile(0.5),
        errors.quantile(0.99),
        100.0 * errors.honest(),
        errors.last.edge_sigma_ns,
    );
}

#[test]
fn hardware_stamps_reach_tens_of_nanoseconds() {
    let errors = run(Spec::DEFAULT);
    report("hardware stamps, 100 hosts", &errors);
    assert!(errors.mean() < 20.0 && errors.quantile(0.99) < 60.0);
    assert!(errors.honest() >= 0.95);
}

#[test]
fn software_stamps_reach_a_microsecond() {
    let errors = run(Spec {
        stamps: Stamps::Software,
        ..Spec::DEFAULT
    });
    report("software stamps, 100 hosts", &errors);
    // Huygens' authors have 500 and 3000.
    assert!(errors.quantile(0.5) < 80.0 && errors.quantile(0.99) < 300.0);
    assert!(errors.honest() >= 0.95);
}

/// The network effect: the error of a host falls with the root of its edges. No number of edges foretells
/// how a clock will wander.
#[test]
fn ten_neighbours_are_better_than_two() {
    let mean_square = |degree, seed| {
        let errors = run(Spec {
            degree,
            seed,
            wander: (0.0, 0.0),
            ..Spec::DEFAULT
        });
        report(&format!("degree {degree}"), &errors);
        let squares: f64 = errors.errors_ns.iter().map(|e| e * e).sum();
        squares / errors.errors_ns.len() as f64
    };
    let rms = |degree| {
        (1..=4)
            .map(|seed| mean_square(degree, seed))
            .sum::<f64>()
            .sqrt()
    };
    let better = rms(2) / rms(10);
    println!("degree 10 is {better:.2} times better than 2 (root of 5: 2.24)");
    assert!(better > 2.0);
}

/// Clocks that grow warm: a correction is followed until 5 s after the middle of what it was made from.
#[test]
fn clocks_that_bend_are_followed_round_the_bend() {
    let spec = Spec {
        hosts: 20,
        wander: (2e-6, 2e-6),
        ..Spec::DEFAULT
    };
    let mut world = World::new(spec);
    let mut fleet = Fleet::new(Wander::default());
    let (mut bent, mut straight) = (vec![], vec![]);
    for window in 0..40 {
        let found = fleet.window(spec.hosts, &world.reports(window));
        let now_s = world::WINDOW_S * (window as f64 + 3.0);
        let published: Vec<Correction> =
            found.corrections.into_iter().map(Result::unwrap).collect();
        let monos = (0..spec.hosts).map(|host| Time::<Mono>::from_ticks(world.reads(host, now_s)));
        let time = |(correction, mono): (&Correction, Time<Mono>)| correction.fleet(mono).ticks();
        if window >= 20 {
            bent.push(rms(published.iter().zip(monos.clone()).map(time)));
            let published: Vec<_> = published
                .iter()
                .map(|c| Correction { bend: 0.0, ..*c })
                .collect();
            straight.push(rms(published.iter().zip(monos).map(time)));
        }
    }
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let (bent, straight) = (mean(&bent), mean(&straight));
    println!("straight lines are off by {straight:.0} ns, bent ones by {bent:.0}");
    assert!(bent < 0.5 * straight);
}

/// Root mean square of what differs from the median.
fn rms(times: impl Iterator<Item = i64>) -> f64 {
    let hosts: Vec<(i64, f64)> = times.map(|time| (time, 1.0)).collect();
    let squares = FleetErrors::of(&hosts)
        .ns
        .into_iter()
        .map(|error| error * error);
    (squares.sum::<f64>() / hosts.len() as f64).sqrt()
}

#[test]
fn one_edge_that_is_wrong_moves_nobody_far() {
    let wrong = Spec {
        wrong_edge_ns: 1000.0,
        ..Spec::DEFAULT
    };
    let (right, wrong) = (run(Spec::DEFAULT), run(wrong));
    report("one edge wrong by 1 us", &wrong);
    let moved = right
        .errors_ns
        .iter()
        .zip(&wrong.errors_ns)
        .map(|(a, b)| (a - b).abs());
    let moved = moved.fold(0.0, f64::max);
    println!("the host it moves most moves by {moved:.1} ns");
    assert!(moved <= 150.0);
}

#[test]
fn a_host_that_lies_is_found_and_moves_nobody() {
    let liar = Spec {
        liar_ns: 50_000.0,
        ..Spec::DEFAULT
    };
    let errors = run(liar);
    report("one host says anything", &errors);
    assert_eq!(
        errors.last.corrections[world::LIAR],
        Err(Lost::Contradictory)
    );
    let lost = errors
        .last
        .corrections
        .iter()
        .filter(|c| c.is_err())
        .count();
    assert_eq!(lost, 1);
    assert!(errors.quantile(0.99) < 60.0);
}

/// Its lies are too small to be found. Without a bound of what an edge may claim, p99 is 39 ns.
#[test]
fn a_host_that_claims_to_be_exact_outvotes_nobody() {
    let liar = Spec {
        liar_ns: 100.0,
        liar_is_sure: true,
        ..Spec::DEFAULT
    };
    let errors = run(liar);
    report("one host is sure of lies of up to 100 ns", &errors);
    assert!(errors.quantile(0.99) < 30.0);
    assert_eq!(errors.honest(), 1.0);
}

/// Runs windows of which only some reports arrive; the corrections of each.
fn partly(spec: Spec, windows: usize, arrives: impl Fn(usize, &Report) -> bool) -> Vec<Window> {
    let mut world = World::new(spec);
    let mut fleet = Fleet::new(Wander::default());
    let one = |window| {
        let mut reports = world.reports(window);
        reports.retain(|report| arrives(window, report));
        fleet.window(spec.hosts, &reports)
    };
    (0..windows).map(one).collect()
}

/// How far a host's fleet time jumps from one window's correction to the next's, ns.
fn jump(before: &Window, after: &Window, host: usize) -> f64 {
    let (Ok(before), Ok(after)) = (before.corrections[host], after.corrections[host]) else {
        panic!("host {host} has no correction");
    };
    let now = after.reference;
    (after.offset_at(now) - before.offset_at(now)) as f64
}

const SMALL: Spec = Spec {
    hosts: 40,
    ..Spec::DEFAULT
};

#[test]
fn hosts_that_leave_and_come_back_move_nobody() {
    let gone = |host: usize| host < 5;
    let arrives =
        |window: usize, r: &Report| !(3..6).contains(&window) || !gone(r.near) && !gone(r.far);
    let windows = partly(SMALL, 8, arrives);
    for (n, two) in windows.windows(2).enumerate().skip(1) {
        for host in 5..SMALL.hosts {
            let sigma = two[0].corrections[host].map(|c| c.sigma_at(c.reference + Span::from_s(2)));
            let jumped = jump(&two[0], &two[1], host).abs();
            assert!(
                jumped < 3.0 * sigma.expect("a correction"),
                "window {n}, host {host}: {jumped} ns"
            );
        }
    }
    assert_eq!(windows[4].corrections[2], Err(Lost::Apart));
    assert!(windows[7].corrections[2].is_ok());
}

/// A third of the hosts is cut off: the rest goes on, those have nothing, and both meet again.
#[test]
fn a_partition_heals() {
    let side = |host: usize| host.is_multiple_of(3);
    let arrives =
        |window: usize, r: &Report| !(3..6).contains(&window) || side(r.near) == side(r.far);
    let windows = partly(SMALL, 8, arrives);
    for host in 0..SMALL.hosts {
        assert_eq!(
            windows[4].corrections[host].is_err(),
            side(host),
            "host {host}"
        );
        assert!(windows[7].corrections[host].is_ok());
    }
    for host in (0..SMALL.hosts).filter(|host| !side(*host)) {
        let jumped = jump(&windows[5], &windows[6], host).abs();
        assert!(jumped < 100.0, "host {host} jumps {jumped} ns");
    }
}

#[test]
fn nothing_heard_is_nothing_told() {
    let windows = partly(SMALL, 3, |window, _| window < 2);
    assert!(windows[2]
        .corrections
        .iter()
        .all(|c| *c == Err(Lost::Apart)));
}

#[test]
fn the_same_probes_give_the_same_answer() {
    let (a, b) = (run(Spec::DEFAULT), run(Spec::DEFAULT));
    assert_eq!(a.last, b.last);
}
