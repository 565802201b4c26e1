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

use crate::world::Fleet;

/// Bursts without a processor.
const BURSTS: usize = 40;
/// The longest, ms: below the lease of a key in etcd, so members stay members most of the time.
const LONGEST_MS: u64 = 1_500;
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
    let starved: u64 = fleet
        .running()
        .map(|agent| agent.count("windows_starved"))
        .sum();
    assert!(starved > 0, "nobody noticed");
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
