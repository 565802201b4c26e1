// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What holds for every law, whatever arrives. Debug builds trap on any overflow in C, so each of
//! these also says that extreme integers are survived.

mod alone;
mod gate;
mod level;
mod pause;

use onramp_law::abi::{onr_cfg, onr_record};
use onramp_law::{
    next_sampled_byte, sampled_byte, Config, Flow, Hint, Law, PathState, Record, Records, Verdict,
    SAMPLE_BYTES,
};
use onramp_units::{Mono, Span, Time};
use proptest::prelude::*;

/// Nanoseconds of the sender's clock.
fn at(ns: i64) -> Time<Mono> {
    Time::from_ticks(ns)
}

/// Any integer, the edges often.
fn extreme() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(0),
        Just(i64::MIN),
        Just(i64::MAX),
        any::<i64>(),
        any::<i64>().prop_map(|v| v >> 32),
        0i64..200_000_000,
    ]
}

fn law() -> impl Strategy<Value = u32> {
    prop_oneof![registered_law(), any::<u32>()]
}

fn registered_law() -> impl Strategy<Value = u32> {
    0..Law::NAMES.len() as u32
}

prop_compose! {
    /// Parameters that nobody checked.
    fn any_config()(
        law in law(), threshold_ns in extreme(), max_pause_ns in extreme(),
        max_owd_ns in extreme(), gate_tau_ns in extreme(), gain_q16: u32,
        line_ns_per_byte_q16 in prop_oneof![Just(52_428), any::<u32>()],
        gate_allowance_bytes: u32, guard_window_ns in extreme(),
    ) -> Config {
        Config::from(onr_cfg {
            threshold_ns, max_pause_ns, max_owd_ns, gate_tau_ns, law, gain_q16,
            line_ns_per_byte_q16, gate_allowance_bytes, guard_window_ns,
        })
    }
}

prop_compose! {
    /// Parameters an operator may choose.
    fn sane_config()(
        law in registered_law(), threshold_ns in 1_000i64..200_000, max_pause_ns in 1i64..5_000_000,
        gain_q16 in 0u32..=65_536, line in prop_oneof![Just(0u32), Just(52_428), Just(5_242_880)],
    ) -> Config {
        Config::from(onr_cfg {
            threshold_ns, max_pause_ns, max_owd_ns: 100_000_000, gate_tau_ns: 1_000_000, law,
            gain_q16, line_ns_per_byte_q16: line, gate_allowance_bytes: 1_448,
            guard_window_ns: 0,
        })
    }
}

#[derive(Debug, Clone)]
enum Event {
    Sent {
        wait: i64,
        len: u32,
    },
    Again {
        back: u32,
        len: u32,
    },
    Orack {
        wait: i64,
        byte: u32,
        owd: i64,
    },
    Forged {
        record: [i64; 2],
        seq: u32,
        len: u32,
        byte: u32,
        rx: i64,
    },
    Ask {
        wait: i64,
    },
    Path(PathState),
}

/// What may come with an OR-ACK: bits that contradict each other, and fleet time that jumps.
fn path_state() -> impl Strategy<Value = PathState> {
    let least = prop_oneof![
        Just(None),
        (0i64..50_000).prop_map(Some),
        extreme().prop_map(Some)
    ];
    let hint = prop_oneof![
        Just(0),
        Just(u16::MAX),
        Just(31 << 11 | 7 << 8 | 2),
        any::<u16>()
    ];
    (least, extreme(), hint).prop_map(|(least_ns, ahead_ns, bits)| PathState {
        least: least_ns.map(span),
        fleet_ahead: span(ahead_ns),
        hint: Hint::of_bits(bits),
    })
}

/// So many ns, as far as a span reaches.
fn span(ns: i64) -> Span {
    Span::from_ns(ns.clamp(i64::MIN / 1_000, i64::MAX / 1_000))
}

fn event(owd: impl Strategy<Value = i64>) -> impl Strategy<Value = Event> {
    let wait = || prop_oneof![0i64..20_000, 0i64..20_000, Just(0), 0i64..30_000_000];
    prop_oneof![
        3 => (wait(), 1u32..70_000).prop_map(|(wait, len)| Event::Sent { wait, len }),
        1 => (0u32..200_000, 0u32..70_000).prop_map(|(back, len)| Event::Again { back, len }),
        3 => (wait(), 0u32..40, owd).prop_map(|(wait, byte, owd)| Event::Orack { wait, byte, owd }),
        1 => ([extreme(), extreme()], any::<u32>(), any::<u32>(), any::<u32>(), extreme())
            .prop_map(|(record, seq, len, byte, rx)| Event::Forged { record, seq, len, byte, rx }),
        3 => wait().prop_map(|wait| Event::Ask { wait }),
        3 => path_state().prop_map(Event::Path),
    ]
}

/// A sender whose clock runs forward; what arrives is up to the events.
#[derive(Default)]
struct Sender {
    flow: Flow,
    records: Records,
    now: i64,
    next_seq: u32,
    /// Departures of sampled bytes.
    samples: Vec<(u32, i64)>,
}

impl Sender {
    fn sent(&mut self, config: &Config, seq: u32, len: u32) {
        let Sender { flow, records, .. } = self;
        records.sent(config, flow, at(self.now), seq, len);
    }

    fn orack(&mut self, config: &Config, byte: u32, rx: i64) -> Verdict {
        let Sender { flow, records, .. } = self;
        records.orack(config, flow, byte, at(self.now), at(rx))
    }

    /// Plays one event; the verdict if it was an OR-ACK.
    fn play(&mut self, config: &Config, event: &Event) -> Option<Verdict> {
        match *event {
            Event::Sent { wait, len } => {
                self.now += wait;
                self.sent(config, self.next_seq, len);
                if let Some(byte) = sampled_byte(self.next_seq, len, SAMPLE_BYTES) {
                    self.samples.push((byte, self.now));
                }
                self.next_seq = self.next_seq.wrapping_add(len);
                None
            }
            Event::Again { back, len } => {
                self.sent(config, self.next_seq.wrapping_sub(back), len);
                None
            }
            Event::Orack { wait, byte, owd } => {
                self.now += wait;
                let newest = self.samples.len().checked_sub(1 + byte as usize);
                let (byte, sent) = self.samples[newest.or(self.samples.len().checked_sub(1))?];
                Some(self.orack(config, byte, sent.saturating_add(owd)))
            }
            Event::Forged {
                record: [sent, mark],
                seq,
                len,
                byte,
                rx,
            } => {
                let record = Record::from(onr_record {
                    sent_mono_ns: sent,
                    mark: mark as u64,
                    seq,
                    len,
                });
                Some(self.flow.orack(config, &record, byte, at(self.now), at(rx)))
            }
            Event::Ask { wait } => {
                self.now += wait;
                let again = self.flow.may_go(config, at(self.now));
                assert!(
                    again.is_none_or(|t| t > at(self.now)),
                    "{again:?} is not later than now"
                );
                None
            }
            Event::Path(ref path) => {
                self.flow.set_path(path);
                None
            }
        }
    }

    /// Plays an event on a path that stays as it is.
    fn play_on(&mut self, config: &Config, event: &Event) {
        if !matches!(event, Event::Path(_)) {
            self.play(config, event);
        }
    }
}

fn with_law(config: &Config, law: Law) -> Config {
    Config::from(onr_cfg {
        law: law as u32,
        ..*config.abi()
    })
}

fn events(owd: impl Strategy<Value = i64>) -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(event(owd), 1..80)
}

proptest! {
    /// However a head's hold is re-armed, it ends max_pause after its first refusal at the latest,
    /// and never before somebody asks.
    #[test]
    fn no_head_is_held_beyond_the_cap(config in any_config(), events in events(extreme())) {
        let mut s = Sender::default();
        let mut refused: Option<i64> = None;
        for event in events {
            s.play(&config, &event);
            if matches!(event, Event::Sent { .. } | Event::Again { .. }) {
                refused = None;
            }
            let again = s.flow.may_go(&config, at(s.now));
            if let Some(again) = again {
                let first = *refused.get_or_insert(s.now);
                let limit = first.saturating_add(config.abi().max_pause_ns);
                prop_assert!(again.ticks() <= limit, "held to {again:?}, limit {limit}");
                let mut later = s.flow;
                prop_assert_eq!(later.may_go(&config, at(limit)), None);
            }
        }
    }

    /// Only samples hold: neither absurd nor unknown ones do.
    #[test]
    fn no_sample_means_no_hold(config in any_config(), events in events(Just(i64::MAX))) {
        let mut s = Sender::default();
        for event in events.iter().filter(|e| !matches!(e, Event::Forged { .. })) {
            let verdict = s.play(&config, event);
            if verdict == Some(Verdict::Used) {
                return Ok(()); // max_owd is beyond i64::MAX - now: everything is believed
            }
            prop_assert_eq!(s.flow.may_go(&config, at(s.now)), None);
        }
    }

    /// Reordered, absurd and unknown OR-ACKs change nothing at all; no OR-ACK changes what was recorded.
    #[test]
    fn what_is_not_used_changes_nothing(
        config in prop_oneof![any_config(), sane_config()],
        events in events(prop_oneof![0i64..400_000, extreme()]),
    ) {
        let mut s = Sender::default();
        for event in events {
            let (flow, records) = (s.flow, s.records.clone());
            match s.play(&config, &event) {
                Some(Verdict::Used) => prop_assert_eq!(&records.abi().ring, &s.records.abi().ring),
                Some(_) => prop_assert_eq!((&flow, &records), (&s.flow, &s.records)),
                None => {}
            }
        }
    }

    /// Where the search for a record begins changes nothing but its length.
    #[test]
    fn an_orack_finds_its_record_wherever_the_search_begins(
        config in prop_oneof![any_config(), sane_config()],
        events in events(prop_oneof![0i64..400_000, extreme()]),
    ) {
        let (mut s, mut from_newest) = (Sender::default(), Sender::default());
        for event in events {
            from_newest.records.forget_awaited();
            prop_assert_eq!(s.play(&config, &event), from_newest.play(&config, &event));
            prop_assert_eq!(&s.flow, &from_newest.flow);
        }
    }

    /// A flow's own threshold stands in for the configuration's; without one, nothing is held.
    #[test]
    fn a_threshold_of_the_peer_is_as_good(config in sane_config(), events in events(0i64..400_000)) {
        let by_peer = config.threshold_of_peer();
        let (mut s, mut own, mut none) = (Sender::default(), Sender::default(), Sender::default());
        own.flow.set_threshold(onramp_units::Span::from_ns(config.abi().threshold_ns));
        for event in events.iter().filter(|e| !matches!(e, Event::Forged { .. })) {
            prop_assert_eq!(s.play(&config, event), own.play(&by_peer, event));
            let now = at(s.now);
            prop_assert_eq!(s.flow.may_go(&config, now), own.flow.may_go(&by_peer, now));
            none.play(&by_peer, event);
            prop_assert_eq!(none.flow.may_go(&by_peer, now), None);
        }
    }

    /// The same OR-ACK twice is one.
    #[test]
    fn a_duplicate_is_never_used(config in sane_config(), events in events(0i64..400_000)) {
        let mut s = Sender::default();
        for event in events.iter().filter(|e| !matches!(e, Event::Forged { .. })) {
            if s.play(&config, event) != Some(Verdict::Used) {
                continue;
            }
            let Event::Orack { byte, owd, .. } = *event else { unreachable!("only OR-ACKs are used") };
            prop_assert_eq!(s.play(&config, &Event::Orack { wait: 0, byte, owd }), Some(Verdict::Reordered));
        }
    }

    /// Karn: a byte that was sent twice is never matched, wherever the second transmission began.
    #[test]
    fn a_retransmitted_byte_is_unknown(
        start: u32, segments in prop::collection::vec(1u32..70_000, 1..40),
        at_byte in any::<prop::sample::Index>(), before in 0u32..1_448, after in 0u32..1_448,
    ) {
        let config = Config::new(Law::Final, onramp_units::Span::from_us(50));
        let mut s = Sender { next_seq: start, ..Sender::default() };
        for &len in &segments {
            s.play(&config, &Event::Sent { wait: 1_000, len });
        }
        prop_assume!(!s.samples.is_empty());
        let (byte, sent) = s.samples[at_byte.index(s.samples.len())];
        let before = before.min(byte.wrapping_sub(start));
        s.sent(&config, byte.wrapping_sub(before), before + 1 + after);
        prop_assert_eq!(s.orack(&config, byte, sent + 20_000), Verdict::Unknown);
    }

    /// A configuration of a newer daemon does no harm.
    #[test]
    fn an_unknown_law_is_off(
        config in sane_config(), unknown in Law::NAMES.len() as u32..,
        events in prop::collection::vec(event(-5_000i64..300_000), 0..60),
    ) {
        let [off, unknown] = [Law::Off as u32, unknown].map(|law| {
            let config = Config::from(onr_cfg { law, ..*config.abi() });
            let mut s = Sender::default();
            let verdicts: Vec<_> = events.iter().map(|event| s.play(&config, event)).collect();
            (s.flow, verdicts)
        });
        prop_assert_eq!(off, unknown);
    }

    /// Both ends find the same bytes, however the stream was cut into segments.
    #[test]
    fn sampling_does_not_depend_on_segmentation(
        seq: u32,
        every in 1u32..1_000_000,
        len in 1u32..100_000,
        cut in 1u32..100_000,
    ) {
        let cut = cut.min(len);
        let whole = sampled_byte(seq, len, every);
        let tail = sampled_byte(seq.wrapping_add(cut), len - cut, every);
        prop_assert_eq!(whole, tail.or(sampled_byte(seq, cut, every)));
        if let Some(byte) = whole {
            prop_assert_eq!(byte % every, 0);
            prop_assert!(byte.wrapping_sub(seq) < len);
        }
        if seq.checked_add(len + every).is_some() {
            let next = next_sampled_byte(seq, every);
            prop_assert_eq!(next % every, 0);
            prop_assert!(next - seq < every);
            prop_assert_eq!(next - seq < len, whole.is_some());
        }
    }
}
