// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use proptest::prelude::*;

fn ends() -> (SocketAddr, SocketAddr) {
    let end = |text: &str| text.parse().expect("an address");
    (end("10.0.0.1:5198"), end("[fd00::2]:5198"))
}

fn probe() -> impl Strategy<Value = Probe> {
    let fields = (0u8..2, any::<u64>(), any::<[i64; 4]>(), any::<[u32; 3]>());
    fields.prop_map(
        |(
            index,
            seq,
            [received_mono_ns, sent_mono_ns, received_fleet_ns, sent_fleet_ns],
            [before, id, epoch],
        )| Probe {
            index,
            seq,
            received_mono_ns,
            sent_mono_ns,
            received_fleet_ns,
            sent_fleet_ns,
            epoch,
            before,
            id,
        },
    )
}

fn delays() -> impl Strategy<Value = Delays> {
    any::<[i64; 4]>().prop_map(|ns| Delays {
        out_min_ns: ns[0],
        back_min_ns: ns[1],
        out_now_ns: ns[2],
        back_now_ns: ns[3],
    })
}

fn report() -> impl Strategy<Value = EdgeReport> {
    let line = (
        any::<[i64; 2]>(),
        [-1e9..1e9f64, -1e-3..1e-3, -1e9..1e9, 0.0..1e9, 0.0..1e-3],
        0usize..1000,
    );
    (line, delays()).prop_map(|((ints, floats, points), delays)| EdgeReport {
        far: ends().1,
        far_epoch: 0,
        line: Line {
            at: Time::from_ticks(ints[0]),
            about_ns: ints[1],
            ahead_ns: floats[0],
            drift: floats[1],
            delay_ns: floats[2],
            points,
            sigma_ns: floats[3],
            drift_sigma: floats[4],
        },
        delays,
    })
}

fn correction() -> impl Strategy<Value = Correction> {
    let numbers = (
        any::<[i64; 2]>(),
        [-1e-3..1e-3f64, -1e-6..1e-6, 0.0..1e6, 0.0..1e-3, 0.0..1e-3],
    );
    numbers.prop_map(|(ints, floats)| Correction {
        reference: Time::from_ticks(ints[0]),
        offset_ns: ints[1],
        drift: floats[0],
        bend: floats[1],
        error: Error {
            sigma_ns: floats[2],
            drift_sigma: floats[3],
            wander_per_s: floats[4],
        },
    })
}

fn window() -> impl Strategy<Value = Report> {
    let edges = prop::collection::vec(report(), 0..=MOST_EDGES);
    let both = (prop::option::of(correction()), edges);
    both.prop_map(|(follows, edges)| Report {
        epoch: 0,
        follows,
        edges,
    })
}

fn wall() -> impl Strategy<Value = Wall> {
    (any::<[i64; 2]>(), -1e-3..1e-3f64).prop_map(|(ints, drift)| Wall {
        at: Time::from_ticks(ints[0]),
        ahead_ns: ints[1],
        drift,
    })
}

fn verdict() -> impl Strategy<Value = Verdict> {
    let all = prop::collection::vec(delays(), 0..=MOST_NEIGHBOURS);
    let states = (correction(), 0usize..3).prop_map(|(correction, state)| {
        [
            State::Synchronised(correction),
            State::Apart,
            State::Contradictory,
        ][state]
    });
    let fields = (any::<u64>(), states, prop::option::of(wall()), all);
    fields.prop_map(|(answers, state, wall, all)| Verdict {
        answers,
        state,
        wall,
        delays: all.into_iter().map(|d| (ends().0, d)).collect(),
    })
}

/// Any message that can be encoded.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let body = prop_oneof![
        probe().prop_map(Body::Probe),
        probe().prop_map(Body::Ack),
        window().prop_map(Body::Report),
        verdict().prop_map(Body::Verdict),
        any::<u64>().prop_map(|answers| Body::Notice { answers }),
    ];
    (any::<u64>(), 0u64..3, body).prop_map(|(seq, term, body)| Message {
        seq: match body {
            Body::Probe(probe) | Body::Ack(probe) => probe.seq,
            _ => seq,
        },
        term,
        body,
    })
}

proptest! {
    #[test]
    fn what_is_encoded_comes_back(message in message()) {
        let (keys, (from, to)) = (Keys::well_known(), ends());
        let datagram = message.encode(&keys, from, to);
        prop_assert!(datagram.len() <= LONGEST);
        prop_assert_eq!(Message::decode(&datagram, &keys, from, to), Ok(message));
    }

    #[test]
    fn a_changed_bit_is_refused(message in message(), at: prop::sample::Index, bit in 0u8..8) {
        let (keys, (from, to)) = (Keys::well_known(), ends());
        let mut datagram = message.encode(&keys, from, to);
        let at = at.index(datagram.len());
        datagram[at] ^= 1 << bit;
        prop_assert!(Message::decode(&datagram, &keys, from, to).is_err());
    }

    #[test]
    fn a_cut_message_is_refused(message in message(), at: prop::sample::Index) {
        let (keys, (from, to)) = (Keys::well_known(), ends());
        let datagram = message.encode(&keys, from, to);
        let cut = &datagram[..at.index(datagram.len())];
        prop_assert!(Message::decode(cut, &keys, from, to).is_err());
    }

    #[test]
    fn another_way_is_refused(message in message()) {
        let (keys, (from, to)) = (Keys::well_known(), ends());
        let datagram = message.encode(&keys, from, to);
        prop_assert_eq!(Message::decode(&datagram, &keys, to, from), Err(Refused::BadTag));
    }

    /// The tag is right, the text is anything.
    #[test]
    fn any_bytes_are_survived(
        mut text in prop::collection::vec(any::<u8>(), 0..LONGEST),
        kind in 0u8..7,
    ) {
        let (keys, (from, to)) = (Keys::well_known(), ends());
        for (byte, value) in text.iter_mut().zip([VERSION, kind, 0, 0]) {
            *byte = value;
        }
        let tag = keys.tag(0, from, to, &text).expect("key 0");
        text.extend(tag.to_be_bytes());
        let _ = Message::decode(&text, &keys, from, to);
        let _ = sent_probe(&text);
    }

    #[test]
    fn a_looped_probe_is_known_behind_any_header(
        probe in probe(),
        header in prop::collection::vec(any::<u8>(), 0..70),
    ) {
        let (keys, (from, to)) = (Keys::well_known(), ends());
        let message = Message { seq: probe.seq, term: 0, body: Body::Ack(probe) };
        let frame = [header, message.encode(&keys, from, to)].concat();
        prop_assert_eq!(sent_probe(&frame), Some((probe.id, probe.index)));
    }
}

#[test]
fn both_ways_carry_as_many_bytes() {
    let (keys, (from, to)) = (Keys::well_known(), ends());
    let message = |body| Message {
        seq: 1,
        term: 1,
        body,
    };
    let bytes = |body| message(body).encode(&keys, from, to).len();
    assert_eq!(bytes(Body::Probe(Probe::default())), PROBE);
    assert_eq!(bytes(Body::Ack(Probe::default())), PROBE);
}

/// Whatever the rest of it looks like, if the key is the fleet's.
#[test]
fn another_version_is_known_for_what_it_is() {
    let (keys, (from, to)) = (Keys::well_known(), ends());
    let mut text = vec![VERSION + 1, 200, 0];
    text.extend([7; 30]);
    let tag = keys.tag(0, from, to, &text).expect("key 0");
    let datagram = [&text[..], &tag.to_be_bytes()].concat();
    let heard = Message::decode(&datagram, &keys, from, to);
    assert_eq!(heard, Err(Refused::Version(VERSION + 1)));
    text[0] = VERSION + 2; // whoever has no key cannot pretend to be of another version
    let datagram = [&text[..], &tag.to_be_bytes()].concat();
    let heard = Message::decode(&datagram, &keys, from, to);
    assert_eq!(heard, Err(Refused::Malformed));
}
