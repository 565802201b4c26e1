// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp sim`: runs scenarios in the simulator. Reads files and prints tables; the sim crate simulates.
mod bench;
mod clocks;
mod replay;
mod simulate;
pub mod watch;

use anyhow::{Context, Result};
use clap::Subcommand;
use onramp_batch::{available_memory, check_memory};
use onramp_results::SummaryFile;
use serde_json::json;
use watch::Watch;

pub use simulate::Simulations;

use crate::args::{LinesArgs, OutArgs, ScenarioArgs, ThreadArgs};
use crate::output::{self, World};

#[derive(Subcommand)]
pub enum Command {
    /// Simulate a scenario; prints the same table as onramp rack run
    #[command(after_help = "Example: onramp sim run scenarios/fabric.toml --seeds 1-5")]
    Run(RunArgs),
    /// Simulate a list of flows on a network, both in the HPCC simulator's file formats; prints CSV
    #[command(
        after_help = "Example: onramp sim replay star4.topo long2short1.flow --cc timely --rounding ns3"
    )]
    Replay(replay::Args),
    /// Measure packet-hops per second on the papers' fabric: 320 hosts, web search at 60 %
    #[command(after_help = "Example: onramp sim bench --cc dcqcn")]
    Bench(bench::Args),
}

#[derive(clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    out: OutArgs,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    lines: LinesArgs,
    /// Print summary.json instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Run(args) => run_scenario(args, |args, summary| args.lines.table(summary)),
        Command::Replay(args) => replay::run(&args),
        Command::Bench(args) => bench::run(&args),
    }
}

/// `onramp clock simulate`: simulates Huygens with the clocks of a scenario.
pub fn simulate_clocks(mut args: RunArgs) -> Result<()> {
    args.scenario.set("clock.sync", "huygens");
    let (scenario, _) = args.scenario.read()?;
    clocks::check(&scenario)
        .with_context(|| format!("{}: nothing to show", args.scenario.file().display()))?;
    run_scenario(args, |_, summary| clocks::table(summary))
}

fn run_scenario(args: RunArgs, table: fn(&RunArgs, &SummaryFile) -> String) -> Result<()> {
    let file = args.scenario.file();
    let (scenario, files) = args.scenario.read()?;
    args.watch.check(&scenario)?;
    let threads = args.threads.number();
    check_memory(&scenario, threads, available_memory())?;
    let out = args.out.directory(file);
    let plan = output::plan(World::Sim, &scenario, &files, json!(args.watch));
    // Before the line that says which runs are kept: a script may wait for it, and then interrupt.
    let cancel = onramp_runs::cancelled_by_signals();
    let directory = output::open(&out, &plan, &scenario, args.out.existing())?;
    let simulations = Simulations {
        scenario: &scenario,
        watch: &args.watch,
        out: directory.path(),
        threads,
        cancel,
        label: &|_| String::new(),
    };
    let summary = simulations.run();
    let summary = summary.with_context(|| format!("simulating {}", file.display()))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        print!("{}", table(&args, &summary));
    }
    eprintln!("results are in {}", out.display());
    output::whole(&summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_scenario::Scenario;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicBool;

    const SWEEP: &str = r#"title = "t"
duration = "200 us"
[network]
topology = { kind = "leaf_spine", hosts = 8, leaves = 2, spines = 2 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
[[traffic]]
kind = "poisson"
to = "all"
workload = "websearch"
load = "50 %"
[sweep]
"host.cc" = ["hpcc", "dcqcn", "timely", "dctcp"]
seed = [1, 2]
"#;

    fn simulate_in(
        scenario: &Scenario,
        out: &Path,
        threads: usize,
        cancelled: bool,
    ) -> Result<SummaryFile> {
        std::fs::create_dir_all(out).unwrap();
        let simulations = Simulations {
            scenario,
            watch: &Watch::default(),
            out,
            threads,
            cancel: &AtomicBool::new(cancelled),
            label: &|_| String::new(),
        };
        simulations.run()
    }

    fn directory(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("onramp-sim-{name}-{}", std::process::id()))
    }

    #[test]
    fn any_number_of_threads_writes_the_same_bytes() {
        let scenario = Scenario::parse(SWEEP, "t").unwrap();
        let files = |threads: usize| {
            let out = directory(&threads.to_string());
            simulate_in(&scenario, &out, threads, false).unwrap();
            let names = ["summary.json", "flows.parquet", "series.parquet"];
            let bytes = names.map(|name| std::fs::read(out.join(name)).unwrap());
            std::fs::remove_dir_all(&out).unwrap();
            bytes
        };
        assert!(files(1) == files(3));
    }

    #[test]
    fn what_is_ended_early_is_marked_partial() {
        let scenario = Scenario::parse(SWEEP, "t").unwrap();
        let out = directory("early");
        let summary = simulate_in(&scenario, &out, 1, true).unwrap();
        std::fs::remove_dir_all(&out).unwrap();
        assert!(summary.partial && summary.runs.is_empty());
    }
}
