// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Builds of two commits in one fleet: `tools/upgrade-test COMMIT` builds the older one.
use std::net::IpAddr;

use nix::sys::signal::Signal;

use super::huygens::{pause_s, Fleet};
use crate::{
    agent::PROGRAM,
    maps::Counters,
    tcp::{finish_all, Load, Transfer},
};

const OLDER: &str = "/job/onramp-older";
const OPTIONS: &[&str] = &["--shape", "200Mbit/s"];
/// Until a fleet has a time, and a little more.
const SETTLING_S: f64 = 10.0;

/// From each host to the next.
fn flows(fleet: &Fleet) -> Vec<Transfer> {
    let hosts = &fleet.star.hosts;
    let next = hosts.iter().cycle().skip(1);
    let pairs = hosts.iter().zip(next);
    let start = |(from, to)| Transfer::start(from, to, Load::seconds(4.0));
    pairs.map(start).collect()
}

/// Whatever the two builds think of each other, traffic flows while daemons are replaced, and a host that speaks
/// otherwise is named. In the end the fleet has one time again, and holds.
pub fn a_fleet_is_upgraded_host_by_host() {
    let mut fleet = Fleet::unborn(3);
    fleet.name_members(false);
    fleet.program = OLDER;
    (0..3).for_each(|n| fleet.launch(n, OPTIONS));
    pause_s(SETTLING_S);
    let before = finish_all(flows(&fleet));
    println!("before: {before:.1} Mbit/s");

    fleet.program = PROGRAM;
    for n in [2, 1, 0] {
        let active = flows(&fleet);
        let older = fleet.agents[n].take().expect("it runs");
        let ended = older.stop(Signal::SIGTERM);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        fleet.launch(n, OPTIONS);
        let meanwhile = finish_all(active);
        pause_s(SETTLING_S);
        let afterwards = finish_all(flows(&fleet));
        let membership = fleet.agent(n).clock_status().membership;
        let named = membership.other_versions;
        println!(
            "host {}: {meanwhile:.1} Mbit/s during the upgrade, {afterwards:.1} after it; of another version: {named:?}",
            n + 1
        );
        // Builds that speak the same version name nobody.
        let named: Vec<IpAddr> = named.iter().map(|(host, _)| host.ip()).collect();
        let older: Vec<IpAddr> = fleet.star.hosts[..n].iter().map(|host| host.v4).collect();
        assert!(
            named.is_empty() || named == older,
            "{named:?}, not {older:?}"
        );
        for mbit_per_s in [meanwhile, afterwards] {
            assert!(mbit_per_s > 0.7 * before, "{mbit_per_s} of {before} Mbit/s");
        }
    }
    fleet.await_synchrony();
    fleet.assert_right(2.0);
    let counters = Counters::of(fleet.agent(0));
    let held = counters.get("holds");
    finish_all(flows(&fleet));
    assert!(counters.get("holds") > held, "nothing is held");
}
