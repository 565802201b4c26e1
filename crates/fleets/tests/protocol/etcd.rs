// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! etcd itself fails.

use crate::fleet::{each_seed, Fleet, S, WINDOW};

#[test]
fn without_etcd_the_fleet_goes_on_until_its_leader_is_lost_too() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(3, seed);
        let (leader, _) = fleet.leader(1).expect("one leads");
        let rest = fleet.others(leader);
        fleet.set_down(true);
        fleet.run(9 * S); // longer than every lease
        assert!(fleet.is_whole(), "they go on as they were");
        assert!(rest.iter().all(|host| !fleet.is_connected(*host)));
        fleet.world.kill(leader);
        let took = fleet.until(8 * S, "leases expire", |f| f.is_timeless(&rest));
        assert!(took > 2 * S, "{took} ns: a lease is 5 s");
        for host in &rest {
            assert_eq!(fleet.world.status(*host).state, "expired");
        }
        fleet.set_down(false);
        let have_time = |f: &Fleet| {
            rest.iter()
                .all(|host| f.world.status(*host).clock.is_some())
        };
        fleet.until(8 * S + 3 * WINDOW, "another leads", have_time);
        fleet.world.start(leader);
        fleet.settle();
        assert_eq!(fleet.steps(), 0);
    });
}

#[test]
fn an_etcd_that_has_forgotten_everything_is_told_again() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(3, seed);
        fleet.set_down(true);
        let now = fleet.world.now();
        fleet.world.etcd().wipe(now);
        fleet.run(S);
        fleet.set_down(false);
        let all = |f: &Fleet| (0..3).all(|host| f.is_connected(host));
        fleet.until(8 * S, "all are registered again", all);
        fleet.settle();
        assert_eq!(fleet.steps(), 0);
    });
}

#[test]
fn a_host_waits_for_an_etcd_that_is_not_there_yet() {
    each_seed(|seed| {
        let mut fleet = Fleet::empty(2, seed);
        fleet.set_down(true);
        fleet.world.start(0);
        fleet.run(3 * S);
        assert!(!fleet.is_connected(0) && fleet.is_timeless(&[0]));
        fleet.set_down(false);
        fleet.world.start(1);
        fleet.settle();
    });
}

/// etcd's process is stopped for up to 1.4 s, again and again: no lease ends, and nobody loses fleet time.
#[test]
fn an_etcd_that_stutters_costs_nobody_fleet_time() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(3, seed);
        for n in 0..10 {
            let until = fleet.world.now() + (1 + n % 7) * S / 5;
            fleet.world.etcd().pause(until);
            fleet.world.touch_etcd();
            fleet.run(2 * S);
            assert!(
                !fleet.is_timeless(&[0]) && !fleet.is_timeless(&[1]) && !fleet.is_timeless(&[2])
            );
        }
        fleet.settle();
        assert_eq!(fleet.steps(), 0);
    });
}

impl Fleet {
    fn set_down(&mut self, is_down: bool) {
        let now = self.world.now();
        self.world.etcd().set_down(now, is_down);
        self.world.touch_etcd();
    }
}
