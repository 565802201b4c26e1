// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls and control laws from outside of the crates: the same as the built-in ones that they are made of.

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_cc::law::{self, CustomLaw, FlowFacts, FlowLaw, Head, Sample};
use onramp_cc::nic::{self, hpcc, Algorithm, Preset};
use onramp_cc::tcp::{self, Entry, TcpAlgorithm};
use onramp_cc::{parameters, Bounds, Parameter};
use onramp_results::RunResult;
use onramp_scenario::{rack_limits, Scenario};
use onramp_units::{Mono, Span, Time};
use outcome::simulate_all;
use std::sync::Once;

const SCENARIO: &str = r#"title = "An incast"
duration = "20 ms"
[network]
topology = { kind = "star", hosts = 8 }
link = { rate = "10 Gbit/s", delay = "1 us" }
ecn.threshold = "90 kB"
[onramp]
law = "off"
[[traffic]]
kind = "incast"
fanout = 7
size = "300 kB"
interval = "4 ms"
"#;

/// One parameter of each is enough to see that it arrives.
const GAIN: Parameter = Parameter {
    key: "cc.my_dctcp.g",
    name: "g",
    bounds: Bounds::Fraction(0.001, 1.0),
    meaning: "Weight of a new fraction of marked packets.",
};
const ETA: Parameter = Parameter {
    key: "cc.my_hpcc.eta",
    name: "eta",
    bounds: Bounds::Fraction(0.1, 1.0),
    meaning: "Target of the utilisation.",
};

static MY_DCTCP: Entry = Entry::new("my_dctcp", "DCTCP, from outside", &|| {
    let params = tcp::dctcp::Params::default();
    TcpAlgorithm::custom(params, |params| Box::new(tcp::dctcp::Dctcp::new(params)))
})
.marks(true)
.parameters(&[GAIN]);

static MY_HPCC: Preset = Preset::new("my_hpcc", "HPCC, from outside", &|line| {
    let params = hpcc::Params::reference(line);
    Algorithm::custom(params, |params, path| {
        Box::new(hpcc::Hpcc::new(params, path))
    })
})
.parameters(&[ETA]);

/// The strawman of law/onramp.h, in Rust.
#[derive(Debug)]
struct Strawman {
    threshold: Span,
    max_pause: Span,
    pause_until: Time<Mono>,
}

parameters! { in "onramp.": "my_strawman", {
    "more" more: Span = Span::from_ns(0), Bounds::Span(Span::from_ns(0), Span::from_us(100)), "It is added to T.";
} }

static MY_STRAWMAN: law::Entry = law::Entry::new("my_strawman", "strawman, from outside", &|| {
    CustomLaw::starting(Params::default(), |params, facts: &FlowFacts| {
        Box::new(Strawman {
            threshold: facts.threshold + params.more,
            max_pause: facts.max_pause,
            pause_until: Time::ZERO,
        })
    })
})
.parameters(PARAMETERS);

impl FlowLaw for Strawman {
    /// Eq. 2.
    fn on_sample(&mut self, sample: &Sample) {
        let pause = (sample.owd - self.threshold).min(self.max_pause);
        if pause > Span::ZERO {
            self.pause_until = sample.now + pause;
        }
    }

    fn hold_until(&mut self, head: &Head) -> Option<Time<Mono>> {
        (self.pause_until > head.now).then_some(self.pause_until)
    }
}

fn registered() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tcp::register(&MY_DCTCP);
        nic::register(&MY_HPCC);
        law::register(&MY_STRAWMAN);
    });
}

fn outcome(kind: &str, cc: &str, set: &[(&str, &str)]) -> RunResult {
    registered();
    let set = [&[("host.kind", kind), ("host.cc", cc)], set].concat();
    let scenario = Scenario::parse_with(SCENARIO, "t", &set).unwrap_or_else(|e| panic!("{e}"));
    let mut results = simulate_all(&scenario).into_iter();
    results.next().expect("a scenario has a run").0
}

#[test]
fn it_is_the_same_as_the_built_in_one_that_it_is_made_of() {
    for (kind, cc, parameter, values) in [
        ("kernel", "dctcp", "g", ["1/16", "1/2"]),
        ("nic", "hpcc", "eta", ["0.95", "0.5"]),
    ] {
        let metrics = |name: &str, value: &str| {
            let key = format!("cc.{name}.{parameter}");
            outcome(kind, name, &[(&key, value)]).metrics
        };
        let mine = format!("my_{cc}");
        let [usual, other] = values.map(|value| {
            assert_eq!(metrics(&mine, value), metrics(cc, value), "{cc} {value}");
            metrics(&mine, value)
        });
        assert_ne!(usual, other, "the parameter of {mine} has an effect");
        assert_eq!(outcome(kind, &mine, &[]).metrics, usual);
    }
}

#[test]
fn its_keys_and_its_hosts_are_checked() {
    let _ = outcome("nic", "my_hpcc", &[]);
    for (set, message) in [
        (
            &[("host.cc", "my_dctcp"), ("cc.my_dctcp.g", "3")][..],
            "cc.my_dctcp.g is 3, above max 1",
        ),
        (&[("cc.my_dctcp.g", "0.5")], "needs host.cc my_dctcp"),
        (
            &[("host.cc", "my_dctcp"), ("host.kind", "nic")],
            "host.kind",
        ),
        (
            &[
                ("onramp.law", "my_strawman"),
                ("onramp.my_strawman.more", "1 ms"),
            ],
            "onramp.my_strawman.more is 1 ms, above max 100 us",
        ),
        (
            &[
                ("onramp.law", "my_strawman"),
                ("onramp.my_strawman.mor", "1 us"),
            ],
            "unknown key onramp.my_strawman.mor, did you mean onramp.my_strawman.more?",
        ),
        (
            &[("onramp.my_strawman.more", "1 us")],
            "which needs onramp.law my_strawman",
        ),
        (
            &[("onramp.law", "my_strawman"), ("onramp.guard", "50 ms")],
            "onramp.law is my_strawman, which needs onramp.guard off",
        ),
        (
            &[("onramp.law", "my_strawma")],
            "or \"level\" or \"my_strawman\"",
        ),
    ] {
        match Scenario::parse_with(SCENARIO, "t", set) {
            Ok(_) => panic!("{set:?} is no error"),
            Err(errors) => assert!(errors.to_string().contains(message), "{errors}"),
        }
    }
}

/// Every way in which a law sees a flow: each kind of host, a NIC's queue, OR-ACKs in acknowledgements, delays of flows before.
const LAWS: [&[(&str, &str)]; 6] = [
    &[("host.kind", "kernel")],
    &[
        ("host.kind", "kernel"),
        ("host.nic_queue", "30 kB"),
        ("onramp.reuse", "10 ms"),
    ],
    &[
        ("host.kind", "kernel"),
        ("onramp.max_pause", "100 us"),
        ("clock.offset", "3 us"),
    ],
    &[("host.kind", "nic"), ("host.cc", "dcqcn")],
    &[
        ("host.kind", "nic"),
        ("host.cc", "hpcc"),
        ("onramp.piggyback", "true"),
    ],
    &[
        ("host.kind", "nic"),
        ("host.cc", "dctcp"),
        ("onramp.reuse", "10 ms"),
        ("onramp.max_pause", "30 us"),
    ],
];

#[test]
fn the_strawman_in_rust_is_that_of_c() {
    let metrics = |law: &str, threshold: &str, set: &[(&str, &str)]| {
        registered();
        let law = [("onramp.law", law), ("onramp.threshold", threshold)];
        let set = [&law[..], set].concat();
        let scenario = Scenario::parse_with(SCENARIO, "t", &set).unwrap_or_else(|e| panic!("{e}"));
        simulate_all(&scenario)[0].0.metrics.clone()
    };
    for set in LAWS {
        let [low, high] = ["20 us", "40 us"].map(|threshold| {
            let mine = metrics("my_strawman", threshold, set);
            assert_eq!(mine, metrics("strawman", threshold, set), "{set:?}");
            mine
        });
        assert_ne!(low, high, "the law holds flows: {set:?}");
        let more = ("onramp.my_strawman.more", "20 us");
        let tuned = metrics("my_strawman", "20 us", &[&[more], set].concat());
        assert_eq!(tuned, high, "its parameter arrives: {set:?}");
    }
}

#[test]
fn groups_have_a_law_with_its_parameters_and_the_rack_refuses_it() {
    registered();
    let text = format!(
        "{SCENARIO}[[hosts]]\nrange = \"1-2\"\nonramp.law = \"my_strawman\"\nonramp.my_strawman.more = \"9 us\"\n\
         [[hosts]]\nrange = 3\nonramp.law = \"my_strawman\"\n"
    );
    let set = [("onramp.my_strawman.more", "7 us")];
    let scenario = Scenario::parse_with(&text, "t", &set).unwrap_or_else(|e| panic!("{e}"));
    let run = &scenario.runs()[0];
    let more = |host| {
        run.settings_of(host)
            .law_tuning
            .get("more")
            .map(|more| more.to_string())
    };
    assert_eq!(
        [0, 1, 3].map(more),
        [None, Some("9 us".to_owned()), Some("7 us".to_owned())]
    );
    let again = Scenario::parse(&run.to_toml(), "t").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.runs()[0], *run);
    let limits: Vec<String> = rack_limits(run).iter().map(ToString::to_string).collect();
    let refused = "hosts.0.onramp.law is my_strawman, which only the simulator supports: use `onramp sim run`, or set it to off or strawman or final or gate or level";
    assert!(limits.iter().any(|limit| limit == refused), "{limits:?}");
}
