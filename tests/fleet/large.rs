// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Two hundred daemons on one machine. Half of them are killed, the leader among them.
use std::time::Instant;

use nix::sys::signal::Signal;

use crate::{machine::until, world::Fleet};

const DAEMONS: usize = 200;
/// Two hundred daemons with the usual interval need more processors than such a machine has.
const PROBE_INTERVAL: &str = "200ms";

fn have_time(fleet: &Fleet, members: usize) -> usize {
    let statuses = fleet.running().filter_map(|agent| agent.try_status());
    let is_in_time =
        |s: &onramp_clock::status::Status| s.clock.is_some() && s.membership.members == members;
    statuses.filter(is_in_time).count()
}

/// `cargo test -p onramp --test fleet -- --ignored --nocapture two_hundred`
#[test]
#[ignore = "takes two minutes and both processors"]
fn two_hundred_daemons_outlive_half_of_them() {
    let mut fleet = Fleet::empty(46, &[]);
    let url = fleet.etcd.url.clone();
    for n in 1..=DAEMONS {
        fleet.launch(n, &["--etcd", &url, "--probe-interval", PROBE_INTERVAL]);
    }
    let since = Instant::now(); // machine: the figure that this test prints
    until("all have fleet time", || {
        have_time(&fleet, DAEMONS) == DAEMONS
    });
    println!(
        "{DAEMONS} daemons have one fleet time {:.1} s after the last start",
        since.elapsed().as_secs_f64() // machine: as above
    );
    let (leader, _) = fleet.leader(1).expect("one leads");
    let now = onramp_clock::stamps::now_mono_ns();
    let survivor = if leader == DAEMONS {
        DAEMONS - 1
    } else {
        DAEMONS
    };
    let before_ns = fleet.offset_ns(survivor, now);
    let others = (1..=DAEMONS).filter(|n| *n != leader && *n != survivor);
    let dead: Vec<usize> = std::iter::once(leader)
        .chain(others)
        .take(DAEMONS / 2)
        .collect();
    for n in dead {
        fleet.stop(n, Signal::SIGKILL);
    }
    let left = DAEMONS / 2;
    let since = Instant::now(); // machine: as above
    until("the others have fleet time", || {
        have_time(&fleet, left) == left
    });
    println!(
        "{left} daemons have fleet time {:.1} s after half were killed",
        since.elapsed().as_secs_f64() // machine: as above
    );
    let moved_ns = (fleet.offset_ns(survivor, now) - before_ns).abs();
    println!(
        "fleet time has moved by {moved_ns:.0} ns; {} jumps",
        fleet.steps()
    );
    assert!(moved_ns < 1e6, "fleet time began anew: {moved_ns} ns");
}
