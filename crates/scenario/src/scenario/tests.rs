// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Facts about checking. Files that scenarios name, runs, and writing back: tests/.

mod files;
mod runs;
mod written;

use super::*;
use crate::host::Qdisc;
use crate::network::Sharing;
use crate::topology::shapes;
use onramp_law::Law;
use onramp_units::{Bytes, Span};

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

const CASES: &str = r#"[[case]]
name = "fq"
"host.qdisc" = "fq"
[[case]]
name = "gate"
onramp.law = "gate"
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

/// The value of a key, if it applies.
fn text_of<'r>(run: &'r Run, path: &str) -> Option<&'r str> {
    let setting = run.settings().find(|setting| setting.path() == path);
    setting.map(|setting| &*setting.text)
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
    assert_eq!(run.network.ports.buffer, Bytes::new(300_000));
    assert_eq!(
        (run.host.cc.name(), run.host.qdisc, run.host.gro),
        ("cubic", Qdisc::Edge, true)
    );
    assert_eq!(
        (run.onramp.law, run.onramp.t()),
        (Law::Final.into(), Span::from_us(50))
    );
    assert_eq!(
        (run.onramp.gain.get(), run.onramp.max_pause),
        (0.0625, Span::from_ms(5))
    );
    for (key, text) in [
        ("traffic.0.load", "0.02"),
        ("traffic.1.from", "others"),
        ("traffic.1.flows", "1"),
        ("traffic.1.stop", "10 ms"),
    ] {
        assert_eq!(text_of(&run, key), Some(text));
    }
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
qdisc = "red"
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
t:10: host.qdisc is "red", expected "edge" or "fq" or "fq_codel"
t:11: traffic.0.size is missing, expected a size, 1 B to 1 GB
t:13: traffic.0.fanout is 0, below min 1
t:14: traffic.0.interval and traffic.0.load are both set: remove one of them
t:16: traffic.0.flows is a key of traffic kind long, but the kind of this entry is incast: remove it
t:18: unknown key onramp.treshold, did you mean onramp.threshold?
t:19: onramp.gain is 2, above max 1"#;
    assert_eq!(errors(text), expected);
}

#[test]
fn a_read_needs_nics_that_send_bursts_and_nothing_that_holds_or_asks() {
    let nic = "[host]\nkind = \"nic\"\ncc = \"timely_paper\"\n[cc.timely_paper]\nalpha = 0.05\n";
    let read = ("traffic.0.op", "read");
    let of = |set: &[(&str, &str)]| {
        let text = format!("{BASE}{nic}");
        let all = [&[read], set].concat();
        let parsed = Scenario::parse_with(&text, "t", &all);
        parsed.err().map(|errors| errors.to_string())
    };
    assert_eq!(of(&[]), None);
    for (set, needs) in [
        (("onramp.law", "final"), "onramp.law off"),
        (("traffic.0.ask_size", "64 B"), "traffic.0.ask_size 0 B"),
        (
            ("cc.timely_paper.burst_rate", "1 Gbit/s"),
            "cc.timely_paper.burst_rate not set",
        ),
    ] {
        let expected = format!("--set: traffic.0.op is read, which needs {needs}");
        assert_eq!(of(&[set]), Some(expected));
    }
    let kernel = Scenario::parse_with(BASE, "t", &[("traffic.1.op", "read")]);
    let expected =
        "--set: traffic.1.op is read, which needs host.cc timely_paper or fast_star or none\n\
        --set: traffic.1.op is read, which needs onramp.law off";
    assert_eq!(kernel.expect_err("kernel hosts").to_string(), expected);
    let other = BASE.replace("kind = \"incast\"\nfanout = 8", "kind = \"request\"");
    assert_eq!(
        errors(&format!("{other}[[traffic]]\nkind = \"all_to_all\"\nsize = \"1 kB\"\nop = \"read\"\n")),
        "t:14: traffic.2.op is a key of traffic kind incast or long or poisson, but the kind of this entry is \
         all_to_all: remove it"
    );
    assert!(
        errors(&BASE.replace("fanout = 8", "fanout = 8\nop = \"raed\""))
            .contains("traffic.0.op is \"raed\", expected \"write\" or \"read\"")
    );
}

#[test]
fn an_unknown_congestion_control_is_refused_with_all_that_there_are() {
    let error = errors_of("[host]\ncc = \"vegas\"\n");
    for name in onramp_cc::names() {
        assert!(error.contains(&format!("{name:?}")), "{error}");
    }
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
    let kinds: Vec<String> = shapes()
        .map(|kind| format!("{:?} or ", kind.name))
        .collect();
    let kinds = kinds.concat();
    assert_eq!(
        errors(""),
        format!(
            "t:1: duration is missing, expected a time, 1 us to 3600 s\n\
         t:1: network.link.delay is missing, expected a time, 0 s to 100 ms\n\
         t:1: network.link.rate is missing, expected a rate, 1 Mbit/s to 1 Tbit/s\n\
         t:1: network.topology.hosts is missing, expected a number, 2 to 4096\n\
         t:1: network.topology.kind is missing, expected {kinds}\"file\" or \"inline\"\n\
         t:1: title is missing, expected one line of 1 to 200 characters\n\
         t:1: traffic is missing, expected at least one [[traffic]] entry"
        )
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
        "t:2: duration is a list, expected a time, 1 us to 3600 s\n\
         t:3: seed is a date, expected a number, from 0\n\
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
         t:12: traffic.1.from is host 9, which is also the receiver: set another host\n\
         t:13: traffic.1.to is 9, above max 8 (network.topology.hosts)\n\
         t:18: traffic.2.from is host 0, which is also the receiver: set another host"
    );
    assert_eq!(
        errors_of("to = \"all\"\n"),
        "t:12: traffic.1.to is \"all\", expected a host's number"
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
    let of = |key| text_of(&run, key);
    assert_eq!(
        (of("traffic.2.to"), of("traffic.2.from")),
        (Some("all"), Some("others"))
    );
    assert_eq!(
        errors_of(entry),
        "t:12: traffic.2.load is missing, expected a fraction, 0.000001 to 1"
    );
}

#[test]
fn another_kind_by_an_option_reads_the_keys_of_the_file_as_its_own() {
    let of = |to: &str| {
        let text = BASE.replace("fanout = 8\nsize = \"2 kB\"", &format!("to = {to}"));
        let scenario = Scenario::parse_with(&text, "t", &[("traffic.0.kind", "long")]);
        scenario.map_err(|errors| errors.to_string())
    };
    let text = "t:8: traffic.0.to is \"all\", expected a host's number";
    assert_eq!(of("\"all\"").unwrap_err(), text);
    assert_eq!(
        text_of(&of("3").unwrap().runs()[0], "traffic.0.to"),
        Some("3")
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
    let beta = scenario.runs()[1].tuning.get("beta");
    assert_eq!(beta, Some(onramp_cc::ParameterValue::Fraction(0.2)));
}

#[test]
fn requests_wait_or_come_at_a_load() {
    let asks = |more: &str| {
        only_run(&format!(
            "[[traffic]]\nkind = \"request\"\nsize = \"2 kB\"\n{more}"
        ))
    };
    let run = asks("concurrency = 3\n");
    let of = |key| text_of(&run, key);
    assert_eq!(
        (of("traffic.2.think"), of("traffic.2.concurrency")),
        (Some("0 s"), Some("3"))
    );
    let run = asks("load = 0.1\n");
    assert_eq!(text_of(&run, "traffic.2.think"), None);
    let errors = |more: &str| {
        errors_of(&format!(
            "[[traffic]]\nkind = \"request\"\nsize = \"2 kB\"\n{more}"
        ))
    };
    assert_eq!(
        errors("load = 0.1\nthink = \"1 ms\"\n"),
        "t:16: traffic.2.think and traffic.2.load are both set: remove one of them"
    );
    assert_eq!(
        errors("to = \"3-9\"\n"),
        "t:15: traffic.2.to is 9, above max 8 (network.topology.hosts)"
    );
    assert_eq!(
        errors("to = \"3-5\"\nfrom = 4\n"),
        "t:16: traffic.2.from is host 4, which is also the receiver: set another host"
    );
    assert_eq!(
        errors("to = \"5-3\"\n"),
        "t:15: traffic.2.to is \"5-3\", expected a host's number, a range like \"0-3\", or \"all\""
    );
    assert_eq!(
        errors_of("[[traffic]]\nkind = \"all_to_all\"\nsize = \"2 kB\"\namong = 3\n"),
        "t:15: traffic.2.among is host 3, expected at least two hosts"
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
        "t:3: network.ecn.threshold is missing, expected a size, 0 B to 1 GB"
    );
    let tiny = [
        ("network.ecn.threshold", "10 kB"),
        ("network.ecn.bdp", "180 kB"),
        ("network.ecn.steps", "8"),
    ];
    let run = &Scenario::parse_with(BASE, "t", &tiny[..2]).unwrap().runs()[0].clone();
    assert_eq!(run.network.ecn.unwrap().bdp, Some(Bytes::new(180_000)));
    assert_eq!(
        errors(&tiny),
        "--set: network.ecn.bdp and network.ecn.steps are both set: remove one of them"
    );
    let shared = [("network.alpha", "1/8"), ("network.sharing", "shared")];
    let run = &Scenario::parse_with(BASE, "t", &shared).unwrap().runs()[0].clone();
    assert_eq!(run.network.ports.alpha, Some(crate::Alpha { log2: -3 }));
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
        "t:13: onramp.threshold is 1 us, below min 2 us (the delay of the idle path)"
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
    assert_eq!(network.ports.sharing, Sharing::Lossless);
    assert_eq!(network.ports.buffer, Bytes::new(32 << 20));
    let again = Scenario::parse(&scenario.runs()[0].to_toml(), "t");
    assert_eq!(again.unwrap().runs(), scenario.runs());
}

#[test]
fn shapes_and_transports_that_do_not_fit_are_refused() {
    let shape = |shape: &str| errors(&BASE.replace("kind = \"star\", hosts = 9", shape));
    assert_eq!(
        shape("kind = \"dumbbell\", hosts = 9"),
        "t:4: network.topology.hosts is 9, expected a multiple of 2 (the number of switches with hosts)"
    );
    assert_eq!(
        shape("kind = \"leaf_spine\", hosts = 10, leaves = 2"),
        "t:4: network.topology.spines is missing, expected a number, 1 to 256"
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
        "t:12: network.ecn.threshold is missing, expected a size, 0 B to 1 GB"
    );
}
