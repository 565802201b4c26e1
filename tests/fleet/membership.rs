// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Who comes, goes, and comes again.
use nix::sys::signal::Signal;

use crate::{
    machine::until,
    world::{Agent, Fleet},
};

fn is_registered(agent: &Agent) -> bool {
    let status = agent.try_status();
    status.is_some_and(|s| s.membership.fleet.expect("in etcd").connected)
}

#[test]
fn a_name_that_another_process_holds_is_refused() {
    let fleet = Fleet::start(12, 2);
    let said = refused_twin(&fleet);
    let holder = fleet.address(1).to_string();
    for part in ["node n1", "fleet default", &holder, "--node"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // A name that a dead one held elsewhere is free when its lease is over.
    let mut dead = fleet.spawn(3, "n3", &["--etcd", &fleet.etcd.url]);
    until("it is registered", || is_registered(&dead));
    dead.stop(Signal::SIGKILL);
    let heir = fleet.spawn(4, "n3", &["--etcd", &fleet.etcd.url]);
    until("who starts again elsewhere is registered", || {
        is_registered(&heir)
    });
    drop(heir);
    // In another fleet it is another's name.
    let url = &fleet.etcd.url;
    let other = fleet.spawn(3, "n1", &["--etcd", url, "--fleet", "other"]);
    until("it is registered, and alone", || {
        let status = other.status();
        is_registered(&other) && (status.state.as_str(), status.membership.members) == ("alone", 1)
    });
    until("the others are as they were", || fleet.is_whole());
}

/// So many hosts do not find the first one without its lease.
const MOST_TWINS: usize = 20;

/// What a host says whose name the first one holds, when it ends. A holder without a processor cannot renew its lease, and
/// without a lease its name is free: then it is given it back, and another host tries.
fn refused_twin(fleet: &Fleet) -> String {
    for _ in 0..MOST_TWINS {
        until("the first host has its name", || fleet.is_whole());
        let mut twin = fleet.spawn(3, "n1", &["--etcd", &fleet.etcd.url]);
        let mut code = None;
        until("it is refused, or has the name", || {
            code = twin.ended();
            code.is_some() || is_registered(&twin)
        });
        if code.is_some() {
            assert_eq!(code, Some(1));
            return twin.text();
        }
    }
    panic!("each of {MOST_TWINS} hosts got a name that another has")
}

#[test]
fn what_cannot_be_is_refused_with_its_name() {
    let fleet = Fleet::empty(13, &[]);
    let url = fleet.etcd.url.as_str();
    let long = "x".repeat(64);
    let refused: [(&[&str], &str); 10] = [
        // machine: nobody connects to these addresses, which are refused before
        (&["--etcd", "127.0.0.1:2379"], "--etcd 127.0.0.1:2379"),
        (&["--etcd", "http://127.0.0.1"], "has no port"),
        (&["--etcd", "https://127.0.0.1:2379"], "--etcd-ca"), // machine: as above
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
        let code = agent.ends();
        assert!(code.is_some_and(|code| code != 0), "{options:?}: {code:?}");
        assert!(agent.text().contains(why), "{options:?}: {}", agent.text());
    }
    let mut agent = fleet.spawn(1, "a b", &["--etcd", url]);
    assert_eq!(agent.ends(), Some(1));
    assert!(
        agent.text().contains("--node is \"a b\": ' '"),
        "{}",
        agent.text()
    );
}
