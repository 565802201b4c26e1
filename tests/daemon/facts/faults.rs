// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! OR-ACKs that a network loses, doubles, delays or cuts, and OR-ACKs that somebody forges.
//! Each time: TCP loses nothing, nobody is held beyond the cap, and a counter tells.
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use onramp_law::SAMPLE_BYTES;

use crate::{
    agent::{write_keys, Agent},
    maps::{now_mono_ns, Program},
    net::{Host, Plan, Star},
    orack::{Orack, PAYLOAD},
    tcp::{finish_all, transfers, Load, Transfer},
    wire::{Middlebox, Treated, Wire},
};

/// What a daemon counted, and what the flows achieved.
struct Outcome {
    sender: Agent,
    mbit_per_s: f64,
    /// OR-ACKs that came into the middlebox.
    oracks: u64,
    /// The daemon's namespace; dropped after it.
    _star: Star,
}

impl Outcome {
    fn counter(&self, name: &str) -> u64 {
        self.sender.counter(name)
    }
}

/// Two flows for 0.8 s, their OR-ACKs treated on the way; the host's line is twice the port's.
fn treated(treat: impl FnMut(&[u8]) -> Treated + Send + 'static) -> Outcome {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--shape", "200Mbit/s"]);
    let receiver = Agent::start(to, &[]);
    let middlebox = Middlebox::between(&star, to, from, treat);
    let mbit_per_s = finish_all(transfers(from, to, Load::seconds(0.8), 2));
    let oracks = middlebox.finish() as u64;
    sender.assert_harmless();
    receiver.assert_harmless();
    println!(
        "{mbit_per_s:.1} Mbit/s, {oracks} OR-ACKs: {:?}",
        sender.status().counters
    );
    Outcome {
        sender,
        mbit_per_s,
        oracks,
        _star: star,
    }
}

fn at_once(frame: Vec<u8>) -> Treated {
    vec![(Duration::ZERO, frame)]
}

/// As `treated`, each OR-ACK changed and signed again with the right key.
fn forged(change: impl Fn(&mut Orack) + Send + 'static) -> Outcome {
    treated(move |frame| {
        let mut orack = Orack::parse(frame);
        change(&mut orack);
        at_once(orack.signed().frame())
    })
}

/// Every `period`-th frame is lost; a remainder of 1 in 1 loses all.
fn lossy(period: usize) -> Outcome {
    let mut number = 0;
    treated(move |frame| {
        number += 1;
        if number % period == 0 {
            vec![]
        } else {
            at_once(frame.to_vec())
        }
    })
}

pub fn one_lost_orack_in_a_hundred_changes_little() {
    let outcome = lossy(100);
    assert!(outcome.counter("holds") > 0);
    assert!(outcome.counter("oracks_received") >= outcome.oracks * 98 / 100);
}

pub fn half_of_the_oracks_are_enough_to_hold() {
    let outcome = lossy(2);
    assert!(outcome.counter("holds") > 0);
    assert!(outcome.counter("oracks_received") <= outcome.oracks / 2 + 1);
}

pub fn without_any_orack_nothing_is_held() {
    let outcome = lossy(1);
    assert_eq!(outcome.counter("oracks_received"), 0);
    assert_eq!(outcome.counter("holds"), 0);
    assert!(outcome.mbit_per_s > 80.0);
}

/// A firewall, or a host without On-Ramp: said once, with the port, until an OR-ACK comes.
pub fn a_peer_that_sends_no_oracks_is_named() {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &["--shape", "5Mbit/s"]);
    let send_for_12_s = || finish_all(transfers(from, to, Load::seconds(12.0), 1));
    let silent = || sender.status().health.silent_peers;
    assert!(silent().is_empty());
    send_for_12_s();
    assert_eq!(silent(), [to.v4]);
    let says = "10.0.0.2 gets data and sends no usable OR-ACK";
    let text = sender.text();
    assert_eq!(text.matches(says).count(), 1, "{text}");
    assert!(text.contains("does the network pass UDP 5199?"), "{text}");
    let _receiver = Agent::start(to, &[]);
    send_for_12_s();
    assert!(silent().is_empty());
    assert_eq!(sender.text().matches(says).count(), 1);
}

pub fn doubled_oracks_are_ignored_and_counted() {
    let outcome = treated(|frame| [at_once(frame.to_vec()), at_once(frame.to_vec())].concat());
    let counted = outcome.counter("oracks_reordered") + outcome.counter("oracks_unmatched");
    assert!(
        counted >= outcome.oracks * 95 / 100,
        "{counted} of {}",
        outcome.oracks
    );
    assert!(outcome.counter("holds") > 0);
}

pub fn oracks_that_others_overtook_are_ignored_and_counted() {
    let mut number = 0;
    let outcome = treated(move |frame| {
        number += 1;
        vec![(
            Duration::from_millis(if number % 2 == 0 { 300 } else { 0 }),
            frame.to_vec(),
        )]
    });
    assert!(outcome.counter("oracks_reordered") > 0);
    assert!(outcome.counter("holds") > 0);
}

pub fn oracks_that_are_seconds_late_are_stale() {
    let mut number = 0;
    let outcome = treated(move |frame| {
        number += 1;
        vec![(
            Duration::from_secs(if number % 2 == 0 { 3 } else { 0 }),
            frame.to_vec(),
        )]
    });
    assert!(outcome.counter("oracks_stale").abs_diff(outcome.oracks / 2) <= 1);
    assert!(outcome.counter("holds") > 0);
}

pub fn replayed_oracks_change_nothing() {
    let outcome = treated(|frame| {
        let after = |ms| (Duration::from_millis(ms), frame.to_vec());
        vec![after(0), after(200), after(400), after(2500)]
    });
    let ignored = outcome.counter("oracks_reordered") + outcome.counter("oracks_unmatched");
    assert!(
        ignored >= outcome.oracks * 19 / 10,
        "{ignored} of 2 * {}",
        outcome.oracks
    );
    assert_eq!(outcome.counter("oracks_stale"), outcome.oracks);
}

/// What is wrong with an OR-ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// Cut on the way: IP ends it.
    Cut,
    /// Cut by its maker: the data path passes it on.
    Short,
    /// Its version or its flags.
    Version,
    /// A field or the tag was changed.
    Tag,
    /// Signed, by its key's number with a key that is not ours.
    Key,
    /// Signed, of a flow or of bytes that were not sent.
    Flow,
    Bytes,
}

const WRONG: [Wrong; 7] = {
    use Wrong::*;
    [Cut, Short, Version, Tag, Key, Flow, Bytes]
};

impl Wrong {
    /// The `number`-th OR-ACK, with this wrong.
    fn made_of(self, frame: &[u8], number: usize) -> Vec<u8> {
        let mut orack = Orack::parse(frame);
        match self {
            Wrong::Cut | Wrong::Short => return self.cut(frame, 1 + number % 24),
            Wrong::Version if number.is_multiple_of(2) => orack.version += 1,
            Wrong::Version => orack.flags = 1,
            Wrong::Tag => {
                match number % 6 {
                    0 => orack.tag ^= 1 << (orack.seq % 64),
                    1 => orack.rx_fleet_ns += 1,
                    2 => orack.seq = orack.seq.wrapping_add(1),
                    3 => orack.len += 1,
                    4 => orack.dport ^= 1,
                    _ => orack.key_id = 1,
                }
                return orack.frame();
            }
            Wrong::Key => orack.key_id = [1, 3, 4, 0x8000][number % 4],
            Wrong::Flow => orack.sport = 9,
            Wrong::Bytes => orack.seq = orack.seq.wrapping_add(1 << 30),
        }
        orack.signed().frame()
    }

    fn cut(self, frame: &[u8], bytes: usize) -> Vec<u8> {
        let mut frame = frame[..frame.len() - bytes].to_vec();
        if self == Wrong::Short {
            let ip_bytes = (frame.len() - 14) as u16;
            frame[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
            frame[38..40].copy_from_slice(&(ip_bytes - 20).to_be_bytes());
        }
        frame
    }
}

/// Each is counted as what it is, and holds nothing.
pub fn oracks_that_are_wrong_are_refused_and_counted() {
    let made: Arc<Mutex<Vec<Wrong>>> = Arc::default();
    let makes = Arc::clone(&made);
    let outcome = treated(move |frame| {
        let mut made = makes.lock().expect("nobody panics");
        let (number, wrong) = (made.len() / WRONG.len(), WRONG[made.len() % WRONG.len()]);
        made.push(wrong);
        at_once(wrong.made_of(frame, number))
    });
    let made = made.lock().expect("nobody panics");
    let of = |kinds: &[Wrong]| made.iter().filter(|w| kinds.contains(w)).count() as u64;
    let counted = |name| outcome.counter(name);
    assert!(of(&[Wrong::Bytes]) >= 24, "all that can be wrong has been");
    assert_eq!(
        counted("oracks_malformed"),
        of(&[Wrong::Short, Wrong::Version])
    );
    assert_eq!(counted("oracks_bad_tag"), of(&[Wrong::Tag, Wrong::Key]));
    assert_eq!(counted("oracks_unknown_flow"), of(&[Wrong::Flow]));
    assert_eq!(counted("oracks_unmatched"), of(&[Wrong::Bytes]));
    assert_eq!(counted("oracks_received"), of(&[Wrong::Flow, Wrong::Bytes]));
    assert_eq!(counted("holds"), 0);
    assert!(outcome.mbit_per_s > 80.0);
}

pub fn absurd_times_are_ignored_and_counted() {
    const S: i64 = 1_000_000_000;
    let times = [
        0,
        i64::MIN,
        i64::MAX,
        -1,
        S,
        -S,
        10 * S,
        -10 * S,
        3600 * S,
        -3600 * S,
        1 << 62,
    ];
    let outcome = forged(move |orack| {
        let at = (orack.seq / SAMPLE_BYTES) as usize % (2 * times.len());
        let time = times[at % times.len()];
        // As such, and as an error of a clock that is right otherwise.
        orack.rx_fleet_ns = if at < times.len() {
            time
        } else {
            now_mono_ns().wrapping_add(time)
        };
    });
    let ignored = outcome.counter("oracks_stale") + outcome.counter("oracks_absurd");
    // Within the bounds: 1 s after or before, less the delay to here.
    let believed = outcome.counter("oracks_used") + outcome.counter("oracks_reordered");
    assert_eq!(ignored + believed, outcome.oracks);
    assert!(believed <= outcome.oracks / 4, "{believed}");
    assert!(ignored > 0);
}

/// Whoever has the key can delay, but not beyond the cap, and not stop.
pub fn an_authentic_lie_costs_the_cap_a_segment_at_most() {
    let outcome = forged(|orack| orack.rx_fleet_ns += 900_000_000);
    assert!(outcome.counter("holds") > 0);
    assert!(outcome.mbit_per_s > 0.1, "{} Mbit/s", outcome.mbit_per_s);
}

/// Two daemons with key files that share `theirs` or do not.
fn with_keys(own: &str, theirs: &str) -> (Outcome, bool) {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    write_keys("/tmp/own", own);
    write_keys("/tmp/theirs", theirs);
    let sender = Agent::start(from, &["--shape", "200Mbit/s", "--key-file", "/tmp/own"]);
    let receiver = Agent::start(to, &["--key-file", "/tmp/theirs"]);
    let mbit_per_s = finish_all(transfers(from, to, Load::seconds(0.5), 2));
    let oracks = receiver.counter("oracks_sent");
    sender.assert_harmless();
    println!("{:?}", sender.status().counters);
    let authenticated = sender.status().authenticated;
    (
        Outcome {
            sender,
            mbit_per_s,
            oracks,
            _star: star,
        },
        authenticated,
    )
}

/// What becomes of a forged OR-ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Forgery {
    Changed,
    Cut,
    Random,
    Replayed,
    Stale,
}

pub fn forged_oracks_change_nothing() {
    flood(100_000);
}

/// The data path gets `number` forged OR-ACKs of a flow that it knows, at the full speed of a processor. Each is
/// counted as what it is, and none is used.
pub fn flood(number: u64) {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let sender = Agent::start(from, &[]);
    let _receiver = Agent::start(to, &[]);
    let wire = Wire::open(&star.switch, &to.port);
    Transfer::start(from, to, Load::bytes(3_000_000)).finish();
    let genuine: Vec<Orack> = wire.drain().iter().map(|f| Orack::parse(f)).collect();
    assert!(genuine.len() > 100);
    let counters = |agent: &Agent| agent.status().counters;
    let before = counters(&sender);

    let program = Program::of(&sender, "orack_ingress");
    let mut draws = Draws::new(1);
    let mut sent: BTreeMap<Forgery, u64> = BTreeMap::new();
    from.ns.enter(|| {
        for _ in 0..number {
            let orack = &genuine[draws.below(genuine.len() as u64) as usize];
            let (forgery, payload) = forge(orack, &mut draws);
            program.receive(&orack.frame_with(&payload));
            *sent.entry(forgery).or_default() += 1;
        }
    });
    let after = counters(&sender);
    let grown = |name: &str| after[name] - before[name];
    println!("{sent:?}: {after:?}");
    let of = |forgery| sent[&forgery];
    assert_eq!(grown("oracks_used"), 0);
    assert_eq!(grown("holds"), 0);
    assert!(grown("oracks_stale") >= of(Forgery::Stale));
    let received = of(Forgery::Replayed) + of(Forgery::Stale);
    assert_eq!(grown("oracks_received"), received);
    let refused = grown("oracks_malformed") + grown("oracks_bad_tag");
    assert_eq!(received + refused, number, "each is counted once");
    assert!(grown("oracks_malformed") >= of(Forgery::Cut));
}

/// Two hosts send to one receiver, with one key. An OR-ACK that the receiver made for a flow is sent to the other sender, as
/// if it were for one of its flows, and to the same sender for another flow. Signed for its new host and flow it would be
/// taken, so it is the tag alone that refuses it.
pub fn oracks_are_good_for_one_host_and_one_flow() {
    let star = Star::build(&Plan {
        hosts: 3,
        ..Plan::USUAL
    });
    let [from, other, to] = star.hosts.as_slice() else {
        unreachable!("three hosts")
    };
    let senders = [Agent::start(from, &[]), Agent::start(other, &[])];
    let _receiver = Agent::start(to, &[]);
    let recorded = |host: &Host| {
        let wire = Wire::open(&star.switch, &to.port);
        Transfer::start(host, to, Load::bytes(1_000_000)).finish();
        let frames = wire.drain();
        frames.iter().map(|f| Orack::parse(f)).collect::<Vec<_>>()
    };
    let own = [recorded(from), recorded(from)];
    let others = recorded(other);
    let program = senders.each_ref().map(|s| Program::of(s, "orack_ingress"));
    // As the flow of `as_of`, to its sender.
    let replay = |orack: &Orack, as_of: &Orack| {
        let mut replayed = orack.sent_to(as_of.to);
        (replayed.sport, replayed.dport) = (as_of.sport, as_of.dport);
        replayed
    };
    let cases = [
        ("to another host", 1, other, &own[0], &others),
        ("for another flow", 0, from, &own[0], &own[1]),
    ];
    for (what, at, host, oracks, flow) in cases {
        let sender = &senders[at];
        assert!(oracks.len() > 30 && !flow.is_empty(), "{what}");
        let counters = || sender.status().counters;
        let count = oracks.len() as u64;
        let give = |signs: bool| {
            let before = counters();
            host.ns.enter(|| {
                for orack in oracks {
                    let replayed = replay(orack, &flow[0]);
                    let replayed = if signs { replayed.signed() } else { replayed };
                    let payload = replayed.frame()[42..].to_vec();
                    program[at].receive(&replayed.frame_with(&payload));
                }
            });
            let after = counters();
            println!("{what}, signed anew {signs}: {after:?}");
            ["oracks_bad_tag", "oracks_received", "oracks_used", "holds"]
                .map(|name| after[name] - before[name])
        };
        assert_eq!(give(false), [count, 0, 0, 0], "{what}");
        let [bad_tag, received, ..] = give(true);
        assert_eq!([bad_tag, received], [0, count], "{what}, signed for it");
        sender.assert_harmless();
    }
}

/// A forgery of an authentic OR-ACK, and its UDP payload.
pub fn forge(orack: &Orack, draws: &mut Draws) -> (Forgery, Vec<u8>) {
    let mut payload = orack.frame()[42..].to_vec();
    match draws.below(64) {
        0 => {
            let mut old = orack.clone();
            old.rx_fleet_ns -= 10_000_000_000;
            (Forgery::Stale, old.signed().frame()[42..].to_vec())
        }
        1..16 => (Forgery::Replayed, payload),
        16..32 => {
            // What is shorter than a TCP header the data path does not look at.
            payload.truncate(12 + draws.below(PAYLOAD as u64 - 12) as usize);
            (Forgery::Cut, payload)
        }
        32..48 => {
            payload.fill_with(|| draws.below(256) as u8);
            payload[..2].copy_from_slice(&[1, 0]); // version and flags of an OR-ACK
            (Forgery::Random, payload)
        }
        _ => {
            let bit = draws.below(8 * (PAYLOAD as u64 - UNSIGNED.len() as u64)) as usize;
            let byte = bit / 8;
            let byte = byte
                + if byte >= UNSIGNED.start {
                    UNSIGNED.len()
                } else {
                    0
                };
            payload[byte] ^= 1 << (bit % 8);
            (Forgery::Changed, payload)
        }
    }
}

/// Bytes of the payload that the tag does not cover: the scratch of the checksum.
const UNSIGNED: std::ops::Range<usize> = 8..12;

/// Pseudo-random numbers (xorshift).
pub struct Draws(u64);

impl Draws {
    /// Another sequence for each seed above 0.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// `all` in a random order.
    pub fn shuffled<T: Copy>(&mut self, all: &[T]) -> Vec<T> {
        let mut left = all.to_vec();
        let mut draw = |n: usize| left.swap_remove(self.below(n as u64) as usize);
        (1..=all.len()).rev().map(&mut draw).collect()
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

pub fn hosts_that_share_a_key_believe_each_other() {
    // The sender signs with another than the receiver: both know both.
    let own = "1 0123456789abcdef0123456789abcdef\n2 00112233445566778899aabbccddeeff\n";
    let theirs = "2 00112233445566778899aabbccddeeff\n1 0123456789abcdef0123456789abcdef\n";
    let (outcome, authenticated) = with_keys(own, theirs);
    assert!(authenticated);
    assert_eq!(outcome.counter("oracks_bad_tag"), 0);
    assert!(outcome.counter("holds") > 0);
}

pub fn hosts_with_different_keys_do_not_believe_each_other() {
    let own = "1 0123456789abcdef0123456789abcdef\n";
    let theirs = "1 0123456789abcdef0123456789abcdee\n";
    let (outcome, _) = with_keys(own, theirs);
    assert_eq!(outcome.counter("oracks_bad_tag"), outcome.oracks);
    assert!(outcome.oracks > 0);
    assert_eq!(outcome.counter("holds"), 0);
    assert!(outcome.mbit_per_s > 80.0);
}
