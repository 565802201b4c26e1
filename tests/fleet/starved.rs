// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Daemons, etcd and all of them at once lose their processor, beside busy loops: fleet time is never wrong by more than its sigma
//! says.
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use nix::sys::signal::Signal;
use rand_chacha::{
    rand_core::{RngCore, SeedableRng},
    ChaCha8Rng,
};

use crate::{quota::Group, world::Fleet};

/// Bursts without a processor.
const BURSTS: usize = 24;
/// The longest, ms: below the lease of a key in etcd, so members stay members most of the time.
const LONGEST_MS: u64 = 1_500;
/// A container's usual quota, and the largest of a burst, of each 100 ms.
const USUAL_US: u64 = 20_000;
const LITTLE_US: u64 = 5_000;
/// Busy loops, twice as many as this machine's tests usually have processors.
const LOOPS: usize = 4;

#[test]
fn whoever_loses_its_processor_fleet_time_is_within_sigma() {
    let mut fleet = Fleet::start(61, 4);
    let mut random = ChaCha8Rng::seed_from_u64(34);
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..LOOPS {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let bursts = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..BURSTS {
                burst(&mut fleet, &mut random);
                fleet.look();
            }
        }));
        ends.store(true, Ordering::Relaxed);
        bursts.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    fleet.settle();
    assert!(starved(&fleet) > 0, "nobody noticed");
}

/// As containers are: each daemon shares a quota with a busy neighbour, and for a while a smaller one.
#[test]
fn whoever_has_used_its_quota_fleet_time_is_within_sigma() {
    let groups: std::io::Result<Vec<Group>> = (0..4).map(|_| Group::new()).collect();
    let groups = match groups {
        Ok(groups) => groups,
        Err(error) => return println!("no quotas on this machine: {error}"),
    };
    let mut fleet = Fleet::start(62, groups.len());
    for (agent, group) in fleet.running().zip(&groups) {
        group.set_quota(Some(USUAL_US)).expect("a quota");
        group.take(agent.id()).expect("it is taken in");
    }
    let mut random = ChaCha8Rng::seed_from_u64(62);
    for _ in 0..BURSTS {
        let for_ms = 100 + random.next_u64() % LONGEST_MS;
        let quota_us = 1_000 + random.next_u64() % (LITTLE_US - 1_000);
        let some = random.next_u64();
        let few = groups
            .iter()
            .enumerate()
            .filter(|(n, _)| some >> n & 1 == 1);
        let few: Vec<&Group> = few.map(|(_, group)| group).collect();
        let set = |us| few.iter().try_for_each(|group| group.set_quota(Some(us)));
        set(quota_us).expect("a quota");
        thread::sleep(Duration::from_millis(for_ms)); // machine: a burst of any length is one
        fleet.look();
        set(USUAL_US).expect("a quota");
        fleet.look();
    }
    fleet.settle();
    assert!(starved(&fleet) > 0, "nobody noticed");
}

/// Windows in which a daemon noticed that it lacked a processor.
fn starved(fleet: &Fleet) -> u64 {
    let agents = fleet.running();
    agents.map(|agent| agent.count("windows_starved")).sum()
}

/// One daemon, etcd, or all of them are stopped for a while.
fn burst(fleet: &mut Fleet, random: &mut ChaCha8Rng) {
    let for_ms = 10 + random.next_u64() % LONGEST_MS;
    let who = random.next_u64() as usize % 7;
    let signal = |signal: Signal| match who {
        0 => fleet.etcd.signal(signal),
        1 => {
            fleet.etcd.signal(signal);
            fleet.running().for_each(|agent| agent.signal(signal));
        }
        2 => fleet.running().for_each(|agent| agent.signal(signal)),
        n => fleet.agent(n - 2).signal(signal),
    };
    signal(Signal::SIGSTOP);
    thread::sleep(Duration::from_millis(for_ms)); // machine: a burst of any length is one
    signal(Signal::SIGCONT);
}
