// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a large fleet costs: `cargo bench -p onramp-clock`. Every host computes the mesh at each change of the
//! members; the leader does the central step every 2 s.
use std::net::SocketAddr;

use criterion::{criterion_group, criterion_main, BatchSize, Criterion};
use onramp_clock::{
    coordinator::Coordinator,
    members::{Members, USUAL_DEGREE},
    registry::{Found, Record, Registry},
    wire::{Delays, EdgeReport, Report},
};
use onramp_sync::line::Line;
use onramp_units::Time;

/// As many hosts as etcd's list may have, or nearly.
const HOSTS: u32 = 4_000;

fn fleet() -> Members {
    let address = |n: u32| SocketAddr::from(((0x0a00_0000 + n).to_be_bytes(), 5198));
    Members::new((0..HOSTS).map(address).collect()).expect("a fleet")
}

/// Every host reports its edges, one by one.
fn reports(members: &Members) -> Vec<(SocketAddr, Report)> {
    let delays = Delays {
        out_min_ns: 5_000,
        back_min_ns: 5_000,
        out_now_ns: 6_000,
        back_now_ns: 6_000,
    };
    let report = |(n, far): (usize, SocketAddr)| EdgeReport {
        far_epoch: 0,
        far,
        line: Line {
            at: Time::from_ticks(1_000_000_000),
            about_ns: 0,
            ahead_ns: (n * 37 % 101) as f64,
            drift: 1e-10 * (n % 7) as f64,
            delay_ns: 5_000.0,
            points: 90,
            sigma_ns: 50.0,
            drift_sigma: 2e-8,
        },
        delays,
    };
    let links = members.mesh(USUAL_DEGREE).into_iter().enumerate();
    let said = links.map(|(n, link)| {
        let (near, far) = (members.all()[link.near], members.all()[link.far]);
        let edges = vec![report((n, far))];
        let follows = None;
        (
            near,
            Report {
                epoch: 0,
                follows,
                edges,
            },
        )
    });
    said.collect()
}

fn mesh(criterion: &mut Criterion) {
    let members = fleet();
    criterion.bench_function("mesh, 4,000 hosts", |bencher| {
        bencher.iter(|| members.mesh(USUAL_DEGREE));
    });
}

/// What a host does when one of 4,000 keys changes: it checks the key, makes a roster of all, and draws the mesh.
fn change(criterion: &mut Criterion) {
    let address = |n: u32| SocketAddr::from(((0x0a00_0000 + n).to_be_bytes(), 5198));
    let value = |n| serde_json::to_vec(&Record::own(address(n))).expect("a record is JSON");
    let put = |registry: &mut Registry, n: u32, created: i64| {
        let value = value(n);
        let value = value.as_slice();
        let found = Found {
            value,
            created,
            lease: 1,
        };
        registry.put(format!("host{n}").as_bytes(), found);
    };
    let mut registry = Registry::new(address(1));
    (1..=HOSTS).for_each(|n| put(&mut registry, n, n.into()));
    assert_eq!(registry.nodes().len(), HOSTS as usize);
    criterion.bench_function("change of a member, 4,000 hosts", |bencher| {
        bencher.iter(|| {
            registry.remove(b"host77");
            put(&mut registry, 77, 9_999);
            let roster = registry.roster();
            roster.members.mesh(USUAL_DEGREE)
        });
    });
}

fn step(criterion: &mut Criterion) {
    let members = fleet();
    let reports = reports(&members);
    let heard = || {
        let mut coordinator = Coordinator::new(members.clone());
        for (near, report) in &reports {
            coordinator.take(*near, report);
        }
        coordinator
    };
    let mut group = criterion.benchmark_group("leader, 4,000 hosts");
    group.sample_size(10);
    group.bench_function("reports of a window", |bencher| bencher.iter(&heard));
    group.bench_function("central step", |bencher| {
        bencher.iter_batched(
            &heard,
            |mut c: Coordinator| c.step(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, mesh, change, step);
criterion_main!(benches);
