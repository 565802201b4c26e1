// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the guard does for a flow that is alone at its receiver.

use super::{any_config, at, events, extreme, sane_config, span, with_law, Event, Sender};
use onramp_law::abi::onr_cfg;
use onramp_law::{Config, Hint, Law, PathState};
use proptest::prelude::*;

const W_NS: i64 = 50_000_000;
/// Nothing but one managed flow fills the receiver's port.
const ALONE: u16 = 31 << 11 | 7 << 8 | 1;

fn guarded(config: &Config, law: Law, window_ns: i64) -> Config {
    Config::from(onr_cfg {
        guard_window_ns: window_ns,
        ..*with_law(config, law).abi()
    })
}

proptest! {
    /// Neither delay nor threshold makes a pause law pause it.
    #[test]
    fn a_pause_law_never_pauses_a_flow_that_is_alone(
        config in prop_oneof![any_config(), sane_config()], events in events(extreme()),
        law in prop::sample::select(vec![Law::Strawman, Law::Final]),
    ) {
        let config = guarded(&config, law, W_NS);
        let mut s = Sender::default();
        for event in events {
            s.flow.set_path(&PathState { hint: Hint::of_bits(ALONE), ..PathState::default() });
            s.play_on(&config, &event);
            prop_assert_eq!(s.flow.abi().pause_until_mono_ns, 0);
        }
    }

    /// Instead it is held as under the gate, as long as all is in order.
    #[test]
    fn a_pause_law_holds_a_flow_that_is_alone_as_the_gate_does(
        events in events(0i64..400_000), least in 1_000i64..1_000_000,
        law in prop::sample::select(vec![Law::Strawman, Law::Final]),
    ) {
        let alone = PathState { least: Some(span(least)), hint: Hint::of_bits(ALONE), ..PathState::default() };
        let mut flows = [law, Law::Gate].map(|law| {
            let line = "10 Gbit/s".parse().unwrap();
            let config = Config::new(law, span(40_000)).line_rate(line);
            (Sender::default(), guarded(&config, law, W_NS))
        });
        // Each law has its own way to see that OR-ACKs are out of order.
        let in_order = |event: &&Event| match event {
            Event::Sent { wait, .. } => *wait > 0,
            Event::Orack { byte, .. } => *byte == 0,
            Event::Ask { .. } => true,
            _ => false,
        };
        for event in events.iter().filter(in_order) {
            for (s, config) in &mut flows {
                s.flow.set_path(&alone);
                s.play_on(config, event);
            }
            let [paused, gated] = flows.each_mut().map(|(s, config)| s.flow.may_go(config, at(s.now)));
            prop_assert_eq!(paused, gated);
        }
    }

    /// Without a guard the receiver's word changes nothing under a pause law.
    #[test]
    fn without_a_guard_it_is_held_as_any_other(config in sane_config(), events in events(0i64..400_000)) {
        let config = guarded(&config, Law::Final, 0);
        let mut flows = [(Sender::default(), ALONE), (Sender::default(), ALONE + 1)];
        for event in events {
            for (s, hint) in &mut flows {
                s.flow.set_path(&PathState { hint: Hint::of_bits(*hint), ..PathState::default() });
                s.play_on(&config, &event);
            }
            let [alone, others] = flows.each_ref().map(|(s, _)| s.flow.abi().pause_until_mono_ns);
            prop_assert_eq!(alone, others);
        }
    }
}
