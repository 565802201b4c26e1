// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The rack without the `onramp` command, for developing it. Stock qdiscs only: as `onramp` it is
//! no daemon.
//!
//! `rack FILE OUT [KEY=VALUE]...` runs a scenario as `onramp rack run` does.
//! `rack rack guest FILE --out DIR --index K [--measure-cpu]` is what a guest runs.
//! With `MEASURE_CPU` in the environment CPU time is measured.

use anyhow::{bail, Context};
use onramp_rack::native::Setup;
use onramp_rack::{guest, run, Backend, Options};
use onramp_runs::cancelled_by_signals;
use onramp_scenario::Scenario;
use std::path::{Path, PathBuf};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["rack", "guest", file, "--out", out, "--index", index, ref rest @ ..] => {
            let exe = std::env::current_exe()?;
            let setup = Setup {
                directory: Path::new(out),
                agent: &exe,
                measure_cpu: rest.contains(&"--measure-cpu"),
                cancel: cancelled_by_signals(),
            };
            Ok(guest(Path::new(file), index.parse()?, setup)?)
        }
        [file, out, ref set @ ..] => host(file, out, set),
        _ => bail!("usage: rack FILE OUT [KEY=VALUE]..."),
    }
}

fn host(file: &str, out: &str, set: &[&str]) -> anyhow::Result<()> {
    let set: Vec<(&str, &str)> = set.iter().filter_map(|pair| pair.split_once('=')).collect();
    let text = std::fs::read_to_string(file).with_context(|| file.to_owned())?;
    let scenario = Scenario::parse_with(&text, file, &set)?;
    let options = Options {
        place: Backend::Auto,
        kernel: None,
        cache: PathBuf::from(".cache"),
        jobs: 2,
        out: PathBuf::from(out),
        exe: std::env::var_os("EXE").map_or_else(std::env::current_exe, |exe| Ok(exe.into()))?,
        measure_cpu: std::env::var_os("MEASURE_CPU").is_some(),
        cancel: cancelled_by_signals(),
    };
    let summary = run(&scenario, &options, &mut |status| eprintln!("{status:?}"))?;
    print!(
        "{}",
        onramp_results::table(&summary, onramp_results::Lines::Cases)
    );
    Ok(())
}
