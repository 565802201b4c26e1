//! System clocks that follow the leader's. Those of hosts with a synthetic clock are computed: nothing is
//! done to this machine's.
use nix::sys::signal::Signal;

use onramp_clock::status::Follows;

use crate::world::{within, Agent, Fleet, SLACK, WINDOW};

/// How far ahead of the leader's system clock it is, ns.
fn ahead_ns(agent: &Agent) -> Option<i64> {
    agent.try_status()?.system.ahead_ns
}

/// Clocks are a millisecond and 10 ppm apart: they are slewed, and agree when another host leads.
#[test]
fn system_clocks_follow_the_leaders_and_the_next_ones() {
    let mut fleet = Fleet::empty(51, &[]);
    let url = fleet.etcd.url.clone();
    let keys = fleet.write_keys("1 000102030405060708090a0b0c0d0e0f\n");
    for n in 1..=3 {
        fleet.launch(n, &["--etcd", &url, "--key-file", &keys, "--discipline"]);
    }
    fleet.settle();
    let is_right = |fleet: &Fleet, most_ns: i64| {
        let off = |agent: &Agent| ahead_ns(agent).is_some_and(|ns| ns.abs() < most_ns);
        fleet.running().all(off)
    };
    // Some 70 s: 2 ms are off, of which 0.1 ms a second go until 1 ms is left, then a tenth of the rest.
    let took = fleet.within(WINDOW * 60, "system clocks agree", |f| is_right(f, 2_000));
    println!("system clocks agree after {:.0} s", took.as_secs_f64());
    let (leader, _) = fleet.leader(1).expect("one leads");
    for n in (1..=3).filter(|n| *n != leader) {
        let system = fleet.agent(n).status().system;
        assert_eq!(system.follows, Follows::Leader);
        assert!(system.rate.abs() > 5e-6, "{system:?}");
    }
    let steps = |fleet: &Fleet| {
        fleet
            .running()
            .map(|a| a.count("system_steps"))
            .sum::<u64>()
    };
    let before = steps(&fleet);
    assert_eq!(before, 0, "steps");
    fleet.stop(leader, Signal::SIGTERM);
    let other = 1 + leader % 3;
    within(SLACK, "another leads", || {
        fleet.leader(other).is_some_and(|(now, _)| now != leader)
    });
    fleet.watch(3.0 * WINDOW.as_secs_f64());
    assert!(is_right(&fleet, 20_000), "the next leader's is no other");
    assert_eq!(steps(&fleet), before);
}

#[test]
fn without_a_key_nobody_sets_the_system_clock() {
    let fleet = Fleet::empty(52, &[]);
    let mut agent = fleet.spawn(1, "n1", &["--etcd", &fleet.etcd.url, "--discipline"]);
    assert_eq!(agent.ends(SLACK), Some(1));
    assert!(agent.text().contains("--key-file"), "{}", agent.text());
}
