// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp scenario`: reads and begins scenario files; the scenario crate checks them.
mod new;

pub use new::Template;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use clap::Subcommand;
use onramp_reproduce::Digests;
use onramp_results::planned_remarks;
use onramp_runs::count;
use onramp_scenario::Scenario;
use onramp_units::Rate;

#[derive(Subcommand)]
pub enum Command {
    /// Write a commented scenario file to start from, which runs in seconds
    #[command(after_help = new::EXAMPLES)]
    New(new::Args),
    /// Check files; prints every error with line, key, value and bound
    #[command(after_help = "Example: onramp scenario validate scenarios/*.toml")]
    Validate {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print every key with its unit, bounds, default and meaning
    #[command(after_help = "Example: onramp scenario explain | less")]
    Explain {
        /// Print it as docs/scenario.md
        #[arg(long)]
        markdown: bool,
    },
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::New(args) => new::run(args),
        Command::Validate { files } => validate(files),
        Command::Explain { markdown } => {
            let text = if *markdown {
                onramp_scenario::explain_markdown()
            } else {
                onramp_scenario::explain()
            };
            print!("{text}");
            Ok(())
        }
    }
}

fn validate(files: &[PathBuf]) -> Result<()> {
    let mut wrong = 0;
    for file in files {
        match read(file, &[]) {
            Ok((scenario, _)) => {
                let (runs, title) = (count(scenario.runs().len(), "run"), scenario.title());
                println!("{}: {runs}: {title}", file.display());
                for line in thresholds(&scenario) {
                    println!("  {line}");
                }
                for remark in planned_remarks(scenario.runs()) {
                    println!("  note: {remark}");
                }
            }
            Err(error) => {
                eprintln!("{error:#}");
                wrong += 1;
            }
        }
    }
    if wrong > 0 {
        bail!("{wrong} of {} invalid", count(files.len(), "file"));
    }
    Ok(())
}

/// What the ports of each rate do, where a threshold of marks applies to ports of several rates.
fn thresholds(scenario: &Scenario) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for network in scenario.runs().iter().map(|run| &run.network) {
        let rates = network.rates();
        let marks = |rate: &Rate| {
            let ecn = network.ecn_at(*rate)?;
            Some(format!("above {} at {rate}", ecn.threshold))
        };
        let marks: Vec<String> = rates.iter().filter_map(marks).collect();
        let line = format!("ports mark {}", marks.join(", "));
        if marks.len() > 1 && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A scenario, and digests of the files that it names.
pub type Read = (Scenario, Digests);

/// Reads and checks one file, with `--set` arguments.
pub fn read(file: &Path, set: &[(String, String)]) -> Result<Read> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the scenario {}", file.display()))?;
    let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let files = RefCell::new(Digests::new());
    // Paths in a scenario are relative to its directory.
    let beside = |path: &str| {
        let bytes = std::fs::read(file.parent().unwrap_or(Path::new("")).join(path))?;
        let digest = onramp_runs::digest(&bytes);
        files.borrow_mut().insert(path.to_owned(), digest);
        Ok(bytes)
    };
    let name = file.display().to_string();
    let scenario = Scenario::parse_files(&text, &name, &set, &beside)?;
    Ok((scenario, files.into_inner()))
}
