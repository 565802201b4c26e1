// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use onramp_sync::line::Line;
use onramp_units::Time;
use proptest::prelude::*;

fn members() -> Members {
    let list = (1..=3).map(|n| SocketAddr::from(([10, 0, 0, n], 5198)));
    Members::new(list.collect()).expect("a fleet")
}

/// Member 0's clock is right, 1's 1 ms ahead, 2's 2 ms; ways take 5 us, but 1 to 2 9 us.
fn report(members: &Members, near: usize, far: usize) -> (SocketAddr, EdgeReport) {
    let ahead = (far as i64 - near as i64) * 1_000_000;
    let (out, back) = if (near, far) == (1, 2) {
        (9_000, 5_000)
    } else {
        (5_000, 5_000)
    };
    let half = (out + back) / 2;
    let edge = EdgeReport {
        far: members.all()[far],
        far_epoch: 0,
        line: Line {
            at: Time::from_ticks(1_000_000_000),
            about_ns: ahead,
            ahead_ns: (out - back) as f64 / 2.0,
            drift: 0.0,
            delay_ns: half as f64,
            points: 60,
            sigma_ns: 50.0,
            drift_sigma: 2e-8,
        },
        delays: Delays {
            out_min_ns: half,
            back_min_ns: half,
            out_now_ns: half + 1_000,
            back_now_ns: half,
        },
    };
    (members.all()[near], edge)
}

/// A coordinator of members that have said that they follow nothing.
fn begun(members: Members) -> Coordinator {
    let mut coordinator = Coordinator::new(members.clone());
    for member in members.all() {
        let says = wire::Report {
            epoch: 0,
            follows: None,
            edges: vec![],
        };
        coordinator.take(*member, &says);
    }
    coordinator
}

fn alone(edge: EdgeReport) -> wire::Report {
    wire::Report {
        epoch: 0,
        follows: None,
        edges: vec![edge],
    }
}

#[test]
fn reports_become_verdicts() {
    let members = members();
    let mut coordinator = begun(members.clone());
    for (near, far) in [(0, 1), (1, 2), (0, 2)] {
        let (near, edge) = report(&members, near, far);
        coordinator.take(near, &alone(edge));
        coordinator.take(near, &alone(edge));
    }
    let verdicts = coordinator.step();
    assert_eq!(verdicts.len(), 3);
    for (n, (to, verdict)) in verdicts.iter().enumerate() {
        assert_eq!(*to, members.all()[n]);
        let State::Synchronised(correction) = verdict.state else {
            panic!("{verdict:?}");
        };
        let off = correction.offset_ns + n as i64 * 1_000_000 - verdict_offset(&verdicts[0].1);
        assert!(off.abs() < 1_500, "{off} ns");
        assert_eq!(verdict.delays.len(), 2);
    }
    // The loop shows two thirds of what one asymmetric way hides.
    let way = |from: usize, to: usize| {
        let (from, to) = (members.all()[from], members.all()[to]);
        coordinator
            .ways()
            .into_iter()
            .find(|w| (w.from, w.to) == (from, to))
            .expect("a way")
    };
    assert!(way(1, 2).min_ns > way(2, 1).min_ns + 1_000);
    assert!(way(1, 2).now_ns - way(1, 2).min_ns == 1_000);
    assert!(coordinator.step().is_empty(), "nothing was reported");
}

#[test]
fn who_stays_is_still_known_when_others_come_and_go() {
    let members = members();
    let mut coordinator = begun(members.clone());
    let both = |coordinator: &mut Coordinator, edges: &[(usize, usize)]| {
        for (near, far) in edges {
            let (near, edge) = report(&members, *near, *far);
            coordinator.take(near, &alone(edge));
        }
        coordinator.step()
    };
    let before = both(&mut coordinator, &[(0, 1), (1, 2), (0, 2)]);
    let ways = coordinator.ways();
    coordinator.renumber(Members::registered(members.all()[1..].to_vec()));
    let after = both(&mut coordinator, &[(0, 1), (1, 2), (0, 2)]);
    assert_eq!(after.len(), 2, "host 0 is spoken of by nobody");
    for (to, verdict) in &after {
        let was = before.iter().find(|(host, _)| host == to).expect("it was");
        let moved = verdict_offset(verdict) - verdict_offset(&was.1);
        assert!(moved.abs() < 1_500, "{moved} ns");
    }
    let kept = |way: &OneWayDelays| way.from != members.all()[0] && way.to != members.all()[0];
    assert_eq!(
        coordinator.ways().len(),
        ways.iter().filter(|w| kept(w)).count()
    );
    let newcomer = "10.0.0.0:5198".parse().expect("an address");
    let all = [&[newcomer], members.all()].concat();
    coordinator.renumber(Members::registered(all));
    assert_eq!(both(&mut coordinator, &[(0, 1), (1, 2)]).len(), 3);
}

/// A window's minimum delay of the edge from member 0 to 1, out and back; all others say the usual.
fn measured(
    coordinator: &mut Coordinator,
    out_min_ns: i64,
    back_min_ns: i64,
) -> Option<OneWayDelays> {
    let members = members();
    for (near, far) in [(0, 1), (1, 2), (0, 2)] {
        let (from, mut edge) = report(&members, near, far);
        if (near, far) == (0, 1) {
            edge.delays.out_min_ns = out_min_ns;
            edge.delays.back_min_ns = back_min_ns;
        }
        coordinator.take(from, &alone(edge));
    }
    coordinator.step();
    let (from, to) = (members.all()[0], members.all()[1]);
    let ways = coordinator.ways();
    ways.into_iter().find(|w| (w.from, w.to) == (from, to))
}

#[test]
fn a_minimum_is_forgotten_after_half_a_minute_and_a_negative_delay_is_none() {
    let mut coordinator = begun(members());
    let about =
        |way: Option<OneWayDelays>, ns: i64| (way.expect("a way").min_ns - ns).abs() < 2_000;
    assert_eq!(measured(&mut coordinator, -40_000_000, 5_000), None);
    assert!(about(measured(&mut coordinator, 20_000, 20_000), 20_000));
    let glitch = measured(&mut coordinator, 40_000_000, -40_000_000);
    assert!(about(glitch, 20_000), "{glitch:?}");
    // The path has grown.
    for _ in 0..14 {
        let old = measured(&mut coordinator, 20_000_000, 20_000_000);
        assert!(about(old, 20_000), "{old:?}");
    }
    let grown = measured(&mut coordinator, 20_000_000, 20_000_000);
    assert!(about(grown, 20_000_000), "{grown:?}");
}

#[test]
fn an_edge_that_was_silent_for_long_is_measured_anew() {
    let mut coordinator = begun(members());
    measured(&mut coordinator, 20_000, 20_000);
    for _ in 0..MEMORY {
        let (near, edge) = report(&members(), 1, 2);
        coordinator.take(near, &alone(edge));
        coordinator.step();
    }
    let way = measured(&mut coordinator, 20_000_000, 20_000_000);
    assert!(way.expect("a way").min_ns > 19_000_000, "{way:?}");
}

/// Two hosts make no loop: only time shows that their edge is noisy.
#[test]
fn sigma_grows_with_surprises() {
    let two = Members::new(members().all()[..2].to_vec()).expect("a fleet");
    let mut coordinator = begun(two.clone());
    let mut sigma_ns = 0.0;
    for window in 0..40i64 {
        let (near, mut edge) = report(&two, 0, 1);
        edge.line.at = Time::from_ticks(window * 2_000_000_000);
        edge.line.ahead_ns = (window % 2 * 800) as f64;
        coordinator.take(near, &alone(edge));
        match coordinator.step()[1].1.state {
            State::Synchronised(correction) => sigma_ns = correction.error.sigma_ns,
            state => panic!("{state:?}"),
        }
    }
    assert!((150.0..1_200.0).contains(&sigma_ns), "{sigma_ns} ns");
}

fn verdict_offset(verdict: &Verdict) -> i64 {
    match verdict.state {
        State::Synchronised(correction) => correction.offset_ns,
        _ => panic!("{verdict:?}"),
    }
}

#[test]
fn strangers_are_not_heard() {
    let members = members();
    let mut coordinator = begun(members.clone());
    let stranger: SocketAddr = "10.9.9.9:5198".parse().unwrap();
    let (near, mut edge) = report(&members, 0, 1);
    coordinator.take(stranger, &alone(edge));
    edge.far = stranger;
    coordinator.take(near, &alone(edge));
    edge.far = near;
    coordinator.take(near, &alone(edge));
    assert!(coordinator.step().is_empty());
}

proptest! {
    #[test]
    fn absurd_reports_harm_nobody(
        ends in prop::collection::vec((0usize..3, 0usize..3), 1..9),
        ints in any::<[i64; 3]>(),
        floats in any::<[f64; 3]>(),
    ) {
        let members = members();
        let mut coordinator = begun(members.clone());
        for _ in 0..2 {
            for (near, far) in &ends {
                let (near, mut edge) = report(&members, *near, *far);
                edge.line.at = Time::from_ticks(ints[0]);
                edge.line.about_ns = ints[1];
                edge.line.ahead_ns = floats[0];
                edge.line.drift = floats[1];
                edge.line.delay_ns = floats[2];
                edge.delays.out_min_ns = ints[2];
                coordinator.take(near, &alone(edge));
            }
            coordinator.step();
        }
    }
}

/// Member 2 is silent: it may follow a fleet time that nobody here knows, until its lease is over.
#[test]
fn whoever_has_said_nothing_may_follow_another_fleet_time() {
    let members = members();
    let lease = Span::from_s(6);
    let mut coordinator = Coordinator::new(members.clone()).leasing(lease);
    let published = |coordinator: &mut Coordinator| {
        for (near, far) in [(0, 1), (1, 0)] {
            let (near, edge) = report(&members, near, far);
            coordinator.take(near, &alone(edge));
        }
        coordinator.pass(Span::from_s(2));
        let verdicts = coordinator.step();
        assert_eq!(verdicts.len(), 2);
        verdicts
            .into_iter()
            .filter(|(_, verdict)| matches!(verdict.state, State::Synchronised(_)))
            .count()
    };
    let windows = (0..8).map(|_| published(&mut coordinator));
    assert_eq!(windows.collect::<Vec<_>>(), [0, 0, 0, 0, 2, 2, 2, 2]);
    let mut heard = Coordinator::new(members.clone()).leasing(lease);
    let (silent, _) = report(&members, 2, 0);
    let nothing = wire::Report {
        epoch: 0,
        follows: None,
        edges: vec![],
    };
    heard.take(silent, &nothing);
    assert_eq!(published(&mut heard), 2);
}

/// A member claims to follow a clock that stands still.
#[test]
fn a_clock_that_cannot_be_is_not_continued() {
    let members = members();
    let mut coordinator = begun(members.clone());
    let (near, edge) = report(&members, 0, 1);
    let follows = Correction {
        reference: Time::from_ticks(1_000_000_000),
        offset_ns: 0,
        drift: -1.0,
        bend: 0.0,
        error: Default::default(),
    };
    let lie = wire::Report {
        follows: Some(follows),
        ..alone(edge)
    };
    coordinator.take(near, &lie);
    let verdicts = coordinator.step();
    assert!(
        verdicts.iter().all(
            |(_, published)| matches!(published.state, State::Synchronised(published) if published.drift.is_finite())
        ),
        "{verdicts:?}"
    );
}
