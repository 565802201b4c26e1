// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What holds in every network: bytes are kept, PFC loses nothing, an idle network takes what the
//! closed form says, and a queue is as long as theory has it.

use onramp_cc::{nic::presets, Curve};
use onramp_scenario::{Op, Work};
use onramp_sim::{
    Buffer, Config, ConfigError, Ecn, Flow, Hosts, Line, Nic, Partition, Rule, Simulation, Switch,
    Topology,
};
use onramp_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

const END: Time<onramp_units::Sim> = Time::from_ticks(60_000_000_000_000);

fn line(rate: &str) -> Line {
    Line {
        rate: rate.parse().unwrap(),
        delay: Span::from_us(1),
    }
}

fn config(preset: usize, line: Rate, buffer: Buffer) -> Config {
    let preset = presets().nth(preset).unwrap();
    let lossless = matches!(buffer, Buffer::Lossless(_));
    let mut nic = Nic::of(preset, line);
    nic.timeout = (!lossless).then_some(Span::from_ms(1));
    let mut switch = Switch::new(buffer);
    switch.rule = Some((preset.ecn)(line).into());
    Config::new(Hosts::Nic(nic), switch)
}

fn flow(start_ns: i64, src: u32, dst: u32, bytes: u64) -> Flow {
    Flow {
        start: Time::ZERO + Span::from_ns(start_ns),
        src,
        dst,
        work: Work::Send(Bytes::new(bytes)),
        op: Op::Write,
    }
}

/// The preset whose packets have the smallest headers.
fn dctcp() -> usize {
    let named = presets().position(|preset| preset.name == "dctcp");
    named.unwrap()
}

fn topologies() -> impl Strategy<Value = Topology> {
    let (edge, fabric) = (line("100 Gbit/s"), line("400 Gbit/s"));
    prop_oneof![
        (2u32..9).prop_map(move |n| Topology::star(n, edge).unwrap()),
        (1u32..5, 1u32..5).prop_map(move |(l, r)| Topology::dumbbell(l, r, edge, edge).unwrap()),
        (2u32..4, 1u32..4, 1u32..4)
            .prop_map(move |(l, s, h)| Topology::leaf_spine(l, s, h, edge, fabric).unwrap()),
        (2u32..4, 1u32..3, 1u32..3)
            .prop_map(move |(p, w, h)| Topology::fat_tree(p, w, h, edge, fabric).unwrap()),
    ]
}

/// A star whose lines have different rates and delays, and their rates in Gbit/s.
fn stars() -> impl Strategy<Value = (Topology, Vec<u64>)> {
    let gbps = prop::sample::select(vec![1u64, 10, 25, 40, 100, 400]);
    let delay_ns = prop_oneof![Just(0u64), 1u64..200, 200u64..5_000];
    prop::collection::vec((gbps, delay_ns), 3..18).prop_map(|lines| {
        let switch = lines.len();
        let mut text = format!("{} 1 {switch}\n{switch}\n", switch + 1);
        for (host, (gbps, delay_ns)) in lines.iter().enumerate() {
            text += &format!("{host} {switch} {gbps}Gbps {delay_ns}ns 0\n");
        }
        let gbps = lines.into_iter().map(|(gbps, _)| gbps).collect();
        (Topology::parse(&text).unwrap(), gbps)
    })
}

/// A network and up to 40 flows between its hosts, of which some are reads.
fn traffic() -> impl Strategy<Value = (Topology, Vec<Flow>)> {
    let op = prop_oneof![Just(Op::Write), Just(Op::Read)];
    let one = (0i64..50_000, any::<u32>(), any::<u32>(), 1u64..300_000, op);
    (topologies(), prop::collection::vec(one, 1..40)).prop_map(|(topology, flows)| {
        let hosts = topology.hosts().count() as u32;
        let mut flows: Vec<Flow> = flows
            .into_iter()
            .map(|(start, src, away, bytes, op)| {
                let src = src % hosts;
                let dst = (src + 1 + away % (hosts - 1)) % hosts;
                Flow {
                    op,
                    ..flow(start, src, dst, bytes)
                }
            })
            .collect();
        flows.sort_by_key(|flow| flow.start);
        (topology, flows)
    })
}

/// `flows` as hosts of `config` can have them: only some can read.
fn possible(config: &Config, mut flows: Vec<Flow>) -> Vec<Flow> {
    let can_read = matches!(&config.hosts, Hosts::Nic(nic) if nic.algorithm.sends_bursts());
    for flow in flows.iter_mut().filter(|_| !can_read) {
        flow.op = Op::Write;
    }
    flows
}

/// Every flow ends, every byte arrives once in order, no packet is left.
fn all_arrives(simulation: &mut Simulation, flows: &[Flow]) -> Result<(), TestCaseError> {
    simulation.run_until(END);
    prop_assert_eq!(simulation.unfinished(), 0);
    prop_assert_eq!(simulation.packets_in_flight(), 0);
    for (flow, received) in flows.iter().zip(simulation.received()) {
        prop_assert_eq!(flow.work, Work::Send(received));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_lossless_network_drops_nothing_and_delivers_everything(
        (topology, flows) in traffic(),
        preset in 0..presets().count(),
        kib in 600u64..4096,
    ) {
        // From just above what headrooms and reserves of the largest switch take.
        let buffer = Buffer::Lossless(Bytes::new((kib + 1500) << 10));
        let config = config(preset, topology.host_rate(), buffer);
        let flows = possible(&config, flows);
        let mut simulation = Simulation::new(config, &topology, flows.clone()).unwrap();
        all_arrives(&mut simulation, &flows)?;
        let counters = simulation.counters();
        prop_assert_eq!(counters.drops, 0);
        prop_assert_eq!(counters.retransmissions, 0);
    }

    /// Whatever the lines, the frames and the room beyond headrooms and reserves, with and without a congestion control.
    #[test]
    fn pauses_alone_lose_nothing(
        (topology, gbps) in stars(),
        preset in 0..presets().count(),
        payload in prop_oneof![200u16..400, 400u16..9_000],
        hold_acks: bool,
        more_kib in 0u64..2_000,
        alpha_log2 in prop::option::of(-6i8..4),
    ) {
        let preset = presets().nth(preset).unwrap();
        let hosts = gbps.len() as u32;
        let mut nic = Nic::of(preset, topology.host_rate());
        (nic.payload, nic.hold_acks) = (payload, hold_acks);
        let of_buffer = |bytes: u64| {
            let mut switch = Switch::new(Buffer::Lossless(Bytes::new(bytes)));
            switch.alpha_log2 = alpha_log2;
            // All to one, and one to all, which is paused and goes on with acknowledgements.
            let both = |host| [flow(0, host, 0, 300_000), flow(0, 0, host, 300_000)];
            let flows = (1..hosts).flat_map(both).collect();
            Simulation::new(Config::new(Hosts::Nic(nic.clone()), switch), &topology, flows)
        };
        let least = match of_buffer(1).map(|_| ()) {
            Err(ConfigError::Buffer { least, .. }) => least.get(),
            other => panic!("a buffer of a byte: {other:?}"),
        };
        let mut simulation = of_buffer(least + (more_kib << 10)).unwrap();
        simulation.run_until(END);
        prop_assert_eq!(simulation.counters().drops, 0);
        prop_assert_eq!(simulation.unfinished(), 0);
    }

    #[test]
    fn a_lossy_network_delivers_everything_in_the_end(
        (topology, flows) in traffic(),
        preset in 0..presets().count(),
        kb in 8u64..200,
        shared: bool,
    ) {
        let bytes = Bytes::new(kb * 1000);
        let buffer = if shared { Buffer::Shared(bytes) } else { Buffer::PerPort(bytes) };
        let config = config(preset, topology.host_rate(), buffer);
        let flows = possible(&config, flows);
        let mut simulation = Simulation::new(config, &topology, flows.clone()).unwrap();
        all_arrives(&mut simulation, &flows)?;
    }

    #[test]
    fn random_loss_of_data_and_of_read_requests_stops_no_flow(
        (topology, flows) in traffic(),
        preset in 0..presets().count(),
        percent in 1u32..30,
    ) {
        let buffer = Buffer::PerPort(Bytes::new(100_000));
        let mut config = config(preset, topology.host_rate(), buffer);
        config.loss = f64::from(percent) / 100.0;
        let flows = possible(&config, flows);
        let mut simulation = Simulation::new(config, &topology, flows.clone()).unwrap();
        all_arrives(&mut simulation, &flows)?;
    }

    /// Any nodes together, any apart, with marks, pauses or drops, and stops on the way.
    #[test]
    fn no_result_depends_on_the_partition(
        (topology, flows) in traffic(),
        preset in 0..presets().count(),
        lossless: bool,
        domains in prop::collection::vec(0u16..4, 40),
        stops_us in prop::collection::vec(0i64..200, 0..4),
    ) {
        let run = |partition: Partition| {
            let buffer = match lossless {
                true => Buffer::Lossless(Bytes::new(2 << 20)),
                false => Buffer::PerPort(Bytes::new(50_000)),
            };
            let mut config = config(preset, topology.host_rate(), buffer);
            // So that some are marked by chance.
            config.switch.rule = Some(Rule::Ecn(Ecn {
                min: Bytes::new(5_000),
                max: Bytes::new(40_000),
                max_fraction: 0.5,
                curve: Curve::Line,
                at: None,
                at_enqueue: false,
            }));
            let flows = possible(&config, flows.clone());
            let mut simulation = Simulation::in_parts(config, &topology, flows, partition).unwrap();
            for stop_us in &stops_us {
                simulation.run_until(Time::ZERO + Span::from_us(*stop_us));
            }
            let stopped = (simulation.outcomes(), simulation.counters(), simulation.now());
            simulation.run_until(END);
            (stopped, simulation.outcomes(), simulation.counters(), simulation.now())
        };
        let whole = run(Partition::whole(&topology));
        let domains = domains[..topology.nodes().min(40)].to_vec();
        prop_assert_eq!(&run(Partition::new(&topology, domains)), &whole);
        prop_assert_eq!(&run(Partition::of_racks(&topology, 3)), &whole);
    }
}

/// Two flows of a packet an hour apart: what lies between costs no event, on one thread or on two.
#[test]
fn an_idle_hour_is_a_handful_of_events() {
    let line = line("100 Gbit/s");
    let topology = Topology::dumbbell(1, 1, line, line).unwrap();
    for partition in [
        Partition::whole(&topology),
        Partition::of_racks(&topology, 2),
    ] {
        let config = config(dctcp(), line.rate, Buffer::Lossless(Bytes::new(32 << 20)));
        let hour = 3_600_000_000_000;
        let flows = vec![flow(0, 0, 1, 1000), flow(hour, 1, 0, 1000)];
        let mut simulation = Simulation::in_parts(config, &topology, flows, partition).unwrap();
        simulation.run_until(Time::from_ticks(i64::MAX));
        assert_eq!(simulation.unfinished(), 0);
        assert!(simulation.now() > Time::ZERO + Span::from_s(3600));
        assert!(simulation.counters().events < 30);
    }
}

/// n packets leave the sender one behind the other; the last then crosses each further link.
#[test]
fn an_idle_network_takes_what_the_closed_form_says_to_the_picosecond() {
    let (edge, fabric) = (line("100 Gbit/s"), line("400 Gbit/s"));
    let topology = Topology::fat_tree(2, 2, 2, edge, fabric).unwrap();
    for packets in [1u64, 2, 10] {
        let buffer = Buffer::Lossless(Bytes::new(32 << 20));
        let config = config(dctcp(), edge.rate, buffer);
        let flows = vec![flow(0, 0, 7, packets * 1000)];
        let mut simulation = Simulation::new(config, &topology, flows).unwrap();
        simulation.run_until(END);
        // ps a byte: 80 at the edge, 20 in the fabric; two edge and four fabric links each way.
        let data = 1048 * (80 * packets as i64 + 80 + 4 * 20);
        let ack = 60 * (2 * 80 + 4 * 20);
        let expected = Span::from_us(12) + Span::from_ps(data + ack);
        assert_eq!(simulation.outcomes()[0].acked, Some(expected));
    }
}

/// Uniform in [0, 1): SplitMix64 (Steele et al., OOPSLA 2014).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

/// Single packets of many hosts to one, at random times, with payloads of `size(uniform)`: mean wait
/// at its port, and what Pollaczek and Khinchine say, lambda E[S^2] / (2 (1 - rho)), in us.
fn mean_wait_us(rho: f64, size: impl Fn(f64) -> u64) -> (f64, f64) {
    const PACKETS: usize = 1_000_000;
    const PS_PER_BYTE: f64 = 80.0;
    let (edge, mut state) = (line("100 Gbit/s"), 1u64);
    let sizes: Vec<u64> = (0..PACKETS).map(|_| size(uniform(&mut state))).collect();
    let service_ps = |&size: &u64| (size + 48) as f64 * PS_PER_BYTE;
    let mean_ps = sizes.iter().map(service_ps).sum::<f64>() / PACKETS as f64;
    let square = sizes
        .iter()
        .map(|size| service_ps(size).powi(2))
        .sum::<f64>()
        / PACKETS as f64;
    let mut at_ps = 0.0;
    let next = |&size: &u64| {
        at_ps -= (1.0 - uniform(&mut state)).ln() * mean_ps / rho;
        Flow {
            start: Time::from_ticks(at_ps as i64),
            ..flow(0, 1 + (uniform(&mut state) * 512.0) as u32, 0, size)
        }
    };
    let flows: Vec<Flow> = sizes.iter().map(next).collect();
    let topology = Topology::star(513, edge).unwrap();
    let mut config = config(dctcp(), edge.rate, Buffer::PerPort(Bytes::new(1 << 30)));
    if let Hosts::Nic(nic) = &mut config.hosts {
        (nic.timeout, nic.payload) = (None, 9000);
    }
    config.switch.rule = None;
    let mut simulation = Simulation::new(config, &topology, flows).unwrap();
    simulation.run_until(END);
    let waits = simulation
        .outcomes()
        .into_iter()
        .zip(&sizes)
        .map(|(outcome, size)| {
            let arrived_ps = outcome.arrived.expect("nothing is lost").as_ps() as f64;
            arrived_ps - 2e6 - 2.0 * service_ps(size)
        });
    let mean_us = waits.sum::<f64>() / PACKETS as f64 / 1e6;
    let theory_us = square / mean_ps * rho / (2.0 * (1.0 - rho)) / 1e6;
    println!("mean wait {mean_us:.5} us, theory {theory_us:.5} us");
    (mean_us, theory_us)
}

#[test]
fn a_port_under_poisson_packets_is_an_m_d_1_queue() {
    let (mean, theory) = mean_wait_us(0.7, |_| 1000);
    // rho / (2 (1 - rho)) packet times.
    assert!((theory / (0.7 / 0.6 * 1048.0 * 80e-6) - 1.0).abs() < 1e-9);
    assert!((mean / theory - 1.0).abs() < 0.01, "{mean} {theory}");
}

/// Sizes are exponential but for 48 B of headers and a largest packet of nine means.
#[test]
fn a_port_under_poisson_packets_of_exponential_sizes_is_an_m_m_1_queue() {
    let (mean, theory) = mean_wait_us(0.5, |u| {
        (-1000.0 * (1.0 - u).ln()).clamp(1.0, 9000.0) as u64
    });
    // rho / (1 - rho) packet times, were it not for the headers.
    assert!((theory / (0.5 / 0.5 * 1048.0 * 80e-6) - 1.0).abs() < 0.1);
    assert!((mean / theory - 1.0).abs() < 0.01, "{mean} {theory}");
}
