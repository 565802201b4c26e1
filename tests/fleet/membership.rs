//! Who comes, goes, and comes again.
use nix::sys::signal::Signal;

use crate::world::{within, Agent, Fleet, SLACK, WINDOW};

fn members(fleet: &Fleet, of: usize) -> usize {
    fleet.agent(of).status().membership.members
}

/// The oldest first.
fn names(fleet: &Fleet, of: usize) -> Vec<String> {
    let nodes = fleet
        .agent(of)
        .status()
        .membership
        .fleet
        .expect("in etcd")
        .nodes;
    nodes.into_iter().map(|node| node.name).collect()
}

fn is_registered(agent: &Agent) -> bool {
    let status = agent.try_status();
    status.is_some_and(|s| s.membership.fleet.expect("in etcd").connected)
}

#[test]
fn agents_join_leave_and_crash_and_the_others_go_on() {
    let mut fleet = Fleet::start(11, 3);
    let (leader, term) = fleet.leader(1).expect("one leads");
    let other = 1 + leader % 3;

    fleet.launch(4, &[]);
    let took = fleet.within(
        WINDOW * 3 + SLACK,
        "a newcomer has fleet time",
        Fleet::is_whole,
    );
    println!(
        "a newcomer has fleet time after {:.1} s",
        took.as_secs_f64()
    );
    fleet.watch(3.0);

    // Says good-bye: gone at once.
    fleet.stop(4, Signal::SIGTERM);
    let took = fleet.within(SLACK / 2, "who left is gone", |f| members(f, leader) == 3);
    println!("who leaves is gone after {:.2} s", took.as_secs_f64());
    fleet.watch(1.0);

    fleet.stop(other, Signal::SIGKILL);
    let took = fleet.within(WINDOW * 2 + SLACK, "who crashed is gone", |f| {
        members(f, leader) == 2
    });
    println!("who crashes is gone after {:.1} s", took.as_secs_f64());
    fleet.launch(other, &[]);
    fleet.settle();

    // Starts again while its lease lasts: it need not wait for its end, and keeps its place.
    let before = names(&fleet, leader);
    let second: usize = before[1][1..].parse().expect("a number");
    fleet.stop(second, Signal::SIGKILL);
    fleet.launch(second, &[]);
    let took = within(SLACK, "it is back", || {
        let status = fleet.agent(second).try_status();
        status.is_some_and(|s| {
            s.membership.fleet.expect("in etcd").connected && s.membership.members == 3
        })
    });
    println!(
        "who starts again at once is registered after {:.2} s",
        took.as_secs_f64()
    );
    fleet.settle();
    assert_eq!(names(&fleet, leader), before);
    assert_eq!(
        fleet.leader(second),
        Some((leader, term)),
        "nobody else had to lead"
    );
    assert_eq!(fleet.steps(), 0);
}

#[test]
fn a_name_that_another_process_holds_is_refused() {
    let fleet = Fleet::start(12, 2);
    let mut twin = fleet.spawn(3, "n1", &["--etcd", &fleet.etcd.url]);
    assert_eq!(twin.ends(SLACK * 3), Some(1));
    let said = twin.text();
    for part in ["node n1", "fleet default", "127.0.12.1:5198", "--node"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // A name that a dead one held elsewhere is free when its lease is over.
    let mut dead = fleet.spawn(3, "n3", &["--etcd", &fleet.etcd.url]);
    within(SLACK, "it is registered", || is_registered(&dead));
    dead.stop(Signal::SIGKILL);
    let heir = fleet.spawn(4, "n3", &["--etcd", &fleet.etcd.url]);
    let took = within(SLACK * 2, "it is registered", || is_registered(&heir));
    println!(
        "who starts again elsewhere is registered after {:.1} s",
        took.as_secs_f64()
    );
    drop(heir);
    // In another fleet it is another's name.
    let url = &fleet.etcd.url;
    let other = fleet.spawn(3, "n1", &["--etcd", url, "--fleet", "other"]);
    within(SLACK, "it is registered", || is_registered(&other));
    assert_eq!(
        (
            other.status().state.as_str(),
            other.status().membership.members
        ),
        ("alone", 1)
    );
    within(SLACK, "the others are as they were", || fleet.is_whole());
}

#[test]
fn what_cannot_be_is_refused_with_its_name() {
    let fleet = Fleet::empty(13, &[]);
    let url = fleet.etcd.url.as_str();
    let long = "x".repeat(64);
    let refused: [(&[&str], &str); 10] = [
        (&["--etcd", "127.0.0.1:2379"], "--etcd 127.0.0.1:2379"),
        (&["--etcd", "http://127.0.0.1"], "has no port"),
        (&["--etcd", "https://127.0.0.1:2379"], "--etcd-ca"),
        (
            &["--etcd", url, "--fleet", "a/b"],
            "--fleet is \"a/b\": '/'",
        ),
        (
            &["--etcd", url, "--fleet", &long],
            "64 characters, above 63",
        ),
        (
            &["--etcd", url, "--member", "127.0.13.1,127.0.13.2"],
            "--member is set too; remove one of them",
        ),
        (&["--fleet", "x"], "--etcd"),
        (&["--etcd", url, "--etcd-user", "x"], "--etcd-password-file"),
        (&["--etcd", url, "--etcd-ca", "/nowhere"], "--etcd-ca"),
        (&[], "--etcd"),
    ];
    for (options, why) in refused {
        let mut agent = fleet.spawn(1, "n1", options);
        let code = agent.ends(SLACK * 2);
        assert!(code.is_some_and(|code| code != 0), "{options:?}: {code:?}");
        assert!(agent.text().contains(why), "{options:?}: {}", agent.text());
    }
    let mut agent = fleet.spawn(1, "a b", &["--etcd", url]);
    assert_eq!(agent.ends(SLACK * 2), Some(1));
    assert!(
        agent.text().contains("--node is \"a b\": ' '"),
        "{}",
        agent.text()
    );
}
