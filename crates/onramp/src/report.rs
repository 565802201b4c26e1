// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp report`: reads results, makes a page of them (report crate) and writes it.
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use onramp_clock::status::Status;
use onramp_report::{page, OneWayDelay, Samples, Section};
use onramp_reproduce::natural;
use onramp_results::figure::{self, Figure};
use onramp_results::{
    measured_series, read_json, read_versioned, request_times, write_whole, SummaryFile, RUNS,
    SCHEMA,
};

/// Files of results with the commands that write them. A directory counts by the first that it has.
const KINDS: [(&str, &str); 3] = [
    ("figure.json", "onramp reproduce"),
    ("summary.json", "onramp sim run or onramp rack run"),
    ("matrix.json", "onramp clock matrix --json"),
];

/// `onramp reproduce` writes into reproduce/SCALE/ID.
const DEPTH: usize = 2;

#[derive(clap::Args)]
pub struct Args {
    /// Directories with figure.json, summary.json or matrix.json, or parents of such directories; or the
    /// output of `onramp clock matrix --json`
    #[arg(required = true, value_name = "DIR")]
    results: Vec<PathBuf>,
    /// File for the page. An existing file is replaced when the new page is complete
    #[arg(long, default_value = "report.html")]
    out: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let mut sections = Vec::new();
    for given in &args.results {
        for file in files(given)? {
            sections.push(section(&file)?);
        }
    }
    let html = page(&sections);
    write_whole(&args.out, html.as_bytes()).context("cannot write the report")?;
    let sections = match sections.len() {
        1 => "1 section".to_owned(),
        count => format!("{count} sections"),
    };
    let size = html.len() as f64 / 1e6;
    println!("wrote {}: {sections}, {size:.1} MB", args.out.display());
    Ok(())
}

/// Files of results at `given`: the file itself, or those in the directory or below it.
fn files(given: &Path) -> Result<Vec<PathBuf>> {
    let shown = given.display();
    let kind = std::fs::metadata(given).with_context(|| format!("cannot read {shown}"))?;
    if kind.is_file() {
        return Ok(vec![given.to_owned()]);
    }
    let mut found = below(given, DEPTH).with_context(|| format!("cannot read {shown}"))?;
    found.sort_by_key(|path| natural(&path.display().to_string()));
    if !found.is_empty() {
        return Ok(found);
    }
    if given.join(RUNS).is_dir() {
        bail!("{shown} has runs but no summary.json, because the command was killed; repeat the command");
    }
    bail!(
        "{shown} and the directories below it have no results, expected one of {}",
        known()
    );
}

/// The files of results, and the commands that write them.
fn known() -> String {
    KINDS
        .map(|(file, from)| format!("{file} ({from})"))
        .join(", ")
}

/// The results in `directory`, or else in the directories up to `depth` levels below it.
fn below(directory: &Path, depth: usize) -> std::io::Result<Vec<PathBuf>> {
    if let Some(file) = file_of(directory) {
        return Ok(vec![file]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if depth > 0 && path.is_dir() {
            found.extend(below(&path, depth - 1)?);
        }
    }
    Ok(found)
}

fn file_of(directory: &Path) -> Option<PathBuf> {
    let file = |(name, _): &(&str, &str)| directory.join(name);
    KINDS.iter().map(file).find(|file| file.is_file())
}

pub fn section(file: &Path) -> Result<Section> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let shown = directory.display().to_string();
    match file.file_name().and_then(|name| name.to_str()) {
        Some("figure.json") => {
            let figure: Figure = read_versioned(file, figure::SCHEMA, "run onramp reproduce")?;
            let now = onramp_reproduce::made_by(&figure.id);
            Section::of_figure(figure, &shown, &now).with_context(|| file.display().to_string())
        }
        Some("summary.json") => {
            let summary = summary(file)?;
            let samples = Samples {
                requests: request_times(directory)?,
                queue: measured_series(directory, "queue_us")?,
                owd: measured_series(directory, "owd_us")?,
            };
            Ok(Section::of_runs(
                summary,
                &samples,
                &name(directory),
                &shown,
            ))
        }
        _ => delays(file),
    }
}

/// Reads a `summary.json` of this version.
pub fn summary(file: &Path) -> Result<SummaryFile> {
    Ok(read_versioned(file, SCHEMA, "run the scenario")?)
}

fn delays(file: &Path) -> Result<Section> {
    let status: Status = read_json(file)
        .with_context(|| format!("not a file of results, expected one of {}", known()))?;
    if status.ways.is_empty() {
        let shown = file.display();
        bail!("{shown} has no one-way delays: wait for two windows of 2 s, then run onramp clock matrix again");
    }
    // A port that is the same for all hosts carries no information.
    let port = status.membership.own.port();
    let has_port = |way: &onramp_clock::status::OneWayDelays| {
        [way.from, way.to].map(|host| host.port()) == [port; 2]
    };
    let name_of: fn(SocketAddr) -> String = match status.ways.iter().all(has_port) {
        true => |host| host.ip().to_string(),
        false => |host| host.to_string(),
    };
    let way = |way: &onramp_clock::status::OneWayDelays| OneWayDelay {
        from: name_of(way.from),
        to: name_of(way.to),
        min_ns: way.min_ns,
        now_ns: way.now_ns,
    };
    let ways: Vec<OneWayDelay> = status.ways.iter().map(way).collect();
    let sigma = status
        .clock
        .map(|clock| format!("{:.1} us", clock.sigma_ns as f64 / 1e3));
    let facts = vec![
        ("Reported by", status.membership.own.to_string()),
        (
            "Coordinator",
            status
                .membership
                .coordinator
                .map_or("none".to_owned(), |c| c.to_string()),
        ),
        ("Clock", status.state.clone()),
        ("Sigma", sigma.unwrap_or_else(|| "no fleet time".into())),
        ("Stamps", status.source.clone()),
        ("onramp", status.version.clone()),
        ("File", file.display().to_string()),
    ];
    let name = name(&file.with_extension(""));
    Ok(Section::of_delays(&name, facts, &ways))
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
