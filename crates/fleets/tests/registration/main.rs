// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The registration of hosts against the model of etcd: chosen cases, and random schedules of faults.
//! `ONRAMP_FLEET_SEED=N cargo test -p onramp-fleets --test registration any_schedule` prints a schedule.

mod chosen;
mod faults;
mod world;

use faults::Faults;
use world::{World, S};

/// Schedules of a test run.
const SCHEDULES: u64 = 6_000;
/// After the last fault: an interval between two resignations, and what a host needs to register.
const CALM: i64 = 45 * S;

/// Says which schedule failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the schedule of ONRAMP_FLEET_SEED={} fails", self.0);
        }
    }
}

/// Two to five hosts; two of them may have one name.
fn schedule(seed: u64, is_printed: bool) -> World {
    let _seed = Seed(seed);
    let names = [
        &["a", "b"][..],
        &["a", "b", "c"],
        &["a", "b", "a"],
        &["a", "b", "c", "d"],
        &["a", "b", "c", "a", "b"],
    ];
    let names = names[(seed % names.len() as u64) as usize];
    let mut world = World::new(names, Faults::of(seed, names.len()));
    let end = world.now + (2 + world.faults.below(30) as i64) * S;
    world.is_printed = is_printed;
    world.faults.begin(world.now, end);
    for n in 0..names.len() {
        let at = world.now + world.faults.below(3 * S as u64) as i64;
        world.faults.plan(at, faults::Fault::Start(n));
    }
    world.run(end - world.now);
    world.end_faults();
    world.run(CALM);
    world.check_outcomes();
    world.check_agreement();
    world
}

#[test]
fn after_any_schedule_of_faults_all_agree() {
    if let Ok(seed) = std::env::var("ONRAMP_FLEET_SEED") {
        schedule(seed.parse().expect("a number"), true);
        return;
    }
    let (mut resignations, mut wipes, mut failures) = (0, 0, 0);
    for seed in 0..SCHEDULES {
        let world = schedule(seed, false);
        wipes += world.wipes;
        for process in world.hosts.iter().filter_map(|host| host.process.as_ref()) {
            resignations += process.shown.resignations;
            failures += process.shown.failures;
        }
    }
    println!("{SCHEDULES} schedules: {failures} lost sessions, {resignations} resignations, {wipes} wipes");
    // The schedules do what they are for.
    assert!(failures > SCHEDULES && resignations > SCHEDULES / 10 && wipes > SCHEDULES / 20);
}

#[test]
fn a_seed_gives_one_run() {
    for seed in 0..20 {
        assert_eq!(schedule(seed, false).digest, schedule(seed, false).digest);
    }
}
