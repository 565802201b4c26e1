//! The gate on a port of its own, and beside a flow that nobody holds (figures/x-sharing.toml has
//! more cases, and many seeds).

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_scenario::Scenario;
use outcome::{number, simulate_all};

/// The first case of scenarios/beyond/sharing.toml, shorter: entry 0 is managed, entry 1 is not.
const SHARING: &str = r#"title = "t"
duration = "150 ms"
warmup = "50 ms"
[network]
topology = { kind = "star", hosts = 5 }
link = { rate = "10 Gbit/s", delay = "1 us" }
buffer = "1 MB"
[host]
cc = "cubic"
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

/// Goodput of the first flow, of all, and drops, under `final` and under `gate`.
fn outcomes(set: &[(&str, &str)]) -> [(f64, f64, f64); 2] {
    let scenario = Scenario::parse_with(SHARING, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let runs = simulate_all(&scenario);
    [0, 1].map(|law| {
        let (result, _) = &runs[law];
        let first = result.metrics["long.goodput_gbps"][0].as_f64().unwrap();
        let all = number(result, "background.goodput_gbps");
        (first, all, number(result, "drops"))
    })
}

#[test]
fn beside_unmanaged_traffic_the_gate_keeps_half_of_what_the_papers_law_keeps() {
    for set in [
        &[][..],
        &[("network.buffer", "300 kB")],
        &[("host.cc", "dctcp"), ("network.ecn.threshold", "65 kB")],
    ] {
        let [last, gate] = outcomes(set);
        assert!(gate.0 > 0.5 * last.0, "{set:?}: {gate:?}, final {last:?}");
    }
}

#[test]
fn a_port_of_our_own_stays_full_and_drops_nothing() {
    let [last, gate] = outcomes(&[("traffic.0.flows", "2"), ("traffic.1.flows", "0")]);
    assert!(gate.1 > 9.5 && gate.2 == 0.0, "{gate:?}");
    assert!(gate.1 > last.1, "{gate:?}, final {last:?}");
}
