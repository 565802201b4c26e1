// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads: the host that gets the data paces requests for it, and the host that has the data only answers.

use onramp_cc::nic::preset;
use onramp_results::{RunResult, Tables};
use onramp_scenario::{Op, Scenario, Work};
use onramp_sim::run::{run, Watch};
use onramp_sim::{
    Buffer, Config, ConfigError, Flow, Hosts, Line, Nic, Rounding, Simulation, Switch, Topology,
};
use onramp_units::{Bytes, Span, Time};

/// At 10 Gbit/s a byte takes 800 ps. Segments of 16 kB are 16 packets of 1,056 B.
const BYTE_PS: i64 = 800;
const PACKET_PS: i64 = 1_056 * BYTE_PS;
const DELAY: Span = Span::from_us(1);

/// A request from host to host over a switch.
fn request_ps(delay: Span) -> i64 {
    2 * (74 * BYTE_PS + delay.as_ps())
}

/// What the last packet of a response needs after it has left its host.
fn last_packet_ps(delay: Span) -> i64 {
    PACKET_PS + 2 * delay.as_ps()
}

fn line(delay: Span) -> Line {
    Line {
        rate: "10 Gbit/s".parse().unwrap(),
        delay,
    }
}

fn config(cc: &str) -> Config {
    let hosts = Hosts::Nic(Nic::of(preset(cc).unwrap(), line(DELAY).rate));
    let switch = Switch::new(Buffer::Lossless(Bytes::new(32 << 20)));
    Config::new(hosts, switch)
}

fn read(src: u32, dst: u32, bytes: u64) -> Flow {
    Flow {
        start: Time::ZERO,
        src,
        dst,
        work: Work::Send(Bytes::new(bytes)),
        op: Op::Read,
    }
}

/// The completion time of one flow over a switch with two links of this delay: the outcome's `acked`, and the ideal.
fn completion(op: Op, bytes: u64, delay: Span, set: &[(&str, &str)]) -> (Span, Span) {
    let scenario = Scenario::parse_with(ONE, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let mut config = config("timely_paper");
    config.hosts = onramp_sim::run::config(&scenario.runs()[0]).hosts;
    let topology = Topology::star(2, line(delay)).unwrap();
    let flow = Flow {
        op,
        ..read(0, 1, bytes)
    };
    let mut simulation = Simulation::new(config, &topology, vec![flow]).unwrap();
    simulation.run_until(Time::ZERO + Span::from_s(1));
    assert_eq!(simulation.packets_in_flight(), 0);
    let outcome = simulation.outcomes()[0];
    let is_same = outcome.acked == outcome.arrived;
    assert_eq!(is_same, op == Op::Read, "a reader has the last byte");
    let ideal = simulation.ideal_fct(0).expect("it has a size");
    (outcome.acked.expect("it ends"), ideal)
}

/// For its [host] and [cc].
const ONE: &str = r#"title = "t"
duration = "1 ms"
[network]
topology = { kind = "star", hosts = 2 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "timely_paper"
[[traffic]]
kind = "long"
from = 0
to = 1
"#;

#[test]
fn a_read_at_the_rate_of_the_line_takes_a_request_and_its_packets() {
    // The requests for 16 + 16 + 8 packets leave as the line would send these, so the responses are one burst.
    let (read, ideal) = completion(Op::Read, 40_000, DELAY, &[]);
    let expected = request_ps(DELAY) + 40 * PACKET_PS + last_packet_ps(DELAY);
    assert_eq!(read.as_ps(), expected);
    // A write has an acknowledgement of 60 B instead of the request of 74 B, and the same ideal.
    let (write, same) = completion(Op::Write, 40_000, DELAY, &[]);
    assert_eq!((read - write).as_ps(), 2 * (74 - 60) * BYTE_PS);
    assert_eq!(ideal, same);
    assert!((read.as_s_f64() / ideal.as_s_f64() - 1.0).abs() < 0.02);
}

#[test]
fn a_read_of_less_than_a_packet_takes_a_request_and_a_packet() {
    let (fct, _) = completion(Op::Read, 1, DELAY, &[]);
    let packet_ps = 2 * (57 * BYTE_PS + DELAY.as_ps());
    assert_eq!(fct.as_ps(), request_ps(DELAY) + packet_ps);
}

#[test]
fn a_slow_reader_waits_with_its_requests_for_the_bytes_that_come_back() {
    let slow = [("cc.timely_paper.first_rate", "1 Gbit/s")];
    let (fct, _) = completion(Op::Read, 24_000, DELAY, &slow);
    // 16 packets at a tenth of the line, and then the request for 8.
    let second_request = 10 * 16 * PACKET_PS;
    let response = 8 * PACKET_PS + last_packet_ps(DELAY);
    assert_eq!(fct.as_ps(), second_request + request_ps(DELAY) + response);
}

#[test]
fn the_outstanding_limit_holds_requests_back() {
    let one = [("cc.timely_paper.outstanding", "1")];
    let far = Span::from_us(100);
    let (fct, _) = completion(Op::Read, 32_000, far, &one);
    // The second segment is requested when the first packet of the first one is there.
    let second_request = request_ps(far) + PACKET_PS + last_packet_ps(far);
    let response = 16 * PACKET_PS + last_packet_ps(far);
    assert_eq!(fct.as_ps(), second_request + request_ps(far) + response);
}

/// Host 0 reads from hosts 1 to 4, or they write to it; 5 reads from 1, which also writes to 6.
const SHARED: &str = r#"title = "t"
duration = "20 ms"
warmup = "5 ms"
[network]
topology = { kind = "star", hosts = 7 }
link = { rate = "10 Gbit/s", delay = "5 us" }
sharing = "lossless"
[host]
kind = "nic"
cc = "timely_paper"
[cc.timely_paper]
alpha = 0.05
first_rate = "2500 Mbit/s"
"#;

fn simulate(traffic: &str, set: &[(&str, &str)]) -> (RunResult, Tables) {
    let text = format!("{SHARED}{traffic}");
    let scenario = Scenario::parse_with(&text, "t", set).unwrap_or_else(|e| panic!("{e}"));
    let watch = Watch {
        series: vec!["rtts".to_owned()],
        ..Watch::default()
    };
    let report = run(&scenario.runs()[0], 0, watch, &mut |_| true).unwrap();
    report.into_tables()
}

#[test]
fn a_flow_that_reads_alone_has_the_round_trip_time_of_the_idle_path() {
    let alone = "[[traffic]]\nkind = \"long\"\nfrom = 1\nto = 0\nop = \"read\"\n";
    let slow = [("cc.timely_paper.first_rate", "500 Mbit/s")];
    let (result, _) = simulate(alone, &slow);
    // Four propagation delays, a packet at the switch, a request of 74 B twice.
    let idle_us = 20.0 + (1056.0 + 2.0 * 74.0) * 8.0 / 1e4;
    for statistic in ["p50", "max"] {
        let us = result.metrics["rtt_us"][statistic].as_f64().unwrap();
        assert!((us - idle_us).abs() < 0.03, "{us} of {idle_us}");
    }
}

#[test]
fn an_incast_by_reads_is_controlled_as_one_by_writes() {
    let incast = "[[traffic]]\nkind = \"long\"\nfrom = \"1-4\"\nto = 0\nflows = 16\n";
    let rates = [("cc.timely_paper.first_rate", "600 Mbit/s")];
    let of = |op| {
        let set = [&rates[..], &[("traffic.0.op", op)]].concat();
        let metrics = simulate(incast, &set).0.metrics;
        let [mean, p99] = ["mean", "p99"].map(|name| metrics["rtt_us"][name].as_f64().unwrap());
        let utilisation = metrics["utilisation"].as_f64().unwrap();
        (utilisation, mean, p99, metrics["pfc_pauses"].as_u64())
    };
    let (write, read) = (of("write"), of("read"));
    assert!(
        read.0 > 0.9 && read.0 > write.0 - 0.05,
        "{write:?} {read:?}"
    );
    assert!(read.1 < 1.3 * write.1, "{write:?} {read:?}");
    assert!(
        read.2 < 1.3 * write.2 && read.2 < 500.0,
        "{write:?} {read:?}"
    );
    assert_eq!(read.3, Some(0));
}

#[test]
fn requested_segments_and_own_flows_of_a_host_take_turns() {
    let both = r#"[[traffic]]
kind = "long"
from = 1
to = 5
op = "read"
[[traffic]]
kind = "long"
from = 1
to = 6
"#;
    // Both want the whole line.
    let greedy = [
        ("cc.timely_paper.first_rate", "10 Gbit/s"),
        ("cc.timely_paper.min_rate", "10 Gbit/s"),
        ("cc.timely_paper.outstanding", "4"),
    ];
    let (result, _) = simulate(both, &greedy);
    let each = result.metrics["long.goodput_gbps"].as_array().unwrap();
    let half = 10.0 / 2.0 * 1000.0 / 1056.0;
    assert_eq!(each.len(), 2);
    for goodput in each {
        let goodput = goodput.as_f64().unwrap();
        assert!((goodput - half).abs() < 0.1, "{goodput} of {half}");
    }
}

#[test]
fn a_run_that_cannot_read_is_refused() {
    let topology = Topology::star(3, line(DELAY)).unwrap();
    let refused = |config: Config| {
        let made = Simulation::new(config, &topology, vec![read(0, 1, 1)]);
        made.err() == Some(ConfigError::CannotRead { flow: 0 })
    };
    assert!(!refused(config("timely_paper")));
    assert!(refused(config("dctcp")));
    let mut as_ns3 = config("timely_paper");
    as_ns3.rounding = Rounding::Ns3;
    assert!(refused(as_ns3));
    let mut with_law = config("timely_paper");
    let law = onramp_law::Config::new(onramp_law::Law::Final, Span::from_us(50));
    with_law.law = Some(law.into());
    assert!(refused(with_law));
}
