//! The gate on a port of its own, and beside a flow that nobody holds (figures/x-sharing.toml has
//! more cases, and many seeds).

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_results::RunResult;
use onramp_scenario::Scenario;
use outcome::{field, number, simulate_all};

/// The first case of scenarios/beyond/sharing.toml, shorter, and with timeouts that do not take all of
/// it: entry 0 is managed, entry 1 is not.
const SHARING: &str = r#"title = "t"
duration = "200 ms"
warmup = "80 ms"
[network]
topology = { kind = "star", hosts = 5 }
link = { rate = "10 Gbit/s", delay = "1 us" }
buffer = "1 MB"
[host]
cc = "cubic"
min_rto = "5 ms"
[[traffic]]
kind = "long"
from = "1-2"
flows = 1
[[traffic]]
kind = "long"
from = "3-4"
flows = 1
[onramp]
threshold = "40 us"
hosts = "1-2"
[sweep]
"onramp.law" = ["final", "gate"]
"#;

/// What `final` and `gate` come to.
fn outcomes(set: &[(&str, &str)]) -> [RunResult; 2] {
    let scenario = Scenario::parse_with(SHARING, "t", set).unwrap_or_else(|e| panic!("{e}"));
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
        eprintln!("{set:?}: {gate} Gbit/s, final {last}");
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
