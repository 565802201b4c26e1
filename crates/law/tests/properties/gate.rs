//! The gate: the rate it believes, and what may be in flight.

use super::{any_config, at, events, extreme, Sender};
use onramp_law::abi::onr_cfg;
use onramp_law::{Config, Flow, Law, Verdict};
use onramp_units::{Rate, Span};
use proptest::prelude::*;

const T_NS: i64 = 50_000;
const MSS: u32 = 1_448;

fn gate() -> Config {
    let line = Rate::from_bits_per_s(10_000_000_000).expect("not zero");
    Config::new(Law::Gate, Span::from_ns(T_NS)).line_rate(line)
}

/// Bytes that leave at `now`, a segment at a time, until the gate holds one.
fn burst(flow: &mut Flow, config: &Config, now: i64) -> i64 {
    (0..1_000)
        .take_while(|i| {
            let goes = flow.may_go(config, at(now)).is_none();
            if goes {
                flow.sent(config, at(now), i * MSS, MSS);
            }
            goes
        })
        .count() as i64
        * i64::from(MSS)
}

proptest! {
    #[test]
    fn the_rate_is_between_the_lines_and_a_hundredth_of_it(
        config in any_config(), events in events(prop_oneof![0i64..400_000, extreme()]),
    ) {
        let cfg = onr_cfg { law: Law::Gate as u32, ..*config.abi() };
        let line = u64::from(cfg.line_ns_per_byte_q16);
        let mut s = Sender::default();
        for event in events {
            let verdict = s.play(&Config::from(cfg), &event);
            let inv = s.flow.abi().inv_q16;
            if verdict == Some(Verdict::Used) || inv != 0 {
                prop_assert!((line..=100 * line).contains(&inv), "{inv} at line {line}");
            }
        }
    }

    /// What a flow did before does not matter: after idling, what leaves at once drains within T.
    #[test]
    fn after_idling_a_burst_is_at_most_the_thresholds_worth(
        events in events(0i64..400_000), idle in 12_000_000i64..10_000_000_000,
    ) {
        let config = gate();
        let mut s = Sender::default();
        for event in &events {
            s.play(&config, event);
        }
        prop_assume!(s.flow.abi().inv_q16 != 0);
        let sent = burst(&mut s.flow, &config, s.now + idle);
        // The first head is what ends the idling; a is not counted; the last one fits partly.
        let most = T_NS * 10 / 8 + 3 * i64::from(MSS);
        prop_assert!(sent <= most, "{sent} B at once, {most} allowed");
    }

    /// A trickle that never lets an OR-ACK's sample out earns no credit either.
    #[test]
    fn a_trickle_earns_no_burst(gap in 1_000i64..5_000_000, segments in 1u32..200) {
        let config = gate();
        let mut flow = Flow::default();
        let first = flow.sent(&config, at(0), 0, MSS);
        flow.orack(&config, &first, 0, at(30_000), at(20_000));
        let mut now = 30_000;
        for i in 1..=segments {
            now += gap;
            flow.sent(&config, at(now), i * 100, 100);
        }
        let sent = burst(&mut flow, &config, now);
        prop_assert!(sent <= T_NS * 10 / 8 + 3 * i64::from(MSS), "{sent} B at once");
    }
}
