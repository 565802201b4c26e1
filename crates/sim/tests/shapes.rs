// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Shapes from outside of the crates: a line of switches, and one that links a node that it does not have.

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_scenario::{register_shape, Count, Scenario, ShapeKind};
use onramp_sim::run::check_watch;
use outcome::simulate_all;
use std::sync::Once;

const SCENARIO: &str = r#"title = "An incast over a line of switches"
duration = "20 ms"
[network]
topology = { kind = "line", hosts = 6, switches = 3 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[[traffic]]
kind = "incast"
fanout = 5
size = "100 kB"
"#;

const SWITCHES: Count = Count::new("network.topology.switches", (2, 5), "Number of switches.");

static LINE: ShapeKind = ShapeKind::new(
    "line",
    "a line of switches with hosts",
    |counts| counts[0],
    |to, size| {
        let switches = to.switches(size.counts[0]);
        switches
            .iter()
            .for_each(|&switch| to.hosts_at(switch, size));
        switches
            .windows(2)
            .for_each(|two| to.link(two[0], two[1], size.fabric));
    },
)
.counts(&[SWITCHES])
.switch_links(4);

static BROKEN: ShapeKind = ShapeKind::new(
    "broken",
    "a switch with a link to nowhere",
    |_| 1,
    |to, size| {
        let switch = to.switch();
        to.hosts_at(switch, size);
        to.link(switch, 99, size.fabric);
    },
);

fn parse(set: &[(&str, &str)]) -> Result<Scenario, String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| [&LINE, &BROKEN].into_iter().for_each(register_shape));
    Scenario::parse_with(SCENARIO, "t", set).map_err(|errors| errors.to_string())
}

#[test]
fn a_scenario_runs_on_a_shape_from_outside() {
    let scenario = parse(&[]).unwrap_or_else(|e| panic!("{e}"));
    let run = &scenario.runs()[0];
    let port = |name: &str| check_watch(run, &[name.to_owned()], &[]);
    assert_eq!(port("switch1-switch2"), Ok(()));
    assert!(port("switch0-switch2").is_err());
    let (result, tables) = simulate_all(&scenario).remove(0);
    assert!(!result.partial && !tables.flows.is_empty());
    let again = Scenario::parse(&run.to_toml(), "t").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.runs()[0].network, run.network);
}

#[test]
fn wrong_keys_and_wrong_shapes_are_errors() {
    for (set, message) in [
        (
            ("network.topology.switches", "9"),
            "network.topology.switches is 9, above max 5",
        ),
        (("network.topology.hosts", "7"), "a multiple of 3"),
        (
            ("network.topology.kind", "lines"),
            "network.topology.kind is \"lines\"",
        ),
    ] {
        let error = parse(&[set]).expect_err(message);
        assert!(error.contains(message), "{error}");
    }
    let scenario = parse(&[("network.topology.kind", "broken")]).unwrap_or_else(|e| panic!("{e}"));
    let error = check_watch(&scenario.runs()[0], &[], &[]).expect_err("a link leads nowhere");
    assert_eq!(
        error.to_string(),
        "network.topology: a link leads to node 99, above max 6"
    );
}
