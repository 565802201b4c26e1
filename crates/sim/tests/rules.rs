// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A rule of switches from outside of the crates: it marks by the time in the queue, or drops, as its keys say.

#[path = "harness/outcome.rs"]
mod outcome;

use onramp_cc::switch::{register, Entry, Rule, Seen, SwitchRule, Verdict};
use onramp_cc::{parameters, Bounds};
use onramp_results::RunResult;
use onramp_scenario::{plan, Scenario};
use onramp_sim::run::{build_in_parts, Parts};
use onramp_units::{Span, Time};
use outcome::simulate_all;
use std::sync::Once;

const SCENARIO: &str = r#"title = "An incast under a rule"
duration = "50 ms"
[network]
topology = { kind = "leaf_spine", hosts = 8, leaves = 2, spines = 2 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[host]
cc = "dctcp"
[onramp]
law = "off"
[[traffic]]
kind = "incast"
fanout = 6
size = "300 kB"
"#;

parameters! { in "network.": "sojourn", {
    "limit" limit: Span = Span::from_us(20), Bounds::Span(Span::from_ns(100), Span::from_ms(10)), "A packet that was longer in the queue is marked.";
    "drops" drops: bool = false, Bounds::Flag, "Whether it is dropped in place of a mark.";
} }

static SOJOURN: Entry = Entry::new("sojourn", "marks by the time in the queue", || {
    Rule::custom(Params::default(), |params, _| Box::new(Sojourn(*params)))
})
.marks(true)
.parameters(PARAMETERS);

struct Sojourn(Params);

impl SwitchRule for Sojourn {
    fn leaves(&mut self, seen: &mut Seen<'_>) -> Verdict {
        match (seen.waited > self.0.limit, self.0.drops) {
            (false, _) => Verdict::Pass,
            (true, false) => Verdict::Mark,
            (true, true) => Verdict::Drop,
        }
    }
}

static FLUSH: Entry = Entry::new("flush", "drops a queue of 60 MB as a whole", || {
    Rule::custom(Params::default(), |_, _| Box::new(Flush { drops: false }))
})
.marks(true);

struct Flush {
    drops: bool,
}

impl SwitchRule for Flush {
    fn leaves(&mut self, seen: &mut Seen<'_>) -> Verdict {
        self.drops = seen.queue.get() > if self.drops { 0 } else { 60_000_000 };
        match self.drops {
            true => Verdict::Drop,
            false => Verdict::Pass,
        }
    }
}

static BLACK_HOLE: Entry = Entry::new("black_hole", "drops everything", || {
    Rule::custom(Params::default(), |_, _| Box::new(BlackHole))
});

struct BlackHole;

impl SwitchRule for BlackHole {
    fn leaves(&mut self, _seen: &mut Seen<'_>) -> Verdict {
        Verdict::Drop
    }
}

fn registered() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        register(&SOJOURN);
        register(&FLUSH);
        register(&BLACK_HOLE);
    });
}

fn scenario(set: &[(&str, &str)]) -> Scenario {
    registered();
    let set = [&[("network.rule", "sojourn")], set].concat();
    Scenario::parse_with(SCENARIO, "t", &set).unwrap_or_else(|e| panic!("{e}"))
}

fn outcome(set: &[(&str, &str)]) -> RunResult {
    let mut results = simulate_all(&scenario(set)).into_iter();
    results.next().expect("a scenario has a run").0
}

fn count(result: &RunResult, metric: &str) -> u64 {
    result.metrics[metric].as_u64().expect("a counter")
}

#[test]
fn a_rule_marks_and_drops_as_its_keys_say() {
    let (soon, late) = (outcome(&[]), outcome(&[("network.sojourn.limit", "10 ms")]));
    assert!(count(&soon, "marks") > 0 && count(&late, "marks") == 0);
    for sharing in ["per_port", "shared", "lossless"] {
        let set = [
            ("network.sojourn.drops", "true"),
            ("network.sharing", sharing),
        ];
        let drops = outcome(&set);
        assert!(
            count(&drops, "drops") > 0 && count(&drops, "marks") == 0,
            "{sharing}"
        );
    }
}

/// The conformance checks are no formality.
#[test]
#[should_panic(expected = "flows do not end")]
fn a_rule_that_drops_everything_does_not_conform() {
    registered();
    onramp_sim::conformance::switch_rule(&BLACK_HOLE);
}

/// With default stacks of threads: what a rule drops in a row does not nest.
#[test]
fn a_long_queue_may_be_dropped_at_once() {
    let drops = outcome(&[
        ("network.rule", "flush"),
        ("network.buffer", "200 MB"),
        ("host.initial_window", "1000"),
        ("traffic.0.fanout", "600"),
        ("traffic.0.interval", "20 ms"),
    ]);
    let drops = count(&drops, "drops");
    assert!(drops > 40_000, "{drops}");
}

#[test]
fn a_rule_does_the_same_on_any_number_of_threads() {
    let scenario = scenario(&[]);
    let run = &scenario.runs()[0];
    let on = |threads| {
        let mut simulation = build_in_parts(run, &plan(run), Parts::Forced(threads)).unwrap();
        simulation.run_until(Time::ZERO + Span::from_ms(60));
        (simulation.outcomes(), simulation.counters())
    };
    assert!(on(1).1.marks > 0);
    assert_eq!(on(1), on(2));
}

#[test]
fn a_run_with_a_rule_is_written_as_it_was_read() {
    let scenario = scenario(&[("network.sojourn.limit", "7 us")]);
    let run = &scenario.runs()[0];
    let again = Scenario::parse(&run.to_toml(), "t").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.runs()[0].network, run.network);
    assert!(!Scenario::parse(SCENARIO, "t").is_ok_and(|s| s.runs()[0].to_toml().contains("rule")));
}

#[test]
fn wrong_keys_of_a_rule_are_errors() {
    registered();
    let error = |set: &[(&str, &str)]| match Scenario::parse_with(SCENARIO, "t", set) {
        Ok(_) => panic!("{set:?} is no error"),
        Err(errors) => errors.to_string(),
    };
    let named = ("network.rule", "sojourn");
    for (set, message) in [
        (
            &[named, ("network.sojourn.limit", "1 s")][..],
            "network.sojourn.limit is 1 s, above max 10 ms",
        ),
        (
            &[
                ("network.ecn.threshold", "9 kB"),
                ("network.sojourn.limit", "1 us"),
            ],
            "needs network.rule sojourn",
        ),
        (
            &[named, ("network.ecn.threshold", "9 kB")],
            "needs network.rule ecn",
        ),
        (&[("network.rule", "sojurn")], "network.rule is \"sojurn\""),
    ] {
        let text = error(set);
        assert!(text.contains(message), "{text}");
    }
}
