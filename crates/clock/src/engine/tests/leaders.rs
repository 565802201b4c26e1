// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Leaders that are replaced, and members that come and go.
use super::*;

#[test]
fn a_replaced_leader_misleads_nobody() {
    let mut engine = engine();
    engine.adopt(roster(&[1, 2, 3], 1, 5), NOW);
    let said = |offset_ns| verdict(correction(NOW, offset_ns));
    hear_of(&mut engine, 5, 1, 1, said(1_000), NOW);
    assert_eq!(offset(&engine, NOW), Some(1_000));
    // Host 3's first verdict comes before we have heard that it leads: its repetition counts.
    hear_of(&mut engine, 9, 3, 2, said(2_000), NOW);
    assert_eq!(engine.published.counters.strangers, 1);
    engine.adopt(roster(&[1, 2, 3], 3, 9), NOW);
    hear_of(&mut engine, 9, 3, 2, said(2_000), NOW);
    assert_eq!(engine.published.counters.verdicts_taken, 2);
    hear_of(&mut engine, 5, 1, 3, said(900_000), NOW);
    hear_of(&mut engine, 9, 1, 4, said(900_000), NOW);
    let counters = &engine.published.counters;
    assert_eq!((counters.old_terms, counters.strangers), (1, 2));
    let later = NOW + WINDOW_NS;
    assert_eq!(offset(&engine, later), Some(2_000 + 20_000));
}

#[test]
fn a_member_that_comes_or_goes_leaves_the_other_edges_as_they_are() {
    let mut engine = engine_of(1);
    let edge = engine.probed.iter_mut().find(|edge| edge.far == address(2));
    edge.expect("all pairs").end.begin(77);
    engine.adopt(roster(&[1, 2], 1, 5), NOW);
    engine.adopt(roster(&[1, 2, 4], 1, 5), NOW);
    let ack = Body::Ack(Probe {
        seq: 77,
        ..Probe::default()
    });
    hear_of(&mut engine, 5, 2, 77, ack, NOW);
    assert_eq!(engine.published.counters.unasked, 0);
    let far: Vec<SocketAddr> = engine.probed.iter().map(|edge| edge.far).collect();
    assert!(!far.contains(&address(3)), "{far:?}");
    // Who is not registered, or not any more, has nobody.
    engine.adopt(roster(&[2, 4], 2, 6), NOW);
    assert!(engine.probed.is_empty() && engine.central.is_none());
}

/// Only while the registry is silent does a newer term say more than it did.
#[test]
fn a_leader_cut_off_with_its_followers_gives_way_to_a_newer_one() {
    let mut engine = engine_of(1);
    engine.adopt(roster(&[1, 2, 3], 1, 5), NOW);
    hear_of(&mut engine, 5, 1, 1, verdict(correction(NOW, 1_000)), NOW);
    hear_of(&mut engine, 9, 3, 1, Body::Notice { answers: 0 }, NOW);
    assert!(engine.central.is_some() && engine.published.course.is_some());
    engine.roster.certain = false;
    hear_of(&mut engine, 5, 3, 2, Body::Notice { answers: 0 }, NOW);
    assert!(engine.central.is_some() && engine.published.course.is_some());
    hear_of(&mut engine, 9, 3, 3, Body::Notice { answers: 0 }, NOW);
    assert!(engine.central.is_none() && engine.published.course.is_none());
    assert_eq!(engine.published.counters.deposed, 1);
    engine.adopt(roster(&[1, 2, 3], 3, 9), NOW);
    hear_of(&mut engine, 9, 3, 4, verdict(correction(NOW, 2_000)), NOW);
    assert_eq!(offset(&engine, NOW), Some(2_000));
}

#[test]
fn a_stranger_of_an_older_term_is_told_so() {
    let mut engine = engine();
    engine.adopt(roster(&[2, 3], 3, 9), NOW);
    let probe = || Body::Probe(Probe::default());
    hear_of(&mut engine, 9, 1, 1, probe(), NOW);
    assert_eq!(engine.outdated, None);
    hear_of(&mut engine, 5, 1, 2, probe(), NOW);
    assert_eq!(engine.outdated, Some((address(1), 2)));
}
