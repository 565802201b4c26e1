// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Chosen cases.

use onramp_clock::registration::{Expected, Request, Text, Trouble};

use crate::{
    faults::{Fault, Faults},
    world::{address, World, MS, S},
};

fn connected(world: &World, n: usize) -> bool {
    world.process(n).shown.connected
}

/// The names, the oldest first.
fn names(world: &World, of: usize) -> Vec<&str> {
    let nodes = &world.process(of).shown.nodes;
    nodes.iter().map(|node| node.name.as_str()).collect()
}

#[test]
fn a_starved_leader_gives_way_and_stays_a_member() {
    let mut world = World::whole(&["a", "b", "c"]);
    assert_eq!(names(&world, 2), ["a", "b", "c"]);
    world.hosts[0].unfit = true;
    world.run(2 * S);
    world.check_agreement();
    assert_eq!(names(&world, 2), ["b", "c", "a"]);
    assert_eq!(world.process(0).shown.resignations, 1);
    for n in 0..3 {
        let whole = world
            .process(n)
            .published
            .iter()
            .skip_while(|(_, roster)| roster.members.all().len() < 3);
        let members: Vec<usize> = whole
            .map(|(_, roster)| roster.members.all().len())
            .collect();
        assert_eq!(
            members,
            vec![3; 2],
            "host {n} has always seen three members"
        );
    }
    // Not again within 30 s, even if it leads again.
    world.leave(1);
    world.leave(2);
    world.run(S);
    world.start(1);
    world.run(10 * S);
    assert_eq!(names(&world, 0), ["a", "b"]);
    world.run(30 * S);
    assert_eq!(names(&world, 0), ["b", "a"]);
}

#[test]
fn a_starved_host_that_is_alone_stays_leader() {
    let mut world = World::whole(&["a"]);
    world.hosts[0].unfit = true;
    world.run(40 * S);
    assert_eq!(world.process(0).shown.resignations, 0);
    assert_eq!(world.process(0).published.len(), 1);
}

#[test]
fn a_host_that_restarts_within_its_lease_keeps_its_place() {
    let mut world = World::whole(&["a", "b"]);
    let term = world.process(1).roster().expect("published").term;
    world.kill(0);
    world.run(S);
    world.start(0);
    world.run(S);
    world.check_agreement();
    assert_eq!(names(&world, 1), ["a", "b"]);
    assert_eq!(world.process(1).roster().expect("published").term, term);
}

#[test]
fn who_leaves_is_gone_at_once_and_who_dies_when_its_lease_ends() {
    let mut world = World::whole(&["a", "b", "c"]);
    world.leave(0);
    world.run(200 * MS);
    assert_eq!(names(&world, 2), ["b", "c"]);
    world.kill(1);
    world.run(S);
    assert_eq!(names(&world, 2), ["b", "c"]);
    world.run(2 * S);
    assert_eq!(names(&world, 2), ["c"]);
}

#[test]
fn a_name_that_another_host_holds_is_refused_until_its_lease_ends() {
    let mut world = World::whole(&["a", "a", "a"]);
    let twin = world.process(1).first.clone();
    assert_eq!(twin, None, "it waits for the end of the lease");
    world.run(5 * S);
    let Some(Err(Trouble::Lasting(why))) = &world.process(1).first else {
        panic!("{:?}", world.process(1).first);
    };
    for part in ["node a of fleet default", "10.0.0.1:5198", "--node"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert!(connected(&world, 0));
    world.kill(0);
    world.start(2);
    world.run(4 * S);
    assert!(connected(&world, 2));
    world.check_agreement();
}

#[test]
fn without_etcd_the_fleet_stays_as_it_was() {
    let mut world = World::whole(&["a", "b"]);
    let before = world.process(1).roster().expect("published").clone();
    world.etcd.set_down(world.now, true);
    world.run(100 * S);
    let process = world.process(1);
    let roster = process.roster().expect("published");
    assert!(!process.shown.connected && !roster.certain);
    assert_eq!(
        (&roster.members, roster.leader, roster.term),
        (&before.members, before.leader, before.term)
    );
    world.etcd.set_down(world.now, false);
    world.run(3 * S);
    world.check_agreement();
    assert_eq!(world.process(1).roster(), Some(&before));
}

#[test]
fn a_host_waits_for_an_etcd_that_is_not_there_yet() {
    let mut world = World::new(&["a"], Faults::none());
    world.etcd.set_present(0, false);
    world.etcd.set_down(world.now, true);
    world.start(0);
    world.run(5 * S);
    assert!(matches!(
        world.process(0).first,
        Some(Err(Trouble::Passing(_)))
    ));
    assert!(world.process(0).roster().is_none());
    world.etcd.set_down(world.now, false);
    world.run(3 * S);
    world.check_agreement();
}

/// The new etcd counts from 1 again, so terms go back, and the first host to register leads. Until the others
/// have reached it too they keep the leader of the last known fleet, without certainty.
#[test]
fn an_etcd_that_has_forgotten_everything_is_told_again() {
    let mut world = World::whole(&["a", "b", "c"]);
    for _ in 0..3 {
        world.leave(2);
        world.run(S);
        world.start(2);
        world.run(S);
    }
    let before = world.process(1).roster().expect("published").term;
    world.wipes += 1;
    world.etcd.wipe(world.now);
    world.run(3 * S);
    world.check_agreement();
    assert!(world.process(1).roster().expect("published").term <= before);
}

#[test]
fn a_user_that_etcd_refuses_is_for_an_operator() {
    let mut world = World::new(&["a"], Faults::none());
    world.etcd.set_refused(0, true);
    world.start(0);
    world.run(S);
    assert!(matches!(
        world.process(0).first,
        Some(Err(Trouble::Lasting(_)))
    ));
}

#[test]
fn a_host_that_an_operator_removes_or_overwrites_comes_back() {
    let mut world = World::whole(&["a", "b"]);
    world.operate(0, |key| Request::Delete {
        name: key.name.clone(),
        modified: key.modified,
    });
    world.run(2 * S);
    world.check_agreement();
    assert_eq!(names(&world, 1), ["b", "a"]);
    world.operate(0, |key| Request::Claim {
        name: key.name.clone(),
        value: Text::from(""),
        lease: 0,
        expected: Expected::Modified(key.modified),
    });
    world.run(2 * S);
    world.check_agreement();
    assert_eq!(world.process(0).shown.failures, 2);
}

/// A host that is away for longer than its lease is replaced, and follows when it is back.
#[test]
fn a_leader_that_was_away_follows() {
    let mut world = World::whole(&["a", "b"]);
    world.hosts[0].paused_until = world.now + 6 * S;
    world.run(5 * S);
    let roster = world.process(1).roster().expect("published");
    assert_eq!(roster.leader, Some(address(1)));
    world.run(5 * S);
    world.check_agreement();
    assert_eq!(names(&world, 0), ["b", "a"]);
}

#[test]
fn a_host_without_a_way_to_etcd_doubts_its_fleet() {
    let mut world = World::whole(&["a", "b"]);
    world.faults.plan(world.now, Fault::Cut(0, true));
    world.run(3 * S);
    assert!(!connected(&world, 0) && connected(&world, 1));
    assert!(!world.process(0).roster().expect("published").certain);
    world.faults.plan(world.now, Fault::Cut(0, false));
    world.run(4 * S);
    world.check_agreement();
}
