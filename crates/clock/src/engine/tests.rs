// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
mod leaders;
mod replay;

use super::*;
use crate::{
    coordinator::STEEPEST,
    keys::Keys,
    members::Members,
    wall::Wall,
    wire::{Probe, Report},
};
use onramp_sync::{correction::Error, synthetic::Synthetic};
use proptest::prelude::*;

const NOW: i64 = 100_000_000_000;

fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 5198))
}

/// Host 2 of three.
fn engine() -> Engine {
    engine_of(2)
}

fn engine_of(own: u8) -> Engine {
    engine_with(own, Synthetic::default(), false)
}

fn engine_with(own: u8, synthetic: Synthetic, discipline: bool) -> Engine {
    let members = Members::new((1..=3).map(address).collect()).expect("a fleet");
    let config = Config {
        own: address(own),
        keys: Keys::well_known(),
        authenticated: false,
        degree: 10,
        interval: Span::from_ms(16),
        lease: Span::from_s(5),
        discipline,
        unfit: Arc::default(),
        synthetic,
    };
    let never = News {
        rosters: std::sync::mpsc::channel().1,
        keys: std::sync::mpsc::channel().1,
    };
    let shared = Arc::new(Mutex::new(Published::new(config.discipline)));
    let system = SystemClock::of(&config).expect("it is only read");
    let begin = Begin {
        mono_ns: NOW,
        seq: 1 << 40,
        epoch: 0,
    };
    let mut engine = Engine::new(config, system, never, shared, Steps::Thread, begin);
    engine.adopt(Roster::fixed(members), NOW);
    engine
}

/// Arrived and read at once.
fn stamped(at_mono_ns: i64) -> Stamped {
    Stamped {
        at_mono_ns,
        read_mono_ns: at_mono_ns,
    }
}

fn correction(reference_ns: i64, offset_ns: i64) -> Correction {
    Correction {
        reference: Time::from_ticks(reference_ns),
        offset_ns,
        drift: 1e-5,
        bend: 0.0,
        error: Error {
            sigma_ns: 300.0,
            drift_sigma: 1e-8,
            wander_per_s: 1e-8,
        },
    }
}

fn verdict(correction: Correction) -> Body {
    Body::Verdict(Verdict {
        answers: 0,
        state: State::Synchronised(correction),
        wall: None,
        delays: vec![],
    })
}

/// A message with this number from a host arrives.
fn hear(engine: &mut Engine, from: u8, seq: u64, body: Body, now: i64) {
    hear_of(engine, 0, from, seq, body, now);
}

/// The same, from a host that knows a leader of this term. It answers a message that our host has just sent.
fn hear_of(engine: &mut Engine, term: u64, from: u8, seq: u64, body: Body, now: i64) {
    let answers = engine.next_seq();
    hear_answer(engine, term, from, seq, answering(answers, body), now);
}

/// The same, but a verdict or a notice answers what it says.
fn hear_answer(engine: &mut Engine, term: u64, from: u8, seq: u64, body: Body, now: i64) {
    let own = engine.config.own;
    let datagram = Message { seq, term, body }.encode(&Keys::well_known(), address(from), own);
    engine.arrived(address(from), &datagram, Some(stamped(now)), now);
}

fn answering(answers: u64, body: Body) -> Body {
    match body {
        Body::Verdict(verdict) => Body::Verdict(Verdict { answers, ..verdict }),
        Body::Notice { .. } => Body::Notice { answers },
        other => other,
    }
}

/// Hosts report and windows end, until nothing that was sent before may be answered.
fn let_windows_pass(engine: &mut Engine) {
    for _ in 0..6 {
        let seq = engine.next_seq();
        engine.recent.end_window(seq);
    }
}

/// The verdicts of a central step.
fn stepped(central: &mut Central) -> central::Verdicts {
    central.begin(NOW);
    loop {
        if let Some(verdicts) = central.finished() {
            return verdicts;
        }
        std::thread::yield_now();
    }
}

fn offset(engine: &Engine, now: i64) -> Option<i64> {
    let course = engine.published.course.as_ref()?;
    Some(
        course
            .at(Time::from_ticks(now))
            .offset_at(Time::from_ticks(now)),
    )
}

/// Keys may change while it runs: the former one is refused from then on.
#[test]
fn new_keys_take_the_place_of_the_former_ones() {
    let mut engine = engine();
    let (say, keys) = std::sync::mpsc::channel();
    engine.news.keys = keys;
    let path = std::env::temp_dir().join(format!("onramp-new-keys-{}", std::process::id()));
    std::fs::write(&path, "1 000102030405060708090a0b0c0d0eff\n").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, private).unwrap();
    let new = Keys::read(&path).expect("keys");
    std::fs::remove_file(&path).unwrap();
    say.send(new.clone()).unwrap();
    assert!(!engine.take_news(NOW), "the roster is the same");
    hear(&mut engine, 1, 1, verdict(correction(NOW, 1_000)), NOW);
    assert_eq!(engine.published.counters.bad_tag, 1);
    let message = Message {
        seq: 2,
        term: 0,
        body: answering(engine.next_seq(), verdict(correction(NOW, 1_000))),
    };
    let datagram = message.encode(&new, address(1), engine.config.own);
    engine.arrived(address(1), &datagram, Some(stamped(NOW)), NOW);
    assert_eq!(offset(&engine, NOW), Some(1_000));
}

#[test]
fn a_verdict_is_followed_without_a_jump_and_met() {
    let mut engine = engine();
    hear(&mut engine, 1, 1, verdict(correction(NOW, 1_000)), NOW);
    assert_eq!(offset(&engine, NOW), Some(1_000));
    let next = NOW + WINDOW_NS;
    let before = offset(&engine, next);
    hear(&mut engine, 1, 2, verdict(correction(next, 30_000)), next);
    assert_eq!(offset(&engine, next), before);
    // Two windows later, the next verdict being lost, it is on the new line, not beyond it.
    let later = next + 2 * WINDOW_NS;
    assert_eq!(offset(&engine, later), Some(30_000 + 40_000));
    assert_eq!(engine.published.counters.fleet_steps, 0);
    hear(
        &mut engine,
        1,
        3,
        verdict(correction(later, 10_000_000)),
        later,
    );
    assert_eq!(offset(&engine, later), Some(10_000_000));
    assert_eq!(engine.published.counters.fleet_steps, 1);
}

#[test]
fn a_verdict_is_good_for_a_lease_however_often_it_is_repeated() {
    let mut engine = engine();
    let until = |engine: &Engine| {
        engine
            .published
            .course
            .expect("a course")
            .valid_until_mono_ns
    };
    hear(
        &mut engine,
        1,
        1,
        verdict(correction(NOW - 1_500_000_000, 0)),
        NOW,
    );
    assert_eq!(until(&engine), NOW + 5_000_000_000);
    hear(
        &mut engine,
        1,
        1,
        verdict(correction(NOW, 0)),
        NOW + 1_000_000_000,
    );
    assert_eq!(until(&engine), NOW + 5_000_000_000);
    assert_eq!(engine.published.counters.repeated, 1);
    // After a silence an old number is taken again, but not for longer than its own time allows.
    let late = NOW + 6_000_000_000;
    hear(
        &mut engine,
        1,
        1,
        verdict(correction(NOW - 1_500_000_000, 0)),
        late,
    );
    assert_eq!(
        until(&engine),
        NOW - 1_500_000_000 + 2 * WINDOW_NS + 5_000_000_000
    );
}

#[test]
fn nonsense_of_the_coordinator_is_refused() {
    let mut engine = engine();
    let good = correction(NOW, 1_000);
    let with = |sigma_ns: f64| Error {
        sigma_ns,
        ..good.error
    };
    let nonsense = [
        Correction { drift: 0.1, ..good },
        Correction { bend: 1e-3, ..good },
        Correction {
            error: with(-1.0),
            ..good
        },
        Correction {
            error: with(1e9),
            ..good
        },
        Correction {
            offset_ns: i64::MIN,
            ..good
        },
        Correction {
            reference: Time::from_ticks(i64::MIN),
            ..good
        },
        Correction {
            reference: Time::from_ticks(NOW + 60_000_000_000),
            ..good
        },
    ];
    for (n, correction) in nonsense.iter().enumerate() {
        hear(&mut engine, 1, 1 + n as u64, verdict(*correction), NOW);
    }
    assert_eq!(
        engine.published.counters.verdicts_refused,
        nonsense.len() as u64
    );
    assert!(engine.published.course.is_none());
}

#[test]
fn only_the_coordinator_rules_and_only_members_speak() {
    let mut engine = engine();
    hear(&mut engine, 3, 1, verdict(correction(NOW, 1_000)), NOW);
    hear(&mut engine, 9, 1, verdict(correction(NOW, 1_000)), NOW);
    let nothing = Report {
        epoch: 0,
        follows: None,
        edges: vec![],
    };
    hear(&mut engine, 1, 1, Body::Report(nothing), NOW); // we are no coordinator
    assert_eq!(engine.published.counters.strangers, 3);
    assert!(engine.published.course.is_none());
}

#[test]
fn who_is_not_believed_has_no_fleet_time() {
    let mut engine = engine();
    hear(&mut engine, 1, 1, verdict(correction(NOW, 1_000)), NOW);
    let state = |state| {
        Body::Verdict(Verdict {
            answers: 0,
            wall: None,
            state,
            delays: vec![],
        })
    };
    hear(&mut engine, 1, 2, state(State::Apart), NOW);
    assert!(
        engine.published.course.is_some(),
        "a window without edges is extrapolated over"
    );
    hear(&mut engine, 1, 3, state(State::Contradictory), NOW);
    assert!(engine.published.course.is_none());
}

#[test]
fn a_repeated_pair_of_probes_is_acked_once() {
    let mut engine = engine();
    let probe = |index| {
        Body::Probe(Probe {
            index,
            seq: 7,
            ..Probe::default()
        })
    };
    for _ in 0..2 {
        hear(&mut engine, 1, 7, probe(0), NOW);
        hear(&mut engine, 1, 7, probe(1), NOW);
    }
    assert_eq!(engine.acks, [address(1)]);
    // The first of them is older than the second by then.
    assert_eq!(
        (
            engine.published.counters.stale,
            engine.published.counters.repeated
        ),
        (1, 1)
    );
}

#[test]
fn a_stamp_of_the_future_is_not_used() {
    let mut engine = engine();
    let (term, keys) = (engine.roster.term, engine.config.keys.clone());
    let probe = |index, seq| {
        let body = Body::Probe(Probe {
            index,
            seq,
            ..Probe::default()
        });
        Message { seq, term, body }.encode(&keys, address(1), address(2))
    };
    let future = |ahead_ns| {
        Some(Stamped {
            at_mono_ns: NOW + ahead_ns,
            read_mono_ns: NOW,
        })
    };
    for (seq, ahead_ns, expected) in [
        (7, 999_999, NOW + 999_999),
        (8, 1_000_000, 0),
        (9, i64::MAX - NOW, 0),
    ] {
        let pair = [probe(0, seq), probe(1, seq)];
        for datagram in &pair {
            engine.arrived(address(1), datagram, future(ahead_ns), NOW);
        }
        let end = &mut engine
            .members
            .get_mut(&address(1))
            .expect("it is a member")
            .end;
        let acks = end.acks(1).expect("the pair is complete");
        assert_eq!(acks.map(|ack| ack.received_mono_ns), [expected; 2]);
    }
    let counters = &engine.published.counters;
    assert_eq!((counters.stamps_of_the_future, counters.unstamped), (4, 4));
}

/// Hosts of these numbers, one of which leads.
fn roster(hosts: &[u8], leader: u8, term: u64) -> Roster {
    Roster {
        members: Members::registered(hosts.iter().copied().map(address).collect()),
        leader: Some(address(leader)),
        term,
        certain: true,
    }
}

/// True time is fleet time; the leader's system clock is a second ahead of it and 1 ppm too fast, ours
/// 0.3 s ahead and 20 ppm too fast until it is made to follow.
#[test]
fn the_system_clock_steps_once_and_then_follows() {
    let oscillator = "offset=300ms,drift=2e-5".parse().expect("a clock");
    let synthetic = Synthetic {
        oscillator,
        noise: 0.0,
    };
    let mut engine = engine_with(2, synthetic, true);
    let leads = |now: i64| Wall {
        at: Time::from_ticks(now),
        ahead_ns: 1_000_000_000 + (now - NOW) / 1_000_000,
        drift: 1e-6,
    };
    let off_ns = |engine: &mut Engine, now: i64| {
        let (reads, _) = engine.system.read(&engine.own.scale, now);
        reads - leads(now).read(Time::from_ticks(now))
    };
    let mut now = NOW;
    for window in 1..=60 {
        now = NOW + window as i64 * WINDOW_NS;
        let own = engine.own.read(now);
        let state = State::Synchronised(Correction {
            drift: -2e-5,
            ..correction(own.ticks(), now - own.ticks())
        });
        let wall = Some(leads(now));
        let body = Body::Verdict(Verdict {
            answers: 0,
            state,
            wall,
            delays: vec![],
        });
        hear(&mut engine, 1, window, body, now);
        if window > 40 {
            let off_ns = off_ns(&mut engine, now + WINDOW_NS);
            assert!(off_ns.abs() < 200, "{off_ns} ns in window {window}");
        }
    }
    assert_eq!(engine.published.counters.system_steps, 1);
    // Nobody says more: it goes on as fast as it should, not as fast as slewed it last.
    now += 10 * WINDOW_NS;
    engine.hold_over(now);
    assert!((engine.published.system.rate - (1e-6 - 2e-5)).abs() < 1e-9);
    let off_ns = off_ns(&mut engine, now);
    assert!(off_ns.abs() < 1_000, "{off_ns} ns");
}

#[test]
fn a_system_clock_that_nobody_asked_to_set_is_only_compared() {
    let mut engine = engine();
    let body = |ahead_ns, drift| {
        Body::Verdict(Verdict {
            answers: 0,
            state: State::Synchronised(correction(NOW, 0)),
            wall: Some(Wall {
                at: Time::from_ticks(NOW),
                ahead_ns,
                drift,
            }),
            delays: vec![],
        })
    };
    hear(&mut engine, 1, 1, body(5, 0.0), NOW);
    assert!(engine.published.system.ahead_ns.is_some());
    assert_eq!(engine.published.system.rate, 0.0);
    // A leader's clock that cannot be one says nothing.
    hear(&mut engine, 1, 2, body(5, 0.1), NOW);
    assert_eq!(engine.published.system.ahead_ns, None);
}

proptest! {
    /// Whatever members say, and however wrong: the coordinator goes on, and no clock beyond reason
    /// is followed.
    #[test]
    fn authentic_nonsense_harms_nobody(
        said in prop::collection::vec((1u8..4, crate::wire::tests::message()), 1..40),
    ) {
        let mut engine = engine_of(1);
        for (n, (from, message)) in said.into_iter().enumerate() {
            let now = NOW + n as i64 * 100_000_000;
            hear_of(&mut engine, message.term, from, message.seq, message.body, now);
            let verdicts = stepped(engine.central.as_mut().expect("it leads"));
            prop_assert!(verdicts.len() <= 3);
            for (to, verdict) in verdicts {
                let datagram = Message { seq: n as u64, term: 0, body: Body::Verdict(verdict) };
                datagram.encode(&Keys::well_known(), address(1), to);
            }
            if let Some(course) = &engine.published.course {
                fleet_clock_is_sane(course, now);
            }
        }
    }
}

fn fleet_clock_is_sane(course: &Course, now: i64) {
    let own = Time::from_ticks(now);
    assert!(course.target.drift.abs() <= STEEPEST);
    assert!(course.valid_until_mono_ns <= now + 5_000_000_000);
    course.at(own).offset_at(own);
}
