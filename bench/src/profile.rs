// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the plugin wrote and the guest's symbols, as instructions by function.

use std::{collections::BTreeMap, path::Path};

use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};

/// Where user programs end and the kernel begins.
const KERNEL: u64 = 1 << 63;

/// Instructions executed in a function itself, and how often it was entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    pub instructions: u64,
    pub calls: u64,
}

/// By function of the guest's kernel; all programs of the guest together are "user".
pub type Profile = BTreeMap<String, Calls>;

/// Reads `counts` (lines "address instructions runs") and `symbols` (/proc/kallsyms).
pub fn read(counts: &Path, symbols: &Path) -> Result<Profile> {
    let symbols = read_symbols(symbols)?;
    let text = std::fs::read_to_string(counts).with_context(|| counts.display().to_string())?;
    let mut profile = Profile::new();
    for line in text.lines() {
        let (address, instructions, runs) =
            block(line).with_context(|| format!("bad block {line:?}"))?;
        let (name, entry) = match symbols.range(..=address).next_back() {
            Some((start, name)) if address >= KERNEL => (name.as_str(), *start == address),
            _ => ("user", false),
        };
        let calls = profile.entry(name.to_owned()).or_default();
        calls.instructions += instructions * runs;
        calls.calls += if entry { runs } else { 0 };
    }
    Ok(profile)
}

/// All instructions by processor.
pub fn by_processor(counts: &Path) -> Result<Vec<u64>> {
    let text = std::fs::read_to_string(counts).with_context(|| counts.display().to_string())?;
    let mut all = vec![];
    for line in text.lines() {
        let bad = || format!("bad block {line:?}");
        let (_, instructions, runs) = block(line).with_context(bad)?;
        let processor: usize = line.split(' ').nth(3).with_context(bad)?.parse()?;
        all.resize(all.len().max(processor + 1), 0);
        all[processor] += instructions * runs;
    }
    Ok(all)
}

/// How often each function executes a locked instruction on a line of memory that several processors lock.
pub fn shared(locks: &Path, symbols: &Path) -> Result<BTreeMap<String, u64>> {
    let symbols = read_symbols(symbols)?;
    let text = std::fs::read_to_string(locks).with_context(|| locks.display().to_string())?;
    let mut rows = vec![];
    let mut processors: BTreeMap<u64, u32> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [memory, address, runs, mask] = fields.as_slice() else {
            bail!("bad lock {line:?}");
        };
        let memory = u64::from_str_radix(memory, 16)?;
        *processors.entry(memory).or_default() |= mask.parse::<u32>()?;
        rows.push((
            memory,
            u64::from_str_radix(address, 16)?,
            runs.parse::<u64>()?,
        ));
    }
    let mut shared = BTreeMap::new();
    for (memory, address, runs) in rows {
        let function = symbols.range(..=address).next_back();
        if processors[&memory].count_ones() > 1 {
            let name = function.map_or("?", |(_, name)| name.as_str());
            *shared.entry(name.to_owned()).or_default() += runs;
        }
    }
    Ok(shared)
}

fn block(line: &str) -> Option<(u64, u64, u64)> {
    let mut fields = line.split(' ');
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    Some((
        address,
        fields.next()?.parse().ok()?,
        fields.next()?.parse().ok()?,
    ))
}

/// Functions by address; a BPF program by its name without the hash of its code.
fn read_symbols(path: &Path) -> Result<BTreeMap<u64, String>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut symbols = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if matches!(kind, "t" | "T" | "w" | "W") {
            let name = match name
                .strip_prefix("bpf_prog_")
                .and_then(|n| n.split_once('_'))
            {
                Some((_, program)) => format!("bpf:{program}"),
                None => name.to_owned(),
            };
            symbols.insert(u64::from_str_radix(address, 16)?, name);
        }
    }
    Ok(symbols)
}

/// All instructions.
pub fn total(profile: &Profile) -> u64 {
    profile.values().map(|calls| calls.instructions).sum()
}

/// Where two profiles differ most, a line a function, per frame.
pub fn difference(before: &Profile, after: &Profile, frames: f64, lines: usize) -> String {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of = |profile: &Profile, name: &String| profile.get(name).copied().unwrap_or_default();
    let mut rows: Vec<(f64, f64, f64, f64, &String)> = names
        .into_iter()
        .map(|name| {
            let (a, b) = (of(before, name), of(after, name));
            (
                (b.instructions as f64 - a.instructions as f64) / frames,
                b.instructions as f64 / frames,
                a.calls as f64 / frames,
                b.calls as f64 / frames,
                name,
            )
        })
        .collect();
    rows.sort_by(|x, y| y.0.abs().total_cmp(&x.0.abs()));
    let all: f64 = rows.iter().map(|row| row.0).sum();
    let mut out =
        format!("{all:+9.1} instructions a frame in all; calls a frame before and after\n");
    for (added, now, calls_before, calls_after, name) in rows.into_iter().take(lines) {
        out +=
            &format!("{added:+9.1} to {now:8.1}  {calls_before:6.3} {calls_after:6.3}  {name}\n");
    }
    out
}
