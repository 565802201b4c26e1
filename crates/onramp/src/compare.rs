// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp compare`: cases beside a baseline, with what is beyond noise.
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use onramp_results::{compare, comparison_table, RunResult};

use crate::args::key_value;
use crate::report;

#[derive(clap::Args)]
pub struct Args {
    /// Directories of onramp sim run or onramp rack run, each with its summary.json
    #[arg(required = true, value_name = "DIR")]
    results: Vec<PathBuf>,
    /// Parameter of the runs to compare with, e.g. case=fq; repeat it for more. With several directories,
    /// dir=DIR is one of them, as it is given
    #[arg(long, required = true, value_name = "KEY=VALUE", value_parser = key_value)]
    baseline: Vec<(String, String)>,
    /// Metric, e.g. incast.rct_us.p99; repeat it for more [default: those of the table]
    #[arg(long = "metric", value_name = "METRIC")]
    metrics: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let mut runs = Vec::new();
    for (index, directory) in args.results.iter().enumerate() {
        if args.results[..index].contains(directory) {
            bail!("{} is given twice", directory.display());
        }
        runs.extend(runs_of(directory, args.results.len() > 1)?);
    }
    let compared = compare(&runs, &args.baseline, &args.metrics)?;
    print!("{}", comparison_table(&compared, &args.baseline));
    println!(
        "Differences of runs with the same seed: mean ± half of its 95 % confidence interval, and in percent with the interval.\n\
         Beyond noise: one of the two intervals excludes no change."
    );
    Ok(())
}

/// The runs of a directory. With `named` they have the parameter `dir`.
fn runs_of(directory: &Path, named: bool) -> Result<Vec<RunResult>> {
    let summary = report::summary(&directory.join("summary.json"))
        .with_context(|| format!("{} has no results to compare", directory.display()))?;
    let mut runs = summary.runs;
    if named {
        for run in &mut runs {
            run.params
                .insert("dir".to_owned(), directory.display().to_string());
        }
    }
    Ok(runs)
}
