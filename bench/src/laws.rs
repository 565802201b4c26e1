// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What each law costs: transfers in a machine with one processor, with On-Ramp at both ends. Inside the machine (`guest`)
//! and outside (`measure`, `markdown`). The numbers are in docs/cost-laws.json.

use std::{fmt::Write as _, path::Path, sync::Mutex};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::{
    bed::{Agent, Bed, Setup, UNPACED},
    guest::{on_prepared, transfer},
    host::{data_path, read_runs, transfers, World, SEEDS},
    profile::{self, Calls, Profile},
    transfer::Moved,
};

const FILE: &str = "cost-laws.json";
const TEXT: &str = include_str!("laws.md");
const LAWS: [&str; 5] = ["off", "strawman", "final", "gate", "level"];
/// IPv4, GSO, GRO off.
const BED: usize = 2;

/// A transfer under a law.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    law: String,
    seed: u64,
    data_path: String,
    frames: u64,
    /// Instructions of the whole machine.
    executed: u64,
    /// The sender's program that takes OR-ACKs.
    orack_ingress: Calls,
    /// The receiver's, which make them.
    orack_egress: Calls,
    make_orack: Calls,
    /// The sender's qdisc.
    edge_dequeue: Calls,
    step: Calls,
}

/// `guest laws`.
pub fn guest() -> Result<()> {
    std::fs::write("/proc/sys/net/core/bpf_jit_kallsyms", "1")?;
    let mut all = vec![];
    for (n, law) in LAWS.iter().enumerate() {
        let agents = Mutex::new(vec![]);
        let all_agents = || agents.lock().expect("no thread panics");
        let start = || {
            for host in ["a", "b"] {
                all_agents().push(Agent::start(host, law, UNPACED)?);
            }
            Ok(())
        };
        let moved = on_prepared(Bed::ALL[BED], Setup::Fq, start, |connection, _| {
            let moved = transfer(connection, n, false)?;
            // While there are hosts.
            all_agents().drain(..).try_for_each(Agent::stop)?;
            Ok(moved)
        })?;
        println!("{law}: {moved:?}");
        all.push(moved);
    }
    Ok(std::fs::write(
        "/out/moved.json",
        serde_json::to_vec(&all)?,
    )?)
}

/// Measures all of them, and writes the numbers.
pub fn measure(world: &World) -> Result<()> {
    let mut runs = vec![];
    for seed in SEEDS {
        let out = world.boot(1, seed, &["laws".to_owned()])?;
        for ((moved, profile), law) in transfers(out.path())?.into_iter().zip(LAWS) {
            runs.push(Run::of(law, seed, &moved, &profile));
        }
    }
    let path = world.root.join("docs").join(FILE);
    Ok(std::fs::write(path, serde_json::to_vec_pretty(&runs)?)?)
}

impl Run {
    fn of(law: &str, seed: u64, moved: &Moved, profile: &Profile) -> Run {
        let program = |name: &str| {
            profile
                .get(&format!("bpf:{name}"))
                .copied()
                .unwrap_or_default()
        };
        Run {
            law: law.to_owned(),
            seed,
            data_path: data_path(),
            frames: moved.frames,
            executed: profile::total(profile),
            orack_ingress: program("orack_ingress"),
            orack_egress: program("orack_egress"),
            make_orack: program("make_orack"),
            edge_dequeue: program("edge_dequeue"),
            step: program("step"),
        }
    }
}

/// The section of docs/cost.md.
pub fn markdown(directory: &Path) -> Result<String> {
    let runs: Vec<Run> = read_runs(directory, FILE)?;
    if runs.is_empty() {
        return Ok(String::new());
    }
    let mut out = TEXT.to_owned();
    for law in LAWS {
        let of: Vec<&Run> = runs.iter().filter(|run| run.law == law).collect();
        if of.is_empty() {
            continue; // not measured yet
        }
        let mean = |value: &dyn Fn(&Run) -> f64| {
            of.iter().map(|run| value(run)).sum::<f64>() / of.len() as f64
        };
        // What the law makes of an OR-ACK: the same packets arrive under each law.
        let of_law = |run: &Run| {
            let off = runs
                .iter()
                .find(|other| other.law == "off" && other.seed == run.seed);
            let off = off.map_or(0, |off| off.orack_ingress.instructions);
            let more = run.orack_ingress.instructions as f64 - off as f64;
            more / run.make_orack.calls.max(1) as f64
        };
        let a_call = |calls: Calls| calls.instructions as f64 / calls.calls.max(1) as f64;
        writeln!(
            out,
            "| `{law}` | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            mean(&|run| run.executed as f64 / run.frames as f64),
            mean(&|run| a_call(run.edge_dequeue)),
            mean(&|run| a_call(run.step)),
            mean(&|run| a_call(run.orack_ingress)),
            mean(&of_law),
            mean(&|run| a_call(run.orack_egress)),
            mean(&|run| a_call(run.make_orack)),
        )?;
    }
    if runs.iter().any(|run| run.data_path != data_path()) {
        writeln!(out, "\nThese rows were measured with an earlier data path.")?;
    }
    Ok(out)
}
