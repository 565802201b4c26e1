//! Rings of all-reduce: rounds, and chunks in order over one connection to the next host.

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_results::{FlowRow, RunResult, Tables};
use onramp_scenario::Scenario;
use outcome::{field, number};
use std::collections::BTreeMap;

const STAR: &str = r#"title = "t"
duration = "2 ms"
[network]
topology = { kind = "star", hosts = 5 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "dctcp"
"#;

/// Hosts whose next one is in another rack get their chunks later than they send theirs.
const RACKS: &str = r#"title = "t"
duration = "20 ms"
[network]
topology = { kind = "leaf_spine", hosts = 8, leaves = 2, spines = 2 }
link = { rate = "10 Gbit/s", delay = "1 us" }
fabric = { rate = "40 Gbit/s", delay = "5 us" }
"#;

const RING: &str = "[[traffic]]\nkind = \"all_to_all\"\npattern = \"ring\"\n";

/// Each world, and what makes its switches drop.
const WORLDS: [[(&str, &str); 2]; 2] = [
    [("host.kind", "kernel"), ("host.cc", "cubic")],
    [("host.kind", "nic"), ("host.cc", "dcqcn")],
];
const DROPS: [(&str, &str); 2] = [("network.sharing", "per_port"), ("network.buffer", "50 kB")];

fn simulate(text: &str, set: &[(&str, &str)]) -> (RunResult, Tables) {
    let scenario = Scenario::parse_with(text, "t", set).unwrap_or_else(|e| panic!("{e}"));
    outcome::simulate_all(&scenario).remove(0)
}

/// When chunks start and have arrived, in ns, of each host's to the next, in the order of their starts.
fn chunks(tables: &Tables) -> Vec<Vec<(i64, i64)>> {
    let mut chunks: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    let of_ring = |flow: &&FlowRow| flow.kind == "all_to_all";
    for flow in tables.flows.iter().filter(of_ring) {
        let arrived = flow.start_ns + flow.fct_ns.expect("it arrives");
        let of_host = chunks.entry(flow.src).or_default();
        of_host.push((flow.start_ns, arrived));
    }
    chunks.values_mut().for_each(|chunks| chunks.sort());
    chunks.into_values().collect()
}

#[test]
fn a_ring_takes_as_long_as_its_rounds() {
    let text = format!("{STAR}{RING}size = \"500 kB\"\nsteps = 2\n");
    let (result, tables) = simulate(&text, &[]);
    assert_eq!(tables.flows.len(), 2 * 8 * 5);
    // 8 rounds of 100 kB at 100 Gbit/s, 1048 B on the wire for 1000: 8.4 us, and two links of 1 us.
    let step_us = field(&result, "all_to_all.step_us", "mean");
    assert!((83.0..90.0).contains(&step_us), "{step_us}");
}

#[test]
fn a_step_that_has_begun_goes_on_after_the_traffic() {
    let text = format!("{STAR}{RING}size = \"500 kB\"\n");
    let steps = |duration: &str| {
        let (result, tables) = simulate(&text, &[("duration", duration), ("warmup", "0 s")]);
        let step_us = field(&result, "all_to_all.step_us", "mean");
        assert!((83.0..90.0).contains(&step_us), "{step_us}");
        assert_eq!(result.metrics["all_to_all.unfinished"], 0);
        assert_eq!(tables.flows.len() % (8 * 5), 0);
        tables.flows.len() / (8 * 5)
    };
    assert_eq!((steps("20 us"), steps("100 us")), (1, 2));
}

/// Two chunks that shared the line would arrive at almost the same time.
#[test]
fn a_chunk_arrives_a_chunk_behind_the_one_before() {
    // Rounds overlap where a host has two chunks to send: three times the bytes in flight.
    let text = format!("{RACKS}{RING}size = \"400 kB\"\nsteps = 3\n");
    for world in WORLDS {
        let (_, tables) = simulate(&text, &world);
        let (mut overlap, mut closest) = (0, i64::MAX);
        for chunks in chunks(&tables) {
            assert_eq!(chunks.len(), 3 * 14);
            for pair in chunks.windows(2) {
                let [(_, before), (start, arrived)] = [pair[0], pair[1]];
                overlap += i32::from(start < before);
                closest = closest.min(arrived - before);
            }
        }
        assert!(overlap > 50, "{world:?}: {overlap} chunks overlap");
        // 50 kB at 10 Gbit/s, without headers.
        assert!(closest >= 40_000, "{world:?}: {closest} ns");
    }
}

#[test]
fn a_ring_among_drops_loses_nothing_and_keeps_its_order() {
    let incast = "[[traffic]]\nkind = \"incast\"\nto = 0\nfanout = 7\nsize = \"60 kB\"\ninterval = \"1 ms\"\n";
    let text = format!("{RACKS}{RING}size = \"400 kB\"\nsteps = 3\n{incast}");
    for world in WORLDS {
        let set = [world, DROPS].concat();
        let (result, tables) = simulate(&text, &set);
        assert!(number(&result, "drops") > 50.0);
        assert_eq!(result.metrics["all_to_all.unfinished"], 0);
        for chunks in chunks(&tables) {
            assert_eq!(chunks.len(), 3 * 14);
            assert!(chunks.is_sorted_by_key(|(_, arrived)| *arrived));
        }
    }
}
