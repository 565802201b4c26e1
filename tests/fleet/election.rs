//! Who leads when the leader cannot.
use nix::sys::signal::Signal;
use onramp_clock::stamps::now_mono_ns;

use crate::world::{Bridge, Fleet, SLACK, WINDOW};

/// Whether these follow another leader than that of `term`, and have heard from it since `since_ns`.
fn is_led_anew(fleet: &Fleet, agents: &[usize], term: u64, since_ns: i64) -> bool {
    agents.iter().all(|n| {
        let Some(status) = fleet.agent(*n).try_status() else {
            return false;
        };
        let heard = status.clock.is_some_and(|c| c.heard_mono_ns > since_ns);
        status.membership.term > term && heard && status.membership.coordinator.is_some()
    })
}

#[test]
fn another_leads_within_two_windows_of_the_leaders_death() {
    let mut fleet = Fleet::start(21, 4);
    for round in 0..3 {
        let (leader, term) = fleet.leader(1).expect("one leads");
        // At another place of the window each time.
        fleet.watch(0.7 * f64::from(round));
        let rest: Vec<usize> = (1..=4).filter(|n| *n != leader).collect();
        let now = now_mono_ns();
        let before: Vec<f64> = rest.iter().map(|n| fleet.offset_ns(*n, now)).collect();
        fleet.stop(leader, Signal::SIGKILL);
        let took = fleet.within(2 * WINDOW + SLACK, "another leads", |f| {
            // A verdict of the dead one may still have been under way.
            is_led_anew(f, &rest, term, now + 500_000_000)
        });
        let after: Vec<f64> = rest.iter().map(|n| fleet.offset_ns(*n, now)).collect();
        let moved = before.iter().zip(&after).map(|(a, b)| (a - b).abs());
        let moved_ns = moved.fold(0.0, f64::max);
        println!(
            "taken over in {:.2} s, {moved_ns:.0} ns",
            took.as_secs_f64()
        );
        assert!(moved_ns < 10_000.0, "{moved_ns} ns");
        fleet.launch(leader, &[]);
        fleet.settle();
        let (next, next_term) = fleet.leader(leader).expect("one leads");
        assert!(
            next != leader && next_term > term,
            "the killed one leads again"
        );
    }
    assert_eq!(fleet.steps(), 0);
}

#[test]
fn a_leader_that_leaves_is_replaced_at_once() {
    let mut fleet = Fleet::start(22, 3);
    let (leader, term) = fleet.leader(1).expect("one leads");
    let rest: Vec<usize> = (1..=3).filter(|n| *n != leader).collect();
    let now = now_mono_ns();
    fleet.stop(leader, Signal::SIGTERM);
    let took = fleet.within(WINDOW + SLACK, "another leads", |f| {
        is_led_anew(f, &rest, term, now)
    });
    println!("taken over in {:.2} s", took.as_secs_f64());
    fleet.settle();
}

/// A process that is stopped is cut off from everybody, and does not know it when it goes on.
#[test]
fn a_leader_that_was_away_follows_when_it_comes_back() {
    let mut fleet = Fleet::start(23, 3);
    let (leader, term) = fleet.leader(1).expect("one leads");
    let rest: Vec<usize> = (1..=3).filter(|n| *n != leader).collect();
    let paused = fleet.agents[leader].take().expect("it runs");
    paused.signal(Signal::SIGSTOP);
    let now = now_mono_ns();
    fleet.within(2 * WINDOW + SLACK, "another leads", |f| {
        is_led_anew(f, &rest, term, now)
    });
    fleet.watch(4.0);
    let next = fleet.leader(rest[0]);
    paused.signal(Signal::SIGCONT);
    fleet.agents[leader] = Some(paused);
    fleet.settle();
    assert_eq!(fleet.leader(leader), next, "it follows");
    let old = |n: &usize| fleet.agent(*n).count("old_terms");
    println!(
        "{} verdicts of the old term",
        rest.iter().map(old).sum::<u64>()
    );
    let steps = |n: &usize| fleet.agent(*n).count("fleet_steps");
    assert_eq!(rest.iter().map(steps).sum::<u64>(), 0);
}

/// Two of four lose etcd, the leader among them, and still reach everybody else: there must not be two
/// fleet times. They have none until their etcd is back.
#[test]
fn who_is_cut_off_from_etcd_gives_way_and_comes_back() {
    let mut fleet = Fleet::empty(24, &[]);
    let bridge = Bridge::to(&fleet.etcd);
    for n in [1, 2] {
        let url = bridge.url.clone();
        fleet.launch(n, &["--etcd", &url]);
        // The oldest leads.
        fleet.within(SLACK, "it is registered", |f| {
            f.agent(n)
                .try_status()
                .is_some_and(|s| s.membership.members == n)
        });
    }
    (3..=4).for_each(|n| fleet.launch(n, &[]));
    fleet.settle();
    let (leader, term) = fleet.leader(3).expect("one leads");
    assert_eq!(leader, 1);
    let now = now_mono_ns();
    bridge.cut();
    let took = fleet.within(2 * WINDOW + SLACK, "another leads", |f| {
        is_led_anew(f, &[3, 4], term, now)
    });
    println!("another leads after {:.2} s", took.as_secs_f64());
    let took = fleet.within(WINDOW + SLACK, "the old one gives way", |f| {
        f.is_timeless(&[1, 2])
    });
    println!(
        "the old one has given way {:.2} s later",
        took.as_secs_f64()
    );
    assert_eq!(fleet.agent(1).count("deposed"), 1);
    let etcd = fleet.agent(1).status().membership.fleet.expect("in etcd");
    assert!(!etcd.connected && etcd.failures > 0, "{etcd:?}");
    fleet.watch(2.0);
    bridge.mend();
    fleet.settle();
    assert_ne!(fleet.leader(1).expect("one leads").0, 1);
    assert_eq!(fleet.steps(), 0);
}
