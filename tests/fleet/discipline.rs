// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! System clocks that follow the leader's. That they agree is a fact of simulated fleets (crates/fleets/tests/protocol).
use crate::world::Fleet;

#[test]
fn without_a_key_nobody_sets_the_system_clock() {
    let fleet = Fleet::empty(52, &[]);
    let mut agent = fleet.spawn(1, "n1", &["--etcd", &fleet.etcd.url, "--discipline"]);
    assert_eq!(agent.ends(), Some(1));
    assert!(agent.text().contains("--key-file"), "{}", agent.text());
}
