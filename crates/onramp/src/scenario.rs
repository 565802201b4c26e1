//! `onramp scenario`: reads scenario files; what they mean is the scenario crate's affair.
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use clap::Subcommand;
use onramp_scenario::Scenario;

#[derive(Subcommand)]
pub enum Command {
    /// Check files: every error with line, key, value and bound
    #[command(after_help = "Example: onramp scenario validate scenarios/*.toml")]
    Validate {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print every key with unit, default, bounds and meaning
    #[command(after_help = "Example: onramp scenario explain | less")]
    Explain {
        /// As docs/scenario.md has it
        #[arg(long)]
        markdown: bool,
    },
}

pub fn run(command: &Command) -> Result<()> {
    match command {
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
            Ok(scenario) => {
                let (runs, title) = (scenario.runs().len(), scenario.title());
                println!("{}: {runs} runs: {title}", file.display());
            }
            Err(error) => {
                eprintln!("{error:#}");
                wrong += 1;
            }
        }
    }
    if wrong > 0 {
        bail!("{wrong} of {} files are not valid", files.len());
    }
    Ok(())
}

/// Reads and checks one file, with `--set` arguments.
pub fn read(file: &Path, set: &[(String, String)]) -> Result<Scenario> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the scenario {}", file.display()))?;
    let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    // What it names lies beside it.
    let beside = |path: &str| std::fs::read(file.parent().unwrap_or(Path::new("")).join(path));
    let name = file.display().to_string();
    Ok(Scenario::parse_files(&text, &name, &set, &beside)?)
}
