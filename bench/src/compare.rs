// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Outside the machines with several processors (several.rs): counts by processor and by lock, and the
//! tables about them in docs/cost.md. The numbers are in docs/cost-several.json.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

use anyhow::{bail, Context, Result};
use onramp_results::Estimate;
use serde::{Deserialize, Serialize};

use crate::{
    host::{data_path, World, LINES},
    profile,
    several::{Kind, Transferred, Who},
};

const FILE: &str = "cost-several.json";
const ALL: [(Kind, u8); 5] = [
    (Kind::Queues, 1),
    (Kind::Queues, 2),
    (Kind::Queues, 4),
    (Kind::Queues, 8),
    (Kind::Hosts, 4),
];
/// Flows that are measured with each number of processors: where a machine has few of them, more machines with other seeds
/// are, because flows differ in how often their receivers acknowledge.
const FLOWS: u64 = 16;
/// Functions that wait for a lock.
const WAITS: [&str; 3] = [
    "native_queued_spin_lock_slowpath",
    "resilient_queued_spin_lock_slowpath",
    "queued_write_lock_slowpath",
];
/// Functions that the table of locks names.
const LOCKERS: usize = 12;
/// Senders of `Kind::Hosts` are the processors below; the receiver is this one.
const RECEIVER: usize = 2;

const QUEUES: &str = include_str!("queues.md");
const HOSTS: &str = include_str!("hosts.md");

/// All set-ups of one machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    kind: Kind,
    processors: u8,
    seed: u64,
    data_path: String,
    counted: Vec<Counted>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Counted {
    transferred: Transferred,
    /// Instructions.
    by_processor: Vec<u64>,
    user: u64,
    /// Instructions and calls of the functions that wait for a lock.
    waits: BTreeMap<String, profile::Calls>,
    /// Locked instructions on memory that several processors lock, by function.
    shared: BTreeMap<String, u64>,
    /// On-Ramp's programs.
    programs: BTreeMap<String, profile::Calls>,
}

/// Measures all machines, or those named: pairs of kind and number of processors. Prints which functions of the kernel make
/// the difference to nobody.
pub fn measure(world: &World, names: &[String]) -> Result<()> {
    let directory = world.root.join("docs");
    let name =
        |(kind, processors): &(Kind, u8)| [kind_name(*kind).to_owned(), processors.to_string()];
    let chosen = |one: &&(Kind, u8)| names.is_empty() || names.chunks(2).any(|c| c == name(one));
    for (kind, processors) in ALL.iter().filter(chosen) {
        for seed in 1..=seeds(*kind, *processors) {
            let run = one(world, *kind, *processors, seed)
                .with_context(|| format!("{kind:?} {processors}, seed {seed}"))?;
            let mut runs = read(&directory)?;
            let place = |run: &Run| {
                (
                    ALL.iter().position(|a| *a == (run.kind, run.processors)),
                    run.seed,
                )
            };
            runs.retain(|r| place(r) != place(&run));
            runs.push(run);
            runs.sort_by_key(place);
            std::fs::write(directory.join(FILE), serde_json::to_vec_pretty(&runs)?)?;
        }
    }
    Ok(())
}

/// At least four: the interval of two is wide.
fn seeds(kind: Kind, processors: u8) -> u64 {
    let flows = kind.flows(processors.into()) as u64;
    FLOWS.div_ceil(flows).max(4)
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Queues => "queues",
        Kind::Hosts => "hosts",
    }
}

fn one(world: &World, kind: Kind, processors: u8, seed: u64) -> Result<Run> {
    let arguments = ["several", kind_name(kind), &processors.to_string()].map(str::to_owned);
    let out = world.boot(processors, seed, &arguments)?;
    let file = |name: &str| out.path().join(name);
    let all: Vec<Transferred> = serde_json::from_slice(&std::fs::read(file("counted.json"))?)?;
    let (mut counted, mut of_nobody) = (vec![], None);
    for (n, transferred) in all.into_iter().enumerate() {
        let (who, frames) = (transferred.who, transferred.frames);
        let (counts, symbols) = (file(&format!("counts.{n}")), file(&format!("symbols.{n}")));
        let profile = profile::read(&counts, &symbols)?;
        let of = |names: &dyn Fn(&str) -> bool| {
            let chosen = profile.iter().filter(|(name, _)| names(name));
            chosen.map(|(name, calls)| (name.clone(), *calls)).collect()
        };
        counted.push(Counted {
            transferred,
            by_processor: profile::by_processor(&counts)?,
            user: profile.get("user").map_or(0, |user| user.instructions),
            waits: of(&|name| WAITS.contains(&name)),
            shared: profile::shared(&file(&format!("counts.{n}.locks")), &symbols)?,
            programs: of(&|name| name.starts_with("bpf:")),
        });
        match &of_nobody {
            None => of_nobody = Some(profile),
            Some(before) => {
                let difference = profile::difference(before, &profile, frames as f64, LINES);
                print!("{who:?} against nobody:\n{difference}");
            }
        }
    }
    Ok(Run {
        kind,
        processors,
        seed,
        data_path: data_path(),
        counted,
    })
}

fn read(directory: &Path) -> Result<Vec<Run>> {
    match std::fs::read(directory.join(FILE)) {
        Ok(text) => serde_json::from_slice(&text).context(FILE),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(vec![]),
        Err(error) => Err(error).context(FILE),
    }
}

/// The sections of docs/cost.md about several processors.
pub fn markdown(directory: &Path) -> Result<String> {
    let runs = read(directory)?;
    let (queues, hosts): (Vec<Run>, Vec<Run>) =
        runs.into_iter().partition(|r| r.kind == Kind::Queues);
    let mut out = String::new();
    if !queues.is_empty() {
        write_queues(&mut out, &queues)?;
    }
    if !hosts.is_empty() {
        write_hosts(&mut out, &hosts)?;
    }
    Ok(out)
}

fn write_queues(out: &mut String, runs: &[Run]) -> Result<()> {
    write!(out, "\n{QUEUES}\n| queues and processors | who runs On-Ramp | instructions per frame | against nobody | ACKs per frame | calls of a wait per 1000 frames | instructions in waits per frame | locked instructions on shared memory per frame |\n|{}\n", "---|".repeat(8))?;
    for same in runs.chunk_by(|a, b| a.processors == b.processors) {
        for who in Who::of(Kind::Queues) {
            writeln!(
                out,
                "| {} | {} | {:.0} | {} | {:.2} | {:.2} | {:.2} | {:.2} |",
                same[0].processors,
                who_name(*who),
                mean(same, *who, instructions)?,
                against_nobody(same, *who, per_frame(instructions))?,
                mean(same, *who, acks)?,
                1000.0 * mean(same, *who, |c| c.waits.values().map(|w| w.calls).sum())?,
                mean(same, *who, |c| c
                    .waits
                    .values()
                    .map(|w| w.instructions)
                    .sum())?,
                mean(same, *who, |c| c.shared.values().sum())?,
            )?;
        }
    }
    write_older(out, runs)?;
    let most = runs.iter().map(|run| run.processors).max().unwrap_or(0);
    let most: Vec<Run> = runs
        .iter()
        .filter(|r| r.processors == most)
        .cloned()
        .collect();
    write_locks(out, &most)
}

/// Who locks memory that others lock too, where most processors are.
fn write_locks(out: &mut String, runs: &[Run]) -> Result<()> {
    let whos = Who::of(Kind::Queues);
    let mut rows: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for counted in runs.iter().flat_map(|run| &run.counted) {
        for name in counted.shared.keys() {
            let of = |who: &Who| mean(runs, *who, |c| c.shared.get(name).copied().unwrap_or(0));
            rows.insert(name, whos.iter().map(of).collect::<Result<_>>()?);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    let added = |values: &[f64]| {
        values
            .iter()
            .map(|v| (v - values[0]).abs())
            .fold(0.0, f64::max)
    };
    rows.sort_by(|a, b| added(&b.1).total_cmp(&added(&a.1)));
    let heads: Vec<&str> = whos.iter().map(|who| who_name(*who)).collect();
    write!(
        out,
        "\nThe functions whose locked instructions on shared memory differ most, per 1000 frames, with {} processors:\n\n| function | {} |\n|---|{}\n",
        runs[0].processors,
        heads.join(" | "),
        "---|".repeat(heads.len()),
    )?;
    for (name, values) in rows.into_iter().take(LOCKERS) {
        let cells: Vec<String> = values
            .iter()
            .map(|v| format!("{:.1}", 1000.0 * v))
            .collect();
        writeln!(out, "| `{name}` | {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn write_hosts(out: &mut String, runs: &[Run]) -> Result<()> {
    write!(out, "\n{HOSTS}\n| who runs On-Ramp | senders, per frame | against nobody | receiver, per frame | against nobody | ACKs per frame | frames per OR-ACK |\n|{}\n", "---|".repeat(7))?;
    let senders = |c: &Counted| c.by_processor[..RECEIVER].iter().sum();
    let receiver = |c: &Counted| c.by_processor[RECEIVER];
    for who in Who::of(Kind::Hosts) {
        let ends: [&dyn Fn(&Counted) -> u64; 2] = [&senders, &receiver];
        let mut cells = vec![who_name(*who).to_owned()];
        for end in ends {
            cells.push(format!("{:.0}", mean(runs, *who, end)?));
            cells.push(against_nobody(runs, *who, per_frame(end))?);
        }
        cells.push(format!("{:.2}", mean(runs, *who, acks)?));
        let oracks = mean(runs, *who, |c| c.transferred.oracks)?;
        cells.push(if oracks > 0.0 {
            format!("{:.1}", 1.0 / oracks)
        } else {
            "-".to_owned()
        });
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    write_older(out, runs)
}

/// Names the rows that are not of today's data path.
fn write_older(out: &mut String, runs: &[Run]) -> Result<()> {
    let now = data_path();
    let older = runs.iter().filter(|run| run.data_path != now);
    let processors: BTreeSet<u8> = older.map(|run| run.processors).collect();
    if !processors.is_empty() {
        let processors: Vec<String> = processors.iter().map(u8::to_string).collect();
        let processors = processors.join(", ");
        writeln!(out, "\nRows of machines with {processors} processors were measured with an earlier data path.")?;
    }
    Ok(())
}

fn who_name(who: Who) -> &'static str {
    match who {
        Who::Nobody => "nobody (fq)",
        Who::Senders => "senders",
        Who::All => "all",
        Who::AllSparse => "all, OR-ACKs ten times sparser",
    }
}

/// The change in per cent with its 95 % interval over the seeds.
fn against_nobody(runs: &[Run], who: Who, of: impl Fn(&Counted) -> f64) -> Result<String> {
    if who == Who::Nobody {
        return Ok("-".to_owned());
    }
    let now = values(runs, who, &of)?.into_iter();
    let pairs: Vec<(f64, f64)> = now.zip(values(runs, Who::Nobody, &of)?).collect();
    let ratio = Estimate::of_ratios(&pairs).context("no seed has both")?;
    let change = ratio.map(|ratio| 100.0 * (ratio - 1.0));
    let [low, high] = change.interval.context("one seed has no interval")?;
    Ok(format!("{:+.1} % ({low:+.1} to {high:+.1})", change.value))
}

fn acks(counted: &Counted) -> u64 {
    counted.transferred.acks
}

fn instructions(counted: &Counted) -> u64 {
    counted.by_processor.iter().sum()
}

fn per_frame(of: impl Fn(&Counted) -> u64) -> impl Fn(&Counted) -> f64 {
    move |counted| of(counted) as f64 / counted.transferred.frames as f64
}

/// A run each.
fn values(runs: &[Run], who: Who, of: impl Fn(&Counted) -> f64) -> Result<Vec<f64>> {
    let counted = runs.iter().flat_map(|run| &run.counted);
    let values: Vec<f64> = counted
        .filter(|c| c.transferred.who == who)
        .map(of)
        .collect();
    if values.is_empty() {
        bail!("{FILE} has no run of {who:?}");
    }
    Ok(values)
}

/// Per frame.
fn mean(runs: &[Run], who: Who, of: impl Fn(&Counted) -> u64) -> Result<f64> {
    let values = values(runs, who, per_frame(of))?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}
