// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp sim replay`: simulates a list of flows on a network, both in the HPCC simulator's file formats.
//! Prints CSV with that simulator's columns.
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::args::ThreadArgs;
use anyhow::{bail, Context, Result};
use clap::builder::PossibleValuesParser;
use onramp_cc::nic as cc;
use onramp_cc::{ParameterValue, Tuning};
use onramp_runs::{cancelled_by_signals, Line};
use onramp_scenario::Work;
use onramp_sim::{
    address, flow_ports, parse_flow_list, Buffer, Config, Flow, Hosts, Nic, Partition, Rounding,
    Simulation, Switch, Topology,
};
use onramp_units::{Bytes, Rate, Sim, Span, Time};

/// Progress is looked at about this often.
const LOOK: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub struct Args {
    /// File with nodes, switches and links
    topology: PathBuf,
    /// File with flows, sorted by start
    flows: PathBuf,
    /// Congestion control
    #[arg(long, value_parser = PossibleValuesParser::new(cc::presets().map(|preset| preset.name)))]
    cc: String,
    /// Exact times, or times rounded as in the HPCC authors' ns-3
    #[arg(long, value_parser = ["exact", "ns3"], default_value = "exact")]
    rounding: String,
    /// Buffer of each switch
    #[arg(long, default_value = "32 MiB")]
    buffer: Bytes,
    /// Seed of random marks; with ns3 rounding its RngRun
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Lower bound of the rates of all flows [default: the congestion control's, a part of the fastest host's line]
    #[arg(long, value_name = "RATE")]
    min_rate: Option<Rate>,
    /// Time after the last start at which flows that are unfinished are given up
    #[arg(long, default_value = "2 s")]
    patience: Span,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let rounding = match args.rounding.as_str() {
        "ns3" => Rounding::Ns3,
        _ => Rounding::Exact,
    };
    let topology = parsed(&args.topology, Topology::parse)?;
    let flows = parsed(&args.flows, |text| parse_flow_list(text, rounding))?;
    let last = flows.last().map_or(Time::ZERO, |flow| flow.start);
    let config = config(args, rounding, topology.host_rate())?;
    let partition = Partition::of_racks(&topology, args.threads.number());
    let mut simulation = Simulation::in_parts(config, &topology, flows.clone(), partition)
        .with_context(|| format!("replaying {}", args.flows.display()))?;
    let started = Instant::now();
    let interrupted_at = simulate(&mut simulation, &flows, last + args.patience);
    let (hops, seconds) = (
        simulation.counters().packet_hops,
        started.elapsed().as_secs_f64(),
    );
    eprintln!("{hops} packet-hops in {seconds:.2} s");
    print!("{}", csv(&simulation, &flows, rounding));
    let (unfinished, all) = (simulation.unfinished(), flows.len());
    match interrupted_at {
        _ if unfinished == 0 => Ok(()),
        Some(at) => bail!("interrupted at {at}: {unfinished} of {all} flows are unfinished, and have no completion time"),
        None => {
            if let Some(deadlock) = simulation.deadlock(&topology.port_names()) {
                bail!("{unfinished} of {all} flows are unfinished: {deadlock}");
            }
            let longest = longest_unfinished(&simulation, &flows);
            let advice = advice(args.patience, longest);
            bail!("{unfinished} of {all} flows are unfinished: {advice}")
        }
    }
}

/// Simulates up to `end`, or until all flows have finished. Shows progress; returns when it was interrupted.
fn simulate(simulation: &mut Simulation, flows: &[Flow], end: Time<Sim>) -> Option<Span> {
    let (cancel, mut line, started) = (cancelled_by_signals(), Line::default(), Instant::now());
    let start = |flow: Option<&Flow>| flow.map_or(end, |flow| flow.start);
    let mut now = start(flows.first());
    // However little there was to do before.
    let longest = ((start(flows.last()) - now) / 200).max(Span::from_ms(1));
    let mut step = Span::from_us(10);
    while now < end && simulation.unfinished() > 0 {
        if cancel.load(Ordering::Relaxed) {
            return Some(now - Time::ZERO);
        }
        let before = Instant::now();
        now = (now + step).min(end);
        simulation.run_until(now);
        step = match before.elapsed() < LOOK {
            true => (step * 2).min(longest),
            false => (step / 2).max(Span::from_ns(1)),
        };
        line.show(|| progress(simulation, flows, started.elapsed()));
    }
    None
}

/// Flows that have finished, the part of the bytes that has arrived, and the time left: work grows with bytes.
fn progress(simulation: &Simulation, flows: &[Flow], elapsed: Duration) -> String {
    let bytes = |flow: &Flow| match flow.work {
        Work::Send(size) => size.get() as f64,
        _ => 0.0,
    };
    let all: f64 = flows.iter().map(bytes).sum();
    let arrived: f64 = simulation.received().iter().map(|n| n.get() as f64).sum();
    let finished = flows.len() - simulation.unfinished();
    let text = format!("{finished} of {} flows", flows.len());
    if arrived == 0.0 {
        return text;
    }
    let (part, left) = (arrived / all, elapsed.as_secs_f64() * (all / arrived - 1.0));
    format!("{text}, {:.0} %, about {left:.0} s left", 100.0 * part)
}

/// The unfinished flow that needs most time on an empty network: its number in the list, and that time.
fn longest_unfinished(simulation: &Simulation, flows: &[Flow]) -> Option<(usize, Span)> {
    let outcomes = simulation.outcomes();
    let unfinished = (0..flows.len()).filter(|n| outcomes[*n].acked.is_none());
    let alone = unfinished.filter_map(|n| Some((n, simulation.ideal_fct(n)?)));
    alone.max_by_key(|(_, alone)| *alone)
}

/// What finishes the flows.
fn advice(patience: Span, longest: Option<(usize, Span)>) -> String {
    match longest {
        Some((n, alone)) if alone > patience => format!(
            "flow {} needs {alone} even alone, above --patience {patience}; make it smaller, or raise --patience above that",
            n + 1
        ),
        _ => "raise --patience".to_owned(),
    }
}

fn parsed<T, E>(path: &Path, parse: impl Fn(&str) -> Result<T, E>) -> Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn config(args: &Args, rounding: Rounding, line: Rate) -> Result<Config> {
    let preset = cc::preset(&args.cc).context("clap has checked the name")?;
    let mut switch = Switch::new(Buffer::Lossless(args.buffer));
    switch.rule = Some((preset.ecn)(line).into());
    let mut nic = Nic::of(preset, line);
    if let Some(rate) = args.min_rate {
        let mut tuning = Tuning::default();
        tuning.set("min_rate", ParameterValue::Rate(rate));
        nic.algorithm = nic.algorithm.tuned(&tuning);
        check_min_rate(&nic.algorithm, &args.cc, rate, line)?;
    }
    let mut config = Config::new(Hosts::Nic(nic), switch);
    (config.rounding, config.seed) = (rounding, args.seed);
    Ok(config)
}

/// Whether the congestion control has a lower bound, and the fastest line can be as slow.
fn check_min_rate(algorithm: &cc::Algorithm, name: &str, rate: Rate, line: Rate) -> Result<()> {
    if algorithm.get("min_rate") != Some(ParameterValue::Rate(rate)) {
        bail!(
            "--min-rate is {rate}, but {name} has no lower bound of the rate; leave the option out"
        );
    }
    if rate > line {
        bail!("--min-rate is {rate}, above max {line}, the fastest host's line");
    }
    Ok(())
}

/// The reference's columns, one line for each flow in the order of their ends, in ns or, if exact, in ps.
/// The completion time of an unfinished flow is empty.
fn csv(simulation: &Simulation, flows: &[Flow], rounding: Rounding) -> String {
    let (unit, ps_per_unit) = match rounding {
        Rounding::Ns3 => ("ns", 1000),
        Rounding::Exact => ("ps", 1),
    };
    let outcomes = simulation.outcomes();
    let mut of_pair: HashMap<(u32, u32), u32> = HashMap::new();
    let mut lines = Vec::new();
    for (n, flow) in flows.iter().enumerate() {
        let number = of_pair.entry((flow.src, flow.dst)).or_insert(0);
        let (sport, dport) = flow_ports(*number);
        *number += 1;
        let Work::Send(size) = flow.work else {
            continue;
        };
        let (src, dst, size) = (address(flow.src), address(flow.dst), size.get());
        let start = flow.start.ticks() / ps_per_unit;
        let acked = outcomes[n].acked;
        let units = |span: Option<Span>| {
            span.map_or(String::new(), |s| (s.as_ps() / ps_per_unit).to_string())
        };
        let (fct, ideal) = (units(acked), units(simulation.ideal_fct(n)));
        let end = acked.map(|acked| flow.start + acked);
        let line = format!("{src:08x},{dst:08x},{sport},{dport},{size},{start},{fct},{ideal}\n");
        lines.push((end.is_none(), end, line));
    }
    lines.sort_by_key(|(unfinished, end, _)| (*unfinished, *end));
    let header =
        format!("src_ip,dst_ip,sport,dport,size_bytes,start_{unit},fct_{unit},standalone_{unit}\n");
    lines
        .into_iter()
        .fold(header, |text, (_, _, line)| text + &line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_no_advice_below_the_time_that_a_flow_needs_alone() {
        let patience = Span::from_s(2);
        assert_eq!(
            advice(patience, Some((0, Span::from_ms(1)))),
            "raise --patience"
        );
        assert_eq!(
            advice(patience, Some((3, Span::from_s(80)))),
            "flow 4 needs 80 s even alone, above --patience 2 s; make it smaller, or raise --patience above that"
        );
    }
}
