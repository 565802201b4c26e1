// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp agent`: starts the daemon, checks its configuration, and explains its keys.
use std::path::{Path, PathBuf};

use anyhow::{bail, Result};
use clap::Subcommand;
use onramp_agent::config::{
    explain, explain_markdown, AgentOptions, Configuration, Daemon, Given, DEFAULT_FILE,
};

#[derive(Subcommand)]
pub enum Command {
    /// Attach to devices and hold their flows until SIGINT or SIGTERM
    #[command(after_help = "Examples: onramp agent run\n          \
                      onramp agent run --dev eth0 --key-file /etc/onramp/keys")]
    Run(Box<AgentOptions>),
    /// Check configuration files; prints every mistake with line, key, value, bound and fix
    #[command(after_help = "Example: onramp agent validate deploy/onramp.toml")]
    Validate {
        /// [default: /etc/onramp/onramp.toml]
        files: Vec<PathBuf>,
    },
    /// Print every key of the configuration with its unit, bounds, default and meaning
    #[command(after_help = "Example: onramp agent explain | less")]
    Explain {
        /// Print it as docs/configuration.md
        #[arg(long)]
        markdown: bool,
    },
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Run(options) => onramp_agent::run(options),
        Command::Validate { files } if files.is_empty() => validate(&[DEFAULT_FILE.into()]),
        Command::Validate { files } => validate(files),
        Command::Explain { markdown } => {
            let text = if *markdown {
                explain_markdown()
            } else {
                explain()
            };
            print!("{text}");
            Ok(())
        }
    }
}

fn validate(files: &[PathBuf]) -> Result<()> {
    let check = |file: &Path| match Configuration::of_file(file, &Given::default(), Daemon::Agent) {
        Ok(_) => {
            println!("{}: valid", file.display());
            true
        }
        Err(errors) => {
            eprintln!("{errors}");
            false
        }
    };
    let wrong = files.iter().filter(|file| !check(file)).count();
    if wrong > 0 {
        bail!("{wrong} of {} files invalid", files.len());
    }
    Ok(())
}
