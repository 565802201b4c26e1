// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Somebody records messages and sends them again, when their sender is silent or their receiver has restarted.
use super::*;

/// Somebody recorded it, and sends it again: to this host after its leader was silent, and to one that has restarted.
#[test]
fn a_replayed_verdict_does_not_prolong_fleet_time() {
    const S: i64 = 1_000_000_000;
    let old = || verdict(correction(NOW, 1_000));
    for after in [4 * S, 6 * S, 9 * S, 15 * S, 3_600 * S] {
        let (mut listener, mut restarted) = (engine(), engine());
        hear(&mut listener, 1, 7, old(), NOW);
        for host in [&mut listener, &mut restarted] {
            hear(host, 1, 7, old(), NOW + after);
            let until = host
                .published
                .course
                .as_ref()
                .map(|c| c.valid_until_mono_ns);
            let most = NOW + 2 * WINDOW_NS + host.config.lease.as_ns();
            assert!(
                until.is_none_or(|until| until <= most),
                "{after}: {until:?}"
            );
        }
    }
}

/// A verdict without a correction has no time that would show its age.
#[test]
fn a_replayed_verdict_takes_fleet_time_from_nobody() {
    let contradictory = |answers| {
        Body::Verdict(Verdict {
            answers,
            state: State::Contradictory,
            wall: None,
            delays: vec![],
        })
    };
    let mut listener = engine();
    let recorded = listener.next_seq();
    hear_answer(&mut listener, 0, 1, 7, contradictory(recorded), NOW);
    assert_eq!(listener.published.state, "contradictory");
    let mut restarted = engine();
    restarted.seq = recorded + 1;
    restarted.recent = Recent::since(restarted.seq);
    let_windows_pass(&mut listener);
    // The leader speaks to the one, and is silent for 6 s; the other hears no other verdict.
    hear(&mut listener, 1, 8, verdict(correction(NOW, 1_000)), NOW);
    let late = NOW + 6_000_000_000;
    for host in [&mut listener, &mut restarted] {
        hear_answer(host, 0, 1, 7, contradictory(recorded), late);
        assert_eq!(host.published.counters.stale, 1);
        assert_ne!(host.published.state, "contradictory");
    }
    assert!(listener.published.course.is_some());
    hear(&mut restarted, 1, 7, verdict(correction(late, 0)), late);
    assert_eq!(restarted.published.state, "synchronised");
}

/// The registry has begun anew with small terms: an old notice has a higher one.
#[test]
fn a_replayed_notice_deposes_nobody() {
    let mut engine = engine_of(1);
    engine.adopt(roster(&[1, 2, 3], 1, 5), NOW);
    hear_of(&mut engine, 5, 1, 1, verdict(correction(NOW, 1_000)), NOW);
    engine.roster.certain = false;
    let answers = engine.next_seq();
    let_windows_pass(&mut engine);
    hear_answer(&mut engine, 9, 3, 1, Body::Notice { answers }, NOW);
    assert!(engine.central.is_some() && engine.published.course.is_some());
    assert_eq!(
        (
            engine.published.counters.stale,
            engine.published.counters.deposed
        ),
        (1, 0)
    );
    hear_of(&mut engine, 9, 3, 2, Body::Notice { answers: 0 }, NOW);
    assert_eq!(engine.published.counters.deposed, 1);
}

/// Its sender is silent, and this host has just begun to lead: what members follow is where fleet time goes on.
#[test]
fn a_replayed_report_does_not_choose_fleet_time() {
    let mut engine = engine_of(1);
    engine.adopt(roster(&[1, 2, 3], 1, 5), NOW);
    hear_of(&mut engine, 5, 1, 1, verdict(correction(NOW, 1_000)), NOW);
    let says = |far: u8, at_ns: i64, offset_ns: i64| {
        let mut report = central::tests::report(far);
        report.edges[0].line.at = Time::from_ticks(at_ns);
        report.follows = Some(correction(at_ns, offset_ns));
        Body::Report(report)
    };
    let hour_ago = NOW - 3_600_000_000_000;
    hear_of(&mut engine, 5, 3, 1, says(1, hour_ago, -70_000_000), NOW);
    hear_of(
        &mut engine,
        5,
        2,
        1,
        says(1, NOW - 3_000_000_000, 1_000),
        NOW,
    );
    assert_eq!(engine.published.counters.stale, 1);
    let verdicts = stepped(engine.central.as_mut().expect("it leads"));
    let published = verdicts.iter().find(|(to, _)| *to == address(2));
    let State::Synchronised(published) = published.expect("it reported").1.state else {
        panic!("{verdicts:?}");
    };
    let off_ns = published.offset_at(Time::from_ticks(NOW)) - 1_000;
    assert!(off_ns.abs() < 100_000, "{off_ns} ns");
}
