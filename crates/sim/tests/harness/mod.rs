// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Runs the reference cases.

use onramp_cc::nic::preset;
use onramp_cc::{ParameterValue, Tuning};
use onramp_scenario::Work;
use onramp_sim::{
    parse_flow_list, Buffer, Config, Hosts, Nic, Rounding, Simulation, Switch, Topology,
};
use onramp_units::{Bytes, Time};
use std::collections::HashMap;

/// `(src, sport, size_bytes, start_ns, fct_ns, standalone_ns)` of a flow, in the order of ends.
pub type Row = (u32, u32, u64, i64, i64, i64);

/// A reference case.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    /// Files of tests/reference.
    topology: &'static str,
    flows: &'static str,
    /// Name of the preset, and of the reference's congestion control.
    pub cc: &'static str,
    buffer: Bytes,
    /// Lower bound of the rate, if it is not the preset's.
    min_rate: Option<&'static str>,
}

impl Case {
    const fn new(
        name: &'static str,
        topology: &'static str,
        flows: &'static str,
        cc: &'static str,
    ) -> Case {
        Case {
            name,
            topology,
            flows,
            cc,
            buffer: Bytes::new(32 << 20),
            min_rate: None,
        }
    }

    pub fn single(cc: &'static str) -> Case {
        Case::new("single", "star4.topo", "single.flow", cc)
    }

    pub fn incast(cc: &'static str) -> Case {
        Case::new("incast4", "star17.topo", "incast4.flow", cc)
    }

    pub fn long_and_short(cc: &'static str) -> Case {
        Case::new("long2short1", "star4.topo", "long2short1.flow", cc)
    }

    /// The first millisecond of WebSearch at 60 % on the papers' fat tree.
    pub fn web_search(cc: &'static str) -> Case {
        Case::new("ws60", "fat.txt", "ws60_1ms.flow", cc)
    }

    /// The same with On-Ramp's incasts of 40 answers.
    pub fn web_search_with_incasts(cc: &'static str) -> Case {
        Case::new("onramp_1ms", "fat.txt", "onramp_1ms.flow.gz", cc)
    }

    /// A random network whose lines have different rates and delays.
    pub fn mixed(cc: &'static str) -> Case {
        Case::new("mixed50", "mixed50.topo", "mixed50.flow", cc)
    }

    /// Another one, where PFC acts and packets are lost.
    pub fn mixed_and_short_of_room(cc: &'static str) -> Case {
        Case {
            buffer: Bytes::new(3 << 20),
            ..Case::new("mixed40_3MiB", "mixed40_3MiB.topo", "mixed40_3MiB.flow", cc)
        }
    }

    /// Timers of DCQCN that are due in the nanosecond of another event.
    pub fn timers() -> Case {
        Case {
            buffer: Bytes::new(8 << 20),
            ..Case::new("timers", "timers.topo", "timers.flow", "dcqcn")
        }
    }

    /// Losses with a window.
    pub fn going_back() -> Case {
        Case {
            buffer: Bytes::new(8 << 20),
            min_rate: Some("4000 Mbit/s"),
            ..Case::new("goback", "goback.topo", "goback.flow", "timely_w")
        }
    }
}

/// The text of a file of tests/reference.
fn file(name: &str) -> String {
    let path = format!("{}/tests/reference/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    if !name.ends_with(".gz") {
        return String::from_utf8(bytes).unwrap();
    }
    std::io::read_to_string(flate2::read::GzDecoder::new(&bytes[..])).unwrap()
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
    let topology = Topology::parse(&file(case.topology)).unwrap();
    let (preset, line) = (preset(case.cc).unwrap(), topology.host_rate());
    let mut switch = Switch::new(Buffer::Lossless(case.buffer));
    switch.rule = Some((preset.ecn)(line).into());
    let mut nic = Nic::of(preset, line);
    if let Some(rate) = case.min_rate {
        let mut tuning = Tuning::default();
        tuning.set("min_rate", ParameterValue::Rate(rate.parse().unwrap()));
        nic.algorithm = nic.algorithm.tuned(&tuning);
    }
    let mut config = Config::new(Hosts::Nic(nic), switch);
    (config.rounding, config.seed) = (rounding, seed);
    let flows = parse_flow_list(&file(case.flows), rounding).unwrap();
    let mut simulation = Simulation::new(config, &topology, flows.clone()).unwrap();
    simulation.run_until(Time::from_ticks(4_000_000_000_000));
    assert_eq!(simulation.packets_in_flight(), 0, "packets are left over");
    let outcomes = simulation.outcomes();
    let mut of_pair: HashMap<(u32, u32), u32> = HashMap::new();
    let mut rows: Vec<(i64, Row)> = Vec::new();
    for (n, flow) in flows.iter().enumerate() {
        let number = of_pair.entry((flow.src, flow.dst)).or_insert(0);
        let sport = u32::from(onramp_sim::flow_ports(*number).0);
        *number += 1;
        // A flow that has lost its last packet does not end: there is no timeout.
        let Some(fct) = outcomes[n].acked else {
            continue;
        };
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
    let plain = format!("{}-{cc}.csv", case.name);
    let name = match case.flows.ends_with(".gz") {
        true => plain + ".gz",
        false => plain,
    };
    let text = file(&name);
    let row = |line: &str| {
        let words: Vec<&str> = line.split(',').collect();
        let src = (u32::from_str_radix(words[0], 16).unwrap() - 0x0b00_0001) >> 8;
        let number = |n: usize| words[n].parse::<i64>().unwrap();
        let size = number(4) as u64;
        (src, number(2) as u32, size, number(5), number(6), number(7))
    };
    text.lines().skip(1).map(row).collect()
}
