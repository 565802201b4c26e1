//! Facts about checking, cases, sweeps, settings and writing back.

use super::*;
use crate::{Cc, Fraction, Law, Qdisc, Receivers, Sharing, Sources, Spacing, Traffic};
use onramp_units::{Bytes, Span};
use proptest::prelude::*;

const BASE: &str = r#"title = "test"
duration = "10 ms"
[network]
topology = { kind = "star", hosts = 9 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[[traffic]]
kind = "incast"
fanout = 8
size = "2 kB"
[[traffic]]
kind = "long"
"#;

fn scenario(more: &str) -> Scenario {
    Scenario::parse(&format!("{BASE}{more}"), "t").unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str) -> String {
    Scenario::parse(text, "t")
        .expect_err("a wrong scenario")
        .to_string()
}

/// Errors of `more` after the 11 lines of the base.
fn errors_of(more: &str) -> String {
    errors(&format!("{BASE}{more}"))
}

fn only_run(more: &str) -> Run {
    let scenario = scenario(more);
    assert_eq!(scenario.runs().len(), 1);
    scenario.runs()[0].clone()
}

#[test]
fn what_is_left_out_has_its_default() {
    let run = only_run("");
    assert_eq!(
        (run.seed, run.warmup, run.time_dilation.get()),
        (1, Span::ZERO, 1)
    );
    assert_eq!(run.network.buffer, Bytes::new(300_000));
    assert_eq!(
        (run.host.cc, run.host.qdisc, run.host.gro),
        (Cc::Cubic, Qdisc::Edge, true)
    );
    assert_eq!(
        (run.onramp.law, run.onramp.threshold),
        (Law::Final, Span::from_us(50))
    );
    assert_eq!(
        (run.onramp.gain.get(), run.onramp.max_pause),
        (0.0625, Span::from_ms(5))
    );
    let Traffic::Incast(incast) = &run.traffic[0] else {
        panic!("{:?}", run.traffic)
    };
    assert_eq!(
        incast.spacing,
        Spacing::Load("2 %".parse::<Fraction>().unwrap())
    );
    let Traffic::Long(long) = &run.traffic[1] else {
        panic!("{:?}", run.traffic)
    };
    assert_eq!(
        (long.from, long.flows, long.stop),
        (Sources::Others, 1, run.duration)
    );
    assert!(run.params.is_empty());
}

#[test]
fn all_errors_are_found_at_once_with_their_lines() {
    let text = r#"title = "test"
duration = "10 ms"
warmup = "20 ms"
[network]
topology = { kind = "star", hosts = 1 }
link = { rate = "10 Gbps", delay = 1 }
buffer = "400 kB"
ecn.threshold = "500 kB"
[host]
cc = "vegas"
[[traffic]]
kind = "incast"
fanout = 0
interval = "1 ms"
load = 0.1
flows = 3
[onramp]
treshold = "50 us"
gain = 2
"#;
    let expected = r#"t:3: warmup is 20 ms, not below 10 ms (duration)
t:5: network.topology.hosts is 1, below min 2
t:6: network.link.delay is "1", which has no unit (one of ps, ns, us, ms, s)
t:6: network.link.rate is "10 Gbps", whose unit is not one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s
t:8: network.ecn.threshold is 500 kB, above max 400 kB (network.buffer)
t:10: host.cc is "vegas", expected "cubic" or "bbr" or "dctcp" or "reno" or "scalable" or "hpcc" or "dcqcn" or "dcqcn_w" or "dcqcn_paper" or "dcqcn_paper_w" or "timely" or "timely_w"
t:11: traffic.0.size is missing: size, 1 B to 1 GB
t:13: traffic.0.fanout is 0, below min 1
t:14: traffic.0.interval is set beside traffic.0.load: only one of them can hold
t:16: traffic.0.flows belongs to traffic of kind long, this is incast
t:18: unknown key onramp.treshold, did you mean onramp.threshold?
t:19: onramp.gain is 2, above max 1"#;
    assert_eq!(errors(text), expected);
}

#[test]
fn numbers_beyond_their_type_are_beyond_the_keys_bound() {
    let error = |key, value| {
        let error = Scenario::parse_with(BASE, "t", &[(key, value)]);
        error.unwrap_err().to_string()
    };
    assert_eq!(
        error("duration", "9999999999 s"),
        "--set: duration is 9999999999 s, above max 3600 s"
    );
    assert_eq!(
        error("network.buffer", "-1 kB"),
        "--set: network.buffer is -1 kB, below min 2 kB"
    );
    assert_eq!(
        error("network.link.rate", "0 Gbit/s"),
        "--set: network.link.rate is 0 Gbit/s, below min 1 Mbit/s"
    );
}

#[test]
fn missing_tables_are_reported_at_the_top() {
    assert_eq!(
        errors(""),
        "t:1: duration is missing: time, 1 us to 3600 s\n\
         t:1: network.link.delay is missing: time, 0 s to 100 ms\n\
         t:1: network.link.rate is missing: rate, 1 Mbit/s to 1 Tbit/s\n\
         t:1: network.topology.hosts is missing: number, 2 to 4096\n\
         t:1: network.topology.kind is missing: \"star\" or \"dumbbell\" or \"leaf_spine\" or \"fat_tree\" or \"file\" or \"inline\"\n\
         t:1: title is missing: one line of 1 to 200 characters\n\
         t:1: traffic is missing: at least one [[traffic]] entry"
    );
}

#[test]
fn what_is_not_toml_is_reported_alone() {
    let text = errors("title = \n\nduration = \"1 ms\n");
    assert!(
        text.lines().all(|line| line.contains(": not TOML: ")),
        "{text}"
    );
    assert!(
        text.starts_with("t:1: ") && text.contains("t:3: "),
        "{text}"
    );
}

#[test]
fn values_of_the_wrong_shape_are_refused() {
    let text = BASE.replace(
        "duration = \"10 ms\"",
        "duration = [1]\nseed = 1979-05-27\nhost = 3",
    );
    assert_eq!(
        errors(&text),
        "t:2: duration is of type array, expected time, 1 us to 3600 s\n\
         t:3: seed is of type datetime, expected number, from 0\n\
         t:4: host is \"3\", expected a table"
    );
    assert!(errors("traffic = 3").contains("t:1: traffic is \"3\", expected [[traffic]] entries"));
    assert!(errors("case = [3]\nsweep = 4").contains("t:1: case is \"3\", expected a table\n"));
}

#[test]
fn hosts_must_exist_and_not_talk_to_themselves() {
    assert_eq!(
        errors_of("from = 9\nto = 9\n[[traffic]]\nkind = \"poisson\"\nworkload = \"websearch\"\nload = 0.4\nfrom = 0\n"),
        "t:12: traffic.1.from is 9, above max 8 (network.topology.hosts)\n\
         t:12: traffic.1.from is host 9, which is the receiver too\n\
         t:13: traffic.1.to is 9, above max 8 (network.topology.hosts)\n\
         t:18: traffic.2.from is host 0, which is the receiver too"
    );
    assert_eq!(
        errors_of("to = \"all\"\n"),
        "t:12: traffic.1.to is \"all\", expected host number"
    );
}

#[test]
fn long_flows_start_before_they_stop_and_stop_in_time() {
    assert_eq!(
        errors_of("start = \"5 ms\"\nstop = \"4 ms\"\n"),
        "t:12: traffic.1.start is 5 ms, not below 4 ms (traffic.1.stop)"
    );
    assert_eq!(
        errors_of("stop = \"11 ms\"\n"),
        "t:12: traffic.1.stop is 11 ms, above max 10 ms (duration)"
    );
    assert_eq!(
        errors_of("start = \"10 ms\"\n"),
        "t:12: traffic.1.start is 10 ms, not below 10 ms (duration)"
    );
}

#[test]
fn poisson_traffic_can_go_to_all_and_needs_a_load() {
    let entry = "[[traffic]]\nkind = \"poisson\"\nto = \"all\"\nworkload = \"fb_hadoop\"\n";
    let run = only_run(&format!("{entry}load = \"60 %\"\n"));
    let Traffic::Poisson(poisson) = &run.traffic[2] else {
        panic!("{:?}", run.traffic)
    };
    assert_eq!(
        (poisson.to, poisson.from),
        (Receivers::All, Sources::Others)
    );
    assert_eq!(
        errors_of(entry),
        "t:12: traffic.2.load is missing: fraction, 0.000001 to 1"
    );
}

#[test]
fn a_plan_too_large_for_memory_is_refused() {
    let entry = "[[traffic]]\nkind = \"incast\"\nfanout = 8\nsize = \"1 B\"\nload = 1\n";
    assert_eq!(
        errors_of(entry),
        "t:16: traffic.2 is about 12500000 flows, above max 10000000"
    );
}

#[test]
fn dctcp_needs_marks() {
    let text = "[host]\ncc = \"dctcp\"\n";
    assert_eq!(
        errors_of(text),
        "t:13: host.cc is dctcp, which needs network.ecn.threshold"
    );
    assert!(
        only_run("[host]\ncc = \"dctcp\"\n[network.ecn]\nthreshold = \"65 kB\"\n")
            .network
            .ecn
            .is_some()
    );
}

#[test]
fn parameters_of_another_congestion_control_are_refused() {
    assert_eq!(
        errors_of("[cc]\ntimely.beta = \"80 %\"\n[host]\nkind = \"nic\"\ncc = \"hpcc\"\n"),
        "t:13: cc.timely.beta is 0.8, which needs host.cc timely or timely_w"
    );
    assert_eq!(
        errors_of("[cc]\ndctcp.rate_ai = \"1 Gbit/s\"\n[host]\ncc = \"dctcp\"\n[network.ecn]\nthreshold = \"10 kB\"\n"),
        "t:13: cc.dctcp.rate_ai is 1 Gbit/s, which needs host.kind nic"
    );
    assert_eq!(
        errors_of("[host]\nkind = \"nic\"\ncc = \"hpcc\"\nsmall_queue = \"10 us\"\n"),
        "t:15: host.small_queue is 10 us, which needs host.kind kernel"
    );
    assert_eq!(
        errors_of("[cc.timely]\nt_low = \"100 us\"\nt_high = \"50 us\"\ndelta = 3\nbetta = 1\n[host]\nkind = \"nic\"\ncc = \"timely\"\n"),
        "t:13: cc.timely.t_low is 100 us, above max 50 us (cc.timely.t_high)\n\
         t:15: cc.timely.delta is \"3\", which has no unit (one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s)\n\
         t:16: unknown key cc.timely.betta, did you mean cc.timely.beta?"
    );
}

#[test]
fn runs_take_the_parameters_of_their_own_congestion_control() {
    let more = "[host]\nkind = \"nic\"\n[sweep]\n\"host.cc\" = [\"hpcc\", \"timely\"]\n\"cc.timely.beta\" = [0.2, 0.8]\n";
    let scenario = scenario(more);
    let betas: Vec<_> = scenario
        .runs()
        .iter()
        .map(|run| run.params.get("cc.timely.beta"))
        .collect();
    assert_eq!(
        betas,
        [None, Some(&"0.2".to_owned()), Some(&"0.8".to_owned())]
    );
    let mut beta = 0.0;
    scenario.runs()[1].tuning.fraction("beta", &mut beta);
    assert_eq!(beta, 0.2);
}

/// A network of three hosts, the second of which is slow.
fn files(path: &str) -> std::io::Result<Vec<u8>> {
    let text = match path {
        "net.txt" => "4 1 3\n1\n0 1 100Gbps 1us 0\n2 1 10Gbps 2us 0\n3 1 100Gbps 1us 0\n",
        "cut.txt" => {
            "6 2 4\n4 5\n0 4 1Gbps 1us 0\n1 4 1Gbps 1us 0\n2 5 1Gbps 1us 0\n3 5 1Gbps 1us 0\n"
        }
        "zero.txt" => "3 1 2\n2\n0 2 0Gbps 1us 0\n1 2 1Gbps 1us 0\n",
        "two.txt" => "3 1 3\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n0 2 1Gbps 1us 0\n",
        "node.txt" => "3 1 2\n2\n0 2 1Gbps 1us 0\n1 7 1Gbps 1us 0\n",
        "flows.csv" => "src,dst,size_bytes,start_ns\n0,1,1000,0\n1,2,500,20000\n",
        "self.csv" => "src,dst,size_bytes,start_ns\n0,0,1000,0\n",
        "negative.csv" => "src,dst,size_bytes,start_ns\n0,1,-1,0\n",
        "backwards.csv" => "src,dst,size_bytes,start_ns\n0,1,1,5\n0,1,1,4\n",
        "far.csv" => "src,dst,size_bytes,start_ns\n0,1,1,5\n0,9,1,6\n",
        "late.csv" => "src,dst,size_bytes,start_ns\n0,1,1,5\n0,2,1,20000000\n",
        "sizes.csv" => "# interpolation: step\n100,0.5\n200,1\n",
        "falling.csv" => "# interpolation: step\n100,0.5\n90,1\n",
        _ => return Err(std::io::ErrorKind::NotFound.into()),
    };
    Ok(text.as_bytes().to_vec())
}

/// The base in a network of a file, with `more`.
fn with_files(path: &str, more: &str) -> Result<Scenario, String> {
    let head = format!(
        "title = \"t\"\nduration = \"10 ms\"\n[network]\n\
         topology = {{ kind = \"file\", path = \"{path}\" }}\n[[traffic]]\n"
    );
    Scenario::parse_files(&format!("{head}{more}"), "t", &[], &files).map_err(|e| e.to_string())
}

#[test]
fn a_networks_file_has_links_of_its_own() {
    let more = "kind = \"poisson\"\nto = \"all\"\nworkload = \"sizes.csv\"\nload = \"10 %\"\n";
    let scenario = with_files("net.txt", more).unwrap();
    let run = &scenario.runs()[0];
    let rates: Vec<String> = (0..3)
        .map(|host| run.network.link_of(host).rate.to_string())
        .collect();
    // Node 1 is the switch, so host 1 is node 2.
    assert_eq!(rates, ["100 Gbit/s", "10 Gbit/s", "100 Gbit/s"]);
    assert_eq!(run.network.base_delay(), Span::from_us(3));
    // 150 B on average: 1.2 us of a tenth of 10 Gbit/s, a tenth of that on the faster lines.
    let arrivals = crate::plan(run);
    let to = |host| arrivals.iter().filter(|a| a.dst == host).count() as f64;
    assert!((to(1) / (1e-2 / 1.2e-6) - 1.0).abs() < 0.05, "{}", to(1));
    assert!((to(2) / to(1) - 10.0).abs() < 0.5, "{}", to(2) / to(1));
    let written = run.to_toml();
    let again = Scenario::parse_files(&written, "t", &[], &files).unwrap();
    assert_eq!(again.runs(), std::slice::from_ref(run), "{written}");
}

const INLINE: &str = r#"title = "t"
duration = "10 ms"
[network]
topology = { kind = "inline" }
[network.graph]
switches = ["tor", "spine"]
[[network.graph.hosts]]
count = 2
at = "tor"
rate = "25 Gbit/s"
delay = "1 us"
[[network.graph.hosts]]
at = "spine"
rate = "100 Gbit/s"
delay = "2 us"
[[network.graph.links]]
from = "spine"
to = "tor"
rate = "100 Gbit/s"
delay = "3 us"
[[traffic]]
kind = "long"
flows = 2
"#;

#[test]
fn a_network_may_stand_in_the_scenario_itself() {
    let scenario = Scenario::parse(INLINE, "t").unwrap_or_else(|e| panic!("{e}"));
    let run = &scenario.runs()[0];
    assert_eq!(run.network.topology.hosts(), 3);
    assert_eq!(run.network.link_of(1).rate.to_string(), "25 Gbit/s");
    assert_eq!(run.network.base_delay(), Span::from_us(1 + 3 + 2));
    let written = run.to_toml();
    let again = Scenario::parse(&written, "t").unwrap_or_else(|e| panic!("{written}\n{e}"));
    assert_eq!(again.runs(), std::slice::from_ref(run), "{written}");
}

#[test]
fn a_bad_network_of_a_scenario_is_refused_with_the_scenarios_line() {
    let error = |from: &str, to: &str| {
        let text = INLINE.replacen(from, to, 1);
        assert_ne!(text, INLINE);
        Scenario::parse(&text, "t").unwrap_err().to_string()
    };
    assert_eq!(
        error("at = \"tor\"", "at = \"tor3\""),
        "t:9: network.graph: node is \"tor3\", expected one of switches"
    );
    assert_eq!(
        error("rate = \"25 Gbit/s\"", "rate = \"0 Gbit/s\""),
        "t:10: network.graph: rate is \"0 Gbit/s\", expected a rate above zero like 100 Gbit/s"
    );
    assert_eq!(
        error("count = 2", "number = 2"),
        "t:8: network.graph: unknown field `number`, expected one of `count`, `at`, `rate`, `delay`"
    );
    assert_eq!(
        error("to = \"tor\"", "to = \"spine\""),
        "t:18: network.graph: node \"spine\" is linked to itself, expected another node"
    );
    assert_eq!(
        error("to = \"tor\"", "to = []"),
        "t:5: network.graph: no path leads from host 2 to host 0"
    );
    let star = "\"star\", hosts = 3 }\nlink = { rate = \"1 Gbit/s\", delay = \"1 us\" }";
    assert_eq!(
        error("\"inline\" }", star),
        "t:6: network.graph is a table, which needs network.topology.kind inline"
    );
    assert_eq!(
        error("flows = 2", "to = 3"),
        "t:23: traffic.0.to is 3, above max 2 (network.graph)"
    );
    assert_eq!(
        error(
            "[[traffic]]",
            "[network.link]\nrate = \"1 Gbit/s\"\n[[traffic]]"
        ),
        "t:22: network.link.rate is set beside network.graph: only one of them can hold"
    );
    let set = Scenario::parse_with(INLINE, "t", &[("network.graph", "3")]);
    assert_eq!(
        set.unwrap_err().to_string(),
        "--set: network.graph is \"3\", expected a table with `switches`, `hosts` and `links`"
    );
}

#[test]
fn bad_networks_and_lists_are_refused_with_file_line_and_value() {
    let long = "kind = \"long\"\n";
    let error = |path: &str, more: &str| with_files(path, more).unwrap_err();
    assert_eq!(
        error("cut.txt", long),
        "t:4: network.topology.path is cut.txt: no path leads from host 2 to host 0"
    );
    assert_eq!(
        error("zero.txt", long),
        "t:4: network.topology.path is zero.txt: line 3: rate is \"0Gbps\", expected a rate above zero like 100Gbps"
    );
    assert_eq!(
        error("two.txt", long),
        "t:4: network.topology.path is two.txt: line 5: host 0 has 2 links, expected 1"
    );
    assert_eq!(
        error("node.txt", long),
        "t:4: network.topology.path is node.txt: line 4: node is \"7\", expected a number up to 2"
    );
    assert!(error("none.txt", long)
        .starts_with("t:4: network.topology.path is none.txt: cannot be read: "));
    assert_eq!(
        error("net.txt", "kind = \"long\"\nto = 3\n"),
        "t:7: traffic.0.to is 3, above max 2 (network.topology.path)"
    );
    assert_eq!(
        error(
            "net.txt",
            "kind = \"long\"\n[network.link]\nrate = \"1 Gbit/s\"\n"
        ),
        "t:8: network.link.rate is set beside network.topology.path: only one of them can hold"
    );
    let replay = |file: &str| {
        error(
            "net.txt",
            &format!("kind = \"replay\"\npath = \"{file}\"\n"),
        )
    };
    assert_eq!(replay("self.csv"), "t:7: traffic.0.path is self.csv: line 2: destination is \"0\", expected another host than the source");
    assert_eq!(replay("negative.csv"), "t:7: traffic.0.path is negative.csv: line 2: size_bytes is \"-1\", expected bytes above zero");
    assert_eq!(replay("backwards.csv"), "t:7: traffic.0.path is backwards.csv: line 3: starts at 4 ns, before the flow above it at 5 ns");
    assert_eq!(
        replay("far.csv"),
        "t:7: traffic.0.path is far.csv: flow 2: host 9 is above max 2"
    );
    assert_eq!(
        replay("late.csv"),
        "t:7: traffic.0.path is late.csv: flow 2: starts at 20 ms, not below 10 ms (duration)"
    );
    let workload = |name: &str| {
        error(
            "net.txt",
            &format!("kind = \"poisson\"\nload = 0.1\nworkload = \"{name}\"\n"),
        )
    };
    assert_eq!(
        workload("falling.csv"),
        "t:8: traffic.0.workload is falling.csv: line 3: 90 B with probability 1 does not rise from the row before"
    );
    assert!(workload("webserch")
        .starts_with("t:8: traffic.0.workload is \"webserch\", expected \"websearch\" or"));
}

#[test]
fn requests_wait_or_come_at_a_load() {
    let asks = |more: &str| {
        only_run(&format!(
            "[[traffic]]\nkind = \"request\"\nsize = \"2 kB\"\n{more}"
        ))
        .traffic[2]
            .clone()
    };
    let Traffic::Request(request) =
        asks("to = \"0-3\"\nfrom = \"4-8\"\nthink = \"1 ms\"\nconcurrency = 3\n")
    else {
        panic!("it is a request")
    };
    assert_eq!(
        (request.to, request.from),
        (Receivers::Range(0, 3), Sources::Range(4, 8))
    );
    assert_eq!(
        request.asking,
        crate::Asking::Think {
            time: Span::from_ms(1),
            concurrency: 3
        }
    );
    let errors = |more: &str| {
        errors_of(&format!(
            "[[traffic]]\nkind = \"request\"\nsize = \"2 kB\"\n{more}"
        ))
    };
    assert_eq!(
        errors("load = 0.1\nthink = \"1 ms\"\n"),
        "t:16: traffic.2.think is set beside traffic.2.load: only one of them can hold"
    );
    assert_eq!(
        errors("to = \"3-9\"\n"),
        "t:15: traffic.2.to is 9, above max 8 (network.topology.hosts)"
    );
    assert_eq!(
        errors("to = \"3-5\"\nfrom = 4\n"),
        "t:16: traffic.2.from is host 4, which is the receiver too"
    );
    assert_eq!(
        errors("to = \"5-3\"\n"),
        "t:15: traffic.2.to is \"5-3\", expected host number, range like \"0-3\", or \"all\""
    );
    assert_eq!(
        errors_of("[[traffic]]\nkind = \"all_to_all\"\nsize = \"2 kB\"\namong = 3\n"),
        "t:15: traffic.2.among is one host, expected at least two hosts"
    );
}

#[test]
fn switches_have_steps_sides_and_alphas() {
    let run = only_run(
        "[network.ecn]\nthreshold = \"10 kB\"\nmax = \"90 kB\"\nsteps = 8\nmark = \"dequeue\"\n",
    );
    let ecn = run.network.ecn.unwrap();
    assert_eq!((ecn.steps, ecn.mark), (Some(8), crate::Mark::Dequeue));
    let nic =
        only_run("[host]\nkind = \"nic\"\ncc = \"dctcp\"\n[network.ecn]\nthreshold = \"10 kB\"\n");
    assert_eq!(nic.network.ecn.unwrap().mark, crate::Mark::Dequeue);
    let errors = |set: &[(&str, &str)]| {
        Scenario::parse_with(BASE, "t", set)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        errors(&[("network.alpha", "1/8")]),
        "--set: network.alpha is 1/8, which needs network.sharing shared or lossless"
    );
    assert!(
        errors(&[("network.alpha", "1/3"), ("network.sharing", "shared")])
            .starts_with("--set: network.alpha is \"1/3\", expected \"1/128\"")
    );
    assert_eq!(
        errors(&[("network.ecn.steps", "8")]),
        "t:3: network.ecn.threshold is missing: size, 0 B to 1 GB"
    );
    let shared = [("network.alpha", "1/8"), ("network.sharing", "shared")];
    let run = &Scenario::parse_with(BASE, "t", &shared).unwrap().runs()[0].clone();
    assert_eq!(run.network.alpha_log2, Some(-3));
    assert_eq!(
        Scenario::parse(&run.to_toml(), "t").unwrap().runs(),
        std::slice::from_ref(run)
    );
}

#[test]
fn a_law_needs_the_edge_and_the_default_knows() {
    let run = only_run("[host]\nqdisc = \"fq\"\n[onramp]\nthreshold = \"60 us\"\n");
    assert_eq!(run.onramp.law, Law::Off);
    assert_eq!(
        errors_of("[host]\nqdisc = \"fq\"\n[onramp]\nlaw = \"gate\"\n"),
        "t:15: onramp.law is gate, which needs host.qdisc edge"
    );
}

#[test]
fn a_threshold_below_the_idle_delay_is_refused_unless_the_law_is_off() {
    assert_eq!(
        errors_of("[onramp]\nthreshold = \"1 us\"\n"),
        "t:13: onramp.threshold is 1 us, below min 2 us (the idle path's network.link.delay)"
    );
    assert_eq!(
        only_run("[onramp]\nthreshold = \"1 us\"\nlaw = \"off\"\n")
            .onramp
            .law,
        Law::Off
    );
    assert_eq!(
        only_run("[onramp]\nthreshold = \"off\"\nlaw = \"gate\"\n")
            .onramp
            .law,
        Law::Off
    );
}

const CASES: &str = r#"[[case]]
name = "fq"
"host.qdisc" = "fq"
[[case]]
name = "gate"
onramp.law = "gate"
"#;

#[test]
fn runs_are_cases_times_sweep_with_the_last_key_fastest() {
    let sweep = "[sweep]\nseed = [1, 2]\n\"onramp.threshold\" = [\"30 us\", \"50 us\"]\n";
    let scenario = scenario(&format!("{CASES}{sweep}"));
    let params = |run: &Run| {
        let of = |key: &str| run.params[key].clone();
        [
            of("case"),
            of("seed"),
            of("onramp.threshold"),
            of("onramp.law"),
            of("host.qdisc"),
        ]
        .join(" ")
    };
    let runs: Vec<String> = scenario.runs().iter().map(params).collect();
    // With law off the threshold means nothing: one run for both.
    assert_eq!(
        runs,
        [
            "fq 1 off off fq",
            "fq 2 off off fq",
            "gate 1 30 us gate edge",
            "gate 1 50 us gate edge",
            "gate 2 30 us gate edge",
            "gate 2 50 us gate edge",
        ]
    );
}

#[test]
fn errors_of_an_override_are_at_the_override() {
    let more = r#"[onramp]
law = "final"
[[case]]
name = "fq"
"host.qdisc" = "fq"
[[case]]
name = "fq"
"traffic.2.load" = 0.1
"traffic.0.kind" = "long"
[sweep]
"network.ecn.threshold" = ["65 kB",
  "400 kB", "1"]
"network.colour" = [1]
"host.cc" = []
"#;
    assert_eq!(
        errors_of(more),
        "t:16: onramp.law is final, which needs host.qdisc edge\n\
         t:18: case.name is \"fq\", as in an earlier case\n\
         t:19: traffic.2.load is of [[traffic]] entry 2, above max 1 (the last)\n\
         t:20: traffic.0.kind cannot differ between runs\n\
         t:23: network.ecn.threshold is \"1\", which has no unit (one of B, kB, MB, GB, KiB, MiB, GiB)\n\
         t:23: network.ecn.threshold is 400 kB, above max 300 kB (network.buffer)\n\
         t:24: unknown key network.colour\n\
         t:25: sweep.host.cc is an empty list, expected at least one value"
    );
}

#[test]
fn case_names_are_given_and_fit_file_names() {
    assert!(errors_of("[[case]]\nseed = 2\n").starts_with("t:12: case.name is missing: 1 to 40 of"));
    for name in ["", "a/b", "..", "a b"] {
        let text = errors_of(&format!("[[case]]\nname = \"{name}\"\n"));
        assert!(
            text.starts_with(&format!("t:13: case.name is \"{name}\", expected")),
            "{text}"
        );
    }
}

#[test]
fn too_many_runs_are_refused_before_they_are_made() {
    let list = format!("[{}]", vec!["1"; 1001].join(","));
    let sweep = format!("[sweep]\nseed = {list}\ntime_dilation = {list}\n");
    assert_eq!(
        errors_of(&sweep),
        "t:14: case x sweep is 1002001 runs, above max 1000"
    );
}

#[test]
fn a_setting_replaces_file_case_and_sweep() {
    let text = format!("{BASE}{CASES}[sweep]\nseed = [1, 2]\n");
    let set = [
        ("seed", "9"),
        ("onramp.law", "off"),
        ("network.buffer", "1 MB"),
    ];
    let scenario = Scenario::parse_with(&text, "t", &set).unwrap();
    assert_eq!(scenario.runs().len(), 2);
    for run in scenario.runs() {
        assert_eq!(
            (run.seed, run.onramp.law, run.network.buffer.get()),
            (9, Law::Off, 1_000_000)
        );
        assert!(!run.params.contains_key("seed"));
    }
}

#[test]
fn a_list_of_settings_is_swept() {
    let set = [
        ("seed", "[1, 2]"),
        ("network.buffer", "[\"1 MB\", \"2 MB\"]"),
    ];
    let scenario = Scenario::parse_with(BASE, "t", &set).unwrap();
    let varied = |run: &Run| {
        (
            run.params["seed"].clone(),
            run.params["network.buffer"].clone(),
        )
    };
    let runs: Vec<_> = scenario.runs().iter().map(varied).collect();
    let expected = [("1", "1 MB"), ("1", "2 MB"), ("2", "1 MB"), ("2", "2 MB")];
    assert_eq!(runs, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    for wrong in ["[]", "[1, x", "[-1]", "[[1]]"] {
        let error = Scenario::parse_with(BASE, "t", &[("seed", wrong)]).unwrap_err();
        assert!(error.to_string().starts_with("--set: seed is"), "{error}");
    }
}

#[test]
fn wrong_settings_are_reported_as_such() {
    let set = [
        ("seed", "x"),
        ("colour", "red"),
        ("traffic.2.to", "1"),
        ("warmup", "1 s"),
    ];
    assert_eq!(
        Scenario::parse_with(BASE, "t", &set)
            .unwrap_err()
            .to_string(),
        "--set: seed is \"x\", expected number, from 0\n\
         --set: traffic.2.to is of [[traffic]] entry 2, above max 1 (the last)\n\
         --set: unknown key colour\n\
         --set: warmup is 1 s, not below 10 ms (duration)"
    );
}

#[test]
fn keys_set_twice_in_two_spellings_are_refused() {
    let text = format!("\"network.buffer\" = \"9 kB\"\n{BASE}")
        .replace("[[traffic]]\nkind = \"long\"", "");
    let text = text.replace("[network]\n", "[network]\nbuffer = \"8 kB\"\n");
    assert_eq!(errors(&text), "t:5: network.buffer is set twice");
}

#[test]
fn a_run_is_written_with_its_units() {
    let json = serde_json::to_value(only_run("")).unwrap();
    assert_eq!(json["network"]["link"]["rate"], "10 Gbit/s");
    assert_eq!(json["traffic"][0]["size"], "2 kB");
    assert_eq!(json["traffic"][0]["load"], 0.02);
    assert_eq!(json["onramp"]["threshold"], "50 us");
}

/// Scenario texts, most of them valid.
fn texts() -> impl Strategy<Value = String> {
    let incast = ("[0-8]", 1..30u32, 1..100_000u64, prop_oneof![
        Just("load = \"3 %\"".to_owned()),
        (1..5000u32).prop_map(|us| format!("interval = \"{us}.5 us\"\nrequests = 7")),
        Just("arrivals = \"periodic\"".to_owned()),
    ])
        .prop_map(|(to, fanout, size, rest)| {
            format!("[[traffic]]\nkind = \"incast\"\nto = {to}\nfanout = {fanout}\nsize = \"{size} B\"\n{rest}\n")
        });
    let long = (0..9u32, 1..20u32, 0..5u32, 6..10u32).prop_map(|(to, flows, start, stop)| {
        format!("[[traffic]]\nkind = \"long\"\nto = {to}\nflows = {flows}\nstart = \"{start} ms\"\nstop = \"{stop} ms\"\n")
    });
    let poisson = ("0|5|\"all\"", "websearch|fb_hadoop|google_search_rpc", 1..100u32).prop_map(|(to, workload, load)| {
        format!("[[traffic]]\nkind = \"poisson\"\nto = {to}\nworkload = \"{workload}\"\nload = \"{load} %\"\n")
    });
    let request = (
        "0|5|\"all\"|\"2-4\"",
        "think = \"9 us\"|load = \"10 %\"|concurrency = 2|requests = 5",
    )
        .prop_map(|(to, rest)| {
            format!("[[traffic]]\nkind = \"request\"\nto = {to}\nsize = \"2 kB\"\n{rest}\n")
        });
    let all_to_all = (
        "\"all\"|\"2-4\"",
        "steps = 2|interval = \"50 us\"|start = \"1 ms\"",
    )
        .prop_map(|(among, rest)| {
            format!(
                "[[traffic]]\nkind = \"all_to_all\"\namong = {among}\nsize = \"200 kB\"\n{rest}\n"
            )
        });
    let traffic = prop::collection::vec(
        prop_oneof![incast, long, poisson, request, all_to_all],
        1..4,
    );
    let cases = prop::sample::select(vec![
        "",
        CASES,
        "[[case]]\nname = \"dctcp\"\nhost.cc = \"dctcp\"\nnetwork.ecn.threshold = \"64 KiB\"\n",
    ]);
    let sweep = prop::sample::select(vec![
        "",
        "[sweep]\n\"onramp.threshold\" = [\"off\", \"31.25 us\"]\n\"onramp.gain\" = [\"1/3\", 0.1]\n",
        "[sweep]\nseed = [3, 4]\nnetwork.buffer = [\"100 KiB\", \"1500 kB\"]\n",
    ]);
    (traffic, cases, sweep, 0..100u64).prop_map(|(traffic, cases, sweep, seed)| {
        let head = BASE.split("[[traffic]]").next().unwrap_or_default();
        format!("seed = {seed}\n{head}{}{cases}{sweep}", traffic.concat())
    })
}

proptest! {
    #[test]
    fn a_written_scenario_parses_to_an_equal_one(text in texts()) {
        let scenario = Scenario::parse(&text, "t").map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        let written = scenario.to_toml();
        prop_assert_eq!(Scenario::parse(&written, "t"), Ok(scenario), "{}", written);
    }

    #[test]
    fn a_written_run_parses_to_an_equal_one(text in texts()) {
        for run in Scenario::parse(&text, "t").unwrap().runs() {
            let written = run.to_toml();
            let parsed = Scenario::parse(&written, "t").map_err(|e| TestCaseError::fail(format!("{e}\n{written}")))?;
            prop_assert_eq!(parsed.runs(), std::slice::from_ref(run), "{}", written);
        }
    }

    #[test]
    fn any_text_is_answered(text: String) {
        let _ = Scenario::parse(&text, "t");
    }

    /// Lines of real scenarios in any order, with any value.
    #[test]
    fn any_scenario_like_text_is_answered(lines in prop::collection::vec((
        prop::sample::select(vec![
            "[network]", "[[traffic]]", "[[case]]", "[sweep]", "[traffic]", "[onramp]", "[traffic.0]",
            "name = ", "kind = ", "to = ", "from = ", "load = ", "duration = ", "\"traffic.0.load\" = ",
            "topology = { kind = \"star\", hosts = 3 } #", "link.rate = ", "threshold = ", "seed = ",
            "\"onramp.threshold\" = ", "fanout = ", "size = ", "interval = ", "title = ",
        ]),
        prop_oneof![
            "-?[0-9]{1,20}", "\"[0-9]{1,12} (us|ms|s|kB|Gbit/s|%)\"", "\\[(\"off\"|1|[0-9]+)\\]",
            "\"(incast|long|poisson|off|all|others)\"", "\\{ a = 1 \\}", "[a-z\\[{\".=]{0,8}",
        ],
    ), 0..20)) {
        let text: String = lines.iter().map(|(key, value)| match key.ends_with(']') {
            true => format!("{key}\n"),
            false => format!("{key}{value}\n"),
        }).collect();
        let _ = Scenario::parse(&text, "t");
        let _ = Scenario::parse(&format!("{BASE}{text}"), "t");
    }

    #[test]
    fn any_setting_is_answered(
        key in prop_oneof!["[a-z0-9.]{0,20}", prop::sample::select(KEYS.iter().map(|k| k.path.replace("traffic.", "traffic.1.")).collect::<Vec<_>>())],
        value: String,
    ) {
        let _ = Scenario::parse_with(BASE, "t", &[(&key, &value)]);
    }
}

#[test]
fn the_papers_fabric_can_be_written_down() {
    let fabric = BASE
        .replace("kind = \"star\", hosts = 9", "kind = \"fat_tree\", hosts = 320, pods = 5, width = 4")
        .replace("[[traffic]]\nkind = \"incast\"", "fabric = { rate = \"400 Gbit/s\" }\n[host]\nkind = \"nic\"\ncc = \"hpcc\"\n[[traffic]]\nkind = \"incast\"");
    let scenario = Scenario::parse(&fabric, "t").unwrap_or_else(|errors| panic!("{errors}"));
    let network = &scenario.runs()[0].network;
    assert_eq!(network.topology.hosts(), 320);
    assert_eq!(network.fabric.rate.to_string(), "400 Gbit/s");
    assert_eq!(network.fabric.delay, network.link.delay);
    assert_eq!(network.base_delay(), Span::from_us(6));
    assert_eq!(network.sharing, Sharing::Lossless);
    assert_eq!(network.buffer, Bytes::new(32 << 20));
    let again = Scenario::parse(&scenario.runs()[0].to_toml(), "t");
    assert_eq!(again.unwrap().runs(), scenario.runs());
}

#[test]
fn shapes_and_transports_that_do_not_fit_are_refused() {
    let shape = |shape: &str| errors(&BASE.replace("kind = \"star\", hosts = 9", shape));
    assert_eq!(
        shape("kind = \"dumbbell\", hosts = 9"),
        "t:4: network.topology.hosts is 9, expected a multiple of 2 switches"
    );
    assert_eq!(
        shape("kind = \"leaf_spine\", hosts = 10, leaves = 2"),
        "t:4: network.topology.spines is missing: number, 1 to 256"
    );
    assert_eq!(
        errors_of("[host]\ncc = \"hpcc\"\n"),
        "t:13: host.cc is hpcc, which needs host.kind nic"
    );
    assert_eq!(
        errors_of("[host]\nkind = \"nic\"\ncc = \"cubic\"\n"),
        "t:14: host.cc is cubic, which needs host.kind kernel"
    );
    assert_eq!(
        errors_of("[network.ecn]\nmax = \"90 kB\"\n"),
        "t:12: network.ecn.threshold is missing: size, 0 B to 1 GB"
    );
}

/// What was added later stays out of scenarios that say nothing of it, and is told where it varies.
#[test]
fn later_keys_are_written_where_they_say_something() {
    let varied =
        scenario("[onramp]\nthreshold = \"60 us\"\n[sweep]\n\"onramp.pacing\" = [false, true]\n");
    let pacing: Vec<&str> = varied
        .runs()
        .iter()
        .map(|run| run.params["onramp.pacing"].as_str())
        .collect();
    assert_eq!(pacing, ["false", "true"]);
    let plain = scenario("").to_toml();
    assert!(!plain.contains("pacing") && !plain.contains("connections"));
}
