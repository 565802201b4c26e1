// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What congestion controls cost: transfers in a machine with one processor, one for each. Inside the machine (`guest`)
//! and outside (`measure`, `markdown`). The numbers are in docs/cost-congestion.json.

use std::{fmt::Write as _, path::Path, process::Command};

use anyhow::{ensure, Result};
use serde::{Deserialize, Serialize};

use crate::{
    bed::{shell, Bed, Setup},
    guest::{on_prepared, transfer},
    host::{read_runs, transfers, World, SEEDS},
    profile::{self, Profile},
};

const FILE: &str = "cost-congestion.json";
const TEXT: &str = include_str!("congestion.md");
/// Their kernel names, how the names of their functions begin, and whether `onramp cc load` loads them.
const ALL: [(&str, &[&str], bool); 6] = [
    ("cubic", &["cubictcp_", "bictcp_"], false),
    ("dctcp", &["dctcp_"], false),
    ("bbr", &["bbr_"], false),
    ("tbtcp", &["bpf:tbtcp_"], true),
    ("timely", &["bpf:timely_"], true),
    ("rapid", &["bpf:rapid_", "bpf:onr_rapid_"], true),
];
/// What the first three share for windows.
const SHARED: [&str; 3] = ["tcp_slow_start", "tcp_cong_avoid_ai", "tcp_reno_cong_avoid"];

/// A transfer with a congestion control.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    name: String,
    seed: u64,
    frames: u64,
    acks: u64,
    /// Instructions of the whole machine.
    executed: u64,
    /// Instructions in functions of the congestion control.
    own: u64,
}

/// `guest congestion`.
pub fn guest() -> Result<()> {
    std::fs::write("/proc/sys/net/core/bpf_jit_kallsyms", "1")?;
    let mut all = vec![];
    for (n, (name, _, is_ours)) in ALL.iter().enumerate() {
        if *is_ours {
            onramp(&["cc", "load", name])?;
        }
        // New namespaces take it from the first.
        shell(&format!(
            "sysctl -qw net.ipv4.tcp_congestion_control={name}"
        ))?;
        let hook = || match *name {
            "rapid" => hook(name),
            _ => Ok(()),
        };
        let moved = on_prepared(Bed::ALL[0], Setup::Fq, hook, |connection, _| {
            transfer(connection, n, false)
        })?;
        shell("sysctl -qw net.ipv4.tcp_congestion_control=cubic")?;
        println!("{name}: {moved:?}");
        all.push(moved);
    }
    Ok(std::fs::write(
        "/out/moved.json",
        serde_json::to_vec(&all)?,
    )?)
}

/// Gives the devices of both hosts the programs of `name`. Only the network namespace is entered: the pins stay visible.
fn hook(name: &str) -> Result<()> {
    for host in ["a", "b"] {
        let namespace = format!("--net=/run/netns/{host}");
        let words = [
            &namespace,
            "/job/onramp",
            "cc",
            "load",
            name,
            "--dev",
            "eth0",
        ];
        let status = Command::new("nsenter").args(words).status()?;
        ensure!(status.success(), "nsenter {words:?} ended with {status}");
    }
    Ok(())
}

fn onramp(words: &[&str]) -> Result<()> {
    let status = Command::new("/job/onramp").args(words).status()?;
    ensure!(status.success(), "onramp {words:?} ended with {status}");
    Ok(())
}

/// Measures all of them, and writes the numbers.
pub fn measure(world: &World) -> Result<()> {
    let mut runs = vec![];
    for seed in SEEDS {
        let out = world.boot(1, seed, &["congestion".to_owned()])?;
        for ((moved, profile), (name, prefixes, _)) in transfers(out.path())?.into_iter().zip(ALL) {
            runs.push(Run {
                name: name.to_owned(),
                seed,
                frames: moved.frames,
                acks: moved.returned,
                executed: profile::total(&profile),
                own: own(&profile, prefixes),
            });
        }
    }
    let path = world.root.join("docs").join(FILE);
    Ok(std::fs::write(path, serde_json::to_vec_pretty(&runs)?)?)
}

fn own(profile: &Profile, prefixes: &[&str]) -> u64 {
    let is_own = |name: &str| {
        SHARED.contains(&name) || prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let chosen = profile.iter().filter(|(name, _)| is_own(name));
    chosen.map(|(_, calls)| calls.instructions).sum()
}

/// The section of docs/cost.md.
pub fn markdown(directory: &Path) -> Result<String> {
    let runs: Vec<Run> = read_runs(directory, FILE)?;
    if runs.is_empty() {
        return Ok(String::new());
    }
    let mut out = TEXT.to_owned();
    for (name, ..) in ALL {
        let of: Vec<&Run> = runs.iter().filter(|run| run.name == name).collect();
        if of.is_empty() {
            continue; // not measured yet
        }
        let mean = |part: &dyn Fn(&Run) -> u64, whole: &dyn Fn(&Run) -> u64| {
            let each = of.iter().map(|run| part(run) as f64 / whole(run) as f64);
            each.sum::<f64>() / of.len() as f64
        };
        writeln!(
            out,
            "| `{name}` | {:.0} | {:.0} | {:.0} | {:.2} |",
            mean(&|run| run.executed, &|run| run.frames),
            mean(&|run| run.own, &|run| run.acks),
            mean(&|run| run.own, &|run| run.frames),
            mean(&|run| run.acks, &|run| run.frames),
        )?;
    }
    Ok(out)
}
