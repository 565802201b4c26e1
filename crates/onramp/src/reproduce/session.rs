// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Makes figures: runs what is missing, writes figure.json, and prints it.
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use onramp_reproduce::{terminal, Planned};
use onramp_results::write_json;
use onramp_runs::{Existing, Interrupted};

use super::worlds::{Label, Runner, Worlds};
use crate::args::Machines;
use crate::output::VERSION;

/// Whether figure.json was written: all runs are made, or the command was interrupted.
pub fn has_results(made: &Result<()>) -> bool {
    let error = made.as_ref().err();
    error.is_none_or(|error| error.is::<Interrupted>())
}

/// What all figures of a command share.
pub struct Session<'a> {
    pub threads: usize,
    /// What to do with existing results.
    pub existing: Existing,
    /// Whether figure.json is printed, not the table.
    pub json: bool,
    pub machines: &'a Machines,
    pub cancel: &'a AtomicBool,
}

impl Session<'_> {
    /// Makes the missing runs of a figure in `out`, writes figure.json there, and prints it.
    pub fn figure(&self, figure: &Planned, out: &Path, label: Label<'_>) -> Result<()> {
        std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        let runner = Runner {
            figure,
            out,
            threads: self.threads,
            existing: self.existing,
            machines: self.machines,
            cancel: self.cancel,
        };
        let Worlds {
            worlds,
            interrupted,
            made_by,
        } = runner.worlds(label)?;
        let made = figure.figure(&worlds, VERSION, interrupted.is_some(), made_by)?;
        write_json(&out.join("figure.json"), &made)?;
        match self.json {
            true => println!("{}", serde_json::to_string_pretty(&made)?),
            false => print!("{}", terminal(&made)),
        }
        interrupted.map_or(Ok(()), |interrupted| Err(interrupted.into()))
    }
}
