// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp advise`: what On-Ramp would do for the traffic of a record. Reads traces, flow logs and captures, and simulates
//! their busiest windows with and without On-Ramp; the advise crate plans and judges.
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use onramp_advise::{Assumptions, Question, DOUBTS, SCENARIO};
use onramp_batch::{available_memory, check_memory};
use onramp_logs::{Log, Logs};
use onramp_report::page;
use onramp_results::{write_whole, SummaryFile};
use onramp_units::{Bytes, Rate, Span};
use serde_json::json;

use crate::args::{OutArgs, ThreadArgs};
use crate::output::{self, World};
use crate::report::section;
use crate::sim::{watch::Watch, Simulations};

/// In the directory of an advice: the scenarios with their flow lists, the results of their runs, the page.
const REPLAY: &str = "replay";
const RUNS: &str = "runs";
const DOUBTED: &str = "doubts";
const PAGE: &str = "advice.html";

#[derive(clap::Args)]
pub struct Args {
    /// What has the traffic: files that `onramp agent run --trace` has written, Zeek's conn.log, NetFlow or IPFIX as CSV,
    /// or captures of tcpdump. Give those of all senders: one has no traffic of others
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The hosts of several traces share one kernel, so that their local clocks agree
    #[arg(long)]
    one_clock: bool,
    /// Line rate of the hosts [default: the traces', else 10 Gbit/s]
    #[arg(long)]
    rate: Option<Rate>,
    /// One-way delay of an idle path [default: the least of the traces or captures, else 10 us]
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
    /// Longest part of the record that one run replays
    #[arg(long, default_value = "200 ms")]
    window: Span,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    out: OutArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let Log { flows, remarks } = traffic(args)?;
    let assumed = Assumptions {
        rate: args.rate,
        delay: args.delay,
        buffer: args.buffer,
        cc: args.cc.clone(),
        qdisc: args.qdisc.clone(),
        window: args.window,
    };
    let question = Question::of(&flows, remarks, &assumed)?;
    let out = args.out.directory(Path::new("advice"));
    refuse_foreign(&out)?;
    let replay = out.join(REPLAY);
    write_files(&replay, &question.files())?;
    let summary = simulate(args, &replay.join(SCENARIO), &out.join(RUNS))?;
    let advice = question.judge(&summary)?;
    write_files(&replay, &[(DOUBTS.to_owned(), question.doubts(&advice))])?;
    let doubted = simulate(args, &replay.join(DOUBTS), &out.join(DOUBTED))?;
    let doubts = question.doubted(&doubted);
    print!("{}", question.text(&advice, &doubts));
    let html = page(&[
        question.section(&advice, &doubts, &out.display().to_string()),
        section(&out.join(RUNS).join("summary.json"))?,
    ]);
    let report = out.join(PAGE);
    write_whole(&report, html.as_bytes())?;
    let scenario = replay.join(SCENARIO);
    println!(
        "\nscenario: {}\npage: {}",
        scenario.display(),
        report.display()
    );
    Ok(())
}

/// The flows of all files, and what these cannot show.
fn traffic(args: &Args) -> Result<Log> {
    let mut logs = Logs::default();
    for path in &args.files {
        let shown = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
        logs.add(&shown, BufReader::new(file))?;
    }
    Ok(logs.finish(args.one_clock)?)
}

/// Refuses a directory with files that no advice has, before anything is written into it.
fn refuse_foreign(out: &Path) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(out) else {
        return Ok(());
    };
    let is_ours = |name: &str| [REPLAY, RUNS, DOUBTED, PAGE].contains(&name);
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

/// Writes scenarios and flow lists, so that `onramp sim run` repeats them with other settings.
fn write_files(directory: &Path, files: &[(String, String)]) -> Result<()> {
    let making = || format!("cannot make {}", directory.display());
    std::fs::create_dir_all(directory).with_context(making)?;
    for (name, text) in files {
        write_whole(&directory.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// All runs of the scenario.
fn simulate(args: &Args, file: &Path, out: &Path) -> Result<SummaryFile> {
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
    let summary = simulations.run().context("simulating the record")?;
    output::whole(&summary)?;
    Ok(summary)
}
