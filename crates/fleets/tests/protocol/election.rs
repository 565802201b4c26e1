// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Who leads when the leader cannot.

use onramp_fleets::starvation::Starvation;

use crate::fleet::{each_seed, Fleet, MS, S, WINDOW};

#[test]
fn another_leads_within_two_windows_of_the_leaders_death() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(4, seed);
        for round in 0..3 {
            let (leader, term) = fleet.leader(fleet.running()[0]).expect("one leads");
            // At another place of the window each time.
            fleet.run(700 * MS * round);
            let rest: Vec<usize> = (0..4).filter(|host| *host != leader).collect();
            let before = fleet.ahead_ns(rest[0]);
            let since = fleet.world.now();
            fleet.world.kill(leader);
            let took = fleet.until(2 * WINDOW, "another leads", |f| f.is_led_anew(&rest, term));
            assert!(took > 0);
            fleet.run(WINDOW);
            // True time and fleet time differ by the drift of the fleet alone.
            let seconds = (fleet.world.now() - since) as f64 / 1e9;
            let moved_ns = (fleet.ahead_ns(rest[0]) - before).abs() as f64;
            assert!(
                moved_ns < 20_000.0 * seconds + 10_000.0,
                "{moved_ns} ns in {seconds} s"
            );
            fleet.world.start(leader);
            fleet.settle();
            let (next, next_term) = fleet.leader(leader).expect("one leads");
            assert!(
                next != leader && next_term > term,
                "the killed one leads again"
            );
        }
        assert_eq!(fleet.steps(), 0);
    });
}

/// The leader dies just before its next verdict is due, at other times of etcd's.
#[test]
fn the_death_of_a_leader_ends_nobodys_fleet_time() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(3, seed);
        for _ in 0..5 {
            let (leader, term) = fleet.leader(0).expect("one leads");
            let rest = fleet.others(leader);
            let taken = |fleet: &Fleet| fleet.world.count(rest[0], "verdicts_taken");
            let before = taken(&fleet);
            fleet.until(WINDOW + S, "a verdict comes", |f| taken(f) > before);
            fleet.run(WINDOW - 50 * MS);
            fleet.world.kill(leader);
            while !fleet.is_led_anew(&rest, term) || taken(&fleet) < before + 2 {
                fleet.run(50 * MS);
                assert_eq!(fleet.world.samples().len(), 2, "hosts with a fleet time");
            }
            fleet.world.start(leader);
            fleet.settle();
        }
    });
}

#[test]
fn a_leader_that_leaves_is_replaced_at_once() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(3, seed);
        let (leader, term) = fleet.leader(0).expect("one leads");
        let rest = fleet.others(leader);
        fleet.world.stop(leader);
        fleet.until(S, "another leads", |f| f.is_led_anew(&rest, term));
        fleet.settle();
        assert_eq!(fleet.steps(), 0);
    });
}

/// A process that is stopped is cut off from everybody, and does not know it when it goes on.
#[test]
fn a_leader_that_was_away_follows_when_it_comes_back() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(3, seed);
        let (leader, term) = fleet.leader(0).expect("one leads");
        let rest = fleet.others(leader);
        fleet.world.pause(leader, 6 * S);
        fleet.until(2 * WINDOW + S, "another leads", |f| {
            f.is_led_anew(&rest, term)
        });
        let next = fleet.leader(rest[0]);
        fleet.run(6 * S);
        fleet.settle();
        assert_eq!(fleet.leader(leader), next, "it follows");
        for host in rest {
            assert_eq!(fleet.world.count(host, "fleet_steps"), 0);
        }
    });
}

/// Two of four lose etcd, the leader among them, and still reach everybody else: there must not be two fleet times.
#[test]
fn who_is_cut_off_from_etcd_gives_way_and_comes_back() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(4, seed);
        let (leader, term) = fleet.leader(3).expect("one leads");
        assert_eq!(leader, 0, "the oldest leads");
        for host in [0, 1] {
            fleet.world.etcd().set_cut(host, true);
        }
        fleet.until(2 * WINDOW + S, "another leads", |f| {
            f.is_led_anew(&[2, 3], term)
        });
        fleet.until(WINDOW, "the old one gives way", |f| f.is_timeless(&[0, 1]));
        assert_eq!(fleet.world.count(0, "deposed"), 1);
        assert!(!fleet.is_connected(0));
        fleet.run(WINDOW);
        for host in [0, 1] {
            fleet.world.etcd().set_cut(host, false);
        }
        fleet.settle();
        assert_ne!(fleet.leader(0).expect("one leads").0, 0);
        assert_eq!(fleet.steps(), 0);
    });
}

/// A leader whose processor is taken away gives up to lead, and stays a member.
#[test]
fn a_starved_leader_steps_down() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(4, seed);
        let (leader, term) = fleet.leader(1).expect("one leads");
        let starvation = Starvation {
            part: 0.8,
            burst_ns: 200 * MS,
        };
        fleet.world.steal(leader, starvation);
        let rest: Vec<usize> = (0..4).filter(|host| *host != leader).collect();
        fleet.until(20 * S, "another leads", |f| f.is_led_anew(&rest, term));
        fleet.run(10 * S);
        let fleet_now = fleet.world.status(leader).membership;
        assert_eq!(fleet_now.members, 4);
        assert!(fleet_now.fleet.expect("in etcd").resignations > 0);
        assert!(fleet.world.count(leader, "windows_starved") > 0);
    });
}
