// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Deadlocks of priority flow control are named; other pauses are none.

use onramp_scenario::Scenario;
use onramp_sim::run::{run_in_parts, Parts, Watch};
use onramp_sim::Deadlock;
use std::fmt::Write;

/// Switches in a ring, a host at each, which sends to the host at the next switch but one. The shortest path goes one way.
const SWITCHES: usize = 5;

/// The ring, of which `open` lacks a link: the senders beside it have a longer way.
fn scenario(open: bool, set: &[(&str, &str)]) -> Scenario {
    let mut text = String::from(
        "title = \"t\"\nduration = \"3 ms\"\n[network]\ntopology.kind = \"inline\"\nsharing = \"lossless\"\n\
         buffer = \"2 MB\"\n[network.graph]\nlinks = [\n",
    );
    for switch in 0..SWITCHES - usize::from(open) {
        let next = (switch + 1) % SWITCHES;
        let link = "rate = \"100 Gbit/s\", delay = \"1 us\"";
        writeln!(
            text,
            "{{ from = \"s{switch}\", to = \"s{next}\", {link} }},"
        )
        .unwrap();
    }
    let names: Vec<String> = (0..SWITCHES).map(|n| format!("\"s{n}\"")).collect();
    writeln!(text, "]\nswitches = [{}]", names.join(", ")).unwrap();
    for switch in 0..SWITCHES {
        writeln!(
            text,
            "[[network.graph.hosts]]\nat = \"s{switch}\"\nrate = \"100 Gbit/s\"\ndelay = \"1 us\""
        )
        .unwrap();
    }
    text.push_str("[host]\nkind = \"nic\"\ncc = \"none\"\n");
    for from in 0..SWITCHES {
        let to = (from + 2) % SWITCHES;
        writeln!(
            text,
            "[[traffic]]\nkind = \"long\"\nfrom = {from}\nto = {to}\nflows = 1"
        )
        .unwrap();
    }
    Scenario::parse_with(&text, "t", set).unwrap_or_else(|errors| panic!("{errors}"))
}

fn deadlock(scenario: &Scenario, threads: usize) -> Option<Deadlock> {
    let parts = Parts::AtMost(threads);
    let report = run_in_parts(&scenario.runs()[0], 0, Watch::default(), parts, &mut |_| {
        true
    });
    report.unwrap_or_else(|error| panic!("{error}")).deadlock
}

#[test]
fn a_ring_that_stands_still_is_named() {
    let scenario = scenario(false, &[]);
    let found =
        deadlock(&scenario, 1).expect("five senders fill a ring that can carry two and a half");
    let mut ports = found.ports.clone();
    ports.sort();
    let ring: Vec<String> = (0..SWITCHES)
        .map(|switch| format!("s{switch}-s{}", (switch + 1) % SWITCHES))
        .collect();
    assert_eq!(ports, ring);
    let text = found.to_string();
    assert!(text.contains("s1-s2 waits for s2-s3"), "{text}");
    assert_eq!(deadlock(&scenario, 2), Some(found));
}

#[test]
fn pauses_that_end_are_no_deadlock() {
    // A ring without a link has no circle; with drops nothing pauses; congestion control keeps the queues short.
    let (shared, hpcc) = (("network.sharing", "shared"), ("host.cc", "hpcc"));
    for (open, set) in [(true, vec![]), (false, vec![shared]), (false, vec![hpcc])] {
        assert_eq!(deadlock(&scenario(open, &set), 1), None, "{open} {set:?}");
    }
}
