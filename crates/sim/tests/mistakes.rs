// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Parts of other crates that panic, or answer what cannot be: the run ends, is marked as partial, and says which part, which
//! call and when.

use onramp_cc::law::{self, CustomLaw, FlowLaw, Head, Sample};
use onramp_cc::nic::{self, hpcc, Ack, Algorithm, CongestionControl, Limits, Preset};
use onramp_cc::path::{self, Fork, PathChoice};
use onramp_cc::switch::{self, Rule, Seen, SwitchRule, Verdict};
use onramp_cc::tcp::{self, Acked, Entry, TcpAlgorithm, Window, WindowControl};
use onramp_cc::{parameters, Bounds};
use onramp_scenario::Scenario;
use onramp_sim::run::{run_in_parts, Parts, Watch};
use onramp_units::{Mono, Span, Time};
use std::sync::Once;

const SCENARIO: &str = r#"title = "An incast"
duration = "20 ms"
[network]
topology = { kind = "leaf_spine", hosts = 8, leaves = 2, spines = 2 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[onramp]
law = "off"
[[traffic]]
kind = "incast"
fanout = 7
size = "300 kB"
interval = "4 ms"
arrivals = "periodic"
"#;

parameters! { "faulty", {
    "fault" fault: u32 = 0, Bounds::Count(0, 2), "0: it sets a window of 0. 1: it panics. 2: it answers a threshold of 0.";
} }

static FAULTY: Entry = Entry::new("faulty", "does what it must not", &|| {
    TcpAlgorithm::custom(Params::default(), |params| Box::new(Faulty(*params)))
})
.parameters(PARAMETERS);

#[derive(Debug)]
struct Faulty(Params);

impl WindowControl for Faulty {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        match self.0.fault {
            0 => window.packets = 0,
            1 => assert!(acked.packets > 1_000_000, "too few packets"),
            _ => window.packets += acked.packets,
        }
    }

    fn on_loss(&mut self, _window: &Window) -> u32 {
        0
    }
}

static STOPPED: Preset = Preset::new("stopped", "lets nothing be sent", &|line| {
    Algorithm::custom(hpcc::Params::reference(line), |_, path| {
        Box::new(Stopped(path.line_rate))
    })
});

#[derive(Debug)]
struct Stopped(onramp_units::Rate);

impl CongestionControl for Stopped {
    fn on_ack(&mut self, _ack: &Ack<'_>) {}

    fn limits(&self) -> Limits {
        Limits {
            rate: self.0,
            window_bytes: 0,
        }
    }
}

mod tripping {
    use super::*;

    parameters! { in "network.": "tripping", {} }

    pub static ENTRY: switch::Entry = switch::Entry::new("tripping", "panics", || {
        Rule::custom(Params::default(), |_, _| Box::new(Tripping))
    })
    .parameters(PARAMETERS);

    struct Tripping;

    impl SwitchRule for Tripping {
        fn leaves(&mut self, _seen: &mut Seen<'_>) -> Verdict {
            panic!("nobody knows why");
        }
    }
}

static LOST: path::Entry =
    path::Entry::new("lost", "takes ways that there are not", |_| Box::new(Lost));

#[derive(Debug)]
struct Lost;

impl PathChoice for Lost {
    fn choose(&self, fork: &Fork) -> usize {
        fork.ways + 1
    }
}

mod lawless {
    use super::*;

    parameters! { in "onramp.": "lawless", {
        "fault" fault: u32 = 0, Bounds::Count(0, 3), "0: it holds without end. 1: it holds until before now. 2: it panics when it is asked. 3: it panics at a delay.";
    } }

    pub static ENTRY: law::Entry = law::Entry::new("lawless", "does what it must not", &|| {
        CustomLaw::starting(Params::default(), |params, _| Box::new(Lawless(*params)))
    })
    .parameters(PARAMETERS);

    #[derive(Debug)]
    struct Lawless(Params);

    impl FlowLaw for Lawless {
        fn on_sample(&mut self, sample: &Sample) {
            assert!(self.0.fault < 3 || sample.owd < Span::ZERO, "it takes time");
        }

        fn hold_until(&mut self, head: &Head) -> Option<Time<Mono>> {
            match self.0.fault {
                0 => Some(Time::from_ticks(i64::MAX)),
                1 => Some(head.now - Span::from_us(1)),
                2 => panic!("nobody may go"),
                _ => None,
            }
        }
    }
}

/// What the run says of the mistake, with one thread and with two, and whether its result is partial.
fn mistake(set: &[(&str, &str)]) -> (String, bool) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        tcp::register(&FAULTY);
        nic::register(&STOPPED);
        switch::register(&tripping::ENTRY);
        path::register(&LOST);
        law::register(&lawless::ENTRY);
    });
    let scenario = Scenario::parse_with(SCENARIO, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let message = [1, 2].map(|threads| {
        let (run, parts) = (&scenario.runs()[0], Parts::Forced(threads));
        let report = run_in_parts(run, 0, Watch::default(), parts, &mut |_| true);
        let report = report.unwrap_or_else(|e| panic!("{e}"));
        let mistake = report.mistake.as_ref().map(ToString::to_string);
        (mistake.unwrap_or_default(), report.into_tables().0.partial)
    });
    assert_eq!(message[0].1, message[1].1);
    message[0].clone()
}

#[test]
fn a_mistake_is_named_with_its_part_its_call_and_its_time() {
    let faulty = |fault| [("host.cc", "faulty"), ("cc.faulty.fault", fault)];
    let lawless = |fault| [("onramp.law", "lawless"), ("onramp.lawless.fault", fault)];
    for (set, words, has_time) in [
        (
            &faulty("0")[..],
            "congestion control mistakes: on_ack set a window of 0 packets",
            true,
        ),
        (
            &faulty("1"),
            "congestion control mistakes: on_ack panicked: too few packets",
            true,
        ),
        (
            &faulty("2"),
            "congestion control mistakes: on_loss answered a threshold of 0 packets",
            true,
        ),
        (
            &[("host.kind", "nic"), ("host.cc", "stopped")],
            "congestion control onramp_cc::nic::hpcc: limits answered a window of 0 bytes",
            false,
        ),
        (
            &[("network.rule", "tripping")],
            "rule mistakes::tripping: leaves panicked: nobody knows why",
            true,
        ),
        (
            &[("network.paths", "lost")],
            "path choice lost: choose answered 3 for Fork",
            false,
        ),
        (
            &lawless("0"),
            "control law mistakes::lawless: hold_until answered a time 922337203685",
            true,
        ),
        (
            &lawless("1"),
            "control law mistakes::lawless: hold_until answered a time -1000 ns after now, not above min 0 s, at ",
            true,
        ),
        (
            &lawless("2"),
            "control law mistakes::lawless: hold_until panicked: nobody may go",
            true,
        ),
        (
            &lawless("3"),
            "control law mistakes::lawless: on_sample panicked: it takes time",
            true,
        ),
        (
            &[&lawless("0")[..], &[("host.kind", "nic"), ("host.cc", "dcqcn")]].concat(),
            "control law mistakes::lawless: hold_until answered a time 922337203685",
            true,
        ),
    ] {
        let (message, is_partial) = mistake(set);
        assert!(message.starts_with(words), "{message}");
        assert_eq!(
            message.ends_with(" of simulated time"),
            has_time,
            "{message}"
        );
        assert!(is_partial, "{message}");
    }
}
