// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Floods at each door of a running daemon: the port of the metrics, the socket of the status, clock messages, OR-ACKs, and what
//! etcd answers. None may end it, hold up its lease, or make it grow. `make doors` runs it; it takes an hour.
//!
//! Needs root, a kernel with tcx (Linux 6.6), and Debian's etcd (`make setup` fetches it). The daemon observes: what these floods
//! do to held flows are facts of tests/daemon. Two network namespaces share the kernel's clock, so their fleet needs no luck.
//!
//! machine: no outcome depends on its speed but one, that a lease of seconds is renewed, which is the question.
mod flood;
#[path = "../machine.rs"]
mod machine;
mod rack;

use std::{
    sync::atomic::{AtomicBool, AtomicI64, Ordering},
    thread,
    time::{Duration, Instant},
};

use machine::until;
use rack::{Daemon, Rack};

/// How many requests each door gets.
const REQUESTS: &str = "ONRAMP_DOORS";
/// Only doors whose name has this, if it is set.
const DOOR: &str = "ONRAMP_DOOR";
/// What buffers of a flood may leave behind, KiB.
const GROWTH_KIB: u64 = 4096;

fn requests() -> u64 {
    let text = std::env::var(REQUESTS).unwrap_or_else(|_| "10000000".to_owned());
    let parsed = text.parse();
    parsed.unwrap_or_else(|e| panic!("{REQUESTS} is {text:?}: {e}; a number of requests"))
}

/// Sets a flag when it goes, whether its owner returned or panicked.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The least time that was left of the lease while `flood` ran, ms.
fn least_lease_ms(daemon: &Daemon, flood: impl FnOnce()) -> f64 {
    let (least_ns, ends) = (AtomicI64::new(i64::MAX), AtomicBool::new(false));
    thread::scope(|scope| {
        let _end = SetAtEnd(&ends);
        scope.spawn(|| {
            let map = daemon.clock();
            while !ends.load(Ordering::Relaxed) {
                least_ns.fetch_min(rack::lease_left_ns(&map), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        flood();
    });
    least_ns.into_inner() as f64 / 1e6
}

#[test]
#[ignore = "an hour, and root: make doors"]
fn ten_million_requests_at_each_door() {
    let (rack, number) = (Rack::build(), requests());
    let daemon = rack.daemon();
    until("it has a lease", || {
        rack::lease_left_ns(&daemon.clock()) > 0
    });
    println!("| door | requests | requests/s | least lease left, ms | RSS before, KiB | RSS after, KiB |");
    println!("|---|---|---|---|---|---|");
    let mut failed = vec![];
    let wanted = std::env::var(DOOR).unwrap_or_default();
    let doors = flood::DOORS
        .iter()
        .filter(|(door, _)| door.contains(&wanted));
    for (door, flood) in doors {
        let before = daemon.rss_kib();
        let began = Instant::now();
        let least_ms = least_lease_ms(&daemon, || flood(&rack, number));
        let per_s = number as f64 / began.elapsed().as_secs_f64();
        assert!(daemon.runs(), "{door}: the daemon has ended");
        until("the doors answer", || daemon.answers());
        let after = daemon.rss_kib();
        println!("| {door} | {number} | {per_s:.0} | {least_ms:.0} | {before} | {after} |");
        if least_ms <= 0.0 {
            failed.push(format!("{door}: the lease ended"));
        }
        if after > before + GROWTH_KIB {
            failed.push(format!("{door}: {before} KiB, then {after}"));
        }
        until("it has a lease again", || {
            rack::lease_left_ns(&daemon.clock()) > 0
        });
    }
    assert!(failed.is_empty(), "{failed:?}");
}
