// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Time a packet-hop in networks that are mostly one part of the engine: `cargo bench -p onramp-sim`.
//! The whole of it, on the papers' fabric: `onramp sim bench`.
use criterion::{criterion_group, criterion_main, BatchSize, Criterion, Throughput};
use onramp_scenario::{plan, Scenario};
use onramp_sim::{run::build, Simulation};
use onramp_units::{Span, Time};

const SIMULATED: Span = Span::from_ms(1);

/// Two hosts that send as fast as lines go: hosts more than switches.
const NIC: &str = r#"title = "NICs"
duration = "1 ms"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "hpcc"
[[traffic]]
kind = "long"
flows = 2
"#;

/// The same with TCP, which takes a share of the time in hosts that grows with what is lost.
const KERNEL: &str = r#"title = "kernel hosts"
duration = "1 ms"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
cc = "cubic"
[[traffic]]
kind = "long"
flows = 2
"#;

/// Five switches between any two hosts, and few flows: switches and their queues.
const FABRIC: &str = r#"title = "switches"
duration = "1 ms"
[network]
topology = { kind = "fat_tree", hosts = 64, pods = 4, width = 4 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "dctcp"
[[traffic]]
kind = "poisson"
to = "all"
workload = "websearch"
load = "60 %"
"#;

/// Timers and flows, hardly a packet each: the queue of events.
const SMALL: &str = r#"title = "flows of a packet"
duration = "1 ms"
[network]
topology = { kind = "star", hosts = 64 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "hpcc"
[[traffic]]
kind = "poisson"
to = "all"
workload = "google_search_rpc"
load = "5 %"
"#;

fn simulation(text: &str) -> Simulation {
    let scenario = Scenario::parse(text, "bench").expect("a scenario");
    let run = &scenario.runs()[0];
    build(run, &plan(run)).expect("a network")
}

fn finish(mut simulation: Simulation) -> Simulation {
    simulation.run_until(Time::ZERO + SIMULATED);
    simulation
}

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet-hops");
    group.sample_size(10);
    for (name, text) in [
        ("nic hosts", NIC),
        ("kernel hosts", KERNEL),
        ("switches", FABRIC),
        ("flows of a packet", SMALL),
    ] {
        let hops = finish(simulation(text)).counters().packet_hops;
        group.throughput(Throughput::Elements(hops));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(|| simulation(text), finish, BatchSize::LargeInput)
        });
    }
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
