// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! System clocks that follow the leader's.

use onramp_clock::status::Follows;

use crate::fleet::{each_seed, Fleet, S, WINDOW};

impl Fleet {
    /// Whether all system clocks agree with the leader's within this.
    fn agrees(&self, most_ns: i64) -> bool {
        let ahead_ns = |host: usize| self.world.status(host).system.ahead_ns;
        let is_right = |host| ahead_ns(host).is_some_and(|ns| ns.abs() < most_ns);
        self.running().into_iter().all(is_right)
    }

    fn system_steps(&self) -> u64 {
        let steps = |host: usize| self.world.count(host, "system_steps");
        self.running().into_iter().map(steps).sum()
    }
}

/// Clocks are up to 32 ms and 30 ppm apart: they are slewed, and agree when another host leads.
#[test]
fn system_clocks_follow_the_leaders_and_the_next_ones() {
    each_seed(|seed| {
        let mut fleet = Fleet::of(3, seed);
        // 0.1 ms go each second until 1 ms is left, then a tenth of the rest.
        fleet.until(450 * S, "system clocks agree", |f| f.agrees(3_000));
        let (leader, _) = fleet.leader(1).expect("one leads");
        for host in (0..3).filter(|host| *host != leader) {
            assert_eq!(fleet.world.status(host).system.follows, Follows::Leader);
        }
        assert_eq!(fleet.system_steps(), 0);
        fleet.world.stop(leader);
        let other = (leader + 1) % 3;
        fleet.until(2 * WINDOW, "another leads", |f| {
            f.leader(other).is_some_and(|(now, _)| now != leader)
        });
        fleet.run(3 * WINDOW);
        assert!(fleet.agrees(20_000), "the next leader's is no other");
        assert_eq!(fleet.system_steps(), 0);
    });
}
