// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Runs the reference cases.

use onramp_cc::nic::preset;
use onramp_scenario::Work;
use onramp_sim::{
    parse_flow_list, Buffer, Config, Hosts, Nic, Rounding, Simulation, Switch, Topology,
};
use onramp_units::{Bytes, Time};
use std::collections::HashMap;

/// `(src, sport, size_bytes, start_ns, fct_ns, standalone_ns)` of a flow, in the order of ends.
pub type Row = (u32, u32, u64, i64, i64, i64);

/// A reference case.
pub struct Case {
    pub name: &'static str,
    topology: &'static str,
    flows: &'static str,
    /// Name of the preset, and of the reference's congestion control.
    pub cc: &'static str,
}

const STAR4: &str = include_str!("../reference/star4.topo");
const STAR17: &str = include_str!("../reference/star17.topo");

impl Case {
    pub fn single(cc: &'static str) -> Case {
        Case {
            name: "single",
            topology: STAR4,
            flows: include_str!("../reference/single.flow"),
            cc,
        }
    }

    pub fn incast(cc: &'static str) -> Case {
        Case {
            name: "incast4",
            topology: STAR17,
            flows: include_str!("../reference/incast4.flow"),
            cc,
        }
    }

    pub fn long_and_short(cc: &'static str) -> Case {
        Case {
            name: "long2short1",
            topology: STAR4,
            flows: include_str!("../reference/long2short1.flow"),
            cc,
        }
    }

    /// The first millisecond of WebSearch at 60 % on the papers' fat tree.
    pub fn web_search(cc: &'static str) -> Case {
        Case {
            name: "ws60",
            topology: include_str!("../reference/fat.txt"),
            flows: include_str!("../reference/ws60_1ms.flow"),
            cc,
        }
    }
}

/// Simulates a case in ns-3's rounding.
pub fn run(case: &Case, seed: u64) -> Vec<Row> {
    simulate(case, seed, Rounding::Ns3)
}

/// Simulates a case with exact times.
pub fn run_exactly(case: &Case, seed: u64) -> Vec<Row> {
    simulate(case, seed, Rounding::Exact)
}

fn simulate(case: &Case, seed: u64, rounding: Rounding) -> Vec<Row> {
    let preset = preset(case.cc).unwrap();
    let line = "100 Gbit/s".parse().unwrap();
    let mut switch = Switch::new(Buffer::Lossless(Bytes::new(32 << 20)));
    switch.rule = Some((preset.ecn)(line).into());
    let hosts = Hosts::Nic(Nic::of(preset, line));
    let mut config = Config::new(hosts, switch);
    (config.rounding, config.seed) = (rounding, seed);
    let flows = parse_flow_list(case.flows, rounding).unwrap();
    let topology = Topology::parse(case.topology).unwrap();
    let mut simulation = Simulation::new(config, &topology, flows.clone()).unwrap();
    simulation.run_until(Time::from_ticks(4_000_000_000_000));
    assert_eq!(simulation.packets_in_flight(), 0, "packets are left over");

    let mut of_pair: HashMap<(u32, u32), u32> = HashMap::new();
    let mut rows: Vec<(i64, Row)> = Vec::new();
    for (n, flow) in flows.iter().enumerate() {
        let number = of_pair.entry((flow.src, flow.dst)).or_insert(0);
        let sport = u32::from(onramp_sim::flow_ports(*number).0);
        *number += 1;
        let fct = simulation.outcomes()[n].acked.expect("every flow ends");
        let start = flow.start.ticks() / 1000;
        let ideal = simulation.ideal_fct(n).unwrap().as_ns();
        let Work::Send(size) = flow.work else {
            panic!("flow lists have sizes")
        };
        let row = (flow.src, sport, size.get(), start, fct.as_ns(), ideal);
        rows.push((start + fct.as_ns(), row));
    }
    rows.sort_by_key(|(end, _)| *end);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// What the reference measured: a file of tests/reference.
pub fn reference_rows(case: &Case) -> Vec<Row> {
    let cc = match case.cc {
        "hpcc" => "hp".to_owned(),
        name => name.replace("_w", "_vwin"),
    };
    let case = case.name;
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference");
    let text = std::fs::read_to_string(format!("{directory}/{case}-{cc}.csv")).unwrap();
    let row = |line: &str| {
        let words: Vec<&str> = line.split(',').collect();
        let src = (u32::from_str_radix(words[0], 16).unwrap() - 0x0b00_0001) >> 8;
        let number = |n: usize| words[n].parse::<i64>().unwrap();
        let size = number(4) as u64;
        (src, number(2) as u32, size, number(5), number(6), number(7))
    };
    text.lines().skip(1).map(row).collect()
}
