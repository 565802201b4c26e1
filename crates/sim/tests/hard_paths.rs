// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! No flow is stuck for ever, whatever its path is like: every congestion control ends its flows without ECN, over a buffer
//! of three packets, at round-trip times of 10 us and 100 ms, with little to send, and with time stamps that are wrong. No
//! test names a congestion control.

use onramp_cc::Cc;
use onramp_scenario::{plan, Scenario};
use onramp_sim::run::build;
use onramp_sim::Simulation;
use onramp_units::{Span, Time};

/// Far beyond the slowest: a stream of TCP RAPID at its first rate, 100 kbit/s, takes 8 s at most.
const END: Span = Span::from_s(300);

/// Without PFC, whose headroom needs more room than a small buffer, or any buffer on a long path, has.
const LOSSY: (&str, &str) = ("network.sharing", "per_port");

/// Answers of 8 hosts to host 0; `set` changes the path.
fn simulation(cc: Cc, set: &[(&str, &str)]) -> Simulation {
    let kind = if cc.is_nic() { "nic" } else { "kernel" };
    let text = format!(
        r#"title = "t"
duration = "10 ms"
[network]
topology = {{ kind = "star", hosts = 9 }}
link = {{ rate = "10 Gbit/s", delay = "5 us" }}
buffer = "300 kB"
[network.ecn]
threshold = "50 kB"
[host]
kind = "{kind}"
cc = "{cc}"
[onramp]
law = "off"
[[traffic]]
kind = "incast"
fanout = 8
size = "64 kB"
interval = "2 ms"
requests = 3
"#
    );
    let mut all = set.to_vec();
    if !cc.is_nic() {
        all.push(("host.gso", "16 kB"));
    }
    let scenario = Scenario::parse_with(&text, "t", &all).unwrap_or_else(|e| panic!("{cc:?}: {e}"));
    let run = &scenario.runs()[0];
    build(run, &plan(run)).unwrap_or_else(|e| panic!("{cc:?}: {e}"))
}

/// Runs until all flows are over, with each congestion control; returns all timeouts.
fn all_end(path: &str, set: &[(&str, &str)]) -> u32 {
    all_of_end(Cc::all(), path, set)
}

/// The same for `ccs`.
fn all_of_end(ccs: impl Iterator<Item = Cc>, path: &str, set: &[(&str, &str)]) -> u32 {
    let mut timeouts = 0;
    for cc in ccs {
        let mut simulation = simulation(cc, set);
        simulation.run_until(Time::ZERO + END);
        let outcomes = simulation.outcomes();
        assert!(!outcomes.is_empty());
        let open = outcomes
            .iter()
            .filter(|flow| flow.arrived.is_none())
            .count();
        let all = outcomes.len();
        assert_eq!(open, 0, "{cc:?}, {path}: {open} of {all} flows are open");
        timeouts += outcomes.iter().map(|flow| flow.timeouts).sum::<u32>();
    }
    timeouts
}

#[test]
fn without_marks() {
    all_end("no ECN", &[("network.ecn.threshold", "300 kB")]);
}

#[test]
fn with_bursts_of_loss_and_timeouts() {
    let tiny = [
        LOSSY,
        ("network.buffer", "5 kB"),
        ("network.ecn.threshold", "5 kB"),
    ];
    assert!(all_end("a buffer of three packets", &tiny) > 0);
}

#[test]
fn at_round_trip_times_of_10_us_and_100_ms() {
    all_end("10 us", &[("network.link.delay", "2500 ns")]);
    all_end("100 ms", &[LOSSY, ("network.link.delay", "25 ms")]);
}

#[test]
fn with_little_to_send() {
    let little = [("traffic.0.size", "1 B"), ("traffic.0.interval", "100 us")];
    all_end("application limited", &little);
}

#[test]
fn with_time_stamps_that_are_wrong() {
    let wrong = [
        ("onramp.law", "final"),
        ("onramp.threshold", "100 ms"),
        ("clock.offset", "10 ms"),
        ("clock.drift", "0.001"),
        ("clock.noise", "10 ms"),
    ];
    all_end("wrong stamps", &wrong);
}

#[test]
fn reads_with_loss_of_requests_and_of_responses() {
    let lossy = [("traffic.0.op", "read"), LOSSY, ("network.loss", "20 %")];
    let readers = || Cc::all().filter(|cc| cc.sends_bursts());
    assert!(all_of_end(readers(), "lost requests and responses", &lossy) > 0);
    let tiny = [
        ("traffic.0.op", "read"),
        LOSSY,
        ("network.buffer", "5 kB"),
        ("network.ecn.threshold", "5 kB"),
    ];
    assert!(all_of_end(readers(), "reads over a buffer of three packets", &tiny) > 0);
}

#[test]
fn with_round_trip_times_that_are_wrong() {
    let wrong = [("host.rtt_stamps", "software"), ("host.rtt_noise", "10 ms")];
    all_of_end(Cc::all().filter(|cc| cc.is_nic()), "wrong RTTs", &wrong);
}
