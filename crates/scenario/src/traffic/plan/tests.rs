// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about traffic plans.

use super::*;
use crate::scenario::Scenario;
use onramp_units::Span;
use proptest::prelude::*;
use std::collections::BTreeSet;

const HEAD: &str = r#"title = "test"
duration = "500 ms"
[network]
topology = { kind = "star", hosts = 9 }
link = { rate = "10 Gbit/s", delay = "1 us" }
"#;
const WEBSEARCH: &str =
    "[[traffic]]\nkind = \"poisson\"\nworkload = \"websearch\"\nload = \"40 %\"\n";

fn run(traffic: &str, set: &[(&str, &str)]) -> Run {
    let text = format!("{HEAD}{traffic}");
    let scenario = Scenario::parse_with(&text, "t", set).unwrap_or_else(|e| panic!("{e}"));
    scenario.runs()[0].clone()
}

fn incast(rest: &str) -> String {
    format!("[[traffic]]\nkind = \"incast\"\n{rest}")
}

fn bytes(arrival: &Arrival) -> u64 {
    match arrival.work {
        Work::Send(size) => size.get(),
        Work::Until(_) => 0,
    }
}

#[test]
fn every_server_answers_once_when_the_fanout_is_their_number() {
    let run = run(
        &incast("to = 4\nfanout = 8\nsize = \"2 kB\"\nrequests = 3\n"),
        &[],
    );
    let arrivals = plan(&run);
    assert_eq!(arrivals.len(), 24);
    for (request, answers) in (0..).zip(arrivals.chunks(8)) {
        let sources: Vec<HostId> = answers.iter().map(|a| a.src).collect();
        assert_eq!(sources, [0, 1, 2, 3, 5, 6, 7, 8]);
        assert!(answers
            .iter()
            .all(|a| a.request == Some(request) && a.at == answers[0].at));
        assert!(answers
            .iter()
            .all(|a| a.dst == 4 && a.slot == 0 && bytes(a) == 2000));
    }
}

#[test]
fn each_of_several_aggregators_asks_on_its_own() {
    let text =
        incast("to = \"0-2\"\nfrom = \"3-8\"\nfanout = 4\nsize = \"2 kB\"\nload = \"2 %\"\n");
    let run = run(&text, &[]);
    let arrivals = plan(&run);
    let alone = self::run(&text, &[("traffic.0.to", "1")]);
    let of_one: Vec<_> = arrivals.iter().filter(|a| a.dst == 1).collect();
    assert_eq!(of_one.len(), plan(&alone).len());
    assert!(arrivals.iter().all(|a| a.dst <= 2 && a.src >= 3));
    let mut asked: Vec<_> = arrivals.iter().map(|a| (a.request, a.dst)).collect();
    asked.sort_unstable();
    asked.dedup();
    // A number is one aggregator's.
    let numbers: BTreeSet<_> = asked.iter().map(|(request, _)| request).collect();
    assert_eq!(
        (numbers.len(), arrivals.len()),
        (asked.len(), 4 * asked.len())
    );
    let expected = expected_flows(&run);
    assert!((arrivals.len() as f64 - expected).abs() < 6.0 * expected.sqrt() * 2.0);
}

#[test]
fn beyond_the_servers_answers_have_connections_of_their_own() {
    let run = run(
        &incast("fanout = 20\nsize = \"2 kB\"\nrequests = 100\n"),
        &[],
    );
    for answers in plan(&run).chunks(20) {
        let connections: BTreeSet<_> = answers.iter().map(|a| (a.src, a.slot)).collect();
        assert_eq!(connections.len(), 20);
        assert_eq!(answers.iter().filter(|a| a.slot == 2).count(), 4);
    }
}

#[test]
fn below_the_servers_distinct_ones_answer_equally_often() {
    let run = run(
        &incast("fanout = 3\nsize = \"2 kB\"\ninterval = \"50 us\"\n"),
        &[],
    );
    let arrivals = plan(&run);
    let mut answers = [0usize; 9];
    for request in arrivals.chunks(3) {
        assert!(request[0].src < request[1].src && request[1].src < request[2].src);
        request.iter().for_each(|a| answers[a.src as usize] += 1);
    }
    let mean = arrivals.len() as f64 / 8.0;
    assert!(
        answers[1..]
            .iter()
            .all(|&n| (n as f64 / mean - 1.0).abs() < 0.1),
        "{answers:?}"
    );
}

#[test]
fn periodic_requests_are_equally_far_apart() {
    let rest = "fanout = 8\nsize = \"2 kB\"\nload = \"2 %\"\narrivals = \"periodic\"\n";
    let run = run(&incast(rest), &[]);
    let starts: Vec<_> = plan(&run).chunks(8).map(|a| a[0].at).collect();
    // 16 kB at 2 % of 10 Gbit/s.
    let gap = Span::from_us(640);
    assert_eq!(starts.len(), 781);
    assert!((1..)
        .zip(&starts)
        .all(|(n, &at)| at == Time::ZERO + gap * n));
}

#[test]
fn long_flows_take_the_other_hosts_in_turn() {
    let entry =
        "[[traffic]]\nkind = \"long\"\nto = 1\nflows = 10\nstart = \"1 ms\"\nstop = \"2 ms\"\n";
    let arrivals = plan(&run(entry, &[]));
    let ends: Vec<_> = arrivals.iter().map(|a| (a.src, a.slot)).collect();
    let expected = [
        (0, 0),
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (7, 0),
        (8, 0),
        (0, 1),
        (2, 1),
    ];
    assert_eq!(ends, expected);
    let stop = Work::Until(Time::ZERO + Span::from_ms(2));
    assert!(arrivals
        .iter()
        .all(|a| a.at == Time::ZERO + Span::from_ms(1) && a.work == stop));
}

#[test]
fn arrivals_are_in_order_and_within_the_duration() {
    let traffic = [WEBSEARCH, &incast("fanout = 8\nsize = \"2 kB\"\n")].concat();
    let run = run(&traffic, &[]);
    let arrivals = plan(&run);
    assert!(arrivals
        .windows(2)
        .all(|w| (w[0].at, w[0].traffic) <= (w[1].at, w[1].traffic)));
    assert!(arrivals
        .iter()
        .all(|a| Span::ZERO <= a.at - Time::ZERO && a.at - Time::ZERO < run.duration));
}

#[test]
fn an_entry_depends_on_no_other() {
    let both = [WEBSEARCH, &incast("fanout = 8\nsize = \"2 kB\"\n")].concat();
    let of_first = |arrivals: Vec<Arrival>| -> Vec<_> {
        arrivals.into_iter().filter(|a| a.traffic == 0).collect()
    };
    assert_eq!(of_first(plan(&run(&both, &[]))), plan(&run(WEBSEARCH, &[])));
}

#[test]
fn another_load_changes_the_gaps_and_no_size_or_source() {
    let sizes = |load| -> Vec<_> {
        let run = run(WEBSEARCH, &[("traffic.0.load", load)]);
        plan(&run).iter().map(|a| (a.src, a.work)).collect()
    };
    let (few, many) = (sizes("20 %"), sizes("80 %"));
    assert!(few.len() < many.len());
    assert_eq!(few, many[..few.len()]);
}

/// Guards the format: these numbers may only change together with every recorded result.
#[test]
fn the_plan_of_a_seed_never_changes() {
    let arrivals = plan(&run(WEBSEARCH, &[("seed", "7")]));
    let first: Vec<_> = arrivals
        .iter()
        .take(3)
        .map(|a| (a.at.ticks(), a.src, bytes(a)))
        .collect();
    assert_eq!(first, FIRST_OF_SEED_7);
}
const FIRST_OF_SEED_7: [(i64, HostId, u64); 3] = [
    (4_943_409_796, 1, 7_454_716),
    (7_090_147_667, 2, 28_162),
    (7_109_624_004, 8, 9_501_649),
];

#[test]
fn traffic_to_all_reaches_every_host_from_others() {
    let entry =
        "[[traffic]]\nkind = \"poisson\"\nworkload = \"fb_hadoop\"\nload = 0.3\nto = \"all\"\n";
    let arrivals = plan(&run(entry, &[]));
    let receivers: BTreeSet<_> = arrivals.iter().map(|a| a.dst).collect();
    assert_eq!(receivers.len(), 9);
    assert!(arrivals.iter().all(|a| a.src != a.dst));
}

/// |z| of a sample mean against the truth, from the sample's own spread.
fn deviations(samples: &[f64], truth: f64) -> f64 {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    ((mean - truth) / (variance / n).sqrt()).abs()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    // Bounds of six standard errors: sizes are skewed, and a test must not fail by chance.
    #[test]
    fn loads_and_sizes_come_out_right(
        seed in 0u64..1_000_000,
        percent in 20u32..95,
        workload in prop::sample::select(vec!["websearch", "fb_hadoop"]),
    ) {
        let (seed, load) = (seed.to_string(), format!("{percent} %"));
        let set = [
            ("seed", seed.as_str()), ("traffic.0.load", &load), ("traffic.0.workload", workload),
            ("network.link.rate", "100 Gbit/s"), ("duration", "2 s"),
        ];
        let run = run(WEBSEARCH, &set);
        let arrivals = plan(&run);
        let sizes: Vec<f64> = arrivals.iter().map(|a| bytes(a) as f64).collect();
        let mean_bytes = workload.parse::<crate::BuiltIn>().unwrap().distribution().mean_bytes();
        prop_assert!(deviations(&sizes, mean_bytes) < 6.0);
        let starts = std::iter::once(Time::ZERO).chain(arrivals.iter().map(|a| a.at));
        let gaps: Vec<f64> = starts.zip(&arrivals).map(|(before, a)| (a.at - before).as_s_f64()).collect();
        let mean_gap_s = 8.0 * mean_bytes / (f64::from(percent) / 100.0 * 100e9);
        prop_assert!(deviations(&gaps, mean_gap_s) < 6.0);
        // A compound Poisson sum has variance n * E[size^2].
        let offered = sizes.iter().sum::<f64>();
        let nominal = f64::from(percent) / 100.0 * 100e9 / 8.0 * run.duration.as_s_f64();
        let spread = sizes.iter().map(|x| x * x).sum::<f64>().sqrt();
        prop_assert!((offered - nominal).abs() < 6.0 * spread, "{offered} of {nominal}");
    }

    /// Of a short run, whose random sizes offer 0.6 to 92 % for a load of 40 %.
    #[test]
    fn stratified_sizes_offer_the_load_with_every_seed(seed in 0u64..1_000_000, load in 1u32..90, to in prop_oneof!["0", "all", "1-3"]) {
        let (seed, to, load_text) = (seed.to_string(), to.to_owned(), format!("{load} %"));
        let set = [
            ("seed", &*seed), ("duration", "20 ms"), ("warmup", "2 ms"),
            ("traffic.0.load", &load_text), ("traffic.0.sizes", "stratified"), ("traffic.0.to", &to),
        ];
        let run = run(WEBSEARCH, &set);
        let receivers = match &*to {
            "0" => 1.0,
            "all" => 9.0,
            _ => 3.0,
        };
        let arrivals = plan(&run);
        let in_window: Vec<&Arrival> = arrivals.iter().filter(|a| a.at >= Time::ZERO + run.warmup).collect();
        let nominal = receivers * 10e9 / 8.0 * 18e-3 * f64::from(load) / 100.0;
        let mean = 1_711_250.0;
        let offered: f64 = in_window.iter().map(|arrival| bytes(arrival) as f64).sum();
        prop_assert!((offered - nominal).abs() <= mean * 0.51, "{offered} of {nominal}");
        prop_assert_eq!(in_window.len(), (nominal / mean).round() as usize);
        prop_assert!(arrivals.iter().all(|a| a.at < Time::ZERO + run.duration && a.src != a.dst));
    }

    #[test]
    fn incast_requests_come_at_their_load(seed in 0u64..1_000_000, fanout in 1u32..40) {
        let (seed, fanout_text) = (seed.to_string(), fanout.to_string());
        let set = [("seed", seed.as_str()), ("traffic.0.fanout", &fanout_text)];
        let run = run(&incast("fanout = 8\nsize = \"2 kB\"\nload = \"10 %\"\n"), &set);
        let requests = plan(&run).len() as f64 / f64::from(fanout);
        // A Poisson count has the variance of its mean.
        let mean = 0.1 * 10e9 * run.duration.as_s_f64() / f64::from(fanout * 2000 * 8);
        prop_assert!((requests - mean).abs() < 6.0 * mean.sqrt(), "{requests} of {mean}");
        prop_assert!((expected_flows(&run) / mean / f64::from(fanout) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn sampled_quantiles_are_those_of_the_distribution(seed: u64, u in 0.01..0.99f64) {
        let rpc = crate::BuiltIn::GoogleSearchRpc.distribution();
        let bound = rpc.quantile(u);
        let mut random = Random(stream(seed, 0, 0, Purpose::Sizes));
        let draws = 10_000;
        let within = (0..draws).filter(|_| rpc.quantile(random.uniform()) <= bound).count();
        // At a step, more than u lies at or below it.
        let share = within as f64 / f64::from(draws);
        prop_assert!(share > u - 6.0 * (u * (1.0 - u) / f64::from(draws)).sqrt(), "{share} below {u}");
    }
}

/// The flows of each group, by its number.
fn groups(arrivals: &[Arrival]) -> std::collections::BTreeMap<u32, Vec<Arrival>> {
    let mut groups = std::collections::BTreeMap::<u32, Vec<Arrival>>::new();
    for arrival in arrivals {
        if let Some(group) = arrival.joins {
            groups.entry(group).or_default().push(*arrival);
        }
    }
    groups
}

#[test]
fn what_waits_starts_where_all_that_it_waits_for_arrives() {
    let request = "[[traffic]]\nkind = \"request\"\nto = \"0-2\"\nsize = \"2 kB\"\nthink = \"1 ms\"\nconcurrency = 2\n";
    let step = "[[traffic]]\nkind = \"all_to_all\"\namong = \"3-6\"\nsize = \"200 kB\"\ninterval = \"1 ms\"\n";
    let arrivals = plan(&run(&format!("{request}{step}"), &[]));
    let groups = groups(&arrivals);
    let mut waiting = 0;
    for arrival in &arrivals {
        let Some(after) = arrival.after else { continue };
        waiting += 1;
        let before = &groups[&after.group];
        assert!(before
            .iter()
            .all(|b| b.dst == arrival.src && b.at <= arrival.at && b.traffic == arrival.traffic));
        assert_eq!(before.len(), if arrival.traffic == 0 { 1 } else { 3 });
    }
    assert!(waiting > 1000, "{waiting}");
    let first_waiting = arrivals.iter().position(|a| a.after.is_some()).unwrap();
    assert!(
        arrivals[first_waiting..].iter().all(|a| a.after.is_some()),
        "those that wait come last"
    );
}

#[test]
fn closed_loops_have_as_many_requests_as_could_be_and_no_more_than_asked() {
    let text = "[[traffic]]\nkind = \"request\"\nsize = \"2 kB\"\nthink = \"1 ms\"\narrivals = \"periodic\"\n";
    // 500 ms, of which each takes 1 ms and at least 2 us of links and 1.68 us of 2,100 B.
    let asked = |more: &str| plan(&run(&format!("{text}{more}"), &[])).len();
    assert_eq!(asked(""), 2 * 498);
    assert_eq!(asked("requests = 7\nconcurrency = 3\n"), 14);
}

#[test]
fn steps_send_from_each_to_each() {
    let text = "[[traffic]]\nkind = \"all_to_all\"\nsize = \"1 MB\"\nsteps = 2\n";
    let arrivals = plan(&run(text, &[]));
    let pairs: BTreeSet<_> = arrivals.iter().map(|a| (a.request, a.src, a.dst)).collect();
    assert_eq!((arrivals.len(), pairs.len()), (2 * 9 * 8, 2 * 9 * 8));
}

#[test]
fn a_ring_passes_each_part_on_until_all_have_all() {
    let text = "[[traffic]]\nkind = \"all_to_all\"\npattern = \"ring\"\namong = \"2-6\"\nsize = \"1 MB\"\nsteps = 3\ninterval = \"1 ms\"\n";
    let arrivals = plan(&run(text, &[]));
    // 3 steps of 2 (5 - 1) rounds, in which each of 5 hosts sends a fifth to the next.
    assert_eq!(arrivals.len(), 3 * 8 * 5);
    let groups = groups(&arrivals);
    let mut between_steps = 0;
    for arrival in &arrivals {
        assert_eq!(arrival.dst, (arrival.src - 2 + 1) % 5 + 2);
        assert_eq!(arrival.work, Work::Send(Bytes::new(200_000)));
        assert!(arrival.in_order, "a host has one connection to the next");
        let Some(after) = arrival.after else { continue };
        between_steps += usize::from(after.delay == Span::from_ms(1));
        let before = &groups[&after.group];
        assert_eq!((before.len(), before[0].dst), (1, arrival.src));
    }
    assert_eq!(between_steps, 2 * 5);
}

#[test]
fn staggered_answers_start_one_after_the_other() {
    let text = "fanout = 8\nsize = \"2 kB\"\nrequests = 2\nstagger = \"3 us\"\n";
    let starts = |more: &str| -> Vec<i64> {
        let mut arrivals = plan(&run(&incast(&format!("{text}{more}")), &[]));
        arrivals.retain(|a| a.request == Some(0));
        arrivals
            .iter()
            .map(|a| (a.at - arrivals[0].at).as_ps())
            .collect()
    };
    assert_eq!(
        starts(""),
        (0..8).map(|n| n * 3_000_000).collect::<Vec<_>>()
    );
    let jittered = starts("jitter = \"1 us\"\n");
    assert!(jittered
        .windows(2)
        .all(|two| (2_000_000..4_000_000).contains(&(two[1] - two[0]))));
    assert_ne!(jittered, starts(""));
}

#[test]
fn servers_that_are_asked_answer_when_the_question_is_there() {
    let text = "fanout = 3\nsize = \"2 kB\"\nrequests = 2\nask_size = \"64 B\"\n";
    let arrivals = plan(&run(&incast(text), &[]));
    let (asks, answers) = arrivals.split_at(6);
    assert_eq!(answers.len(), 6);
    for ask in asks {
        assert_eq!((ask.src, ask.work), (0, Work::Send(Bytes::new(64))));
        let group = ask.joins.expect("an answer waits for it");
        let waits = |answer: &&Arrival| answer.after.is_some_and(|after| after.group == group);
        let [answer] = answers.iter().filter(waits).collect::<Vec<_>>()[..] else {
            panic!("one answer to {ask:?}: {answers:?}");
        };
        assert_eq!((answer.src, answer.dst), (ask.dst, ask.src));
        assert_eq!((answer.at, answer.request), (ask.at, ask.request));
    }
}

#[test]
fn in_the_rack_what_asks_for_an_answer_is_no_flow() {
    let of = |ask: &str| {
        rack_plan(&run(
            &incast(&format!("fanout = 3\nsize = \"2 kB\"\n{ask}")),
            &[],
        ))
    };
    let asked = of("ask_size = \"64 B\"\n");
    assert!(!asked.is_empty() && asked.iter().all(|a| a.after.is_none() && a.joins.is_none()));
    assert_eq!(asked, of(""));
}
