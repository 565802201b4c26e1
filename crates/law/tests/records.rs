// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a flow remembers of its transmissions when more of them are under way than its ring has room for.

use onramp_law::{defaults, Config, Flow, Law, Records, Verdict, SAMPLE_BYTES};
use onramp_units::{Mono, Span, Time};

/// Between two segments of one sample each.
const GAP_NS: i64 = 1_000;

/// A flow whose OR-ACKs come `window` segments after their data.
struct Sender {
    config: Config,
    flow: Flow,
    records: Records,
    sent: u32,
}

impl Sender {
    fn new() -> Sender {
        Sender {
            config: Config::new(Law::Final, defaults::MAX_OWD),
            flow: Flow::default(),
            records: Records::default(),
            sent: 0,
        }
    }

    fn left(segment: u32) -> Time<Mono> {
        Time::from_ticks(i64::from(segment) * GAP_NS)
    }

    /// Sends so many segments, each after the OR-ACK of that `window` before. Returns how many gave a sample.
    fn send(&mut self, segments: u32, window: u32) -> u32 {
        let mut used = 0;
        for _ in 0..segments {
            let now = Sender::left(self.sent);
            if let Some(first) = self.sent.checked_sub(window) {
                let seq = first.wrapping_mul(SAMPLE_BYTES);
                let received = Sender::left(first) + Span::from_ns(i64::from(window) * GAP_NS / 2);
                let verdict = self
                    .records
                    .orack(&self.config, &mut self.flow, seq, now, received);
                used += u32::from(verdict == Verdict::Used);
            }
            let seq = self.sent.wrapping_mul(SAMPLE_BYTES);
            self.records
                .sent(&self.config, &mut self.flow, now, seq, SAMPLE_BYTES);
            self.sent += 1;
        }
        used
    }
}

#[test]
fn each_of_63_under_way_gives_a_sample() {
    let mut sender = Sender::new();
    assert_eq!(sender.send(10_000, 63), 10_000 - 63);
    assert_eq!(sender.records.abi().thin, 0);
}

/// 1,000 segments of 14,480 B are 14.5 MB under way.
#[test]
fn a_flow_with_a_thousand_under_way_has_one_sample_of_sixteen() {
    let mut sender = Sender::new();
    sender.send(200, 20); // the first samples, with less under way
    sender.send(8_000, 1_000);
    assert_eq!(sender.records.abi().thin, 4);
    assert_eq!(sender.send(16_000, 1_000), 1_000);
}

/// The delay of OR-ACKs is given, so the window shrinks at once, and grows without a gap in them.
#[test]
fn a_flow_has_all_its_samples_again_when_less_is_under_way() {
    let mut sender = Sender::new();
    sender.send(200, 20);
    sender.send(8_000, 1_000);
    sender.send(4_000, 10);
    assert_eq!(sender.records.abi().thin, 0);
    assert_eq!(sender.send(1_000, 10), 1_000);
}

/// A receiver that never answers may begin to: its first OR-ACK must find a record.
#[test]
fn a_flow_without_any_orack_records_every_sample() {
    let mut sender = Sender::new();
    sender.send(5_000, u32::MAX);
    assert_eq!(sender.records.abi().thin, 0);
    assert_eq!(sender.send(100, 30), 100);
}
