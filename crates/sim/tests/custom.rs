// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls from outside of the crates: the same as the built-in ones that they are made of.

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_cc::nic::{self, hpcc, Algorithm, Preset};
use onramp_cc::tcp::{self, Entry, TcpAlgorithm};
use onramp_cc::{Bounds, Parameter};
use onramp_results::RunResult;
use onramp_scenario::Scenario;
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

static MY_DCTCP: Entry = Entry::new("my_dctcp", "DCTCP, from outside", || {
    let params = tcp::dctcp::Params::default();
    TcpAlgorithm::custom(params, |params| Box::new(tcp::dctcp::Dctcp::new(params)))
})
.marks(true)
.parameters(&[GAIN]);

static MY_HPCC: Preset = Preset::new("my_hpcc", "HPCC, from outside", |line| {
    let params = hpcc::Params::reference(line);
    Algorithm::custom(params, |params, path| {
        Box::new(hpcc::Hpcc::new(params, path))
    })
})
.parameters(&[ETA]);

fn outcome(kind: &str, cc: &str, set: &[(&str, &str)]) -> RunResult {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tcp::register(&MY_DCTCP);
        nic::register(&MY_HPCC);
    });
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
    ] {
        match Scenario::parse_with(SCENARIO, "t", set) {
            Ok(_) => panic!("{set:?} is no error"),
            Err(errors) => assert!(errors.to_string().contains(message), "{errors}"),
        }
    }
}
