// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the estimator costs: `cargo bench -p onramp-sync`. A coordinator does the central step every
//! 2 s, for the whole fleet; a host fits a line for each of its ten edges.
use criterion::{criterion_group, criterion_main, Criterion};
use onramp_sync::{
    fleet::{Fleet, Report, Wander},
    line::{fit, Line, Softness},
    probe::{Point, Stamps},
};
use onramp_units::Time;

const DEGREE: usize = 10;

/// Numbers between 0 and 1, always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

/// A random mesh whose edges are off by 30 ns or so.
fn reports(hosts: usize) -> Vec<Report> {
    let mut random = Random(1);
    let offsets: Vec<f64> = (0..hosts).map(|_| 1e6 * random.next()).collect();
    let mut report = |near: usize, far: usize| Report {
        near,
        far,
        line: Line {
            at: Time::from_ticks(1_000_000_000),
            about_ns: (offsets[far] - offsets[near]) as i64,
            ahead_ns: 100.0 * (random.next() + random.next() - 1.0),
            drift: 1e-8 * (random.next() - 0.5),
            delay_ns: 5_000.0,
            points: 90,
            sigma_ns: 50.0,
            drift_sigma: 2e-8,
        },
    };
    let mut others = Random(2);
    let mut all = vec![];
    for near in 0..hosts {
        all.push(report(near, (near + 1) % hosts));
        for _ in 1..DEGREE {
            let step = 1 + (others.next() * (hosts - 1) as f64) as usize;
            all.push(report(near, (near + step) % hosts));
        }
    }
    all
}

fn central_step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("central step, degree 10");
    group.sample_size(10);
    for hosts in [100, 1_000, 10_000] {
        let reports = reports(hosts);
        let mut fleet = Fleet::new(Wander::default());
        group.bench_function(format!("{hosts} hosts"), |bencher| {
            bencher.iter(|| fleet.window(hosts, &reports))
        });
        group.bench_function(format!("{hosts} hosts that begin"), |bencher| {
            bencher.iter(|| Fleet::new(Wander::default()).window(hosts, &reports))
        });
    }
    group.finish();
}

fn line(criterion: &mut Criterion) {
    let mut random = Random(3);
    let mut cloud = |sign: f64| -> Vec<Point> {
        let point = |n: i64, late: f64| Point {
            at: Time::from_ticks(n * 10_000_000),
            ahead_ns: (sign * (5_000.0 + 20_000.0 * late)) as i64,
        };
        (0..200).map(|n| point(n, random.next().powi(8))).collect()
    };
    let (above, below) = (cloud(1.0), cloud(-1.0));
    criterion.bench_function("line of an edge, 200 points a cloud", |bencher| {
        bencher.iter(|| fit(&above, &below, Softness::of(Stamps::Software)))
    });
}

criterion_group!(benches, central_step, line);
criterion_main!(benches);
