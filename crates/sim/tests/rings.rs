// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Rings of all-reduce: rounds, and chunks in order over one connection to the next host.

#[path = "harness/outcome.rs"]
mod outcome;
#[path = "harness/star.rs"]
mod star;

use onramp_results::{FlowRow, RunResult, Tables};
use onramp_scenario::Scenario;
use onramp_sim::run::{run_in_parts, Parts, Watch};
use outcome::{field, number};
use star::STAR;
use std::collections::BTreeMap;

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

/// When chunks start and have arrived, in ns, of each host's to the next, in the plan's order.
fn chunks(tables: &Tables) -> Vec<Vec<(i64, i64)>> {
    let mut chunks: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for flow in tables.flows.iter().filter(is_chunk) {
        let fct_ns = flow.fct_ns.expect("it arrives");
        assert!(fct_ns > 0, "{flow:?}");
        let of_host = chunks.entry(flow.src).or_default();
        of_host.push((flow.start_ns, flow.start_ns + fct_ns));
    }
    chunks.into_values().collect()
}

fn is_chunk(flow: &&FlowRow) -> bool {
    flow.kind == "all_to_all"
}

/// A retransmission may complete two chunks at once, and the sum of two rounded times may be a nanosecond less.
fn are_in_order(chunks: &[(i64, i64)]) -> bool {
    let starts = chunks.is_sorted_by_key(|(start, _)| *start);
    starts && chunks.is_sorted_by(|(_, end), (_, next)| *end <= next + 1)
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
        assert_eq!(number(&result, "all_to_all.unfinished"), 0.0);
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
            assert!(are_in_order(&chunks));
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

const INCAST: &str =
    "[[traffic]]\nkind = \"incast\"\nto = 0\nfanout = 7\nsize = \"30 kB\"\ninterval = \"500 us\"\n";

#[test]
fn a_ring_among_drops_loses_nothing_and_keeps_its_order() {
    let law = "[onramp]\nlaw = \"final\"\nthreshold = \"20 us\"\n";
    let ring = format!("{RACKS}{RING}size = \"400 kB\"\nsteps = 3\n{INCAST}");
    for (world, law) in WORLDS
        .into_iter()
        .flat_map(|world| [(world, ""), (world, law)])
    {
        let set = [world, DROPS].concat();
        let (result, tables) = simulate(&format!("{ring}{law}"), &set);
        let repaired = |flow: &FlowRow| flow.retransmissions;
        let of_ring: i64 = tables.flows.iter().filter(is_chunk).map(repaired).sum();
        assert!(of_ring > 0, "{world:?} {law}");
        assert_eq!(number(&result, "all_to_all.unfinished"), 0.0);
        let chunks = chunks(&tables);
        assert!(chunks.iter().all(|c| c.len() == chunks[0].len()));
        assert!(
            chunks.iter().all(|chunks| are_in_order(chunks)),
            "{world:?}"
        );
    }
}

/// What comes to a host while it computes waits until it has sent what goes before.
#[test]
fn a_host_that_computes_passes_nothing_on() {
    let text =
        format!("{RACKS}{RING}size = \"400 kB\"\nsteps = 5\ninterval = \"200 us\"\n{INCAST}");
    for world in WORLDS {
        let (result, tables) = simulate(&text, &world);
        assert_eq!(number(&result, "all_to_all.unfinished"), 0.0);
        let chunks = chunks(&tables);
        assert!(
            chunks.iter().all(|chunks| are_in_order(chunks)),
            "{world:?}"
        );
        for chunks in chunks {
            assert_eq!(chunks.len(), 5 * 14);
            for step in 1..5 {
                let (last, first) = (chunks[step * 14 - 1], chunks[step * 14]);
                assert!(first.0 - last.0 > 200_000, "{world:?}");
            }
        }
    }
}

/// Some hosts would have begun their last step before the end, others not: all do.
#[test]
fn a_step_that_one_host_has_begun_is_everybodys() {
    let text = format!("{RACKS}{RING}size = \"400 kB\"\n{INCAST}");
    for world in WORLDS {
        let mut late = 0;
        for duration_us in (2_000..4_000).step_by(100) {
            let duration = format!("{duration_us} us");
            let set = [&world[..], &[("duration", &duration)]].concat();
            let (result, tables) = simulate(&text, &set);
            assert_eq!(result.metrics["all_to_all.unfinished"], 0, "{duration}");
            let chunks = chunks(&tables);
            assert!(chunks.iter().all(|chunks| are_in_order(chunks)));

            assert!(chunks.iter().all(|c| c.len() == chunks[0].len()));
            let last = |chunks: &Vec<(i64, i64)>| chunks[chunks.len() - 14].0;
            late += chunks
                .iter()
                .filter(|c| last(c) >= duration_us * 1_000)
                .count();
        }
        assert!(late > 0, "{world:?}");
    }
}

#[test]
fn parts_change_nothing_of_a_ring() {
    let text = format!("{RACKS}{RING}size = \"400 kB\"\nsteps = 2\n{INCAST}");
    let scenario = Scenario::parse_with(&text, "t", &WORLDS[1]).unwrap_or_else(|e| panic!("{e}"));
    let of = |parts| {
        let run = &scenario.runs()[0];
        let done = run_in_parts(run, 0, Watch::default(), parts, &mut |_| true);
        done.unwrap_or_else(|e| panic!("{e}")).into_tables()
    };
    assert!(of(Parts::Forced(2)) == of(Parts::AtMost(1)));
}
