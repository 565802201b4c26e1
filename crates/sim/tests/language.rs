// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a scenario can ask for beside the basics: networks of files, closed loops, steps, lists, the
//! switches' finer settings, reuse of delays, CoDel; and what results say of it.

#[path = "harness/outcome.rs"]
mod outcome;
#[path = "harness/star.rs"]
mod star;

use onramp_results::{FlowRow, RunResult, Tables};
use onramp_scenario::Scenario;
use onramp_sim::run::{run, Watch};
use outcome::{field, number};
use star::STAR;
use std::collections::BTreeMap;

/// Host 1 has a slow line.
const MIXED: &str = r#"switches = ["a", "b"]
[[hosts]]
at = "a"
rate = "100 Gbit/s"
delay = "1 us"
[[hosts]]
at = "b"
rate = "10 Gbit/s"
delay = "3 us"
[[hosts]]
at = "b"
rate = "100 Gbit/s"
delay = "1 us"
[[links]]
from = "a"
to = "b"
rate = "40 Gbit/s"
delay = "2 us"
"#;

fn files(path: &str) -> std::io::Result<Vec<u8>> {
    let text = match path {
        "mixed.toml" => MIXED,
        "flows.csv" => {
            "src,dst,size_bytes,start_ns\n0,1,1000,1000\n2,0,100000,100000\n0,1,7,500000\n"
        }
        _ => return Err(std::io::ErrorKind::NotFound.into()),
    };
    Ok(text.as_bytes().to_vec())
}

fn simulate(text: &str, set: &[(&str, &str)]) -> (RunResult, Tables) {
    let scenario = Scenario::parse_files(text, "t", set, &files).unwrap_or_else(|e| panic!("{e}"));
    outcome::simulate_all(&scenario).remove(0)
}

fn traffic(text: &str) -> String {
    format!("{STAR}[[traffic]]\n{text}")
}

fn in_mixed(more: &str) -> String {
    format!(
        "title = \"t\"\nduration = \"2 ms\"\n[network]\n\
         topology = {{ kind = \"file\", path = \"mixed.toml\" }}\n\
         [host]\nkind = \"nic\"\ncc = \"dctcp\"\n[[traffic]]\n{more}"
    )
}

#[test]
fn a_flow_alone_in_a_network_of_mixed_lines_takes_the_closed_form() {
    let text = in_mixed("kind = \"replay\"\npath = \"flows.csv\"\n");
    let (_, tables) = simulate(&text, &[]);
    let flows = &tables.flows;
    assert_eq!(flows.len(), 3);
    // 1000 B behind 48 B at 100, 40 and 10 Gbit/s, and 6 us.
    let there_ps = 1048 * (80 + 200 + 800) + 6_000_000;
    assert_eq!(flows[0].fct_ns, Some(there_ps / 1000));
    // 60 B back.
    let back_ps = 60 * (80 + 200 + 800) + 6_000_000;
    let simulated = flows[0].simulated.unwrap();
    assert_eq!(simulated.acked_ns, Some((there_ps + back_ps) / 1000));
    // Both ways' propagation, a payload on each line, and all bytes on the slowest.
    let ideal_ps = 12_000_000 + 1000 * (80 + 200 + 800) + 1048 * 800;
    assert_eq!(simulated.ideal_fct_ns, Some(ideal_ps / 1000));
    assert_eq!(
        flows
            .iter()
            .map(|f| f.path.as_deref().unwrap())
            .collect::<Vec<_>>(),
        [
            "host0 a-b b-host1",
            "host2 b-a a-host0",
            "host0 a-b b-host1"
        ]
    );
    assert_eq!((flows[2].start_ns, flows[2].size_bytes), (500_000, Some(7)));
}

#[test]
fn a_load_is_of_the_receivers_own_line() {
    let text =
        in_mixed("kind = \"poisson\"\nto = 1\nworkload = \"google_search_rpc\"\nload = \"50 %\"\n");
    let (result, _) = simulate(&text, &[("duration", "20 ms")]);
    // Headers and acknowledgements come on top of the payload.
    let goodput = number(&result, "background.goodput_gbps");
    assert!((4.0..6.0).contains(&goodput), "{goodput} of 10 Gbit/s");
}

#[test]
fn every_congestion_control_fills_mixed_lines() {
    for cc in ["hpcc", "dcqcn", "timely", "dctcp"] {
        let text = in_mixed("kind = \"long\"\nfrom = 0\nto = 1\n");
        let set = [("host.cc", cc), ("duration", "20 ms"), ("warmup", "10 ms")];
        let (result, _) = simulate(&text, &set);
        // TIMELY's step and gradient are those of the fastest line.
        let least = if cc == "timely" { 0.7 } else { 0.9 };
        let used = number(&result, "utilisation");
        assert!(used > least, "{cc}: {used} of 10 Gbit/s");
        assert_eq!(number(&result, "drops"), 0.0);
    }
}

/// In an idle network a request takes its bytes and the links both ways.
#[test]
fn a_client_asks_again_when_it_has_thought() {
    let text = traffic("kind = \"request\"\nto = 0\nfrom = 1\nrequest_size = \"952 B\"\nsize = \"952 B\"\nthink = \"10 us\"\narrivals = \"periodic\"\n");
    let (result, tables) = simulate(&text, &[]);
    // Two lines each way of 1000 B at 100 Gbit/s and 1 us; the answer waits for the request's
    // acknowledgement of 60 B. Times are rounded down to ns.
    let request_ns = 2 * 2 * (80 + 1000) + 4;
    for of in ["mean", "max"] {
        let rct_ns = 1000.0 * field(&result, "request.rct_us", of);
        assert!((rct_ns - request_ns as f64).abs() <= 1.0, "{of}: {rct_ns}");
    }
    let each_ns = 10_000 + request_ns;
    assert_eq!(
        tables.requests.len() as i64,
        2_000_000_i64.div_euclid(each_ns)
    );
    let starts: Vec<i64> = tables.requests.iter().map(|r| r.start_ns).collect();
    assert!(
        starts
            .windows(2)
            .all(|two| (two[1] - two[0] - each_ns).abs() <= 1),
        "{starts:?}"
    );
    assert_eq!(number(&result, "request.unfinished"), 0.0);
}

#[test]
fn no_more_requests_are_under_way_than_the_concurrency() {
    for kind in ["nic", "kernel"] {
        let text = traffic(
            "kind = \"request\"\nto = \"0-1\"\nfrom = \"2-4\"\nsize = \"20 kB\"\nconcurrency = 3\n",
        );
        let (_, tables) = simulate(
            &text,
            &[
                ("host.kind", kind),
                ("host.cc", if kind == "nic" { "hpcc" } else { "cubic" }),
            ],
        );
        let mut events: Vec<(i64, i64)> = Vec::new();
        for request in &tables.requests {
            events.push((request.start_ns, 1));
            events.push((request.start_ns + request.rct_ns.unwrap(), -1));
        }
        events.sort_unstable();
        let mut active = 0;
        let most = events.iter().map(|(_, change)| {
            active += change;
            active
        });
        assert_eq!(most.max(), Some(2 * 3), "{kind}");
        assert!(
            tables.requests.len() > 200,
            "{kind}: {}",
            tables.requests.len()
        );
        let asks = tables.flows.iter().filter(|f| f.dst >= 2).count();
        assert!(
            (tables.flows.len() - asks).abs_diff(asks) <= 6,
            "each has an answer"
        );
    }
}

#[test]
fn a_host_begins_its_next_step_when_it_has_everything_of_this_one() {
    for kind in ["nic", "kernel"] {
        let text =
            traffic("kind = \"all_to_all\"\nsize = \"50 kB\"\ninterval = \"20 us\"\nsteps = 4\n");
        let (result, tables) = simulate(
            &text,
            &[
                ("host.kind", kind),
                ("host.cc", if kind == "nic" { "hpcc" } else { "cubic" }),
            ],
        );
        assert_eq!(tables.flows.len(), 4 * 5 * 4, "{kind}");
        let mut begins: BTreeMap<(i64, i64), i64> = BTreeMap::new();
        let mut ends: BTreeMap<(i64, i64), i64> = BTreeMap::new();
        for FlowRow {
            request,
            src,
            dst,
            start_ns,
            fct_ns,
            ..
        } in &tables.flows
        {
            begins.insert((request.unwrap(), *src), *start_ns);
            let end = ends.entry((request.unwrap(), *dst)).or_default();
            *end = (*end).max(start_ns + fct_ns.unwrap());
        }
        for ((step, host), end) in &ends {
            if let Some(next) = begins.get(&(step + 1, *host)) {
                // Both are rounded down from ps.
                assert!(
                    (next - end - 20_000).abs() <= 1,
                    "{kind}: {next} after {end}"
                );
            }
        }
        assert_eq!(field(&result, "all_to_all.step_us", "n"), 4.0);
        // Four flows of 50 kB into 100 Gbit/s.
        assert!(field(&result, "all_to_all.step_us", "mean") > 16.0);
    }
}

#[test]
fn a_smaller_alpha_leaves_a_queue_less_of_the_memory() {
    let text =
        traffic("kind = \"incast\"\nfanout = 16\nsize = \"100 kB\"\ninterval = \"500 us\"\n");
    let longest = |alpha| {
        let set = [
            ("network.sharing", "shared"),
            ("network.buffer", "200 kB"),
            ("network.alpha", alpha),
            ("host.cc", "dcqcn"),
        ];
        let (result, _) = simulate(&text, &set);
        field(&result, "queue_us", "max")
    };
    // A queue alone takes alpha / (1 + alpha) of 200 kB: a byte takes 80 ps.
    for (alpha, part) in [("1/4", 0.2), ("1", 0.5), ("4", 0.8)] {
        let expected = part * 200_000.0 * 80e-6;
        let found = longest(alpha);
        assert!(
            (found / expected - 1.0).abs() < 0.05,
            "{alpha}: {found} us, expected {expected}"
        );
    }
}

#[test]
fn marks_are_made_where_the_scenario_says() {
    let text = traffic("kind = \"long\"\nflows = 3\n");
    let queue = |mark| {
        let set = [
            ("network.ecn.threshold", "50 kB"),
            ("network.ecn.mark", mark),
        ];
        let (result, _) = simulate(&text, &set);
        assert!(number(&result, "marks") > 100.0);
        field(&result, "queue_us", "mean")
    };
    let (enqueue, dequeue) = (queue("enqueue"), queue("dequeue"));
    assert_ne!(enqueue, dequeue);
    // Both keep it near 50 kB, which take 4 us.
    assert!((1.0..6.0).contains(&enqueue) && (1.0..6.0).contains(&dequeue));
}

#[test]
fn or_acks_are_as_rare_as_asked() {
    let text = format!(
        "{STAR}[[traffic]]\nkind = \"incast\"\nfanout = 4\nsize = \"1 MB\"\ninterval = \"1 ms\"\n\
         [onramp]\nlaw = \"final\"\nthreshold = \"20 us\"\n"
    );
    for (kind, cc) in [("kernel", "cubic"), ("nic", "dcqcn")] {
        let or_acks = |every: &str| {
            let set = [
                ("host.kind", kind),
                ("host.cc", cc),
                ("onramp.orack_every", every),
            ];
            let (result, _) = simulate(&text, &set);
            result.metrics["or_acks"].as_f64().unwrap()
        };
        // A packet has 1448 B of a kernel host, 1000 B of a NIC.
        let factor = or_acks("1 B") / or_acks("14.48 kB");
        assert!((9.0..15.5).contains(&factor), "{kind}: {factor}");
    }
}

#[test]
fn a_flow_that_reuses_the_last_delay_is_held_at_once() {
    // Short flows from host 1 beside two long ones to the same host.
    let text = format!(
        "{STAR}[[traffic]]\nkind = \"long\"\nfrom = \"2-4\"\nflows = 3\n[[traffic]]\nkind = \"request\"\nto = 0\nfrom = 1\nsize = \"1 kB\"\n\
         load = \"1 %\"\n[onramp]\nlaw = \"final\"\nthreshold = \"5 us\"\n"
    );
    let held = |reuse| {
        let set = [("onramp.reuse", reuse), ("host.cc", "dcqcn")];
        let (_, tables) = simulate(&text, &set);
        let short = tables
            .flows
            .iter()
            .filter(|f| f.kind == "request" && f.src == 1);
        let short: Vec<i64> = short.map(|f| f.simulated.unwrap().held_ns).collect();
        assert!(short.len() > 50);
        short.iter().filter(|&&held| held > 0).count()
    };
    // One packet each: without reuse nothing is known before it has left.
    assert_eq!(held("off"), 0);
    assert!(held("1 ms") > 20, "{}", held("1 ms"));
}

#[test]
fn codel_drops_what_waits_in_a_slow_host() {
    let text = STAR
        .replace("hosts = 5", "hosts = 3")
        .replace("100 Gbit/s", "1 Gbit/s");
    let text = text.replace("kind = \"nic\"\ncc = \"dctcp\"", "qdisc = \"fq_codel\"");
    let text = format!("{text}[[traffic]]\nkind = \"long\"\nfrom = 1\nflows = 30\n");
    let set = [
        ("duration", "2 s"),
        ("warmup", "500 ms"),
        ("network.buffer", "10 MB"),
    ];
    let (codel, _) = simulate(&text, &set);
    assert!(number(&codel, "host.drops") > 0.0);
    assert!(number(&codel, "utilisation") > 0.95);
    assert_eq!(number(&codel, "drops"), 0.0, "nothing is lost elsewhere");
    // A flow alone waits a millisecond at most: small queues.
    let (alone, _) = simulate(&text, &[&set[..], &[("traffic.0.flows", "1")]].concat());
    assert_eq!(number(&alone, "host.drops"), 0.0);
}

#[test]
fn delays_are_at_least_those_of_the_idle_way() {
    let text = traffic("kind = \"poisson\"\nto = 0\nworkload = \"fb_hadoop\"\nload = \"60 %\"\n");
    let (result, _) = simulate(&text, &[]);
    let of = |name| field(&result, "owd_us", name);
    // The smallest packet: 49 B on two lines.
    assert!(of("p50") >= 2.0 + 2.0 * 49.0 * 80e-6);
    assert!(of("mean") <= of("max") && of("p50") <= of("p95") && of("p95") <= of("p99"));
    assert!(of("p99") <= of("max") * 1.001 && of("n") > 1000.0);
}

#[test]
fn a_larger_initial_window_sends_more_in_the_first_round_trip() {
    let text =
        traffic("kind = \"incast\"\nfanout = 1\nsize = \"57920 B\"\ninterval = \"1500 us\"\n");
    let text = text.replace("kind = \"nic\"\ncc = \"dctcp\"", "qdisc = \"fq_codel\"");
    let rct = |window| {
        let (result, _) = simulate(
            &text,
            &[
                ("host.initial_window", window),
                ("traffic.0.arrivals", "periodic"),
            ],
        );
        field(&result, "incast.rct_us", "mean")
    };
    // 40 packets of 1514 B: all at once, or 10, 20 and 10 with round trips between.
    let alone = 41.0 * 1514.0 * 80e-6 + 2.0;
    assert!((rct("40") - alone).abs() < 0.01, "{} {alone}", rct("40"));
    assert!(rct("10") > alone + 2.0 * 2.0, "{}", rct("10"));
}

#[test]
fn a_shorter_least_timeout_repairs_tails_sooner() {
    let text = traffic(
        "kind = \"incast\"\nfanout = 64\nsize = \"14480 B\"\ninterval = \"400 us\"\nrequests = 3\n",
    );
    let text = text.replace("kind = \"nic\"\ncc = \"dctcp\"", "qdisc = \"fq_codel\"");
    let rct = |rto| {
        let (result, _) = simulate(&text, &[("host.min_rto", rto), ("network.buffer", "60 kB")]);
        assert!(number(&result, "timeouts") > 0.0);
        field(&result, "incast.rct_us", "max")
    };
    assert!(rct("200 ms") > 100_000.0);
    assert!(rct("1 ms") < 20_000.0, "{}", rct("1 ms"));
}

/// HPCC, DCQCN and DCTCP claim that equal flows get equal shares; TIMELY and BBR do not.
#[test]
fn equal_flows_of_nics_get_equal_shares() {
    // HPCC's additive step decides how soon; its default takes hundreds of milliseconds.
    for (cc, parameter, value) in [
        ("hpcc", "cc.hpcc.rate_ai", "200 Mbit/s"),
        ("dcqcn", "cc.dcqcn.g", "1/256"),
        ("dctcp", "cc.dctcp.g", "1/16"),
    ] {
        let text = traffic("kind = \"long\"\nflows = 4\n");
        let set = [
            ("host.cc", cc),
            (parameter, value),
            ("network.link.rate", "25 Gbit/s"),
            ("duration", "60 ms"),
            ("warmup", "30 ms"),
        ];
        let (result, _) = simulate(&text, &set);
        let each = result.metrics["long.goodput_gbps"].as_array().unwrap();
        let each: Vec<f64> = each.iter().map(|v| v.as_f64().unwrap()).collect();
        let (sum, squares) = each.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        let jain = sum * sum / (each.len() as f64 * squares);
        println!("{cc}: Jain's index {jain:.4}");
        assert!(jain > 0.95, "{cc}: {jain} {each:?}");
    }
}

/// Every scenario that only the simulator can run, for a while.
#[test]
fn scenarios_of_the_simulator_run() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        // The 320 hosts of fabric.toml take their time.
        let large = path.file_stem().is_some_and(|name| name == "fabric");
        if large || !text.starts_with("# Only in the simulator.\n") {
            continue;
        }
        let beside = |name: &str| std::fs::read(path.with_file_name(name));
        let name = path.display().to_string();
        let set = [("duration", "900 us"), ("warmup", "0 s")];
        let scenario = Scenario::parse_files(&text, &name, &set, &beside);
        let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
        for planned in [scenario.runs().first(), scenario.runs().last()] {
            let done = run(planned.unwrap(), 0, Watch::default(), &mut |_| true);
            let (_, tables) = done.unwrap_or_else(|e| panic!("{name}: {e}")).into_tables();
            assert!(tables.flows.iter().any(|f| f.fct_ns.is_some()), "{name}");
            assert!(tables.flows.iter().all(|f| f.path.is_some()), "{name}");
        }
        count += 1;
    }
    assert!(count >= 6, "{count}");
}

/// Steps, requests, reuse of delays and CoDel know nothing that happens in another part.
#[test]
fn parts_change_nothing_of_what_waits_for_others() {
    use onramp_sim::run::{run_in_parts, Parts};
    let fabric = "topology = { kind = \"leaf_spine\", hosts = 8, leaves = 4, spines = 2 }";
    let head = STAR.replace("topology = { kind = \"star\", hosts = 5 }", fabric);
    let text = format!(
        "{head}[[traffic]]\nkind = \"all_to_all\"\nsize = \"20 kB\"\ninterval = \"5 us\"\n\
         [[traffic]]\nkind = \"request\"\nto = \"0-3\"\nsize = \"3 kB\"\nthink = \"2 us\"\nconcurrency = 2\n\
         [onramp]\nlaw = \"final\"\nthreshold = \"10 us\"\nreuse = \"100 us\"\n"
    );
    for set in [
        [("host.cc", "dcqcn"), ("host.kind", "nic")],
        [("host.cc", "cubic"), ("host.kind", "kernel")],
    ] {
        let set = [&set[..], &[("duration", "300 us")]].concat();
        let scenario = Scenario::parse_with(&text, "t", &set).unwrap_or_else(|e| panic!("{e}"));
        let of = |parts| {
            let run = &scenario.runs()[0];
            let done = run_in_parts(run, 0, Watch::default(), parts, &mut |_| true);
            done.unwrap_or_else(|e| panic!("{e}")).into_tables()
        };
        let whole = of(Parts::AtMost(1));
        assert!(whole.1.flows.len() > 200);
        assert!(of(Parts::Forced(4)) == whole, "{set:?}");
    }
}

/// A request goes to a server as a packet does: 64 B behind 48 B of headers at 100 Gbit/s over two links of
/// 1 us. The server acknowledges it before it answers.
#[test]
fn servers_are_asked_over_the_network() {
    let text = traffic("kind = \"incast\"\nfanout = 1\nsize = \"1 kB\"\nrequests = 1\n");
    let rct_ns = |set: &[(&str, &str)]| {
        let (_, tables) = simulate(&text, set);
        tables.requests[0].rct_ns.expect("it is answered")
    };
    let (pushed, asked) = (rct_ns(&[]), rct_ns(&[("traffic.0.ask_size", "64 B")]));
    let way_ps = 2 * (64 + 48) * 80 + 2_000_000;
    let later = asked - pushed - way_ps / 1000;
    assert!((0..=10).contains(&later), "{pushed}, {asked}");
}

/// Twelve long CUBIC flows on a port, figure 24 of the On-Ramp paper.
const TWELVE: &str = r#"title = "t"
duration = "60 ms"
[network]
topology = { kind = "star", hosts = 13 }
link = { rate = "10 Gbit/s", delay = "1 us" }
buffer = "1 MB"
[[traffic]]
kind = "long"
flows = 12
[onramp]
threshold = "50 us"
gso = "64 kB"
"#;

#[test]
fn paced_flows_do_not_overflow_a_port_together() {
    let drops = |pacing| {
        let (result, _) = simulate(TWELVE, &[("onramp.pacing", pacing)]);
        number(&result, "drops")
    };
    let (unpaced, paced) = (drops("false"), drops("true"));
    assert!(
        10.0 * paced < unpaced,
        "{paced} drops paced, {unpaced} unpaced"
    );
}

#[test]
fn a_new_connection_knows_nothing_of_the_one_before() {
    let text = TWELVE.replace(
        "kind = \"long\"\nflows = 12",
        "kind = \"incast\"\nfanout = 1\nsize = \"200 kB\"\ninterval = \"5 ms\"",
    );
    let rct_us = |connections, statistic| {
        let set = [
            ("host.connections", connections),
            ("network.topology.hosts", "2"),
            ("network.link.delay", "50 us"),
            ("onramp.threshold", "300 us"),
        ];
        let (result, _) = simulate(&text, &set);
        field(&result, "incast.rct_us", statistic)
    };
    // A window of ten packets has to grow to 139 each time, or only for the first request.
    assert_eq!(rct_us("new", "p50"), rct_us("new", "max"));
    assert!(rct_us("persistent", "mean") < 0.9 * rct_us("new", "mean"));
}
