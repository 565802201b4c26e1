// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Who comes, goes, and comes again.

use onramp_fleets::starvation::Starvation;

use crate::fleet::{each_seed, Fleet, MS, S, WINDOW};

#[test]
fn hosts_join_leave_and_crash_and_the_others_go_on() {
    each_seed(|seed| {
        let mut fleet = Fleet::empty(4, seed);
        (0..3).for_each(|host| fleet.world.start(host));
        fleet.settle();
        let (leader, term) = fleet.leader(1).expect("one leads");
        let other = (leader + 1) % 3;

        fleet.world.start(3);
        fleet.until(3 * WINDOW, "a newcomer has fleet time", Fleet::is_whole);
        fleet.run(3 * S);

        // Says good-bye: gone at once.
        fleet.world.stop(3);
        let members = |f: &Fleet| f.world.status(leader).membership.members;
        fleet.until(S, "who left is gone", |f| members(f) == 3);

        fleet.world.kill(other);
        fleet.until(2 * WINDOW, "who crashed is gone", |f| members(f) == 2);
        fleet.world.start(other);
        fleet.settle();

        // Starts again while its lease lasts: it need not wait for its end, and keeps its place.
        let third = (leader + 2) % 3;
        fleet.world.kill(third);
        fleet.run(S / 2);
        fleet.world.start(third);
        fleet.until(S, "it is back", |f| f.is_connected(third));
        fleet.settle();
        assert_eq!(
            fleet.leader(third),
            Some((leader, term)),
            "nobody else had to lead"
        );
        assert_eq!(fleet.steps(), 0);
    });
}

#[test]
fn a_host_that_is_suspended_has_no_fleet_time_until_it_is_right() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(4, seed);
        let for_ns = (seed as i64 % 10 + 1) * 317 * MS;
        fleet.world.suspend(2, for_ns, true);
        fleet.run(for_ns + 100 * MS);
        assert!(fleet.is_timeless(&[2]));
        fleet.settle();
        assert_eq!(fleet.world.count(2, "suspensions"), 1);
    });
}

#[test]
fn a_host_that_was_frozen_notices_it_within_a_second() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(4, seed);
        let for_ns = (seed as i64 % 10 + 1) * 317 * MS;
        fleet.world.suspend(2, for_ns, false);
        fleet.world.run(for_ns);
        fleet.run_unaware(S);
        fleet.settle();
        assert_eq!(fleet.world.count(2, "suspensions"), 0);
        assert!(fleet.world.count(2, "clock_jumps") > 0);
    });
}

/// It goes back, or far ahead; by little it is a matter of the grid.
#[test]
fn a_clock_that_jumps_is_noticed_at_once() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(4, seed);
        let leader = fleet.leader(0).expect("one leads").0;
        let host = (leader + seed as usize) % 4;
        let by_ns = [30 * MS, S, 10 * S, 100 * S][(seed / 4 % 4) as usize];
        let sign = if seed % 2 == 0 { -1 } else { 1 };
        let now = fleet.world.now();
        fleet.world.clock(host).jump(now, sign * by_ns);
        fleet.run_unaware(S);
        fleet.settle();
        let noticed = ["clock_backwards", "clock_jumps"];
        let counts = noticed.map(|counter| fleet.world.count(host, counter));
        assert!(counts.iter().any(|count| *count > 0), "{counts:?}");
    });
}

/// As SIGSTOP and SIGCONT do it, again and again.
#[test]
fn daemons_that_are_stopped_and_go_on_are_never_wrong() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(3, seed);
        for host in 0..3 {
            let part = [0.2, 0.5, 0.8][(seed as usize + host) % 3];
            let burst_ns = [20, 200, 1_000][(seed as usize / 3 + host) % 3] * MS;
            fleet.world.starve(host, Starvation { part, burst_ns });
        }
        fleet.run(60 * S);
    });
}
