// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The results as Markdown: docs/cost.md. Generated but for the reading in reading.md.

use std::fmt::Write as _;

use serde::Serialize;

use crate::{
    bed::{Bed, Setup},
    guest::Split,
    host::{data_path, Measured, Run},
};

/// The bounds of the project's goals: what may be added to the baseline's whole path, in per cent.
const TX_BOUND: f64 = 15.0;
const RX_BOUND: f64 = 5.0;

const READING: &str = include_str!("reading.md");
const PROGRAMS: [&str; 6] = [
    "edge_enqueue",
    "edge_dequeue",
    "step",
    "orack_ingress",
    "orack_egress",
    "make_orack",
];

/// The document.
pub fn markdown(runs: &[Run]) -> String {
    let beds: Vec<&[Run]> = runs.chunk_by(|a, b| a.bed == b.bed).collect();
    let mut out = READING.to_owned();
    let _ = writeln!(out, "\n<!-- data path {} -->", measured_data_path(runs));
    let _ = writeln!(out, "\n## Costs\n");
    rows(head(&mut out, COLUMNS), &beds, bed_row);
    let _ = writeln!(
        out,
        "\n## On-Ramp's own programs\n\nInstructions per call, without the kernel functions that the programs call.\n"
    );
    rows(head(&mut out, &program_columns()), &beds, program_row);
    out
}

/// docs/cost-table.json, for programs that use the numbers.
#[derive(Debug, Serialize)]
pub struct Table {
    /// Digest of the data path that was measured.
    data_path: String,
    links: Vec<Added>,
}

/// What On-Ramp adds to the baseline's whole paths, in per cent.
#[derive(Debug, Serialize)]
struct Added {
    link: String,
    /// Law final with OR-ACKs, of the sender's path.
    sender_percent: f64,
    /// The receiver's part.
    receiver_percent: f64,
    /// Both, of both.
    both_percent: f64,
}

/// The table, with a row for each bed.
pub fn cost_table(runs: &[Run]) -> Table {
    Table {
        data_path: measured_data_path(runs),
        links: added_by_bed(runs),
    }
}

/// Digest of the data path that was measured; one that is not this version's, if there are several.
fn measured_data_path(runs: &[Run]) -> String {
    let now = data_path();
    let other = runs.iter().find(|run| run.data_path != now);
    other.map_or(now, |run| run.data_path.clone())
}

fn added_by_bed(runs: &[Run]) -> Vec<Added> {
    let beds = runs.chunk_by(|a, b| a.bed == b.bed);
    beds.map(|runs| {
        let (tx, rx) = (split(runs, |s| s.parts.tx), split(runs, |s| s.parts.rx));
        let (sender, receiver) = (with_oracks(runs), receiver(runs));
        Added {
            link: link(runs[0].bed),
            sender_percent: 100.0 * sender / tx,
            receiver_percent: 100.0 * receiver / rx,
            both_percent: 100.0 * (sender + receiver) / (tx + rx),
        }
    })
    .collect()
}

/// What the sender pays for law final and OR-ACKs.
fn with_oracks(runs: &[Run]) -> f64 {
    let t = |setup| executed(runs, setup);
    t(Setup::EdgeFinal) - t(Setup::Fq) + t(Setup::Both) - t(Setup::LostLate)
}

/// What the receiver pays.
fn receiver(runs: &[Run]) -> f64 {
    executed(runs, Setup::LostEarly) - executed(runs, Setup::EdgeFinal)
}

const COLUMNS: &[&str] = &[
    "link",
    "frames per segment",
    "fq, sender",
    "sender, law off",
    "sender, law final",
    "sender with OR-ACKs",
    "as shipped",
    "fq, receiver",
    "receiver with OR-ACKs",
    "its programs",
    "line, per OR-ACK",
    "frames per OR-ACK",
    "spread",
];

fn program_columns() -> Vec<&'static str> {
    [&["link"], PROGRAMS.as_slice()].concat()
}

fn head<'a>(out: &'a mut String, columns: &[&str]) -> &'a mut String {
    let _ = writeln!(
        out,
        "| {} |\n|{}",
        columns.join(" | "),
        "---|".repeat(columns.len())
    );
    out
}

fn rows(out: &mut String, beds: &[&[Run]], row: fn(&[Run]) -> Vec<String>) {
    for runs in beds {
        let _ = writeln!(out, "| {} |", row(runs).join(" | "));
    }
}

/// What each end pays: set-ups that differ in one thing, subtracted.
fn bed_row(runs: &[Run]) -> Vec<String> {
    let t = |setup| executed(runs, setup);
    let tx = split(runs, |s| s.parts.tx);
    let rx = split(runs, |s| s.parts.rx);
    let law = t(Setup::EdgeFinal) - t(Setup::Fq);
    let shipped = t(Setup::Shipped) - t(Setup::Both);
    let an_orack = frames_an_orack(runs);
    vec![
        link(runs[0].bed),
        format!("{:.1}", frames_a_segment(runs)),
        format!("{tx:.0}"),
        added(t(Setup::EdgeOff) - t(Setup::Fq), tx, TX_BOUND),
        added(law, tx, TX_BOUND),
        added(with_oracks(runs), tx, TX_BOUND),
        added(with_oracks(runs) + shipped, tx, TX_BOUND),
        format!("{rx:.0}"),
        added(receiver(runs), rx, RX_BOUND),
        format!(
            "{:+.0}",
            programs(runs, Setup::LostEarly) - programs(runs, Setup::EdgeFinal)
        ),
        format!(
            "{:.0}",
            (t(Setup::LostLate) - t(Setup::LostEarly)) * an_orack
        ),
        format!("{an_orack:.1}"),
        spread(runs),
    ]
}

/// Instructions a call of each program.
fn program_row(runs: &[Run]) -> Vec<String> {
    let both = each(runs, Setup::Both).next().map(|m| &m.programs);
    let of = |name: &str| match both.and_then(|programs| programs.get(name)) {
        Some(calls) if calls.calls > 0 => {
            format!("{:.0}", calls.instructions as f64 / calls.calls as f64)
        }
        _ => "-".to_owned(),
    };
    let mut cells = vec![link(runs[0].bed)];
    cells.extend(PROGRAMS.iter().map(|name| of(name)));
    cells
}

fn link(bed: Bed) -> String {
    format!(
        "IPv{}, {}, GRO {}",
        if bed.ip6 { 6 } else { 4 },
        if bed.gso { "GSO" } else { "single frames" },
        if bed.gro { "on" } else { "off" },
    )
}

/// "+712 (8.3 %)", bold beyond the bound; a dash if it was not measured.
fn added(added: f64, to: f64, bound: f64) -> String {
    if added.is_nan() {
        return "-".to_owned();
    }
    let percent = 100.0 * added / to;
    let text = format!("{added:+.0} ({percent:.1} %)");
    if percent > bound {
        format!("**{text}**")
    } else {
        text
    }
}

fn each(runs: &[Run], setup: Setup) -> impl Iterator<Item = &Measured> {
    let all = runs.iter().flat_map(|run| &run.measured);
    all.filter(move |m| m.counted.setup == setup)
}

fn a_frame(m: &Measured) -> f64 {
    m.executed as f64 / m.counted.moved.frames as f64
}

/// Mean over the runs of all instructions a frame; not a number if the bed lacks the set-up.
fn executed(runs: &[Run], setup: Setup) -> f64 {
    mean(each(runs, setup).map(a_frame))
}

/// Mean over the runs of what On-Ramp's programs execute themselves, a frame.
fn programs(runs: &[Run], setup: Setup) -> f64 {
    let sum = |m: &Measured| {
        m.programs
            .values()
            .map(|calls| calls.instructions)
            .sum::<u64>()
    };
    mean(each(runs, setup).map(|m| sum(m) as f64 / m.counted.moved.frames as f64))
}

/// Mean over the runs of a part of the baseline, a frame.
fn split(runs: &[Run], part: impl Fn(&Split) -> f64) -> f64 {
    mean(
        runs.iter()
            .map(|run| part(&run.split) / run.split.moved.frames as f64),
    )
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn frames_a_segment(runs: &[Run]) -> f64 {
    mean(each(runs, Setup::Fq).map(|m| ratio(m.counted.moved.frames, m.counted.moved.segments)))
}

fn frames_an_orack(runs: &[Run]) -> f64 {
    mean(each(runs, Setup::Both).map(|m| ratio(m.counted.moved.frames, m.counted.oracks_sent)))
}

/// Largest difference between two runs of the same set-up, instructions a frame.
fn spread(runs: &[Run]) -> String {
    let of = |setup: Setup| {
        let values = each(runs, setup).map(a_frame);
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        high - low
    };
    let worst = Setup::ALL.into_iter().map(of).fold(0.0, f64::max);
    format!("{worst:.0}")
}

fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}
