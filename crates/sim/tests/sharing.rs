// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The gate on a port of its own, and beside a flow that nobody holds. One seed, so single shares are
//! chance to some degree: figures/x-sharing.toml has more cases, and intervals.

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_results::RunResult;
use onramp_scenario::Scenario;
use outcome::{field, number, simulate_all};

/// Its base point is one managed flow, entry 0, and one that is not.
const SHARING: &str = include_str!("../../../scenarios/beyond/sharing.toml");

/// What `final` and `gate` come to at the base point, changed by `set`.
fn outcomes(set: &[(&str, &str)]) -> [RunResult; 2] {
    let (base, _) = SHARING.split_once("[[case]]").expect("cases come last");
    let text = format!("{base}[sweep]\n\"onramp.law\" = [\"final\", \"gate\"]\n");
    let scenario = Scenario::parse_with(&text, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let results = simulate_all(&scenario)
        .into_iter()
        .map(|(result, _)| result);
    let results: Vec<_> = results.collect();
    results.try_into().expect("two laws")
}

#[test]
fn beside_unmanaged_traffic_the_gate_keeps_half_of_what_the_papers_law_keeps() {
    for set in [
        &[][..],
        &[("network.buffer", "300 kB")],
        &[("host.cc", "dctcp"), ("network.ecn.threshold", "65 kB")],
    ] {
        let managed = |r: &RunResult| r.metrics["long.goodput_gbps"][0].as_f64().unwrap();
        let [last, gate] = outcomes(set).map(|result| managed(&result));
        assert!(gate > 0.5 * last, "{set:?}: {gate} Gbit/s, final {last}");
    }
}

#[test]
fn a_port_of_our_own_stays_full_with_a_short_queue() {
    let [last, gate] = outcomes(&[("traffic.0.flows", "2"), ("traffic.1.flows", "0")]);
    let goodput = |result| number(result, "background.goodput_gbps");
    assert!(goodput(&gate) > 9.5 && goodput(&gate) > goodput(&last));
    assert_eq!(number(&gate, "drops"), 0.0);
    // T is 40 us; two flows have three packets each above it, and segments of 16 kB.
    let queue_us = field(&gate, "queue_us", "mean");
    assert!(queue_us < 40.0 + 15.0, "{queue_us} us");
}
