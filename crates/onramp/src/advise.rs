// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp advise`: what On-Ramp would do for the traffic of a trace. Replays the trace's busiest windows with and without
//! On-Ramp in the simulator, chooses a setting in half of them, and judges it in the other half.
mod judge;
mod plan;

use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use onramp_batch::{available_memory, check_memory};
use onramp_report::{page, Section, Table};
use onramp_results::{write_whole, SummaryFile};
use onramp_runs::count;
use onramp_trace::{merge, read, Merged, Trace};
use onramp_units::{Bytes, Rate, Span};
use serde_json::json;

use crate::args::{OutArgs, ThreadArgs};
use crate::output::{self, World};
use crate::report::section;
use crate::sim::{watch::Watch, Simulations};
use judge::{judge, Advice};
use plan::{Plan, Window};

/// Rate of the hosts' lines if no trace names one.
const USUAL_RATE: Rate = match Rate::from_bits_per_s(10_000_000_000) {
    Some(rate) => rate,
    None => panic!("it is above 0"),
};
const USUAL_DELAY: Span = Span::from_us(10);

/// In the directory of an advice: the scenario with its flow lists, the results of its runs, the page.
const REPLAY: &str = "replay";
const RUNS: &str = "runs";
const PAGE: &str = "advice.html";

#[derive(clap::Args)]
pub struct Args {
    /// Files that `onramp agent run --trace` has written. Give those of all senders: one trace has no traffic of others
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// The hosts of several traces share one kernel, so that their local clocks agree
    #[arg(long)]
    one_clock: bool,
    /// Line rate of the hosts [default: the traces']
    #[arg(long)]
    rate: Option<Rate>,
    /// One-way delay of an idle path [default: the traces' least]
    #[arg(long)]
    delay: Option<Span>,
    /// Buffer of the switch
    #[arg(long, default_value = "1 MB")]
    buffer: Bytes,
    /// Congestion control of the hosts
    #[arg(long, default_value = "cubic")]
    cc: String,
    /// Queueing discipline that the hosts have without On-Ramp
    #[arg(long, value_parser = ["fq", "fq_codel"], default_value = "fq")]
    qdisc: String,
    /// Longest part of the trace that one run replays
    #[arg(long, default_value = "200 ms")]
    window: Span,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    out: OutArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let traces: Vec<Trace> = args
        .traces
        .iter()
        .map(|path| trace(path))
        .collect::<Result<_>>()?;
    let merged = merge(&traces);
    if merged.flows.is_empty() {
        bail!("the traces have no flows; let the daemon observe for longer");
    }
    if !merged.one_time && !args.one_clock {
        bail!(
            "several traces, and clock.source of a daemon is local, so their times do not agree; give one trace, record \
             with clock.source = \"huygens\", or add --one-clock if the hosts share one kernel"
        );
    }
    let windows = plan::windows(&merged, args.window)?;
    let out = args.out.directory(Path::new("advice"));
    let plan = plan_of(args, &merged);
    refuse_foreign(&out)?;
    let file = write_inputs(&out.join(REPLAY), &plan, &windows)?;
    let (summary, directory) = simulate(args, &file, &out.join(RUNS))?;
    output::whole(&summary)?;
    let advice = judge(&summary)?;
    print!("{}", advice.text());
    let limits = limits(args, &traces, &merged, windows.len());
    limits.iter().for_each(|line| println!("- {line}"));
    let html = page(&[
        of_advice(&advice, &limits, &out),
        section(&directory.path().join("summary.json"))?,
    ]);
    let report = out.join(PAGE);
    write_whole(&report, html.as_bytes())?;
    drop(directory);
    println!("\nscenario: {}\npage: {}", file.display(), report.display());
    Ok(())
}

fn trace(path: &Path) -> Result<Trace> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the trace {shown}"))?;
    read(&text).with_context(|| format!("{shown}"))
}

fn plan_of(args: &Args, merged: &Merged) -> Plan {
    Plan {
        hosts: merged.hosts.len(),
        rate: args.rate.or(merged.line_rate).unwrap_or(USUAL_RATE),
        delay: args.delay.or(merged.base_delay).unwrap_or(USUAL_DELAY),
        buffer: args.buffer,
        cc: args.cc.clone(),
        qdisc: args.qdisc.clone(),
    }
}

/// Refuses a directory with files that no advice has, before anything is written into it.
fn refuse_foreign(out: &Path) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(out) else {
        return Ok(());
    };
    let is_ours = |name: &str| [REPLAY, RUNS, PAGE].contains(&name);
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names = names.map(|name| name.to_string_lossy().into_owned());
    match names.find(|name| !is_ours(name)) {
        Some(name) => bail!(
            "{} has {name}, which is not of an advice; set another --out",
            out.display()
        ),
        None => Ok(()),
    }
}

/// Writes the flow lists and the scenario into a directory, so that `onramp sim run` repeats it with other settings.
fn write_inputs(inputs: &Path, plan: &Plan, windows: &[Window]) -> Result<PathBuf> {
    let making = || format!("cannot make {}", inputs.display());
    std::fs::create_dir_all(inputs).with_context(making)?;
    for (number, window) in windows.iter().enumerate() {
        let name = inputs.join(plan::list_name(number));
        write_whole(&name, window.csv().as_bytes())?;
    }
    let file = inputs.join("scenario.toml");
    write_whole(&file, plan.scenario(windows).as_bytes())?;
    Ok(file)
}

fn simulate(
    args: &Args,
    file: &Path,
    out: &Path,
) -> Result<(SummaryFile, onramp_runs::OutputDirectory)> {
    let (scenario, files) = crate::scenario::read(file, &[])?;
    let threads = args.threads.number();
    check_memory(&scenario, threads, available_memory())?;
    let watch = Watch::default();
    let plan = output::plan(World::Sim, &scenario, &files, json!(watch));
    let directory = output::open(out, &plan, &scenario, args.out.existing())?;
    let simulations = Simulations {
        scenario: &scenario,
        watch: &watch,
        out: directory.path(),
        threads,
        cancel: onramp_runs::cancelled_by_signals(),
        label: &|_| String::new(),
    };
    let summary = simulations.run().context("simulating the trace")?;
    Ok((summary, directory))
}

/// What the advice rests on, and what a trace cannot show.
fn limits(args: &Args, traces: &[Trace], merged: &Merged, windows: usize) -> Vec<String> {
    let from = |given: bool, traced: bool| match (given, traced) {
        (true, _) => "given",
        (false, true) => "of the traces",
        (false, false) => "assumed, because no trace has it",
    };
    let plan = plan_of(args, merged);
    let mut lines = vec![
        format!(
            "{} of {} to {}; the busiest {} replayed, so quiet times gain less",
            count(merged.flows.len(), "flow"),
            count(merged.senders, "sender"),
            count(merged.hosts.len(), "host"),
            match windows {
                1 => "window was".to_owned(),
                many => format!("{many} windows were"),
            }
        ),
        format!(
            "line rate {} ({})",
            plan.rate,
            from(args.rate.is_some(), merged.line_rate.is_some())
        ),
        format!(
            "idle delay {} ({})",
            plan.delay,
            from(args.delay.is_some(), merged.base_delay.is_some())
        ),
        format!(
            "assumed: one switch with a buffer of {}, {}, all hosts with On-Ramp",
            args.buffer, args.cc
        ),
    ];
    if merged.senders < merged.hosts.len() {
        let without = merged.hosts.len() - merged.senders;
        lines.push(format!(
            "without a trace, or sent nothing: {}; what they sent is missing, and an incast with them too",
            count(without, "host")
        ));
    }
    if traces.iter().any(|trace| !trace.head.observes) {
        lines.push(
            "a daemon held flows while it recorded, so their starts are later than without On-Ramp"
                .to_owned(),
        );
    }
    lines.push("a trace shows neither the fabric nor traffic of hosts without a trace".to_owned());
    lines
}

fn of_advice(advice: &Advice, limits: &[String], out: &Path) -> Section {
    let column = |name: &str| (String::new(), name.to_owned());
    let row = |line: &String| vec![line.clone()];
    Section {
        name: "advice".to_owned(),
        title: advice.verdict(),
        asked: "What would On-Ramp do for the traffic of these traces? A setting is chosen in half of the windows and \
                judged in the other half."
            .to_owned(),
        facts: vec![("Directory", out.display().to_string())],
        tables: vec![
            Table {
                title: "Settings, against no On-Ramp".to_owned(),
                folded: false,
                columns: judge::COLUMNS.map(column).to_vec(),
                rows: advice.rows(),
            },
            Table {
                title: "What this rests on".to_owned(),
                folded: false,
                columns: vec![column("limit")],
                rows: limits.iter().map(row).collect(),
            },
        ],
        ..Section::default()
    }
}
