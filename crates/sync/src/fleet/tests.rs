// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use crate::synthetic::gaussian;
use onramp_units::Span;
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

#[test]
fn the_median_is_one_of_those_who_know() {
    let of = |values: &[(f64, f64)]| weighted_median(values.iter().copied());
    assert_eq!(of(&[(5.0, 1.0), (1.0, 1.0), (2.0, 1.0)]), 2.0);
    assert_eq!(of(&[(5.0, 1.0), (9.0, 30.0)]), 5.0, "who does not know");
    assert_eq!(
        of(&[(9.0, 1e-3), (5.0, 1.0), (4.0, 1.0)]),
        5.0,
        "one who claims to"
    );
    assert_eq!(of(&[(7.0, f64::INFINITY)]), 7.0);
    assert_eq!(of(&[]), 0.0);
}

/// Clocks 1 and 2 ms ahead of host 0's, which drift by 20 and -10 ppm.
fn reports(at_s: i64) -> Vec<Report> {
    let ahead = |host: i64, at_ns: i64| {
        let ppm = [0, 20, -10][host as usize];
        host * 1_000_000 + at_ns * ppm / 1_000_000
    };
    let at = at_s * 1_000_000_000;
    let report = |(near, far): (i64, i64)| Report {
        near: near as usize,
        far: far as usize,
        line: Line {
            at: Time::from_ticks(at + ahead(near, at)),
            about_ns: ahead(far, at) - ahead(near, at),
            ahead_ns: 0.0,
            drift: ([0, 20, -10][far as usize] - [0, 20, -10][near as usize]) as f64 / 1e6,
            delay_ns: 5_000.0,
            points: 60,
            sigma_ns: 50.0,
            drift_sigma: 2e-8,
        },
    };
    [(0, 1), (1, 2), (0, 2)].map(report).to_vec()
}

#[test]
fn a_line_by_which_packets_come_before_they_leave_moves_nobody() {
    let (mut fleet, mut wrong) = (Fleet::new(Wander::default()), reports(4));
    fleet.window(3, &reports(2));
    let right = fleet.clone().window(3, &wrong).corrections;
    wrong[2].line.about_ns += 2_000_000;
    wrong[2].line.delay_ns = -2_000_000.0;
    for (right, published) in right.iter().zip(fleet.window(3, &wrong).corrections) {
        let (right, published) = (right.expect("a member"), published.expect("a member"));
        let now = right.reference;
        assert!((right.offset_at(now) - published.offset_at(now)).abs() <= 1_000);
    }
}

/// Three paths close one loop, so a single residual shows that their directions differ: sigma is large, but not beyond what their
/// delays allow.
#[test]
fn what_one_residual_shows_is_bounded_by_the_delay() {
    let mut fleet = Fleet::new(Wander::default());
    let sigma_ns = |window: Window| {
        let published = window
            .corrections
            .into_iter()
            .map(|published| published.expect("a member"));
        published
            .map(|published| published.error.sigma_ns)
            .fold(0.0, f64::max)
    };
    for n in 1..60 {
        let mut unequal = reports(2 * n);
        unequal[2].line.ahead_ns = 1_500.0;
        let sigma_ns = sigma_ns(fleet.window(3, &unequal));
        let bounds = 500.0..5_000.0;
        assert!(
            n < 5 || bounds.contains(&sigma_ns),
            "window {n}: {sigma_ns} ns"
        );
    }
}

/// All hosts follow a fleet time whose rate is far from theirs, and bends away further.
#[test]
fn the_rate_of_fleet_time_becomes_that_of_the_median_clock() {
    let mut fleet = Fleet::new(Wander::default());
    for (host, ppm) in [0.0, 20.0, -10.0].into_iter().enumerate() {
        let published = Correction {
            reference: Time::from_ticks(1_000_000_000),
            offset_ns: -(host as i64) * 1_000_000,
            drift: -(200.0 + ppm) * 1e-6,
            bend: -5e-8,
            error: Error::default(),
        };
        fleet.recall(host, &published);
    }
    let drift = |window: &Window| window.corrections[0].expect("a member").drift.abs();
    let first = drift(&fleet.window(3, &reports(2)));
    assert!(first > 1e-4, "{first}");
    let last = (2..4_000).map(|n| fleet.window(3, &reports(2 * n))).last();
    let last = drift(&last.expect("some"));
    assert!(last < 1e-6, "{last}");
}

/// The lines of hosts without processors are off by half a millisecond and 500 ppm, as they say.
#[test]
fn while_lines_say_little_fleet_time_does_not_walk_away_from_the_clocks() {
    for seed in 0..40 {
        let mut noise = ChaCha8Rng::seed_from_u64(seed);
        let mut fleet = Fleet::new(Wander::default());
        for n in 1..200 {
            let mut reports = reports(2 * n);
            for Report { line, .. } in &mut reports {
                line.ahead_ns = 5e5 * gaussian(&mut noise);
                line.drift += 5e-4 * gaussian(&mut noise);
                (line.sigma_ns, line.drift_sigma) = (5e5, 5e-4);
                line.delay_ns = 2e6;
            }
            let published = fleet.window(3, &reports).corrections;
            let ahead = published.into_iter().zip([0.0, 20e-6, -10e-6]);
            let rate =
                median(ahead.map(|(published, ppm)| published.expect("a member").drift + ppm));
            assert!(rate.abs() < 1e-4, "seed {seed}, window {n}: {rate}");
        }
    }
}

/// One edge is in no loop, so nothing contradicts its first line.
#[test]
fn a_first_line_of_two_hosts_is_not_trusted_for_long() {
    let mut fleet = Fleet::new(Wander::default());
    for published in fleet.window(2, &reports(2)[..1]).corrections {
        let published = published.expect("a member");
        let later = published.reference + Span::from_ms(1_000);
        assert!(published.sigma_at(later) > 3_000.0, "{published:?}");
    }
}

/// All pairs of the first window met queues of milliseconds, which grew on some ways.
#[test]
fn a_fleet_that_begins_under_load_is_soon_right() {
    let mut fleet = Fleet::new(Wander::default());
    let mut queued = reports(2);
    for (report, (ahead_ns, drift)) in
        queued
            .iter_mut()
            .zip([(6e5, 5e-4), (-8e5, -4e-4), (2e5, 7e-4)])
    {
        report.line.ahead_ns += ahead_ns;
        report.line.drift += drift;
        report.line.delay_ns = 1.2e6;
        report.line.sigma_ns = 6e5;
        report.line.drift_sigma = 5e-4;
    }
    let first = fleet.window(3, &queued).corrections;
    for published in first {
        let sigma_ns = published.expect("a member").error.sigma_ns;
        assert!(sigma_ns > 5e5, "{sigma_ns} ns");
    }
    let windows = (2..6).map(|n| fleet.window(3, &reports(2 * n)));
    let last = windows.last().expect("four").corrections;
    let last: Vec<Correction> = last
        .into_iter()
        .map(|published| published.expect("a member"))
        .collect();
    for published in last {
        assert!(published.error.sigma_ns < 2_000.0, "{published:?}");
        assert!(published.drift.abs() < 5e-5, "{published:?}");
    }
}

/// Hosts 0 to 2 are heard no more, and hosts 3 to 5 are new and meet none of them: as long as anybody may follow the fleet
/// time that was, there is no other one.
#[test]
fn an_island_of_new_hosts_waits_until_nobody_follows_the_former_fleet_time() {
    let mut fleet = Fleet::new(Wander::default());
    (1..5).for_each(|n| drop(fleet.window(6, &reports(2 * n))));
    let island = |at_s: i64| {
        let apart = |report: Report| Report {
            near: report.near + 3,
            far: report.far + 3,
            ..report
        };
        reports(at_s).into_iter().map(apart).collect::<Vec<_>>()
    };
    for n in 5..9 {
        fleet.pass(Span::from_s(2));
        let published = fleet.window(6, &island(2 * n)).corrections;
        assert_eq!(published, [Err(Lost::Apart); 6], "window {n}");
    }
    fleet.pass(Span::from_s(2));
    let published = fleet.window(6, &island(18)).corrections;
    assert_eq!(published, [Err(Lost::Apart); 6], "10 s later");
    let published = fleet.window(6, &island(20)).corrections;
    assert!(published[3..].iter().all(Result::is_ok), "{published:?}");
}

/// The same, but hosts 0 and 1 still hear each other: they do not keep more hosts than they are from a fleet time for ever.
#[test]
fn few_hosts_with_a_fleet_time_do_not_keep_most_from_one() {
    let mut fleet = Fleet::new(Wander::default());
    (1..5).for_each(|n| drop(fleet.window(6, &reports(2 * n)[..1])));
    let both = |at_s: i64| {
        let apart = |report: Report| Report {
            near: report.near + 3,
            far: report.far + 3,
            ..report
        };
        let island = reports(at_s).into_iter().map(apart);
        let few = reports(at_s).into_iter().take(1);
        few.chain(island).collect::<Vec<_>>()
    };
    let mut published = |n: i64| {
        fleet.pass(Span::from_s(2));
        let published = fleet.window(6, &both(2 * n)).corrections;
        (published[0].is_ok(), published[3].is_ok())
    };
    let windows: Vec<(bool, bool)> = (5..20).map(&mut published).collect();
    let few = windows.partition_point(|published| published.0);
    assert!(2 * few > FOLLOWED_S as usize, "{windows:?}");
    let waits = windows[few..].partition_point(|published| *published == (false, false));
    // From the last window in which they were told.
    assert!(2 * (waits + 1) >= FOLLOWED_S as usize, "{windows:?}");
    let last = &windows[few + waits..];
    assert!(
        !last.is_empty() && last.iter().all(|published| *published == (false, true)),
        "{windows:?}"
    );
}

/// Host 0 alone has a fleet time, and its edges contradict each other: the others do not continue what only it knows.
#[test]
fn nobody_goes_on_when_whoever_knows_is_excluded() {
    let mut fleet = Fleet::new(Wander::default());
    (1..5).for_each(|n| drop(fleet.window(3, &reports(2 * n))));
    fleet.renumber(&[Some(0), None, None, None, None, None]);
    let pairs = (1..6).flat_map(|near| (near + 1..6).map(move |far| (near, far)));
    let mut seen: Vec<Report> = pairs
        .map(|(near, far)| Report {
            near,
            far,
            line: Line {
                about_ns: 0,
                drift: 0.0,
                ..reports(10)[0].line
            },
        })
        .collect();
    seen.extend((1..6).map(|far| Report {
        near: 0,
        far,
        line: Line {
            about_ns: 300_000 * (far * far) as i64,
            ..reports(10)[0].line
        },
    }));
    let published = fleet.window(6, &seen).corrections;
    assert!(published.iter().all(Result::is_err), "{published:?}");
}

/// The same, but host 0 is heard, and by nobody else: it is the fleet, however small.
#[test]
fn fleet_time_goes_on_with_those_who_have_it() {
    let mut fleet = Fleet::new(Wander::default());
    (1..5).for_each(|n| drop(fleet.window(7, &reports(2 * n))));
    let new = |report: Report| Report {
        near: report.near + 3,
        far: report.far + 3,
        ..report
    };
    let mut seen: Vec<Report> = reports(10).into_iter().map(new).collect();
    let mut other = reports(10)[0];
    other.far = 6;
    seen.push(other);
    let published = fleet.window(7, &seen).corrections;
    let is_member: Vec<bool> = published.iter().map(Result::is_ok).collect();
    assert_eq!(is_member, [true, false, false, false, false, false, true]);
}

/// Host 0 leaves and a new host joins: the clocks of the other hosts stay as they are.
#[test]
fn who_comes_and_goes_moves_nobody() {
    let mut fleet = Fleet::new(Wander::default());
    (1..5).for_each(|n| drop(fleet.window(3, &reports(2 * n))));
    let mut other = fleet.clone();
    other.renumber(&[Some(2), None, Some(1)]);
    let seen: Vec<Report> = reports(10)
        .iter()
        .map(|report| Report {
            near: [1, 2, 0][report.near],
            far: [1, 2, 0][report.far],
            ..*report
        })
        .collect();
    let (stay, anew) = (fleet.window(3, &reports(10)), other.window(3, &seen));
    for (host, number) in [(1, 2), (2, 0), (0, 1)] {
        let is = stay.corrections[host].expect("a member");
        let published = anew.corrections[number].expect("a member");
        let off = is.offset_at(is.reference) - published.offset_at(is.reference);
        assert!(off.abs() <= 100, "{off} ns");
    }
}

/// Fleet time is 20 ppm faster than all clocks here, and hosts follow a correction from a time after the middle
/// of the next window's pairs.
#[test]
fn another_coordinator_goes_on_where_the_last_one_stopped() {
    let now = Time::from_ticks(13_000_000_000);
    let follow = |published: Correction| Correction {
        reference: now,
        offset_ns: published.offset_at(now),
        drift: published.drift + 2e-5,
        ..published
    };
    let followed: Vec<_> = followed().into_iter().map(follow).collect();
    let mut second = Fleet::new(Wander::default());
    (0..)
        .zip(&followed)
        .for_each(|(host, is)| second.recall(host, is));
    let anew = second.window(3, &reports(12)).corrections;
    for (is, anew) in followed.iter().zip(anew) {
        let anew = anew.expect("a member");
        let off = is.offset_at(now) - anew.offset_at(now);
        assert!(off.abs() <= 100, "{off} ns");
        assert!(anew.error.sigma_ns <= FIRST_SIGMA_NS, "{anew:?}");
    }
}

/// What hosts 0 to 2 follow after 10 s.
fn followed() -> Vec<Correction> {
    let mut first = Fleet::new(Wander::default());
    let windows = (1..6).map(|n| first.window(3, &reports(2 * n)).corrections);
    let last = windows.last().expect("windows").into_iter();
    last.map(|published| published.expect("a member")).collect()
}

/// In its first window another coordinator has only what one host says, and that is false: no loop contradicts it.
#[test]
fn a_jump_away_from_the_last_coordinator_is_doubted() {
    let followed = followed();
    let mut second = Fleet::new(Wander::default());
    for (host, is) in followed.iter().enumerate() {
        second.recall(host, is);
    }
    let mut star = reports(12);
    star.remove(0);
    star.iter_mut()
        .for_each(|report| report.line.about_ns += 9_000_000);
    for (is, anew) in followed.iter().zip(second.window(3, &star).corrections) {
        let anew = anew.expect("a member");
        let off = is.offset_at(anew.reference) - anew.offset_at(anew.reference);
        assert!(
            off.abs() as f64 <= 3.0 * anew.error.sigma_ns,
            "{off} ns, {anew:?}"
        );
    }
}

/// All others are stopped but one that lies: host 1 has followed nothing yet.
#[test]
fn a_new_host_is_not_placed_by_one_other_host_alone() {
    let followed = followed();
    let mut fleet = Fleet::new(Wander::default());
    fleet.recall(0, &followed[0]);
    fleet.recall(2, &followed[2]);
    let corrections = |fleet: &mut Fleet, at_s: i64, edges: &[usize]| {
        let mut reports = reports(at_s);
        reports[1].line.about_ns += 9_000_000; // of hosts 1 and 2
        let reports: Vec<Report> = edges.iter().map(|edge| reports[*edge]).collect();
        fleet.window(3, &reports).corrections
    };
    for n in 0..WAITS {
        let published = corrections(&mut fleet, 12 + 2 * i64::from(n), &[1, 2]);
        assert_eq!(
            (published[0].is_ok(), published[1]),
            (true, Err(Lost::Apart))
        );
    }
    // Where nobody else ever speaks for it, as in a line of hosts, it is placed at last.
    assert!(corrections(&mut fleet, 20, &[1, 2])[1].is_ok());
}
