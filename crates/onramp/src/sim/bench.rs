// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp sim bench`: measures the simulator's speed on the reference fabric, on one thread and on several,
//! and the time of each kind of event. Runs with different numbers of threads alternate, so that other load
//! of the machine affects all of them. One more run measures the time of some events.
use std::time::{Duration, Instant};

use crate::args::ThreadArgs;
use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use nix::time::{clock_gettime, ClockId};
use onramp_cc::Cc;
use onramp_scenario::{plan, HostKind, Scenario};
use onramp_sim::{
    run::{build_in_parts, Parts},
    Simulation, Step,
};
use onramp_units::{Span, Time};

/// tests/reference/fat.txt of the sim crate. NIC hosts: lossless, with marks and telemetry as the congestion control has
/// them. Kernel hosts: ports drop.
const SCENARIO: &str = r#"title = "The papers' fabric, web search at 60 %"
duration = "1 ms"
[network]
topology = { kind = "fat_tree", hosts = 320, pods = 5, width = 4 }
link = { rate = "100 Gbit/s", delay = "1 us" }
fabric = { rate = "400 Gbit/s" }
[onramp]
law = "off"
[[traffic]]
kind = "poisson"
to = "all"
workload = "websearch"
load = "60 %"
"#;

/// One event in so many is timed. It is a prime, so that it does not match a period of the simulation.
const SAMPLE_EVERY: u64 = 31;

const STEPS: [(Step, &str); 6] = [
    (Step::SwitchArrival, "packet at a switch"),
    (Step::SwitchLine, "line of a switch free"),
    (Step::HostArrival, "packet at a host"),
    (Step::HostLine, "line of a host free"),
    (Step::Wake, "pacing of a host"),
    (Step::Flow, "flow starts"),
];

#[derive(clap::Args)]
pub struct Args {
    /// Congestion control
    #[arg(long, default_value = "hpcc", value_parser = PossibleValuesParser::new(onramp_cc::names()))]
    cc: String,
    /// Kind of hosts, if both have a congestion control of that name
    #[arg(long, value_parser = clap::value_parser!(HostKind))]
    hosts: Option<HostKind>,
    /// Simulated time
    #[arg(long, default_value = "2 ms")]
    duration: Span,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Number of measurements of each; prints their medians
    #[arg(long, default_value_t = 3)]
    repeat: usize,
}

/// One run.
#[derive(Clone, Copy)]
struct Measured {
    wall: f64,
    processor: f64,
    hops: f64,
}

pub fn run(args: &Args) -> Result<()> {
    let most = args.threads.number();
    let numbers: Vec<usize> = (1..=most).collect();
    let mut measured_all = vec![Vec::new(); numbers.len()];
    for _ in 0..args.repeat.max(1) {
        for (threads, measured) in numbers.iter().zip(&mut measured_all) {
            measured.push(measure(args, *threads)?);
        }
    }
    let one = median(&measured_all[0], |m| m.processor / m.hops * 1e9);
    println!(
        "{} ({} hosts), {} simulated, medians of {}",
        args.cc,
        kind_of(cc(args)?),
        args.duration,
        args.repeat.max(1)
    );
    describe(args)?;
    println!("\nthreads  M packet-hops/s  of one  processor ns/hop");
    let speed = |measured: &[Measured]| median(measured, |m| m.hops / m.wall / 1e6);
    for (threads, measured) in numbers.iter().zip(&measured_all) {
        println!(
            "{threads:>7}  {:>15.2}  {:>6.2}  {:>16.1}",
            speed(measured),
            speed(measured) / speed(&measured_all[0]),
            median(measured, |m| m.processor / m.hops * 1e9),
        );
    }
    println!("{:.2} M packet-hops per second of one processor", 1e3 / one);
    if let Some(memory) = peak_memory() {
        println!("{memory} of memory at most");
    }
    println!("\n{:<22}  events/hop  ns/event  ns/hop", "");
    let happens = |row: &(&str, f64, f64)| row.1 > 0.0;
    for (name, events_per_hop, share) in profile(args)?.into_iter().filter(happens) {
        let ns = share * one;
        println!(
            "{name:<22}  {events_per_hop:>10.3}  {:>8.1}  {ns:>6.1}",
            ns / events_per_hop
        );
    }
    Ok(())
}

/// Simulates it on that number of threads.
fn measure(args: &Args, threads: usize) -> Result<Measured> {
    let mut simulation = simulation(args, threads)?;
    let started = (Instant::now(), cpu_time()?);
    simulation.run_until(Time::ZERO + args.duration);
    Ok(Measured {
        wall: started.0.elapsed().as_secs_f64(),
        processor: (cpu_time()? - started.1).as_secs_f64(),
        hops: simulation.counters().packet_hops as f64,
    })
}

fn median(measured: &[Measured], value: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = measured.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The counters of the simulation, as text.
fn describe(args: &Args) -> Result<()> {
    let mut simulation = simulation(args, 1)?;
    simulation.run_until(Time::ZERO + args.duration);
    let counters = simulation.counters();
    println!(
        "{} packet-hops of {:.2} events, {} marks, {} pauses, {} drops, {} flows",
        counters.packet_hops,
        counters.events as f64 / counters.packet_hops as f64,
        counters.marks,
        counters.pauses,
        counters.drops,
        simulation.outcomes().len()
    );
    Ok(())
}

/// The congestion control for the kind of hosts, by default those of NICs.
fn cc(args: &Args) -> Result<Cc> {
    let named = Cc::named(&args.cc).context("clap checks the name")?;
    let found = match args.hosts {
        Some(kind) => named.on(kind == HostKind::Nic),
        None => named.on(true).or(Some(named)),
    };
    found.with_context(|| {
        let kinds = Cc::all().filter(|cc| cc.name() == args.cc).map(kind_of);
        let kinds: Vec<String> = kinds.map(|kind| format!("--hosts {kind}")).collect();
        format!("--cc {} needs {}", args.cc, kinds.join(" or "))
    })
}

fn kind_of(cc: Cc) -> HostKind {
    match cc.is_nic() {
        true => HostKind::Nic,
        false => HostKind::Kernel,
    }
}

fn simulation(args: &Args, threads: usize) -> Result<Simulation> {
    let duration = args.duration.to_string();
    let cc = cc(args)?;
    let kind = kind_of(cc).to_string();
    let mut set = vec![
        ("duration", duration.as_str()),
        ("host.cc", args.cc.as_str()),
        ("host.kind", kind.as_str()),
    ];
    if cc.needs_marks() {
        set.push(("network.ecn.threshold", "65 kB"));
    }
    if cc.needs_short_segments() {
        set.push(("host.gso", "16 kB"));
    }
    let scenario = Scenario::parse_with(SCENARIO, "bench", &set)?;
    let run = scenario.runs().first().context("a scenario has a run")?;
    Ok(build_in_parts(run, &plan(run), Parts::Forced(threads))?)
}

/// Events per hop and share of the time for each kind of event. The cost of reading the clock is
/// subtracted; the cost of taking an event from the queue is included.
fn profile(args: &Args) -> Result<Vec<(&'static str, f64, f64)>> {
    let mut simulation = simulation(args, 1)?;
    let end = Time::ZERO + args.duration;
    let clock_ns = clock_ns();
    let mut counts = [0u64; STEPS.len()];
    let mut timed = [(0u64, 0.0); STEPS.len()];
    for event in 0u64.. {
        let started = event.is_multiple_of(SAMPLE_EVERY).then(Instant::now);
        let Some(step) = simulation.step(end) else {
            break;
        };
        let kind = STEPS
            .iter()
            .position(|(other, _)| *other == step)
            .unwrap_or(0);
        counts[kind] += 1;
        if let Some(started) = started {
            let ns = started.elapsed().as_nanos() as f64 - clock_ns;
            timed[kind].0 += 1;
            timed[kind].1 += ns;
        }
    }
    let mean = |(samples, ns): (u64, f64)| ns / samples.max(1) as f64;
    let times: Vec<f64> = counts
        .iter()
        .zip(timed)
        .map(|(&n, t)| n as f64 * mean(t))
        .collect();
    let total: f64 = times.iter().sum();
    let hops = simulation.counters().packet_hops as f64;
    let rows = STEPS.iter().zip(counts).zip(times);
    let row = |(((_, name), count), time): ((&(Step, &'static str), u64), f64)| {
        (*name, count as f64 / hops, time / total)
    };
    Ok(rows.map(row).collect())
}

/// Processor time of this process, which other processes do not affect.
fn cpu_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

/// Time to read the clock twice.
fn clock_ns() -> f64 {
    const READS: u32 = 10_000;
    let sum: u128 = (0..READS)
        .map(|_| Instant::now().elapsed().as_nanos())
        .sum();
    sum as f64 / f64::from(READS)
}

/// Largest resident memory of this process so far, if /proc has it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(format!("{:.0} MB", kib as f64 * 1.024 / 1000.0))
}
